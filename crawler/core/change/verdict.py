"""Verdict on whether a page changed, with the evidence that decided it."""

from msgspec import Struct

from crawler.core.change.change import Change, Evidence
from crawler.core.change.difference import NO_DIFFERENCE, Difference, measure_distance
from crawler.core.change.mask import NoiseMask
from crawler.core.page.fingerprint import count_distance_bits
from crawler.core.page.snapshot import Version


class Verdict(Struct, frozen=True):
    """The outcome of a visit, its evidence and its size.

    distance_bits: the SimHash distance of the two versions, 0 to 64. If blocks were compared, it is that of the page's
    own texts, else that of the main texts. None if no texts were compared.
    changed_share: the share of the page's own blocks that differ, 0 to 1; None unless the evidence is BLOCKS.
    significant: the significant difference; empty unless the evidence is BLOCKS.
    """

    change: Change
    evidence: Evidence
    distance_bits: int | None = None
    changed_share: float | None = None
    significant: Difference = NO_DIFFERENCE


class ComparedBlocks(Struct, frozen=True, kw_only=True):
    """The blocks of two versions, compared under a noise mask.

    difference: all blocks that differ in more than volatile words.
    significant: the part of `difference` that is the page's own.
    fallback_evidence: the evidence of the verdict if no block differs.
    is_variant: whether a part of the difference is not significant only because it is a known variant of the page.
    """

    mask: NoiseMask
    difference: Difference
    significant: Difference
    fallback_evidence: Evidence = Evidence.VOLATILE
    is_variant: bool = False


def judge_versions(before: Version | None, after: Version, compared: ComparedBlocks | None = None) -> Verdict:
    """Compare a page with its last Snapshot and return the verdict.

    Comparing with the last visit instead would miss a page that changes in many small steps.
    before: None for a page without a Snapshot.
    compared: None if the Snapshot's blocks are no longer available. Then only main text and shape (Evidence) count.
    If a version has no text (an image, an empty page), its title, links and bytes decide.
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
            distance = measure_distance(compared.difference, significant, compared.mask)
            return Verdict(Change.CHANGED, Evidence.BLOCKS, *distance, significant)
        evidence = Evidence.BOILERPLATE if compared.difference else compared.fallback_evidence
        return Verdict(Change.COSMETIC, Evidence.VARIANT if compared.is_variant else evidence, 0)
    if after.main_digest != before.main_digest:
        return Verdict(Change.CHANGED, Evidence.MAIN, bits)
    if after.shape_digest != before.shape_digest:
        return Verdict(Change.CHANGED, Evidence.SHAPE, bits)
    return Verdict(Change.COSMETIC, Evidence.MAIN, bits)


def _judge_textless(before: Version, after: Version) -> Verdict:
    """Compare two versions whose bytes differ and of which at least one has no text."""
    if (before.fingerprint is None) is (after.fingerprint is None):
        if after.text_digest != before.text_digest:
            return Verdict(Change.CHANGED, Evidence.TEXT)
        if not before.body_digest:  # discarded because the page is recrawled in full
            return Verdict(Change.UNCHANGED, Evidence.TEXT)
    return Verdict(Change.CHANGED, Evidence.BYTES)
