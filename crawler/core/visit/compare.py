"""A page beside its last Snapshot, worked out once for all who ask: is one more look wanted, what is the verdict?"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from crawler.core.change import (
    ENOUGH_RETURNS,
    Difference,
    NoiseMask,
    Observation,
    Rung,
    difference,
    form_of,
    has_pairs,
    learn_variants,
    numbers_of,
    returns_of,
    significant,
    update_with_difference,
    variant_of,
    wants_pair,
)
from crawler.core.http import PageKey
from crawler.core.page import Block, Parsed, left_out
from crawler.core.soft_errors import SoftError, SoftErrorSignals
from crawler.core.visit.soft_errors import signals_of, soft_error_of
from crawler.core.visit.visit import Baseline, Known, Target
from crawler.core.volatile import hidden_by_mask, wants_test


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs under a mask, and what of it is news.

    under: the mask that was known.  mask: the one by which it was compared, with what this look teaches.
    face: what the page shows, as far as it can tell a wall.
    hidden: what differs and is volatile, where nothing is news.  unseen: what decides where nothing differs.
    """

    under: NoiseMask = field(repr=False)
    mask: NoiseMask = field(repr=False)
    found: Difference
    significant: Difference
    signals: SoftErrorSignals | None
    hidden: Sequence[Block] = ()
    unseen: Rung = Rung.VOLATILE
    varies: bool = False  # some of it would be news, had the page not said it by turns before


def compare(
    target: Target, parsed: Parsed, baseline: Baseline, *, now: datetime, known: Known, settled: bool = False
) -> Comparison:
    """What separates a page from what it was. settled: the mask is taken as it stands."""
    mask = known.mask
    if settled:
        found = difference(baseline.blocks, parsed.blocks, mask.volatile)
    else:
        lesson = Observation(target.key, parsed.blocks, now, baseline.blocks, baseline.at, baseline.second_fetches)
        mask, found = update_with_difference(mask, lesson)
    fresh = significant(found, mask, then=baseline.at, now=now)
    if not settled:
        mask = _with_variants(mask, target.key, fresh, at=now)
    left = _unseen_before(fresh, mask, target.key)
    return Comparison(
        under=known.mask,
        mask=mask,
        found=found,
        significant=left,
        signals=signals_of(target, parsed, baseline, known=known),
        hidden=() if left or settled else hidden_by_mask(baseline.blocks, parsed.blocks, mask.volatile),
        unseen=_unseen(parsed, baseline),
        varies=left != fresh,
    )


def _with_variants(mask: NoiseMask, page: PageKey, fresh: Difference, *, at: datetime) -> NoiseMask:
    went = {_variant(place, mask, page) for place in (*(was for was, _ in fresh.replaced), *fresh.removed)}
    came = {_variant(place, mask, page) for place in (*(now for _, now in fresh.replaced), *fresh.added)}
    return replace(mask, variants=learn_variants(mask.variants, went=went, came=came, at=at))


def _variant(place: Block, mask: NoiseMask, page: PageKey) -> int:
    return variant_of(page, form_of(place, mask.volatile.masked(place)))


def _unseen_before(fresh: Difference, mask: NoiseMask, page: PageKey) -> Difference:
    """What is left without what this page says by turns: words, never numbers."""

    def numbers(place: Block) -> Sequence[str]:
        return numbers_of(mask.volatile.masked(place))

    def returned(place: Block) -> int:
        return returns_of(mask.variants, _variant(place, mask, page))

    def is_known(place: Block) -> bool:
        return not numbers(place) and returned(place) >= ENOUGH_RETURNS

    def are_known(was: Block, now: Block) -> bool:
        has_returned = returned(was) and returned(now) and max(returned(was), returned(now)) >= ENOUGH_RETURNS
        return bool(has_returned) and numbers(was) == numbers(now)

    return replace(
        fresh,
        replaced=tuple(pair for pair in fresh.replaced if not are_known(*pair)),
        removed=tuple(place for place in fresh.removed if not is_known(place)),
        added=tuple(place for place in fresh.added if not is_known(place)),
    )


def _unseen(parsed: Parsed, baseline: Baseline) -> Rung:
    """Why no piece of bodies that differ may: a rule hides some, its words are volatile, or no piece tells it."""
    if left_out(baseline.blocks) != left_out(parsed.blocks):
        return Rung.RULE
    then, now = ([(place.kind, place.text) for place in places] for places in (baseline.blocks, parsed.blocks))
    return Rung.VOLATILE if then != now else Rung.MARKUP


def wants_second_fetch(
    target: Target, comparison: Comparison, baseline: Baseline, *, now: datetime, known: Known
) -> bool:
    """Whether one more look at the page, at once, would tell more about what differs; not of a wall."""
    if soft_error_of(target, comparison.signals, now=now, known=known) not in {
        None,
        SoftError.SHRUNK,
        SoftError.REPLACED,
    }:
        return False
    left, mask = comparison.significant, comparison.mask
    if left or baseline.second_fetches:
        return wants_pair(left, mask, taken=len(baseline.second_fetches), returned=baseline.has_returned)
    return has_pairs(mask) and wants_test(comparison.hidden, mask.volatile, page=target.key, looks=mask.looks)
