"""Compare a page with its last Snapshot, once for both questions: is a second fetch wanted, and what is the verdict?"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from crawler.core.change.change import Rung
from crawler.core.change.difference import Difference, difference, significant
from crawler.core.change.mask import NoiseMask
from crawler.core.change.observation import (
    Observation,
    has_second_fetches_left,
    needs_second_fetch,
    update_with_difference,
)
from crawler.core.change.variants import ENOUGH_RETURNS, learn_variants, numbers_of, returns_of, variant_of
from crawler.core.http import PageKey
from crawler.core.noise.repeat_fetch import hidden_by_mask, wants_test
from crawler.core.page import Block, Parsed, left_out
from crawler.core.soft_errors import SoftErrorSignals
from crawler.core.visit.soft_errors import UNEXPLAINED, signals_of, soft_error_of
from crawler.core.visit.visit import Baseline, Known, Target


@dataclass(frozen=True, slots=True)
class Comparison:
    """The difference between a page and its Baseline under a mask, and its significant part.

    under: the domain's mask before this look.  mask: the one compared with, which has learnt from this look.
    signals: of a soft error, or None.  hidden: volatile blocks that differ, where nothing is significant.
    unseen: the rung that decides where no block differs.
    """

    under: NoiseMask = field(repr=False)
    mask: NoiseMask = field(repr=False)
    found: Difference
    significant: Difference
    signals: SoftErrorSignals | None
    hidden: Sequence[Block] = ()
    unseen: Rung = Rung.VOLATILE
    varies: bool = False  # some of it is a known variant of the page, and would be significant otherwise


def compare(
    target: Target, parsed: Parsed, baseline: Baseline, *, now: datetime, known: Known, settled: bool = False
) -> Comparison:
    """Compare a page with its Baseline. settled: the mask is taken as it stands, and learns nothing."""
    mask = known.mask
    if settled:
        found = difference(baseline.blocks, parsed.blocks, mask.volatile)
    else:
        seen = Observation(
            target.key, parsed.blocks, now, baseline.blocks, baseline.at, baseline.second_fetches, url=target.url
        )
        mask, found = update_with_difference(mask, seen)
    own = significant(found, mask, then=baseline.at, now=now)
    if not settled:
        mask = _with_variants(mask, target.key, own, at=now)
    left = _without_variants(own, mask, target.key)
    return Comparison(
        under=known.mask,
        mask=mask,
        found=found,
        significant=left,
        signals=signals_of(target, parsed, baseline, known=known),
        hidden=() if left or settled else hidden_by_mask(baseline.blocks, parsed.blocks, mask.volatile),
        unseen=_rung_unseen(parsed, baseline),
        varies=left != own,
    )


def _with_variants(mask: NoiseMask, page: PageKey, own: Difference, *, at: datetime) -> NoiseMask:
    went, came = ({variant_of(page, mask.form_of(block)) for block in side} for side in (own.went, own.came))
    return replace(mask, variants=learn_variants(mask.variants, went=went, came=came, at=at))


def _without_variants(own: Difference, mask: NoiseMask, page: PageKey) -> Difference:
    """A difference without the page's known variants; blocks with a number are never variants."""

    def is_own(was: Block | None, now: Block | None) -> bool:
        sides = [block for block in (was, now) if block is not None]
        returns = [returns_of(mask.variants, variant_of(page, mask.form_of(block))) for block in sides]
        if not all(returns) or max(returns) < ENOUGH_RETURNS:
            return True
        numbers = [numbers_of(mask.volatile.masked(block)) for block in sides]
        return numbers[0] != (numbers[1] if len(sides) == 2 else ())

    return own.only(is_own)


def _rung_unseen(parsed: Parsed, baseline: Baseline) -> Rung:
    """Why no block differs though the bodies do: a user's rule hides it, its words are volatile, or only markup did."""
    if left_out(baseline.blocks) != left_out(parsed.blocks):
        return Rung.RULE
    then, now = ([(block.kind, block.text) for block in blocks] for blocks in (baseline.blocks, parsed.blocks))
    return Rung.VOLATILE if then != now else Rung.MARKUP


def wants_second_fetch(
    target: Target, comparison: Comparison, baseline: Baseline, *, now: datetime, known: Known
) -> bool:
    """Whether a second fetch, at once, would tell more about what differs; never of an explained soft error."""
    soft_error = soft_error_of(target, comparison.signals, now=now, known=known)
    if soft_error is not None and soft_error not in UNEXPLAINED:
        return False
    left, mask = comparison.significant, comparison.mask
    if left or baseline.second_fetches:
        return needs_second_fetch(left, mask, taken=len(baseline.second_fetches), returned=baseline.has_returned)
    is_test_due = wants_test(comparison.hidden, mask.volatile, page=target.key, looks=mask.looks)
    return has_second_fetches_left(mask) and is_test_due
