"""Versions of a page: the digests used to compare them, and the Snapshot with the content."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from crawler.core.http.urls import Url
from crawler.core.page.block import BlockList
from crawler.core.page.compiled_scan import JoinedLines
from crawler.core.page.content import (
    PageContent,
    PageTexts,
    compute_shape,
    decode_text,
    extract_content,
    read_html,
)
from crawler.core.page.document import DocumentReader
from crawler.core.page.fingerprint import Fingerprint, compute_digest
from crawler.core.page.html import Markup, parse_html
from crawler.core.page.main_content.choice import read_main_content
from crawler.core.page.media_type import detect_kind
from crawler.core.page.outline import extract_blocks
from crawler.core.page.sample import Sample, digest_words
from crawler.core.page.selectors import FULL_VIEW, View
from crawler.core.page.shared_lines import NO_SHARED_LINES, SharedLines
from crawler.core.page.values import PageValue, read_values


class Version(Struct, frozen=True):
    """The digests of a Snapshot, which are stored with the page.

    number: 1 for a page's first Snapshot.  is_rendered: whether the body is the document that a browser built.
    """

    number: int
    body_digest: bytes
    text_digest: bytes  # of the title, all text, links, images and descriptions
    main_digest: bytes  # of the title and the main text
    shape_digest: bytes  # of the number of spaces on each line of the text
    fingerprint: Fingerprint | None
    is_rendered: bool = False


class Snapshot(Struct, frozen=True):
    """One version of a page with its content. headers: the stored headers of its response."""

    version: Version
    title: str
    language: str
    content_type: str
    text: str  # the main text, which loses nothing but boilerplate
    body: bytes
    reading: str = ""  # the content text: what a reader would call the page
    confidence: float = 1.0  # of the choice of the content, 0 to 1
    line_ranges: tuple[int, ...] = ()  # the lines of the content, see PageContent
    metadata: Mapping[str, Any] = field(default_factory=dict)
    distance_bits: int | None = None  # from the previous Snapshot
    headers: str = ""


def build_snapshot(
    content: PageContent, version: Version, body: bytes, media_type: str, *, bits: int | None = None, headers: str = ""
) -> Snapshot:
    """Build the Snapshot of a body. media_type: its Content-Type.  bits: the distance from the previous Snapshot."""
    return Snapshot(
        version,
        content.title,
        content.language,
        media_type,
        content.main,
        body,
        reading=content.reading,
        confidence=content.confidence,
        line_ranges=content.line_ranges,
        metadata=content.metadata,
        distance_bits=bits,
        headers=headers,
    )


class HeaderFields(Struct, frozen=True):
    """What the header of a response says about the page: its X-Robots-Tag and its Refresh, unchanged."""

    robots_tag: str | None = None
    refresh: str | None = None


class BlockForms(Struct, frozen=True):
    """The blocks of a page as hashes, which is all that the learning of boilerplate needs (core/change/boilerplate.py).

    forms: the path and the form of each block, in order.  texts: the hashes of the blocks that are texts, by form.
    """

    forms: Sequence[tuple[int, int]]
    texts: Mapping[int, int]


class Parsed(Struct, frozen=True):
    """A parsed body: its content and digests. The version's number is 0, because it is not assigned yet.

    content: without text; only its digest is needed.
    blocks: empty if not requested.  forms: those of the blocks, if they were requested instead.
    values: those that the view selects.
    """

    content: PageContent
    version: Version
    blocks: BlockList = ()
    sample: Sample = ()
    forms: BlockForms | None = None
    values: tuple[PageValue, ...] = ()


def parse_body(
    body: bytes,
    *,
    url: Url,
    content_type: str,
    header_fields: HeaderFields | None = None,
    with_blocks: bool = True,
    view: View = FULL_VIEW,
    reader: DocumentReader | None = None,
    shared: SharedLines = NO_SHARED_LINES,
) -> Parsed:
    """Parse a body and compute its digests and its fingerprint. This is the expensive part of a visit.

    header_fields: what the response's header says about the page.  with_blocks: whether to extract blocks.
    view: the parts to compare, and values; the digests always cover the whole body.
    reader: reads this body instead, as a non-HTML document; its exceptions are passed on.
    shared: the lines that the domain's pages share.
    """
    is_html = reader is None and detect_kind(body, content_type) == "html"
    markup = parse_html(body, content_type) if is_html else None
    headers = header_fields or HeaderFields()
    if markup is None:
        content = extract_content(
            body,
            url=url,
            content_type=content_type,
            robots_tag=headers.robots_tag,
            refresh=headers.refresh,
            reader=reader,
        )
        text, main = content.text.encode(), content.main.encode()
        texts = PageTexts(JoinedLines(text, main, main, compute_shape(content.text), len(content.text)))
    else:
        content, texts = read_html(body, markup, url=url, robots_tag=headers.robots_tag, refresh=headers.refresh)
    title, lines = content.title.encode(), texts.lines
    fingerprint, sample = digest_words(lines, body, url=url)
    version = Version(
        number=0,
        body_digest=compute_digest(body),
        text_digest=compute_digest(
            title, b"\n", lines.whole, "\n".join(("", texts.described, *content.links)).encode()
        ),
        main_digest=compute_digest(title, b"\n", lines.main),
        shape_digest=compute_digest(lines.shape),
        fingerprint=fingerprint,
    )
    split = partial(extract_blocks, body, content, url=url, content_type=content_type, markup=markup, reader=reader)
    blocks = split(view=view) if with_blocks else ()
    if markup is not None:
        complete = _add_reading(content, lines, markup, shared)
    else:
        complete = replace(content, text="", reading=content.main)
    values = read_values(markup, view.value_rules)
    return Parsed(complete, version, blocks, sample, values=values)


def _add_reading(content: PageContent, lines: JoinedLines, markup: Markup, shared: SharedLines) -> PageContent:
    """Add the main text with the line breaks of preformatted text, and the content text."""
    main = decode_text(lines.restored)
    chosen, reading = read_main_content(markup, title=content.title, shared=shared)
    return replace(
        content,
        main=main,
        reading=main if reading == main else reading,  # one string takes half the time to send to another process
        confidence=chosen.confidence,
        line_ranges=join_lines_into_ranges(chosen.lines),
    )


def join_lines_into_ranges(lines: Sequence[int]) -> tuple[int, ...]:
    """Return ascending numbers as ranges: first, end, first, end, and so on."""
    ranges: list[int] = []
    for line in lines:
        if ranges and ranges[-1] == line:
            ranges[-1] = line + 1
        else:
            ranges += (line, line + 1)
    return tuple(ranges)


def list_lines(ranges: Sequence[int]) -> list[int]:
    """Return the numbers in ranges, see `join_lines_into_ranges`."""
    return [line for first, end in zip(ranges[::2], ranges[1::2], strict=True) for line in range(first, end)]
