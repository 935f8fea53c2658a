"""What came of a request, as values: an answer, or why there is none, in text that can be stored and shown.

Content-Encoding is taken off with a limit on what comes out.
"""

import asyncio
import zlib
from datetime import timedelta
from urllib.parse import quote

import aiohttp

from crawler.core.http.kept_headers import kept_headers
from crawler.core.http.response import Fetched, NotModified, Reason, Unreached, Validators
from crawler.core.http.urls import Url, normalise
from crawler.fetch.connection import ProxyError, SilentError, Trip

MAX_VALIDATOR_CHARS = 2048
_ASCII = "".join(map(chr, range(0x21, 0x7F)))

ACCEPTED_ENCODINGS = "gzip, deflate"  # what every server has; better ones are not in the standard library

MAX_LAYERS = 3
MAX_MEMBERS = 64  # a gzip file may be several, one after the other; each copies the rest, so thousands are an attack
_GZIP = 16 + zlib.MAX_WBITS
_COMPRESSED = frozenset({"br", "zstd", "compress", "x-compress", "dcb", "dcz"})  # known, but not asked for


def fetched(response: aiohttp.ClientResponse, url: Url, body: bytes, trip: Trip) -> Fetched:
    """The answer to a request for this URL; body: as decoded."""
    headers = response.headers
    status = response.status
    robots_tags = headers.getall("X-Robots-Tag", ())
    return Fetched(
        status=status if 100 <= status <= 599 else 500,  # RFC 9110, 15: what is no status counts as a server's error
        body=body,
        received_bytes=trip.received,
        elapsed=_since(trip),
        content_type=printable(headers.get("Content-Type", "")),
        validators=_validators(response),
        date=_stated(response, "Date"),
        location=_location(response, url) if 300 <= status <= 399 else None,
        retry_after=_stated(response, "Retry-After"),
        robots_tag=printable(", ".join(robots_tags)) if robots_tags else None,
        refresh=_stated(response, "Refresh"),
        address=trip.address,
        declared_bytes=response.content_length,
        headers=kept_headers((name, printable(value)) for name, value in headers.items() if name.isprintable()),
    )


def not_modified(response: aiohttp.ClientResponse, trip: Trip, *, was_asked: bool) -> NotModified | Unreached:
    """A 304; garbage where nothing was said of a copy (RFC 9110, 15.4.5)."""
    if not was_asked:
        return unreached(Reason.GARBAGE, "not modified, though nothing was said of a copy", trip)
    return NotModified(
        elapsed=_since(trip),
        validators=_validators(response),
        date=_stated(response, "Date"),
        address=trip.address,
        received_bytes=trip.received,
    )


def _validators(response: aiohttp.ClientResponse) -> Validators:
    return Validators(etag=_verbatim(response, "ETag"), last_modified=_verbatim(response, "Last-Modified"))


def _verbatim(response: aiohttp.ClientResponse, name: str) -> str | None:
    value = response.headers.get(name)
    return value if value and can_be_sent(value) else None


def can_be_sent(value: str) -> bool:
    """Whether a validator can be stored and sent back as it came: no control characters, no bytes that are no UTF-8."""
    return value.isprintable() and len(value) <= MAX_VALIDATOR_CHARS


def _stated(response: aiohttp.ClientResponse, name: str) -> str | None:
    value = response.headers.get(name)
    return None if value is None else printable(value)


def _location(response: aiohttp.ClientResponse, url: Url) -> Url | None:
    target = response.headers.get("Location")
    if target is None:
        return None
    # Bytes that are no UTF-8 are escaped one by one, as browsers do.
    if not target.isascii():
        target = quote(target.encode("utf-8", "surrogateescape"), safe=_ASCII)
    return normalise(target, base=url)


# The first that fits: the client's exceptions are also each other's.
_REASONS: tuple[tuple[type[Exception], Reason], ...] = (
    (ProxyError, Reason.REFUSED),
    (aiohttp.ClientConnectorDNSError, Reason.DNS),
    (aiohttp.ClientSSLError, Reason.TLS),
    (aiohttp.ClientConnectorError, Reason.REFUSED),
    (aiohttp.ClientPayloadError, Reason.RESET),
    (aiohttp.ClientConnectionError, Reason.RESET),
    (SilentError, Reason.RESET),
    (aiohttp.ClientError, Reason.GARBAGE),
    (ValueError, Reason.GARBAGE),
    (OSError, Reason.RESET),
)


def reason_of(error: Exception, trip: Trip) -> tuple[Reason, str]:
    """What an exception of the client means, with a line for a person."""
    if trip.forbidden and not trip.tried:
        return Reason.ADDRESS, trip.forbidden
    reason = next(reason for kind, reason in _REASONS if isinstance(error, kind))
    said = str(error) or type(error).__name__
    if isinstance(error, aiohttp.ClientConnectorError):
        said = error.os_error.strerror or said
        if reason is Reason.REFUSED and isinstance(error.os_error, ConnectionResetError | BrokenPipeError):
            reason = Reason.RESET  # in the middle of the TLS handshake
    return reason, one_line(said)


def unreached(reason: Reason, detail: str, trip: Trip) -> Unreached:
    """No answer, and why; detail: a line for a person."""
    return Unreached(reason, _since(trip), detail, trip.received)


def _since(trip: Trip) -> timedelta:
    return timedelta(seconds=asyncio.get_running_loop().time() - trip.began)


def one_line(text: str) -> str:
    """The beginning of a text on one line, printable."""
    return printable(" ".join(text.split()))[:200]


def printable(text: str) -> str:
    """Text that can be stored and shown: nothing but printable characters."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "\ufffd" for char in text)


def decoded(body: bytes, encoding: str, *, limit_bytes: int, is_part: bool = False) -> bytes | Reason:
    """The body without its Content-Encoding, or why it cannot be had.

    encoding: the header's value; several are taken off from the last to the first. What is no known encoding ("utf-8")
    is ignored, as browsers do. RESET: it ends early. TOO_LARGE: it expands to more than limit_bytes, of which no more
    than that was ever in memory. GARBAGE: not what it says.
    is_part: the beginning is enough; what ends early or expands further gives what there is of it.
    """
    layers = [name for name in (part.strip().lower() for part in encoding.split(",")) if name]
    if not body or not layers:
        return body
    if len(layers) > MAX_LAYERS:
        return Reason.GARBAGE
    for layer in reversed(layers):
        result: bytes | Reason = body
        if layer in ("gzip", "x-gzip"):
            result = _inflated(body, _GZIP, limit_bytes, is_part=is_part)
        elif layer == "deflate":
            window_bits = zlib.MAX_WBITS if _has_zlib_header(body) else -zlib.MAX_WBITS
            result = _inflated(body, window_bits, limit_bytes, is_part=is_part)
        elif layer in _COMPRESSED:
            return Reason.GARBAGE
        if isinstance(result, Reason):
            return result
        body = result
    return body


def _inflated(data: bytes, window_bits: int, limit_bytes: int, *, is_part: bool) -> bytes | Reason:
    parts: list[bytes] = []
    room = limit_bytes
    for _ in range(MAX_MEMBERS):
        stream = zlib.decompressobj(window_bits)
        try:
            part = stream.decompress(data, room + 1)  # never 0, which would mean no limit
        except zlib.error:
            return Reason.GARBAGE
        room -= len(part)
        parts.append(part)
        if is_part and (room < 0 or not stream.eof):
            return b"".join(parts)[:limit_bytes]
        if room < 0:
            return Reason.TOO_LARGE
        if not stream.eof:
            return Reason.RESET
        data = stream.unused_data
        if window_bits != _GZIP or not data.startswith(b"\x1f\x8b"):  # what follows the last member is padding
            return parts[0] if len(parts) == 1 else b"".join(parts)
    return Reason.GARBAGE


def _has_zlib_header(data: bytes) -> bool:
    """RFC 9110 means zlib by "deflate", but some servers send the bare stream."""
    return len(data) > 1 and data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
