"""The names of reasons, as they are said to people."""

from crawler.core.http import Reason
from crawler.core.rendering import RenderChoice, RenderFailure
from crawler.crawl import LOGIN_FAILED, NO_CERTIFICATES, NO_SECRET

NO_ANSWER = {
    Reason.DNS: "its name is not known",
    Reason.REFUSED: "connection refused",
    Reason.RESET: "the connection broke",
    Reason.TLS: "no trustworthy encryption",
    Reason.DEADLINE: "no answer in time",
    Reason.TOO_LARGE: "larger than is read",
    Reason.GARBAGE: "an answer that is not HTTP",
    Reason.ADDRESS: "an address that may not be asked",
    Reason.LEASE: "cut short by the end of its lease",
}


RENDERING: dict[str, str] = {
    RenderChoice.ALWAYS: "rendered, as its user wants",
    RenderChoice.SAMPLE: "rendered, as one of the first of its kind",
    RenderChoice.NEEDED: "rendered, since such pages need it",
    RenderChoice.RETEST: "rendered, to see whether such pages still need none",
    RenderChoice.SHELL: "rendered, since without scripts it says next to nothing",
    RenderChoice.NEVER: "not rendered, as its user wants",
    RenderChoice.NO_SCRIPTS: "none that run, so no browser is needed",
    RenderChoice.NO_GAIN: "not rendered: they add nothing to such pages",
    RenderChoice.NO_BROWSER: "it would be rendered, and there is no browser",
    RenderFailure.CRASHED: "the browser's tab crashed",
    RenderFailure.HUNG: "it hung in the browser",
    RenderFailure.INCOMPLETE: "not all that they asked for came",
    RenderFailure.TOO_LARGE: "what they wrote is above the bound of a body",
    RenderFailure.NO_PAGE: "the browser made no page of it",
    RenderFailure.ENDING: "cut short by the end of its lease",
}
# How a reason begins, and what is said in place of that; what follows is said as it is.
ABOUT_ACCESS = {
    NO_SECRET: "the secret",
    LOGIN_FAILED: "its login failed:",
    NO_CERTIFICATES: "a file of certificates cannot be read:",
}


def in_words(reason: str) -> str:
    """The name of a reason as it is said to people: what a connection does is not what robots.txt does."""
    begin, _, rest = reason.partition(" ")
    if begin in ABOUT_ACCESS:
        return f"{ABOUT_ACCESS[begin]} {rest}"
    return NO_ANSWER[Reason(reason)] if reason in NO_ANSWER else reason
