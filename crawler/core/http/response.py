"""Answers to one request. They are values, not exceptions: whatever a server does is a finding."""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Literal

from crawler.core.http.urls import Url


class FailureReason(StrEnum):
    """Reason why no usable answer came. Each has its own consequence, and none erases what was learnt."""

    DNS = "dns"  # the name does not resolve
    REFUSED = "refused"  # nothing listens there, or the network is unreachable
    RESET = "reset"  # the connection broke in the middle of an answer
    TLS = "tls"  # no trustworthy encryption
    DEADLINE = "deadline"  # slower than the request's deadline
    TOO_LARGE = "too_large"  # the body, or what it expands to, is above the limit
    GARBAGE = "garbage"  # not HTTP, or headers beyond every limit
    ADDRESS = "address"  # the name leads to an address that we may not ask
    ROBOTS = "robots"  # robots.txt refuses the page, so it was not asked for
    LEASE = "lease"  # the lease ended before the answer came


@dataclass(frozen=True, slots=True)
class Validators:
    """ETag and Last-Modified of a version, kept and sent back verbatim (RFC 9110, section 8.8)."""

    etag: str | None = None
    last_modified: str | None = None

    def __bool__(self) -> bool:
        return bool(self.etag or self.last_modified)


NO_VALIDATORS = Validators()


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer with a status of its own, of any class.

    status: 100 to 599 but never 304.  body: decoded (no Content-Encoding left), empty for most redirects.
    received_bytes: what the body took on the wire, encoded, with the framing of its chunks and with interim answers.
    location: absolute and normalised, or None.  retry_after, refresh: raw header values.
    elapsed: from send to last byte.  headers: those that are kept, a line each (stored_headers.py).
    """

    status: int
    body: bytes = field(repr=False)
    received_bytes: int
    elapsed: timedelta
    content_type: str = ""
    validators: Validators = NO_VALIDATORS
    date: str | None = None
    location: Url | None = None
    retry_after: str | None = None
    robots_tag: str | None = None  # X-Robots-Tag
    refresh: str | None = None
    address: str | None = None  # the address that answered
    declared_bytes: int | None = None  # Content-Length, which a HEAD has without a body
    headers: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class NotModified:
    """A 304 to a conditional request: the server says that our copy is the current one."""

    elapsed: timedelta
    validators: Validators = NO_VALIDATORS
    date: str | None = None
    address: str | None = None
    received_bytes: int = 0  # of interim answers


@dataclass(frozen=True, slots=True)
class Unreached:
    """No usable answer."""

    reason: FailureReason
    elapsed: timedelta
    detail: str = ""  # one line for a person
    received_bytes: int = 0


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """How far one request may go, beside what holds for all.

    first_bytes: so many of a longer body are the answer's.  public_only: no private address is asked, whatever the
    domain's user allows.
    """

    first_bytes: int | None = None
    public_only: bool = False


DEFAULT_LIMITS = RequestLimits()
Response = Fetched | NotModified | Unreached
Method = Literal["GET", "HEAD", "POST"]


@dataclass(frozen=True, slots=True)
class BrowserRequest:
    """A request that is not ours to word: what a page in a browser asks for. headers: with names in lower case."""

    url: Url
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def get_header(self, name: str) -> str:
        """Return the value of the first header of that name, in lower case; empty where there is none."""
        return next((value for key, value in self.headers if key == name), "")

    @property
    def destination(self) -> str:
        """What the page wants it for (Fetch Standard, 2.2.5): "document", "script", "image"; empty where not said."""
        return self.get_header("sec-fetch-dest")


@dataclass(frozen=True, slots=True)
class BrowserResponse:
    """The answer to a Relay. headers: all, as they came.  body: decoded.  received_bytes: as in Fetched."""

    status: int
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    received_bytes: int = 0
