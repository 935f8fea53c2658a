"""Whether a page changed: the first rung of evidence that can decide, decides, and says so."""

from dataclasses import dataclass, field
from enum import StrEnum

from crawler.core.change.difference import NO_DIFFERENCE, Difference, measure_distance
from crawler.core.change.mask import NoiseMask
from crawler.core.page.fingerprint import count_distance_bits
from crawler.core.page.snapshot import Version


class Change(StrEnum):
    """The finding of one look."""

    ADDED = "added"
    UNCHANGED = "unchanged"
    COSMETIC = "cosmetic"  # differs, but not in what the page says; recorded, and teaches "unchanged"
    CHANGED = "changed"
    MOVED = "moved"
    GONE = "gone"
    RESTORED = "restored"  # was gone, moved or refused, and is there again
    UNKNOWN = "unknown"  # no good answer; teaches nothing and erases nothing


class Evidence(StrEnum):
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
    evidence: Evidence
    distance_bits: int | None = None
    changed_share: float | None = None
    significant: Difference = field(default=NO_DIFFERENCE, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedBlocks:
    """The blocks of two versions, compared under a mask.

    difference: all blocks that differ but for volatile words.  significant: the part of it that is the page's own.
    fallback_evidence: the rung that decides where no block differs.
    is_variant: some of it is a known variant of the page, and would be significant otherwise.
    """

    mask: NoiseMask = field(repr=False)
    difference: Difference
    significant: Difference
    fallback_evidence: Evidence = Evidence.VOLATILE
    is_variant: bool = False


def judge_versions(before: Version | None, after: Version, compared: ComparedBlocks | None = None) -> Verdict:
    """Judge a page against its last Snapshot, never against the last look: small edits cannot drift through.

    compared: None where the Snapshot's blocks cannot be had any more: then only the main text counts, and the shape of
    the page.
    Where neither side has any text (an image, an empty page) the bytes decide. Without their digest, which is forgotten
    when a page is to be read anew, they do so at the next look.
    """
    if before is None:
        return Verdict(Change.ADDED, Evidence.BYTES)
    if after.body_digest == before.body_digest:
        return Verdict(Change.UNCHANGED, Evidence.BYTES, 0)
    if before.fingerprint is None or after.fingerprint is None:
        return _judge_textless(before, after)
    bits = count_distance_bits(before.fingerprint, after.fingerprint)
    if after.text_digest == before.text_digest:
        return Verdict(Change.UNCHANGED, Evidence.TEXT, bits)
    if compared is not None:
        significant = compared.significant
        if significant:
            return Verdict(
                Change.CHANGED,
                Evidence.BLOCKS,
                *measure_distance(compared.difference, significant, compared.mask),
                significant,
            )
        evidence = Evidence.BOILERPLATE if compared.difference else compared.fallback_evidence
        return Verdict(Change.COSMETIC, Evidence.VARIANT if compared.is_variant else evidence, 0)
    if after.main_digest == before.main_digest:
        if after.shape_digest == before.shape_digest:
            return Verdict(Change.COSMETIC, Evidence.MAIN, bits)
        return Verdict(Change.CHANGED, Evidence.SHAPE, bits)
    return Verdict(Change.CHANGED, Evidence.MAIN, bits)


def _judge_textless(before: Version, after: Version) -> Verdict:
    """Judge two versions with other bytes, of which one at least says nothing."""
    if (before.fingerprint is None) is (after.fingerprint is None):
        if after.text_digest != before.text_digest:
            return Verdict(Change.CHANGED, Evidence.TEXT)
        if not before.body_digest:  # it is forgotten
            return Verdict(Change.UNCHANGED, Evidence.TEXT)
    return Verdict(Change.CHANGED, Evidence.BYTES)
