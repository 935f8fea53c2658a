"""Whether a page changed: the first rung of evidence that can decide, decides, and says so."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from crawler.core.change.compare import SAME, Difference
from crawler.core.http.urls import Url
from crawler.core.page.content import Reading, read
from crawler.core.page.fingerprint import Fingerprint, digest, distance_bits, fingerprint
from crawler.core.page.html import parsed
from crawler.core.page.media_type import kind_of
from crawler.core.page.outline import Outline, outline
from crawler.core.page.selectors import WHOLE, View


class Change(StrEnum):
    """What one look found."""

    FIRST = "first"
    SAME = "same"
    COSMETIC = "cosmetic"  # differs, but not in what the page says; recorded, and teaches "same"
    CHANGED = "changed"
    MOVED = "moved"
    GONE = "gone"
    BACK = "back"  # was gone or moved, and is there again
    UNKNOWN = "unknown"  # no good answer; teaches nothing and erases nothing


class Rung(StrEnum):
    """What decided."""

    NOT_MODIFIED = "not_modified"  # a 304
    HEAD = "head"  # length and date, without a body
    BYTES = "bytes"
    TEXT = "text"  # all that a reader or a link can tell
    VOLATILE = "volatile"  # what differs was proven to differ from look to look
    RULE = "rule"  # what differs is out of sight by a user's rule
    MARKUP = "markup"  # nothing differs piece by piece, only what no piece tells
    FRAME = "frame"  # what differs is the site's, on nearly all its pages
    VARIANT = "variant"  # what differs has gone and come back on this page before
    PIECES = "pieces"  # piece by piece
    # Where the last Snapshot's body cannot be had any more:
    MAIN = "main"  # the main text
    SHAPE = "shape"  # lines came or went, though not in what was taken for the main text
    STATUS = "status"  # the answer's status, or that there was none


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
class Verdict:
    """A Change, the rung that decided it, and its size in bits of SimHash distance where both sides have text.

    left: what is news, piece by piece, where the pieces decided.
    """

    change: Change
    rung: Rung
    distance_bits: int | None = None
    left: Difference = field(default=SAME, repr=False)


@dataclass(frozen=True, slots=True)
class Understood:
    """A body that was read, with what a judgement needs of it. The version has no number yet: 0.

    outline: its pieces, if they were wanted.
    """

    reading: Reading
    version: Version
    outline: Outline = field(default=(), repr=False)


def understand(
    body: bytes, *, url: Url, content_type: str, robots_tag: str | None, outlined: bool = True, view: View = WHOLE
) -> Understood:
    """Read a body and take its digests and its fingerprint: all of a look that costs time.

    view: what of it is compared; the digests are of the whole.
    """
    markup = parsed(body, content_type) if kind_of(body, content_type) == "html" else None
    reading = read(body, url=url, content_type=content_type, robots_tag=robots_tag, markup=markup)
    version = Version(
        number=0,
        body_digest=digest(body),
        text_digest=digest("\n".join((reading.title, reading.text, reading.beside, *reading.links)).encode()),
        main_digest=digest(f"{reading.title}\n{reading.main}".encode()),
        shape_digest=digest(" ".join(str(len(line.split())) for line in reading.text.split("\n")).encode()),
        fingerprint=fingerprint(reading.main),
    )
    places = outline(body, reading, url=url, content_type=content_type, view=view, markup=markup) if outlined else ()
    short = replace(reading, text="", beside="")  # of these only the digests are kept
    return Understood(short, version, places)


def judge(
    before: Version | None,
    after: Version,
    compared: tuple[Difference, Difference] | None = None,
    *,
    unseen: Rung = Rung.VOLATILE,
) -> Verdict:
    """Compare what was just read with the last Snapshot, never with the last look: small edits cannot drift through.

    compared: all that differs piece by piece but for volatile words, and what of it is news; None where that cannot be
    told any more. Then what differs outside the main text is no change as long as the shape of the page stays.
    unseen: what has decided where nothing differs piece by piece.
    Where neither side has any text (an image, an empty page) the bytes decide.
    """
    if before is None:
        return Verdict(Change.FIRST, Rung.BYTES)
    if after.body_digest == before.body_digest:
        return Verdict(Change.SAME, Rung.BYTES, 0)
    if before.fingerprint is None or after.fingerprint is None:
        if before.fingerprint is after.fingerprint and after.text_digest != before.text_digest:
            return Verdict(Change.CHANGED, Rung.TEXT)
        return Verdict(Change.CHANGED, Rung.BYTES)
    bits = distance_bits(before.fingerprint, after.fingerprint)
    if after.text_digest == before.text_digest:
        return Verdict(Change.SAME, Rung.TEXT, bits)
    if compared is not None:
        found, left = compared
        if left:
            return Verdict(Change.CHANGED, Rung.PIECES, bits, left)
        return Verdict(Change.COSMETIC, Rung.FRAME if found else unseen, bits)
    if after.main_digest == before.main_digest:
        if after.shape_digest == before.shape_digest:
            return Verdict(Change.COSMETIC, Rung.MAIN, bits)
        return Verdict(Change.CHANGED, Rung.SHAPE, bits)
    return Verdict(Change.CHANGED, Rung.MAIN, bits)
