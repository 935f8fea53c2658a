"""The text of a URL list as a stream: decompressed, decoded and made safe for an XML parser, within bounds."""

import codecs
import re
import zlib
from collections.abc import Iterator
from itertools import chain
from typing import NoReturn, TypeVar

from crawler.core.page.charset import decode_body

T = TypeVar("T", bytes, str)

CHUNK_BYTES = 1 << 16
MAX_LAYERS = 3  # of nested gzip; some servers compress a compressed file
MAX_MEMBERS = 1024  # of one gzip file
START_CHARS = 1 << 16  # searched for the first element
_GZIP_MAGIC = b"\x1f\x8b"
_CHARSET_BYTES = 4096

# The root element of a list, which may follow declarations, comments and output of broken servers.
_ROOT = re.compile(
    r"(?s)<!--.*?-->|<(?:[\w.-]+:)?(?P<root>urlset|sitemapindex|rss|rdf|feed|opml)(?=[\s>/])", re.IGNORECASE
)
_LIST_BODY = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?[^>]*\?>\s*|<!--.*?-->\s*|<!DOCTYPE[^>\[]*>\s*)*"
    rb"<(?:[\w.-]+:)?(?:urlset|sitemapindex|rss|rdf:RDF|feed)[\s>/]",
    re.DOTALL,
)
_SNIFFED_BYTES = 4096
_WEB_PAGE = re.compile(r"\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_DECLARED = re.compile(r"<!(?:ENTITY|ATTLIST)", re.IGNORECASE)
_ADDRESS = re.compile(r"\s*https?://\S", re.IGNORECASE)

# Replaces an ampersand that does not start one of XML's own references; a parser would drop the text that follows it.
# The character never occurs in texts (a Unicode noncharacter that XML allows).
AMPERSAND = "\ufdd0"
_BARE = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});)")
_REFERENCE_CHARS = 10  # of the longest reference
_STRAY = re.compile(r"<(?![A-Za-z_:/!?])")  # would break everything after it for a parser
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\ufdd0]")


class ListReadError(Exception):
    """Raised to stop reading a list.

    finding: the reason (UrlList.finding).  is_rejected: whether the part read so far is discarded too.
    """

    def __init__(self, finding: str, *, is_rejected: bool = False) -> None:
        super().__init__(finding)
        self.finding, self.is_rejected = finding, is_rejected


def decode_list(body: bytes, *, content_type: str, max_bytes: int) -> Iterator[str]:
    """Yield the text of a list in chunks. Raises ListReadError if it is truncated, too large or compressed too often.

    max_bytes: the limit of the decompressed size.  Memory use is bounded by the body and a few chunks.
    """
    view = memoryview(body)
    packed = (bytes(view[at : at + CHUNK_BYTES]) for at in range(0, len(body), CHUNK_BYTES))
    start, chunks = _peek(_limit_bytes(_unpack(packed, 0), max_bytes), b"", length=_CHARSET_BYTES)
    charset, _ = decode_body(start[:_CHARSET_BYTES], content_type, "xml")
    decoder = codecs.getincrementaldecoder(charset)("replace")
    for chunk in chain((start,), chunks):
        yield decoder.decode(chunk)
    yield decoder.decode(b"", True)  # noqa: FBT003  its only form


def _limit_bytes(chunks: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    bytes_left = max_bytes
    for chunk in chunks:
        bytes_left -= len(chunk)
        if bytes_left < 0:
            raise ListReadError("too_large")
        yield chunk


def _unpack(chunks: Iterator[bytes], layers: int) -> Iterator[bytes]:
    """Yield the chunks, decompressed if their first bytes are those of gzip, and again up to MAX_LAYERS times."""
    start, rest = _peek(chunks, b"", length=len(_GZIP_MAGIC))
    all_chunks = chain((start,), rest)
    if not start.startswith(_GZIP_MAGIC):
        yield from all_chunks
    elif layers == MAX_LAYERS:
        raise ListReadError("packed_too_often", is_rejected=True)
    else:
        yield from _unpack(_inflate(all_chunks), layers + 1)


def _inflate(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the decompressed content of a gzip file, member by member. Padding after the last one is ignored."""
    stream, members, data = zlib.decompressobj(16 + zlib.MAX_WBITS), 1, b""
    while True:
        if stream.eof:
            data = stream.unused_data or next(chunks, b"")
            if not data.startswith(_GZIP_MAGIC):
                return
            members += 1
            if members > MAX_MEMBERS:
                raise ListReadError("packed_too_often", is_rejected=True)
            stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
        elif not data and not (data := next(chunks, b"")):
            raise ListReadError("torn")
        try:
            part = stream.decompress(data, CHUNK_BYTES)
        except zlib.error as error:
            raise ListReadError("torn") from error
        data = stream.unconsumed_tail
        if part:
            yield part


def is_list_body(body: bytes) -> bool:
    """Return whether a body clearly is the markup of a sitemap or a feed, regardless of its media type."""
    return _LIST_BODY.match(body[:_SNIFFED_BYTES]) is not None


def _peek(chunks: Iterator[T], start: T, *, length: int) -> tuple[T, Iterator[T]]:
    """Return the first chunks, joined to at least `length` if there are enough, and the rest.

    start: the empty value of the chunks' type.  length: in bytes or characters.
    An error in the first chunks is raised when the rest is read, or at once if the list is rejected.
    """
    try:
        for chunk in chunks:
            start += chunk
            if len(start) >= length:
                break
    except ListReadError as stopped:
        if stopped.is_rejected:
            raise
        return start, map(_raise, (stopped,))
    return start, chunks


def _raise(stopped: ListReadError) -> NoReturn:
    raise stopped


def find_root(chunks: Iterator[str]) -> tuple[str, Iterator[str]]:
    """Return the root element's name in lower case, or "" for a list of lines, and the text from there on.

    Text before the root is dropped, so that no parser sees a declaration. Raises ListReadError if that text declares
    entities, which can multiply (billion laughs) or name other files, or if the text is not a list.
    """
    start, rest = _peek(chunks, "", length=START_CHARS)
    start = start.lstrip("\ufeff \t\r\n\0")
    if _ADDRESS.match(start):
        return "", chain((start,), rest)
    root = next((match for match in _ROOT.finditer(start) if match["root"]), None)
    before = start if root is None else start[: root.start()]
    if _DECLARED.search(before):
        raise ListReadError("declares_entities", is_rejected=True)
    if root is None or _WEB_PAGE.match(start):
        raise ListReadError("no_list", is_rejected=True)
    return root["root"].lower(), chain((start[root.start() :],), rest)


def to_xml_bytes(chunks: Iterator[str]) -> Iterator[bytes]:
    """Yield the chunks as UTF-8 for an XML parser, without forbidden characters and entities other than XML's own."""
    pending = ""
    for chunk in chunks:
        text = pending + chunk
        # A reference or a tag may continue in the next chunk.
        at = text.rfind("&", max(len(text) - _REFERENCE_CHARS, 0))
        if at < 0 or ";" in text[at:]:
            at = len(text) - text.endswith("<")
        pending = text[at:]
        yield _escape_text(text[:at])
    yield _escape_text(pending)


def _escape_text(text: str) -> bytes:
    return _BARE.sub(AMPERSAND, _STRAY.sub("", _NOT_XML.sub("", text))).encode("utf-8", "replace")
