"""Content-Encoding taken off, with a limit on what comes out."""

import zlib

from crawler.core.http.response import Reason

ACCEPTED = "gzip, deflate"  # what every server has; better ones are not in the standard library

MAX_LAYERS = 3
MAX_MEMBERS = 64  # a gzip file may be several, one after the other; each copies the rest, so thousands are an attack
_GZIP = 16 + zlib.MAX_WBITS
_COMPRESSED = frozenset({"br", "zstd", "compress", "x-compress", "dcb", "dcz"})  # known, but not asked for


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
