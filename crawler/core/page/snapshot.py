"""Versions of a page: the digests by which two of them are told apart, and the Snapshot with the content."""

from dataclasses import dataclass, field, replace

from crawler.core.http.urls import Url
from crawler.core.page.content import PageContent, extract_content
from crawler.core.page.document import DocumentReader, PickledAsCall
from crawler.core.page.fingerprint import Fingerprint, compute_digest, compute_fingerprint
from crawler.core.page.html import parse_html
from crawler.core.page.media_type import detect_kind
from crawler.core.page.outline import BlockList, extract_blocks
from crawler.core.page.selectors import FULL_VIEW, View


@dataclass(frozen=True, slots=True)
class Version(PickledAsCall):
    """The digests of a Snapshot, which are kept with its page.

    number: 1 for a page's first Snapshot.  is_rendered: its body is the document that a browser made of the page.
    """

    number: int
    body_digest: bytes
    text_digest: bytes
    main_digest: bytes
    shape_digest: bytes  # of the number of words on each line of the text
    fingerprint: Fingerprint | None
    is_rendered: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of a page with its content. headers: of the answer that brought it, those that are kept."""

    version: Version
    title: str
    language: str
    content_type: str
    text: str = field(repr=False)  # the main text
    body: bytes = field(repr=False)
    distance_bits: int | None = None  # from the Snapshot before it
    headers: str = field(default="", repr=False)


def build_snapshot(
    content: PageContent,
    version: Version,
    body: bytes,
    content_type: str,
    *,
    bits: int | None = None,
    headers: str = "",
) -> Snapshot:
    """Return the Snapshot of a body by the page that was read of it. bits: distance from the Snapshot before it."""
    return Snapshot(version, content.title, content.language, content_type, content.main, body, bits, headers)


@dataclass(frozen=True, slots=True)
class Parsed(PickledAsCall):
    """A parsed body: its content and digests. The version's number is 0, as it has none yet.

    blocks, sample: empty unless they were wanted.  sample: hashes of the text (core/novelty.py).
    """

    content: PageContent
    version: Version
    blocks: BlockList = field(default=(), repr=False)
    sample: tuple[int, ...] = field(default=(), repr=False)


def parse_body(
    body: bytes,
    *,
    url: Url,
    content_type: str,
    robots_tag: str | None,
    refresh: str | None = None,
    with_blocks: bool = True,
    view: View = FULL_VIEW,
    reader: DocumentReader | None = None,
) -> Parsed:
    """Parse a body and take its digests and its fingerprint: all of a look that costs time.

    with_blocks: its blocks are wanted.  view: the parts of it that are compared; the digests are of the whole.
    reader: of this body, which then is no web page; what it raises is passed on.
    """
    markup = parse_html(body, content_type) if reader is None and detect_kind(body, content_type) == "html" else None
    content = extract_content(
        body,
        url=url,
        content_type=content_type,
        robots_tag=robots_tag,
        refresh=refresh,
        markup=markup,
        reader=reader,
    )
    # How many words each line has, where one space stands between two.
    shape = " ".join([str(line.count(" ") + 1 if line else 0) for line in content.text.split("\n")])
    version = Version(
        number=0,
        body_digest=compute_digest(body),
        text_digest=compute_digest(
            "\n".join((content.title, content.text, content.images_and_meta, *content.links)).encode()
        ),
        main_digest=compute_digest(f"{content.title}\n{content.main}".encode()),
        shape_digest=compute_digest(shape.encode()),
        fingerprint=compute_fingerprint(content.main),
    )
    blocks: BlockList = ()
    if with_blocks:
        blocks = extract_blocks(
            body, content, url=url, content_type=content_type, view=view, markup=markup, reader=reader
        )
    short = replace(content, text="", images_and_meta="")  # only their digests are kept
    return Parsed(short, version, blocks)
