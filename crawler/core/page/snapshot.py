"""Versions of a page: the digests used to compare them, and the Snapshot with the content."""

from array import array
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from crawler.core.http.urls import Url
from crawler.core.page.block import BlockList
from crawler.core.page.content import PageContent, extract_content, restore_line_breaks
from crawler.core.page.document import DocumentReader
from crawler.core.page.fingerprint import Fingerprint, compute_digest, compute_fingerprint, read_words
from crawler.core.page.html import Markup, parse_html
from crawler.core.page.main_content.choice import build_content_text, choose_content
from crawler.core.page.media_type import detect_kind
from crawler.core.page.metadata import read_metadata
from crawler.core.page.outline import extract_blocks
from crawler.core.page.sample import Sample, sample_words
from crawler.core.page.selectors import FULL_VIEW, View
from crawler.core.page.shared_lines import NO_SHARED_LINES, SharedLines


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

    content: without text and images_and_meta; only their digests are needed.
    blocks: empty if not requested.  forms: those of the blocks, if they were requested instead.
    """

    content: PageContent
    version: Version
    blocks: BlockList = ()
    sample: Sample = ()
    forms: BlockForms | None = None


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
    view: the parts to compare; the digests always cover the whole body.
    reader: reads this body instead, as a non-HTML document; its exceptions are passed on.
    shared: the lines that the domain's pages share.
    """
    markup = parse_html(body, content_type) if reader is None and detect_kind(body, content_type) == "html" else None
    read = partial(extract_content, body, url=url, content_type=content_type, markup=markup, reader=reader)
    header_fields = header_fields or HeaderFields()
    content = read(robots_tag=header_fields.robots_tag, refresh=header_fields.refresh)
    # The number of spaces on each line, each of which separates two words.
    shape = array("I", [line.count(" ") for line in content.text.split("\n")]).tobytes()
    words = read_words(content.main)
    text = "\n".join((content.title, content.text, content.images_and_meta, *content.links))
    version = Version(
        number=0,
        body_digest=compute_digest(body),
        text_digest=compute_digest(text.encode()),
        main_digest=compute_digest(f"{content.title}\n{content.main}".encode()),
        shape_digest=compute_digest(shape),
        fingerprint=compute_fingerprint(content.main, words),
    )
    split = partial(extract_blocks, body, content, url=url, content_type=content_type, markup=markup, reader=reader)
    blocks = split(view=view) if with_blocks else ()
    if markup is not None:
        complete = _add_reading(content, markup, shared)
    else:
        complete = replace(content, text="", images_and_meta="", reading=content.main)
    return Parsed(complete, version, blocks, sample_words(words, body, url=url))


def _add_reading(content: PageContent, markup: Markup, shared: SharedLines) -> PageContent:
    """Add the content text and the metadata, and the line breaks of preformatted text in the main text.

    Leave out the whole text and the descriptions: only their digests are needed.
    """
    main, scan = restore_line_breaks(markup.scan, content.main), markup.content_scan
    chosen = choose_content(scan, title=content.title, shared=shared)
    reading = build_content_text(scan, chosen.lines)
    return replace(
        content,
        text="",
        images_and_meta="",
        main=main,
        reading=main if reading == main else reading,  # one string takes half the time to send to another process
        confidence=chosen.confidence,
        line_ranges=join_lines_into_ranges(chosen.lines),
        metadata=read_metadata(markup.scan),
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
