"""Markdown in chunks for search by meaning: a part under each heading, long ones cut where their own words say."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

from crawler.core.http.urls import Url
from crawler.export.cuts import cut, fence_after
from crawler.export.markdown import markdown_of
from crawler.store.report import TakenPage

# Whoever changes how pages are cut, or chunks named, raises FORM (page_index.py), so that the next sync reads all anew.
MOST_CHARS = 4000  # of one chunk: a thousand words or so, which models that embed texts take whole
LEAST_PART = 4  # a text is cut into chunks of a fourth of that at least
ID_BYTES = 16
NAMED_BY_CHARS = 200  # at the beginning of a chunk

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a page. headings: those it stands under, the outermost first.  text: Markdown, without these.

    id: of the page's URL and the headings; and unless it is the first under these, of the words it begins with, and its
    place among those that begin alike. So it stays whatever else changes on the page, and, unless it is the chunk's
    beginning, in the chunk.
    """

    id: str
    headings: tuple[str, ...]
    text: str


def chunks_of_page(page: TakenPage) -> Iterator[Chunk]:
    """The chunks of a page; needs its body. Tables are not padded, so that a wide cell changes no row but its own."""
    return chunks_of(markdown_of(page, pads_tables=False), url=page.url)


def chunks_of(markdown: str, *, url: Url, most_chars: int = MOST_CHARS) -> Iterator[Chunk]:
    """The chunks of a page, in its order; headings without a text of their own have none."""
    places: Counter[tuple[str, ...]] = Counter()
    for headings, text in _sections(markdown):
        for part in cut(text, least=most_chars // LEAST_PART, most=most_chars):
            named_by = (url, *headings)
            if places[named_by]:
                named_by += (f"\n{part.own.strip()[:NAMED_BY_CHARS]}",)  # no heading begins with a line's end
            places[named_by] += 1
            name = "\0".join((*named_by, str(places[named_by])))
            yield Chunk(blake2b(name.encode(), digest_size=ID_BYTES).hexdigest(), headings, part.text)


def _sections(markdown: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The texts between headings, each with those that it stands under."""
    open_ones: dict[int, str] = {}
    lines: list[str] = []
    fence = ""
    for line in markdown.splitlines(keepends=True):
        fence = fence_after(line, fence)
        heading = None if fence else _HEADING.match(line.rstrip())
        if heading is None:
            lines.append(line)
            continue
        yield tuple(open_ones.values()), "".join(lines)
        lines.clear()
        level = len(heading[1])
        open_ones = {each: text for each, text in open_ones.items() if each < level} | {level: heading[2]}
    yield tuple(open_ones.values()), "".join(lines)
