"""Whether a page changed: the first rung of evidence that can decide, decides, and says so."""

from dataclasses import dataclass, field
from enum import StrEnum

from crawler.core.change.difference import SAME, Difference, distance_between
from crawler.core.change.mask import NoiseMask
from crawler.core.page.fingerprint import distance_bits
from crawler.core.page.snapshot import Version


class Change(StrEnum):
    """The finding of one look."""

    FIRST = "first"
    SAME = "same"
    COSMETIC = "cosmetic"  # differs, but not in what the page says; recorded, and teaches "same"
    CHANGED = "changed"
    MOVED = "moved"
    GONE = "gone"
    BACK = "back"  # was gone, moved or refused, and is there again
    UNKNOWN = "unknown"  # no good answer; teaches nothing and erases nothing


class Rung(StrEnum):
    """The rung of the ladder of evidence that decided a verdict."""

    NOT_MODIFIED = "not_modified"  # a 304
    HEAD = "head"  # length and date, without a body
    BYTES = "bytes"
    TEXT = "text"  # text and links of the whole page
    VOLATILE = "volatile"  # what differs was proven to differ from fetch to fetch
    RULE = "rule"  # what differs is left out by a user's rule
    MARKUP = "markup"  # no block differs, only markup
    BOILERPLATE = "boilerplate"  # what differs is boilerplate, on nearly all pages of the site
    VARIANT = "variant"  # what differs has gone and come back on this page before
    BLOCKS = "blocks"  # block by block
    ENTRIES = "entries"  # of a sitemap or a feed: what it tells of other pages
    # Where the last Snapshot's body cannot be had any more:
    MAIN = "main"  # the main text
    SHAPE = "shape"  # lines came or went, though not in what was taken for the main text
    STATUS = "status"  # the answer's status, or that there was none


@dataclass(frozen=True, slots=True)
class Verdict:
    """A Change, the rung that decided it, and its size.

    distance_bits: SimHash distance of the two versions, 0 to 64: of the page's own text under one mask where blocks
    were compared, else of the main texts; None without text on both sides.
    changed_share: of the page's own blocks, where blocks decided.  significant: the blocks that count, there.
    """

    change: Change
    rung: Rung
    distance_bits: int | None = None
    changed_share: float | None = None
    significant: Difference = field(default=SAME, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedBlocks:
    """The blocks of two versions, compared under a mask.

    found: all blocks that differ but for volatile words.  significant: the part of it that is the page's own.
    unseen: the rung that decides where no block differs.
    varies: some of it is a known variant of the page, and would be significant otherwise.
    """

    mask: NoiseMask = field(repr=False)
    found: Difference
    significant: Difference
    unseen: Rung = Rung.VOLATILE
    varies: bool = False


def judge(before: Version | None, after: Version, compared: ComparedBlocks | None = None) -> Verdict:
    """Judge a page against its last Snapshot, never against the last look: small edits cannot drift through.

    compared: None where the Snapshot's blocks cannot be had any more: then only the main text counts, and the shape of
    the page.
    Where neither side has any text (an image, an empty page) the bytes decide. Without their digest, which is forgotten
    when a page is to be read anew, they do so at the next look.
    """
    if before is None:
        return Verdict(Change.FIRST, Rung.BYTES)
    if after.body_digest == before.body_digest:
        return Verdict(Change.SAME, Rung.BYTES, 0)
    if before.fingerprint is None or after.fingerprint is None:
        return _judge_textless(before, after)
    bits = distance_bits(before.fingerprint, after.fingerprint)
    if after.text_digest == before.text_digest:
        return Verdict(Change.SAME, Rung.TEXT, bits)
    if compared is not None:
        own = compared.significant
        if own:
            return Verdict(Change.CHANGED, Rung.BLOCKS, *distance_between(compared.found, own, compared.mask), own)
        rung = Rung.BOILERPLATE if compared.found else compared.unseen
        return Verdict(Change.COSMETIC, Rung.VARIANT if compared.varies else rung, 0)
    if after.main_digest == before.main_digest:
        if after.shape_digest == before.shape_digest:
            return Verdict(Change.COSMETIC, Rung.MAIN, bits)
        return Verdict(Change.CHANGED, Rung.SHAPE, bits)
    return Verdict(Change.CHANGED, Rung.MAIN, bits)


def _judge_textless(before: Version, after: Version) -> Verdict:
    """Judge two versions with other bytes, of which one at least says nothing."""
    if (before.fingerprint is None) is (after.fingerprint is None):
        if after.text_digest != before.text_digest:
            return Verdict(Change.CHANGED, Rung.TEXT)
        if not before.body_digest:  # it is forgotten
            return Verdict(Change.SAME, Rung.TEXT)
    return Verdict(Change.CHANGED, Rung.BYTES)
