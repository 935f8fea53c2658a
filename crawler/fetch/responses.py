"""Convert the result of a request to values: a response, or why there is none, in text that can be stored.

Bodies are decompressed with a limit on the decompressed size.
"""

import asyncio
import zlib
from datetime import timedelta
from urllib.parse import quote

from crawler.core.http.response import FailureReason, Fetched, NotModified, Unreached, Validators
from crawler.core.http.stored_headers import select_stored_headers
from crawler.core.http.urls import Url, normalize_url
from crawler.fetch.connection import Exchange, ResponseHead

_ASCII = "".join(map(chr, range(0x21, 0x7F)))

ACCEPTED_ENCODINGS = "gzip, deflate"  # Python 3.11 has no decoder of better ones

MAX_LAYERS = 3  # encodings of one body
MAX_MEMBERS = 64  # concatenated members of a gzip body; each costs a copy of the rest, so thousands are an attack
_GZIP = 16 + zlib.MAX_WBITS
_UNSUPPORTED_ENCODINGS = frozenset({"br", "zstd", "compress", "x-compress", "dcb", "dcz"})  # known, but not accepted


def build_fetched(head: ResponseHead, url: Url, body: bytes, exchange: Exchange) -> Fetched:
    """Build the response to a request for this URL. body: after decompression."""
    status = head.status
    robots_tags = head.get_all("x-robots-tag")
    printable = [(name, replace_unprintable(value)) for name, value in head.headers if name.isprintable()]
    return Fetched(
        status=status if 100 <= status <= 599 else 500,  # RFC 9110, 15: an invalid status counts as a server error
        body=body,
        received_bytes=exchange.received_bytes,
        elapsed=_compute_elapsed(exchange),
        content_type=replace_unprintable(head.get("content-type") or ""),
        validators=_read_validators(head),
        date=_read_header(head, "date"),
        location=_read_location(head, url) if 300 <= status <= 399 else None,
        retry_after=_read_header(head, "retry-after"),
        robots_tag=replace_unprintable(", ".join(robots_tags)) if robots_tags else None,
        refresh=_read_header(head, "refresh"),
        address=exchange.address,
        declared_bytes=head.content_length,
        headers=select_stored_headers(printable),
    )


def build_not_modified(head: ResponseHead, exchange: Exchange, *, is_conditional: bool) -> NotModified | Unreached:
    """Build a 304 response, or an Unreached (GARBAGE) if the request was not conditional (RFC 9110, 15.4.5)."""
    if not is_conditional:
        return build_unreached(FailureReason.GARBAGE, "status 304 for a request without validators", exchange)
    return NotModified(
        elapsed=_compute_elapsed(exchange),
        validators=_read_validators(head),
        date=_read_header(head, "date"),
        address=exchange.address,
        received_bytes=exchange.received_bytes,
    )


def _read_validators(head: ResponseHead) -> Validators:
    return Validators(etag=_read_validator(head, "etag"), last_modified=_read_validator(head, "last-modified"))


def _read_validator(head: ResponseHead, name: str) -> str | None:
    value = head.get(name)
    return value if value and can_be_sent(value) else None


def can_be_sent(value: str) -> bool:
    """Return whether a validator can be stored and sent back verbatim: printable, valid UTF-8 and not too long."""
    return value.isprintable() and len(value) <= 2048


def _read_header(head: ResponseHead, name: str) -> str | None:
    value = head.get(name)
    return None if value is None else replace_unprintable(value)


def _read_location(head: ResponseHead, url: Url) -> Url | None:
    target = head.get("location")
    if target is None:
        return None
    # Bytes that are not ASCII are percent-encoded, even if they are no valid UTF-8, as in browsers.
    if not target.isascii():
        target = quote(target.encode("utf-8", "surrogateescape"), safe=_ASCII)
    return normalize_url(target, base=url)


def build_unreached(reason: FailureReason, detail: str, exchange: Exchange) -> Unreached:
    """Build the value for a missing response. detail: a line for users."""
    return Unreached(reason, _compute_elapsed(exchange), format_one_line(detail), exchange.received_bytes)


def _compute_elapsed(exchange: Exchange) -> timedelta:
    return timedelta(seconds=asyncio.get_running_loop().time() - exchange.began_at)


def format_one_line(text: str) -> str:
    """Return the beginning of a text as one printable line."""
    return replace_unprintable(" ".join(text.split()))[:200]


def replace_unprintable(text: str) -> str:
    """Replace unprintable characters, so that the text can be stored and shown."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "\ufffd" for char in text)


def decode_body(body: bytes, encoding: str, *, limit_bytes: int, is_part: bool = False) -> bytes | FailureReason:
    """Decompress a body, or return why that fails.

    encoding: the Content-Encoding header; several encodings are undone from last to first. Unknown ones such as "utf-8"
    are ignored, as in browsers.
    is_part: whether the beginning is enough; then a body that ends early or is too large is cut.
    Reasons: RESET if the body ends early; TOO_LARGE if more than limit_bytes would be decompressed; GARBAGE if the body
    is not in its encoding, or the encoding is not supported, or there are too many encodings or gzip members.
    """
    layers = [name for name in (part.strip().lower() for part in encoding.split(",")) if name]
    if not body or not layers:
        return body
    if len(layers) > MAX_LAYERS:
        return FailureReason.GARBAGE
    for layer in reversed(layers):
        result: bytes | FailureReason = body
        if layer in ("gzip", "x-gzip"):
            result = _inflate(body, _GZIP, limit_bytes, is_part=is_part)
        elif layer == "deflate":
            window_bits = zlib.MAX_WBITS if _has_zlib_header(body) else -zlib.MAX_WBITS
            result = _inflate(body, window_bits, limit_bytes, is_part=is_part)
        elif layer in _UNSUPPORTED_ENCODINGS:
            return FailureReason.GARBAGE
        if isinstance(result, FailureReason):
            return result
        body = result
    return body


def _inflate(data: bytes, window_bits: int, limit_bytes: int, *, is_part: bool) -> bytes | FailureReason:
    parts: list[bytes] = []
    bytes_left = limit_bytes
    for _ in range(MAX_MEMBERS):
        stream = zlib.decompressobj(window_bits)
        try:
            part = stream.decompress(data, bytes_left + 1)  # never 0, which would mean no limit
        except zlib.error:
            return FailureReason.GARBAGE
        bytes_left -= len(part)
        parts.append(part)
        if is_part and (bytes_left < 0 or not stream.eof):
            return b"".join(parts)[:limit_bytes]
        if bytes_left < 0:
            return FailureReason.TOO_LARGE
        if not stream.eof:
            return FailureReason.RESET
        data = stream.unused_data
        if window_bits != _GZIP or not data.startswith(b"\x1f\x8b"):  # padding may follow the last member
            return parts[0] if len(parts) == 1 else b"".join(parts)
    return FailureReason.GARBAGE


def _has_zlib_header(data: bytes) -> bool:
    """Return whether the data is zlib, which "deflate" means in RFC 9110; some servers send the bare stream."""
    return len(data) > 1 and data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
