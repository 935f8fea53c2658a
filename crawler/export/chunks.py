"""Markdown in chunks for search by meaning: a part under each heading, long ones cut where their own words say."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

from crawler.core.http.urls import Url
from crawler.export.markdown import render_markdown
from crawler.export.markdown_splitter import find_open_fence, split_text
from crawler.store.report import ExportedPage

# Whoever changes how pages are cut, or chunks named, raises SCHEMA_VERSION (page_index.py), so that the next sync reads
# all anew.
MAX_CHARS = 4000  # of one chunk: a thousand words or so, which models that embed texts take whole
MIN_CHARS_DIVISOR = 4  # a text is cut into chunks of a fourth of that at least
ID_BYTES = 16
ID_TEXT_CHARS = 200  # at the beginning of a chunk

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


def chunk_page(page: ExportedPage) -> Iterator[Chunk]:
    """The chunks of a page; needs its body. Tables are not padded, so that a wide cell changes no row but its own."""
    return chunk_markdown(render_markdown(page, pads_tables=False), url=page.url)


def chunk_markdown(markdown: str, *, url: Url, max_chars: int = MAX_CHARS) -> Iterator[Chunk]:
    """The chunks of a page, in its order; headings without a text of their own have none."""
    occurrences: Counter[tuple[str, ...]] = Counter()
    for headings, text in _split_sections(markdown):
        for part in split_text(text, min_chars=max_chars // MIN_CHARS_DIVISOR, max_chars=max_chars):
            id_parts = (url, *headings)
            if occurrences[id_parts]:
                id_parts += (f"\n{part.source.strip()[:ID_TEXT_CHARS]}",)  # no heading begins with a line's end
            occurrences[id_parts] += 1
            name = "\0".join((*id_parts, str(occurrences[id_parts])))
            yield Chunk(blake2b(name.encode(), digest_size=ID_BYTES).hexdigest(), headings, part.text)


def _split_sections(markdown: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The texts between headings, each with those that it stands under."""
    open_headings: dict[int, str] = {}
    lines: list[str] = []
    fence = ""
    for line in markdown.splitlines(keepends=True):
        fence = find_open_fence(line, fence)
        heading = None if fence else _HEADING.match(line.rstrip())
        if heading is None:
            lines.append(line)
            continue
        yield tuple(open_headings.values()), "".join(lines)
        lines.clear()
        level = len(heading[1])
        open_headings = {each: text for each, text in open_headings.items() if each < level} | {level: heading[2]}
    yield tuple(open_headings.values()), "".join(lines)
