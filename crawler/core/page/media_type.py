"""The media type of a body, from its header and its bytes."""

import re
from typing import Literal

from crawler.core.page.charset import WIDE_STARTS

MediaKind = Literal["html", "text", "xml", "json", "pdf", "binary"]

SNIFFED_BYTES = 1445  # WHATWG MIME sniffing, 5.1

_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_XML_TYPES = frozenset({"text/xml", "application/xml"})
_JSON_TYPES = frozenset({"application/json", "text/json"})
# With these types, the bytes decide.
_UNSURE_TYPES = frozenset({"", "application/octet-stream", "unknown/unknown", "application/unknown", "*/*"})
_TEXT_TYPES = frozenset({"application/javascript", "application/x-javascript", "application/ecmascript"})
_PDF = b"%PDF-"
_MAGIC = (b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"PK\x03\x04", b"\x1f\x8b", b"RIFF", b"\x00\x00\x00", b"\x7fELF")
_LOOKS_LIKE_HTML = re.compile(
    rb"(?i)(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html|head|body|title|h1|div|table|script|p|a|br)[\s>/]"
)
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # the standard's "binary data bytes"


def detect_kind(body: bytes, content_type: str) -> MediaKind:
    """Return the kind of a body by its Content-Type, unless the bytes clearly differ (WHATWG MIME sniffing)."""
    mime = content_type.partition(";")[0].strip().lower()
    if body.startswith(_PDF):
        return "pdf"
    if mime in _HTML_TYPES:
        return "binary" if body.startswith(_MAGIC) else "html"
    start = body[:SNIFFED_BYTES].lstrip()
    binary = body.startswith(_MAGIC) or (_NOT_TEXT.search(start) and not body.startswith(WIDE_STARTS))
    if not binary and (mime in _XML_TYPES or mime.endswith("+xml")):
        return "html" if b"<html" in start.lower() else "xml"  # XHTML may be sent as XML
    if not binary and (mime in _JSON_TYPES or mime.endswith("+json")):
        return "json"
    if not binary and mime in _UNSURE_TYPES:
        return "html" if _LOOKS_LIKE_HTML.match(start) else "xml" if start.startswith(b"<?xml") else "text"
    return "text" if not binary and (mime.startswith("text/") or mime in _TEXT_TYPES) else "binary"
