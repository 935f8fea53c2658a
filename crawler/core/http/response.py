"""Responses to one request. Failures are values, not exceptions: whatever a server does is a result."""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Literal

from msgspec import Struct

from crawler.core.http.urls import Url


class FailureReason(StrEnum):
    """Why there is no usable response."""

    DNS = "dns"  # the name does not resolve
    REFUSED = "refused"  # the connection was refused, or the network is unreachable
    RESET = "reset"  # the connection broke during the response
    TLS = "tls"  # the TLS handshake or the certificate failed
    DEADLINE = "deadline"  # the request timed out
    TOO_LARGE = "too_large"  # the body, or its decoded form, exceeds the limit
    GARBAGE = "garbage"  # not HTTP, or headers exceed the limits
    ADDRESS = "address"  # the name resolves to a forbidden address
    ROBOTS = "robots"  # robots.txt disallows the page, so it was not requested
    LEASE = "lease"  # the lease, the budget or the crawl hours ended before the response arrived


class SoftError(StrEnum):
    """The kind of soft error: why a response is not a version of its page."""

    SOFT_404 = "soft_404"  # the domain's response for a path that cannot exist
    LOGIN = "login"  # a password form instead of the page's text
    SHARED_TEXT = "shared_text"  # one text, or redirects to one target, on several pages: maintenance, captcha, login
    TRUNCATED = "truncated"
    EMPTY = "empty_body"  # no bytes
    BLANK = "no_text"  # no text, or only boilerplate
    SHRUNK = "shrunk"  # another, much shorter text; perhaps a block page without other signs
    REPLACED = "replaced"  # another text that is not much shorter, without the site's boilerplate


class Validators(Struct, frozen=True):
    """ETag and Last-Modified of a version, stored and sent back verbatim (RFC 9110, section 8.8)."""

    etag: str | None = None
    last_modified: str | None = None

    def __bool__(self) -> bool:
        return bool(self.etag or self.last_modified)


NO_VALIDATORS = Validators()


class Fetched(Struct, frozen=True):
    """A response with any status but 304.

    status: 100 to 599.  body: decoded (without Content-Encoding), empty for most redirects.
    received_bytes: the size of the body on the wire, encoded, including chunk framing and interim responses.
    location: absolute and normalized, or None.  retry_after, refresh: raw header values.
    elapsed: from sending to the last byte.  headers: the stored headers, one per line (stored_headers.py).
    """

    status: int
    body: bytes
    received_bytes: int
    elapsed: timedelta
    content_type: str = ""
    validators: Validators = NO_VALIDATORS
    date: str | None = None
    location: Url | None = None
    retry_after: str | None = None
    robots_tag: str | None = None  # X-Robots-Tag
    refresh: str | None = None
    address: str | None = None  # the IP address of the server
    declared_bytes: int | None = None  # Content-Length, also of a HEAD
    headers: str = ""


class NotModified(Struct, frozen=True):
    """A 304 to a conditional request: the stored copy is current."""

    elapsed: timedelta
    validators: Validators = NO_VALIDATORS
    date: str | None = None
    address: str | None = None
    received_bytes: int = 0  # of interim responses


class Unreached(Struct, frozen=True):
    """No usable response."""

    reason: FailureReason
    elapsed: timedelta
    detail: str = ""  # one line for the user
    received_bytes: int = 0


class RequestLimits(Struct, frozen=True):
    """Limits of one request, in addition to the general ones.

    first_bytes: truncate a longer body to this size.  public_only: do not connect to private addresses, even if the
    domain's settings allow them.
    """

    first_bytes: int | None = None
    public_only: bool = False


DEFAULT_LIMITS = RequestLimits()
Response = Fetched | NotModified | Unreached
Method = Literal["GET", "HEAD", "POST"]


@dataclass(frozen=True, slots=True)
class BrowserRequest:
    """A request that a page in a browser makes. headers: with names in lower case."""

    url: Url
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def get_header(self, name: str) -> str:
        """Return the value of the first header with this name (lower case), or ""."""
        return next((value for key, value in self.headers if key == name), "")

    @property
    def destination(self) -> str:
        """Return the request destination (Fetch Standard, 2.2.5), such as "document", "script" or "image", or ""."""
        return self.get_header("sec-fetch-dest")


@dataclass(frozen=True, slots=True)
class BrowserResponse:
    """The response to a BrowserRequest. headers: all, unchanged.  body: decoded.  received_bytes: as in Fetched."""

    status: int
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    received_bytes: int = 0
