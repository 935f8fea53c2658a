"""The names of reasons, as they are said to people."""

from crawler.core.http import Reason

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


def in_words(reason: str) -> str:
    """The name of a reason as it is said to people: what a connection does is not what robots.txt does."""
    return NO_ANSWER[Reason(reason)] if reason in NO_ANSWER else reason
