"""Markdown in chunks for search by meaning: a part under each heading, long ones cut between paragraphs."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

from crawler.core.http import Url

MOST_CHARS = 4000  # of one chunk: a thousand words or so, which models that embed texts take whole
ID_BYTES = 16

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a page. headings: those it stands under, the outermost first.  text: Markdown, without these.

    id: of the page's URL, the headings, and the place among chunks under the same ones; so that it stays as long as
    these do, whatever else changes on the page.
    """

    id: str
    headings: tuple[str, ...]
    text: str


def chunks_of(markdown: str, *, url: Url, most_chars: int = MOST_CHARS) -> Iterator[Chunk]:
    """The chunks of a page, in its order; headings without a text of their own have none."""
    places: Counter[tuple[str, ...]] = Counter()
    for headings, text in _sections(markdown):
        for part in _cut(text, most_chars):
            places[headings] += 1
            name = "\0".join((url, *headings, str(places[headings])))
            yield Chunk(blake2b(name.encode(), digest_size=ID_BYTES).hexdigest(), headings, part)


def _sections(markdown: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The texts between headings, each with those that it stands under."""
    open_ones: dict[int, str] = {}
    lines: list[str] = []
    fence = ""
    for line in markdown.splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        heading = None if fence else _HEADING.match(line)
        if heading is None:
            lines.append(line)
            continue
        yield tuple(open_ones.values()), "\n".join(lines)
        lines.clear()
        level = len(heading[1])
        open_ones = {each: text for each, text in open_ones.items() if each < level} | {level: heading[2]}
    yield tuple(open_ones.values()), "\n".join(lines)


def _cut(text: str, most_chars: int) -> Iterator[str]:
    """A text in parts of at most so many characters, between paragraphs, or else between lines or wherever it must."""
    part = ""
    for piece in _pieces(text.strip("\n"), most_chars):
        if part and len(part) + len("\n\n") + len(piece) > most_chars:
            yield part
            part = ""
        part = f"{part}\n\n{piece}" if part else piece
    if part:
        yield part


def _pieces(text: str, most_chars: int) -> Iterator[str]:
    for paragraph in filter(str.strip, re.split(r"\n[ \t]*\n", text)):
        left = paragraph
        while len(left) > most_chars:
            end = max(left.rfind("\n", 1, most_chars), 0) or left.rfind(" ", 1, most_chars)
            end = end if end > 0 else most_chars
            yield left[:end]
            left = left[end:].lstrip("\n ")
        if left:
            yield left
