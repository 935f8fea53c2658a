"""What a crawl finds, and the names of reasons, as they are said to people."""

from http import HTTPStatus

from crawler.core.change.change import Change
from crawler.core.change.explain import MaskReason
from crawler.core.http.response import FailureReason
from crawler.core.rendering.outcome import RenderChoice, RenderFailure
from crawler.core.soft_errors import SoftError
from crawler.core.visit.lifecycle import BULK_REDIRECT, REDIRECT_TO_EXISTING
from crawler.engine.requests.login import LOGIN_FAILED
from crawler.engine.requests.session import NO_CERTIFICATES, NO_SECRET

# What a crawl found of pages that it names, in the order in which people want to see them.
HEADINGS = {
    Change.CHANGED: "Changed",
    Change.GONE: "Gone",
    Change.MOVED: "Moved",
    Change.RESTORED: "Back",
    Change.UNKNOWN: "Failed",
}
# Why a difference between two versions is no news, or a block is not compared.
NO_NEWS_WORDS = {
    MaskReason.NONE: "",
    MaskReason.WORDS: "these words differ from look to look",
    MaskReason.NOISE: "it came or went within seconds",
    MaskReason.UNSTABLE: "nothing in its place stands still",
    MaskReason.BOILERPLATE: "it is of the site, on nearly all pages",
    MaskReason.DATE: "it tells the day of the look",
    MaskReason.RULE: "a rule of yours leaves it out",
}
HTTP_PREFIX = "http_"  # how the reason begins where the status is the reason
REASON_WORDS: dict[str, str] = {
    FailureReason.DNS: "its name is not known",
    FailureReason.REFUSED: "connection refused",
    FailureReason.RESET: "the connection broke",
    FailureReason.TLS: "no trustworthy encryption",
    FailureReason.DEADLINE: "no answer in time",
    FailureReason.TOO_LARGE: "larger than is read",
    FailureReason.GARBAGE: "an answer that is not HTTP",
    FailureReason.ADDRESS: "an address that may not be asked",
    FailureReason.ROBOTS: "robots.txt forbids it",
    FailureReason.LEASE: "cut short by the end of its lease",
    SoftError.SOFT_404: "it shows what the domain shows for addresses that cannot exist",
    SoftError.LOGIN: "a login stands in place of its text",
    SoftError.SHARED_TEXT: "it shows what other pages also show in place of their texts",
    SoftError.TRUNCATED: "its body ends before its end",
    SoftError.EMPTY: "its body is empty",
    SoftError.BLANK: "it has no text any more",
    SoftError.SHRUNK: "next to nothing of its text is left; a second look decides",
    SoftError.REPLACED: "all of its text is another; a second look decides",
    REDIRECT_TO_EXISTING: "it redirects to another page that is kept; a second look decides",
    BULK_REDIRECT: "many pages redirect to one; later looks decide",
}

RENDERING_WORDS: dict[str, str] = {
    RenderChoice.ALWAYS: "rendered, as its user wants",
    RenderChoice.PROBE: "rendered, to see whether pages like it need a browser",
    RenderChoice.NEEDED: "rendered, since such pages need it",
    RenderChoice.NEVER: "not rendered, as its user wants",
    RenderChoice.NO_SCRIPTS: "none that run, so no browser is needed",
    RenderChoice.NO_SIGNS: "not rendered: nothing in its HTML says that a part of it is missing",
    RenderChoice.AWAITED: "not rendered until a page like it has shown whether that adds anything",
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
ACCESS_WORDS = {
    NO_SECRET: "the secret",
    LOGIN_FAILED: "its login failed:",
    NO_CERTIFICATES: "a file of certificates cannot be read:",
}


def format_reason(reason: str) -> str:
    """The name of a reason as it is said to people: what a connection does is not what robots.txt does."""
    begin, _, rest = reason.partition(" ")
    if begin in ACCESS_WORDS:
        return f"{ACCESS_WORDS[begin]} {rest}"
    if reason.startswith(HTTP_PREFIX):
        return _format_status(reason.removeprefix(HTTP_PREFIX))
    return REASON_WORDS.get(reason, reason)


def _format_status(status: str) -> str:
    """A status with its standard phrase (RFC 9110, section 15): 503 Service Unavailable."""
    try:
        return f"{status} {HTTPStatus(int(status)).phrase}"
    except ValueError:
        return f"status {status}"
