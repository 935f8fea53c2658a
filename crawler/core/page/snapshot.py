"""What is kept of a page's body: the digests by which two versions are told apart, and what a reader made of it."""

from dataclasses import dataclass, field, replace

from crawler.core.http import Url
from crawler.core.page.content import PageContent, extract
from crawler.core.page.fingerprint import Fingerprint, digest, fingerprint
from crawler.core.page.html import parse_html
from crawler.core.page.media_type import kind_of
from crawler.core.page.outline import BlockList, block_list
from crawler.core.page.selectors import WHOLE, View


@dataclass(frozen=True, slots=True)
class Version:
    """A Snapshot in short: all that a judgement needs of the last one.

    number: 1 for a page's first Snapshot.
    """

    number: int
    body_digest: bytes
    text_digest: bytes
    main_digest: bytes
    shape_digest: bytes  # of how many words stand on each line of the text
    fingerprint: Fingerprint | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of a page with its content."""

    version: Version
    title: str
    language: str
    content_type: str
    text: str = field(repr=False)  # the main text
    body: bytes = field(repr=False)
    distance_bits: int | None = None  # from the Snapshot before it


@dataclass(frozen=True, slots=True)
class Parsed:
    """A body that was read, with what a judgement needs of it. The version has no number yet: 0.

    outline: its pieces, if they were wanted.
    """

    content: PageContent
    version: Version
    blocks: BlockList = field(default=(), repr=False)


def parse(
    body: bytes, *, url: Url, content_type: str, robots_tag: str | None, outlined: bool = True, view: View = WHOLE
) -> Parsed:
    """Read a body and take its digests and its fingerprint: all of a look that costs time.

    view: what of it is compared; the digests are of the whole.
    """
    markup = parse_html(body, content_type) if kind_of(body, content_type) == "html" else None
    reading = extract(body, url=url, content_type=content_type, robots_tag=robots_tag, markup=markup)
    version = Version(
        number=0,
        body_digest=digest(body),
        text_digest=digest("\n".join((reading.title, reading.text, reading.beside, *reading.links)).encode()),
        main_digest=digest(f"{reading.title}\n{reading.main}".encode()),
        shape_digest=digest(" ".join(str(len(line.split())) for line in reading.text.split("\n")).encode()),
        fingerprint=fingerprint(reading.main),
    )
    places = block_list(body, reading, url=url, content_type=content_type, view=view, markup=markup) if outlined else ()
    short = replace(reading, text="", beside="")  # of these only the digests are kept
    return Parsed(short, version, places)
