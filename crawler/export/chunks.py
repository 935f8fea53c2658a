"""Chunks of pages for semantic search: one section per heading, with content-defined cuts in long sections."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

from crawler.core.http.urls import Url
from crawler.export.markdown import render_markdown
from crawler.export.markdown_splitter import find_open_fence, split_text
from crawler.store.report import ExportedPage

# Raise SCHEMA_VERSION (page_index.py) after a change of the cuts or ids, so that the next sync reads all pages again.
MAX_CHARS = 4000  # of one chunk, about a thousand words, which fits into most embedding models
ID_TEXT_CHARS = 200  # characters at the beginning of a chunk that its id may cover

_HEADING = re.compile(r"(#{1,6}) (.+)")  # outside of lists and quotes


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a page. headings: the headings above it, outermost first.  text: its Markdown, without these headings.

    id: a digest of the URL and the headings. For chunks after the first under the same headings, it also covers the
    first words and a counter of equal beginnings. So most edits elsewhere, or later in the chunk, do not change the id.
    """

    id: str
    headings: tuple[str, ...]
    text: str


def chunk_page(page: ExportedPage) -> Iterator[Chunk]:
    """Yield the chunks of a page read with its body. Tables are not padded, so a wide cell changes only its own row.

    Links have no targets, which would be noise in embeddings and change with the site's addresses.
    """
    return chunk_markdown(render_markdown(page, for_index=True), url=page.url)


def chunk_markdown(markdown: str, *, url: Url, max_chars: int = MAX_CHARS) -> Iterator[Chunk]:
    """Yield the chunks of a Markdown text in order; a heading without text yields none."""
    occurrences: Counter[tuple[str, ...]] = Counter()
    for headings, text in _split_sections(markdown):
        for part in split_text(text, min_chars=max_chars // 4, max_chars=max_chars):
            id_parts = (url, *headings)
            if occurrences[id_parts]:
                id_parts += (f"\n{part.source.strip()[:ID_TEXT_CHARS]}",)  # headings never begin with a newline
            occurrences[id_parts] += 1
            name = "\0".join((*id_parts, str(occurrences[id_parts])))
            yield Chunk(blake2b(name.encode(), digest_size=16).hexdigest(), headings, part.text)


def _split_sections(markdown: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the texts between headings, each with the headings above it."""
    open_headings: dict[int, str] = {}
    lines: list[str] = []
    fence = ""
    for line in markdown.splitlines(keepends=True):
        fence = find_open_fence(line, fence)
        heading = None if fence else _HEADING.fullmatch(line.rstrip())
        if heading is None:
            lines.append(line)
            continue
        yield tuple(open_headings.values()), "".join(lines)
        lines.clear()
        level = len(heading[1])
        open_headings = {each: text for each, text in open_headings.items() if each < level} | {level: heading[2]}
    yield tuple(open_headings.values()), "".join(lines)
