"""Whether a page changed: the first rung of evidence that can decide, decides, and says so."""

from dataclasses import dataclass, field
from enum import StrEnum

from crawler.core.change.difference import SAME, Difference
from crawler.core.page import Version, distance_bits


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
    MARKUP = "markup"  # no block differs, only what no block shows
    BOILERPLATE = "boilerplate"  # what differs is the site's, on nearly all its pages
    VARIANT = "variant"  # what differs has gone and come back on this page before
    BLOCKS = "blocks"  # block by block
    # Where the last Snapshot's body cannot be had any more:
    MAIN = "main"  # the main text
    SHAPE = "shape"  # lines came or went, though not in what was taken for the main text
    STATUS = "status"  # the answer's status, or that there was none


@dataclass(frozen=True, slots=True)
class Verdict:
    """A Change, the rung that decided it, and its size in bits of SimHash distance where both sides have text.

    left: what is news, piece by piece, where the pieces decided.
    """

    change: Change
    rung: Rung
    distance_bits: int | None = None
    significant: Difference = field(default=SAME, repr=False)


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
            return Verdict(Change.CHANGED, Rung.BLOCKS, bits, left)
        return Verdict(Change.COSMETIC, Rung.BOILERPLATE if found else unseen, bits)
    if after.main_digest == before.main_digest:
        if after.shape_digest == before.shape_digest:
            return Verdict(Change.COSMETIC, Rung.MAIN, bits)
        return Verdict(Change.CHANGED, Rung.SHAPE, bits)
    return Verdict(Change.CHANGED, Rung.MAIN, bits)
