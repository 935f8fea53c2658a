"""Texts for users: headings for kinds of changes, evidence, and reasons of failures, masking and rendering."""

from http import HTTPStatus

from crawler.core.change.change import Change, Evidence, MaskReason
from crawler.core.domain import LOGIN_FAILED, NO_CERTIFICATES, NO_SECRET
from crawler.core.http.response import FailureReason, SoftError
from crawler.core.page.values import ValueFinding, format_value
from crawler.core.rendering.outcome import RenderChoice, RenderFailure
from crawler.core.visit.state import BULK_REDIRECT, REDIRECT_TO_EXISTING

# Headings of the lists of pages in crawl results, in the order in which they are shown.
HEADINGS = {
    Change.CHANGED: "Changed",
    Change.GONE: "Gone",
    Change.MOVED: "Moved",
    Change.RESTORED: "Restored",
    Change.UNKNOWN: "Failed",
}
# Why a difference between two versions does not count as a change, or why a block is not compared.
MASK_REASON_WORDS = {
    MaskReason.NONE: "",
    MaskReason.WORDS: "words that differ at every visit",
    MaskReason.NOISE: "appears and disappears within seconds",
    MaskReason.UNSTABLE: "the text at this position changes all the time",
    MaskReason.BOILERPLATE: "boilerplate of nearly all pages of the site",
    MaskReason.DATE: "the date of the visit",
    MaskReason.RULE: "ignored by a rule",
}
# What decided the verdict of a visit.
EVIDENCE_WORDS: dict[str, str] = {
    Evidence.NOT_MODIFIED: "status 304 (not modified)",
    Evidence.HEAD: "length and date of a HEAD request",
    Evidence.BYTES: "the bytes",
    Evidence.TEXT: "the text and links",
    Evidence.VOLATILE: "a second fetch",
    Evidence.RULE: "a rule that ignores the difference",
    Evidence.MARKUP: "the markup",
    Evidence.BOILERPLATE: "the boilerplate",
    Evidence.VARIANT: "blocks that alternate",
    Evidence.BLOCKS: "the blocks",
    Evidence.ENTRIES: "the entries of the list",
    Evidence.MAIN: "the main text",
    Evidence.SHAPE: "lines outside the main text",
    Evidence.STATUS: "the status",
}
STATUS_PHRASES = {str(status.value): status.phrase for status in HTTPStatus}
HTTP_PREFIX = "http_"  # the prefix of reasons that are a status code
REASON_WORDS: dict[str, str] = {
    FailureReason.DNS: "the host name cannot be resolved",
    FailureReason.REFUSED: "connection refused",
    FailureReason.RESET: "connection reset",
    FailureReason.TLS: "TLS failed, or its certificate is not valid",
    FailureReason.DEADLINE: "no response in time",
    FailureReason.TOO_LARGE: "the response is too large",
    FailureReason.GARBAGE: "the response is not valid HTTP",
    FailureReason.ADDRESS: "its IP address may not be requested",
    FailureReason.ROBOTS: "robots.txt forbids it",
    FailureReason.LEASE: "interrupted by the end of the lease, the budget or the crawl hours",
    SoftError.SOFT_404: "soft 404: it looks like the domain's error page",
    SoftError.LOGIN: "it shows a login form instead of its text",
    SoftError.SHARED_TEXT: "it shows the same text as other pages instead of its own",
    SoftError.TRUNCATED: "its body is truncated",
    SoftError.EMPTY: "its body is empty",
    SoftError.BLANK: "it no longer has any text",
    SoftError.SHRUNK: "almost all of its text is missing; a second visit decides",
    SoftError.REPLACED: "all of its text was replaced; a second visit decides",
    REDIRECT_TO_EXISTING: "it redirects to another existing page; a second visit decides",
    BULK_REDIRECT: "many pages redirect to the same page; later visits decide",
}

RENDERING_WORDS: dict[str, str] = {
    RenderChoice.ALWAYS: "rendered, as set by a rule or setting",
    RenderChoice.PROBE: "rendered, to find out whether pages like it need a browser",
    RenderChoice.NEEDED: "rendered, because pages like it need a browser",
    RenderChoice.NEVER: "not rendered, as set by a rule or setting",
    RenderChoice.NO_SCRIPTS: "not rendered, because it has no scripts that run",
    RenderChoice.NO_SIGNS: "not rendered, because its HTML shows no sign of missing content",
    RenderChoice.AWAITED: "not rendered until another page like it shows whether rendering adds content",
    RenderChoice.NO_GAIN: "not rendered, because scripts add nothing to pages like it",
    RenderChoice.NO_BROWSER: "it would be rendered, but there is no browser",
    RenderFailure.CRASHED: "the browser tab crashed",
    RenderFailure.HUNG: "it hung in the browser",
    RenderFailure.INCOMPLETE: "some requests of its scripts failed",
    RenderFailure.TOO_LARGE: "the rendered page is too large",
    RenderFailure.NO_PAGE: "the browser produced no page",
    RenderFailure.ENDING: "stopped: the budget or the lease ended",
}
# Why a value has no number, or why it is uncertain; by ValueFinding.
FINDING_WORDS: dict[str, str] = {
    "": "",
    ValueFinding.NOT_FOUND: "nothing on the page matches",
    ValueFinding.NO_NUMBER: "what matches has no number",
    ValueFinding.AMBIGUOUS: "the number can be read in two ways: add the decimal mark to the rule",
    ValueFinding.TOO_LARGE: "the number is too large",
    ValueFinding.OTHER_UNIT: "the page shows another unit",
    ValueFinding.GONE: "the page is gone or has moved",
    ValueFinding.SEVERAL: "several different numbers match; the first is used",
}
# The first words of stored reasons about access, and what users see instead.
ACCESS_WORDS = {
    NO_SECRET: "the secret",
    LOGIN_FAILED: "its login failed:",
    NO_CERTIFICATES: "a certificate file cannot be read:",
}


def format_reading(number: float | None, unit: str, finding: str) -> str:
    """Format a value that was read from a page: its number with the unit, or why it has none."""
    return FINDING_WORDS[finding] if number is None else format_value(number, unit)


def format_reason(reason: str) -> str:
    """Format the reason of a failure for users. Unknown reasons are returned unchanged."""
    begin, _, rest = reason.partition(" ")
    if begin in ACCESS_WORDS:
        return f"{ACCESS_WORDS[begin]} {rest}"
    if reason.startswith(HTTP_PREFIX):
        status = reason.removeprefix(HTTP_PREFIX)
        # The standard phrase (RFC 9110, section 15), such as 503 Service Unavailable.
        return f"{status} {STATUS_PHRASES[status]}" if status in STATUS_PHRASES else f"status {status}"
    return REASON_WORDS.get(reason, reason)
