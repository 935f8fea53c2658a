"""The content of bodies that are not web pages, and a reader of JSON."""

import json
import re
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Protocol

from msgspec import Struct

from crawler.core.http.urls import Url, normalize_urls

PART_CHARS = 1 << 17  # a longer text is split into words part by part
_PART_END = re.compile(r"\s")

MAX_JSON_CHARS = 4_000_000  # of the source
MAX_TEXT_CHARS = 16_000_000  # of all lines of a JSON document; each line repeats the names around its value
MAX_JSON_DEPTH = 100  # Python's own parser fails at a thousand levels or more

# An object becomes a tuple of pairs (name, value): no duplicate name hides a value. Numbers keep their exact digits.
_PARSER = json.JSONDecoder(object_pairs_hook=tuple, parse_int=str, parse_float=str, parse_constant=str, strict=False)


class Document(Struct, frozen=True):
    """The title, text and links of a body that is not a web page.

    text: one line per block (see `collapse_lines`); empty for a PDF that cannot be read in full.
    main: of a feed, the text without lines about the file, such as its time of creation; None if it has no such lines.
    links: distinct, in order.
    """

    title: str = ""
    text: str = ""
    main: str | None = None
    links: tuple[Url, ...] = ()


class DocumentReader(Protocol):
    """A reader of bodies of some media type. It may raise any exception."""

    def __call__(self, body: bytes, *, url: Url, content_type: str) -> Document: ...


def build_document(text: str, *, title: str, links: Iterable[str], url: Url) -> Document:
    """Build a Document from a plugin's text: collapse whitespace, make links absolute and remove NULs.

    url: the base of relative links.  Lone surrogates become question marks.
    """
    text, title = (each.encode("utf-8", "replace").decode() for each in (text, title))
    plain_title = collapse_spaces(title).replace("\0", "")
    return Document(plain_title, collapse_lines(text.splitlines()), links=normalize_urls(links, base=url))


def collapse_lines(lines: Iterable[str]) -> str:
    """Join the non-empty lines into one text, with whitespace collapsed and NULs removed."""
    return join_lines(map(collapse_spaces, lines))


def join_lines(lines: Iterable[str]) -> str:
    """Join the non-empty lines into one text, with NULs removed."""
    text = "\n".join(filter(None, lines))
    return text.replace("\0", "") if "\0" in text else text


def collapse_spaces(text: str) -> str:
    """Separate the words of a text by single spaces.

    A long text is processed in parts, because its list of words takes ten times its memory.
    """
    if len(text) <= PART_CHARS:
        return " ".join(text.split())
    parts, start = [], 0
    while start < len(text):
        match = _PART_END.search(text, start + PART_CHARS)
        end = match.end() if match else len(text)
        parts.append(" ".join(text[start:end].split()))
        start = end
    return " ".join(filter(None, parts))


def read_json(source: str) -> Document:
    """Read JSON as one line per value, "path: value", sorted by name. Never raises.

    The elements of a list have no numbers, so that a new first element changes no other line; a dash precedes each, as
    in YAML. A source that is not JSON, or exceeds the bounds above, is read line by line.
    """
    try:
        value = _PARSER.decode(source if len(source) <= MAX_JSON_CHARS else "")  # an empty source is invalid JSON
        text = collapse_lines(_limit_lines(_iter_leaves(value, "", MAX_JSON_DEPTH)))
    except (ValueError, RecursionError):
        return Document(text=collapse_lines(source.splitlines()))
    return Document(text=text.encode("utf-8", "replace").decode())  # an escape can be half a surrogate pair


def _limit_lines(lines: Iterator[str]) -> Iterator[str]:
    chars_left = MAX_TEXT_CHARS
    for line in lines:
        chars_left -= len(line)
        if chars_left < 0:
            raise ValueError("too long")
        yield line


def _iter_leaves(value: object, path: str, depth: int) -> Iterator[str]:
    if depth == 0:
        raise ValueError("too deep")
    if isinstance(value, tuple) and value:
        for name, inner in sorted(value, key=itemgetter(0)):
            yield from _iter_leaves(inner, f"{path}.{name}" if path else name, depth - 1)
    elif isinstance(value, list) and value:
        for inner in value:
            lines = _iter_leaves(inner, f"{path}[]", depth - 1)
            yield f"- {next(lines)}"
            yield from lines
    else:
        written = value if isinstance(value, str) else "{}" if value == () else json.dumps(value)
        yield f"{path}: {written}" if path else written
