"""Detection of a body's charset, in the order of the HTML standard, and decoding.

Sources: WHATWG HTML, 13.2.3 (determining the character encoding); WHATWG Encoding (labels). Python's codecs decode.
"""

import codecs
import re
from contextlib import suppress

META_BYTES = 4096  # the standard says 1024, but real pages put scripts first

# An XML declaration with two bytes per character shows the byte order, like a BOM.
_WIDE_XML = ((b"<\0?\0x\0", "utf-16-le"), (b"\0<\0?\0x", "utf-16-be"))
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# A body that starts like one of these is text although it contains NUL bytes.
WIDE_STARTS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, *(start for start, _ in _WIDE_XML))

_PARAMETER = re.compile(r"(?i)(?:^|[;,\s])charset\s*=\s*[\"']?\s*([^\s;\"',]+)")
_CONTENT = re.compile(
    rb"(?i)charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:\"([^\"]*)\"|'([^']*)'|([^\t\n\f\r ;\"'][^\t\n\f\r ;]*))"
)
_XML = re.compile(rb"<\?xml\s[^>]*?\bencoding\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_MARKUP = re.compile(rb"(?i)<(?:(!--)|(meta)(?=[\t\n\f\r /])|(/?[a-z][^\t\n\f\r >]*+)|[!/?])")
_ATTRIBUTE = re.compile(
    rb"""[\t\n\f\r /]*+ (=?[^\t\n\f\r />=]*+)
         (?: [\t\n\f\r ]*+ = [\t\n\f\r ]*+ (?: "([^"]*+)(?:"|\Z) | '([^']*+)(?:'|\Z) | ([^\t\n\f\r >]*+) ) )?""",
    re.VERBOSE,
)
_JAPANESE_ESCAPE = re.compile(rb"\x1b(?:\$[@B]|\([IJ])")

# Python's codecs of these names cover less than what the web means by them.
_SUPERSET_CODECS = {"gbk": "gb18030", "big5": "big5hkscs", "iso8859-11": "cp874", "iso8859-1": "cp1252"}
_SUPERSET_CODECS |= {"shift_jis": "cp932", "euc_kr": "cp949", "iso2022_jp": "iso2022_jp_ext"}
_UTF8_LABELS = frozenset({"utf-8", "utf8"})  # labels of nearly all pages
# Labels of the standard that resiliparse lacks. A page that declares x-user-defined is decoded as windows-1252.
_MORE_LABELS = {"x-mac-cyrillic": "mac-cyrillic", "x-mac-ukrainian": "mac-cyrillic", "x-user-defined": "cp1252"}


def decode_body(body: bytes, content_type: str, kind: str) -> tuple[str, str]:
    """Return the charset, as the name of a Python codec, and the text. Never raises; invalid bytes become U+FFFD.

    By precedence: the BOM, the Content-Type header, the declaration in a body of kind "html" or "xml", or a guess.
    """
    for bom, name in _BOMS:
        if body.startswith(bom):
            return name, body[len(bom) :].decode(name, "replace")
    header_charset = _PARAMETER.search(content_type)
    charset = find_codec(header_charset[1]) if header_charset else None
    if charset is None and kind in {"html", "xml"}:
        charset = _find_declared_charset(body, kind)
    return _guess_charset(body) if charset is None else (charset, body.decode(charset, "replace"))


def find_codec(label: str) -> str | None:
    """Return the Python codec for a label of the Encoding standard; None for unknown and unsafe ones, such as utf-7."""
    label = label.strip("\t\n\f\r ").lower()
    if label in _UTF8_LABELS:
        return "utf-8"
    from resiliparse.parse.encoding import map_encoding_to_html5  # noqa: PLC0415  few pages need it

    name = _MORE_LABELS.get(label) or map_encoding_to_html5(label, fallback_utf8=False)
    return _SUPERSET_CODECS.get(name, name) if name else None


def _find_declared_charset(body: bytes, kind: str) -> str | None:
    """Return the charset that a page declares in its first bytes, or None."""
    for start, name in _WIDE_XML:
        if body.startswith(start):
            return name
    beginning = body[:META_BYTES]
    by_meta = _find_meta_charset(beginning) if kind == "html" else None
    declared = _XML.match(beginning)
    return by_meta or (_resolve_label(declared[1] or declared[2] or b"") if declared else None)


def _find_meta_charset(start: bytes) -> str | None:
    """Return the first known charset that a meta element names. Comments and attribute values are skipped."""
    position = 0
    while match := _MARKUP.search(start, position):
        is_comment, is_meta, tag = match.groups()
        if is_meta or tag:
            attributes, position = _parse_attributes(start, match.end())
            charset = _get_meta_charset(attributes) if is_meta else None
            if charset is not None:
                return charset
        else:
            end = b"-->" if is_comment else b">"
            at = start.find(end, match.start() + 2)  # an empty comment ends with its own dashes: <!-->
            if at < 0:
                return None
            position = at + len(end)
    return None


def _parse_attributes(start: bytes, position: int) -> tuple[dict[bytes, bytes], int]:
    """Return the attributes of a tag, the first of each name, and the position after the last one."""
    attributes: dict[bytes, bytes] = {}
    while attribute := _ATTRIBUTE.match(start, position):
        position = attribute.end()
        name, *values = attribute.groups()
        if not name:
            break
        attributes.setdefault(name.lower(), next((value for value in values if value is not None), b""))
    return attributes, position


def _get_meta_charset(meta: dict[bytes, bytes]) -> str | None:
    label = meta.get(b"charset")
    if label is None and meta.get(b"http-equiv", b"").lower() == b"content-type":
        match = _CONTENT.search(meta.get(b"content", b""))
        label = (match[1] or match[2] or match[3] or b"") if match else None
    return None if label is None else _resolve_label(label)


def _resolve_label(label: bytes) -> str | None:
    """Return the codec of a label that was read as ASCII; UTF-8 for UTF-16, in which the label would be unreadable."""
    name = find_codec(label.decode("ascii", "replace"))
    return "utf-8" if name is not None and name.startswith("utf-16") else name


def _guess_charset(body: bytes) -> tuple[str, str]:
    """Guess charset and text from the bytes: ISO-2022-JP by its escapes, UTF-8 if valid, else the likeliest one."""
    for name in ("iso2022_jp_ext", "utf-8") if _JAPANESE_ESCAPE.search(body) else ("utf-8",):
        with suppress(UnicodeDecodeError):
            return name, body.decode(name)
    from resiliparse.parse.encoding import detect_encoding  # noqa: PLC0415  few pages need it

    charset = find_codec(detect_encoding(body) or "") or "cp1252"
    return charset, body.decode(charset, "replace")
