"""The record of a source of signals in one domain, learnt from looks: how much of what it says is true, and all.

A look at a page tells whether the page has changed, and how many signals came since the last look is known. Looks that
signals bring about are no fair sample of a page's life, so each figure is counted over a time that does not depend on
what it counts:

- False signals, over the time of all looks. Those that came without a change are false; where there was a change, how
  many of the signals were true is not known, and their expectation is taken in place of the number (one step of
  expectation maximisation a look). Over looks without a change only, their rate would come out too high: a gap that a
  signal ends is short, and most short gaps hold no change.
- True signals, over the changes that the beliefs expected in the time of all looks.
- Changes that were not told, over the changes expected in gaps without a signal: whatever the source tells and makes
  up, the changes that it misses come at their own times. Beliefs that are too fast or too slow cancel out.

All this supposes a source that errs by chance. One that lies may do so in any way, so it has a voice only as long as
what looks find is likelier with its word than without: the logarithms of these chances add up, within bounds, so that
long merit does not cover fresh lies (Page, "Continuous inspection schemes", 1954; Dawid, "Prequential analysis", 1984).
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from crawler.core.freshness.estimates import RateEstimate, compute_change_chance
from crawler.core.freshness.signals import MAX_COUNTED, SourceQuality, build_signal_state, compute_aged_days

USUAL_RECALL, USUAL_CHANGES = 0.1, 15.0  # of a source that was never heard, and as how many changes that counts
MIN_PRIOR_WEIGHT = 0.07  # of these, however many looks have been made
USUAL_NOISE, USUAL_DAYS = 0.06, 20.0  # per page and day, and as how many page-days that counts
VISITS_REMEMBERED = 300.0  # older ones fade
# About as often a list is read. It tells a page once, however often that has changed since: of pages that change many
# times between, a source that misses nothing seems to miss most.
LIST_READ_DAYS = 1.0
FULL_TRUST_MERIT, MAX_MERIT, MIN_MERIT = 3.0, 6.0, -3.0  # of merit, in nats: e^3 is odds of twenty to one
ARRIVALS_REMEMBERED_DAYS, USUAL_REMEMBERED_DAYS = 7.0, 90.0
FEW_SIGNALS = 3.0  # that are missing are chance
MIN_CHANCE = 1e-12


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """What looks have said of a source, as sums that fade.

    page_days: between looks.  false_signals, true_signals: signals in that time.
    signaled_changes, expected_changes: true signals and changes in that time, by the beliefs.  silent_changes,
    expected_silent_changes: changes found and expected in gaps without a signal. In these four a page counts the less
    the faster it changes.  prior_weight: the part of what is usual of sources that still counts beside these sums, 0 to
    1; it fades like them.  merit: how much likelier looks of late were with its word than without, in nats, within
    bounds.  recent_signals, recent_page_days: signals of late, about any page, and page-days in which they came.
    usual_signals, usual_page_days: the same of longer ago, too.
    """

    page_days: float = 0.0
    false_signals: float = 0.0
    true_signals: float = 0.0
    signaled_changes: float = 0.0
    expected_changes: float = 0.0
    silent_changes: float = 0.0
    expected_silent_changes: float = 0.0
    merit: float = 0.0
    recent_signals: float = 0.0
    recent_page_days: float = 0.0
    usual_signals: float = 0.0
    usual_page_days: float = 0.0
    prior_weight: float = 1.0

    @property
    def quality(self) -> SourceQuality:
        """What its word is worth: nothing, until looks have shown that it tells something."""
        recall = min(max(self.merit / FULL_TRUST_MERIT, 0.0), 1.0) * self.estimate.recall
        per_day = self.recent_signals / max(self.recent_page_days, 1.0)
        return SourceQuality(recall=recall, noise=self.estimate.noise, liveliness=self.liveliness, per_day=per_day)

    @property
    def estimate(self) -> SourceQuality:
        """What its word would be worth if it erred by chance."""
        prior_changes = USUAL_CHANGES * max(self.prior_weight, MIN_PRIOR_WEIGHT)
        signaled = (USUAL_RECALL * prior_changes + self.signaled_changes) / (prior_changes + self.expected_changes)
        missed = ((1 - USUAL_RECALL) * prior_changes + self.silent_changes) / (
            prior_changes + self.expected_silent_changes
        )
        noise = (USUAL_NOISE * USUAL_DAYS + self.false_signals) / (USUAL_DAYS + self.page_days)
        return SourceQuality(recall=signaled / (signaled + missed), noise=noise)

    @property
    def liveliness(self) -> float:
        """How many signals come of late, by how many used to; 1 at most. A dead source's silence says nothing.

        Both are about all pages: those that were looked at of late are the ones that change, and are signalled, most.
        """
        expected_changes = self.usual_signals / max(self.usual_page_days, 1.0) * self.recent_page_days
        return min((self.recent_signals + FEW_SIGNALS) / (expected_changes + FEW_SIGNALS), 1.0)

    @property
    def precision(self) -> float | None:
        """The share of its signals that were true; None before the first of them was looked into."""
        signals = self.true_signals + self.false_signals
        return self.true_signals / signals if signals else None


NEW_RECORD = SourceRecord()


def update_record(
    record: SourceRecord,
    *,
    estimate_before: RateEstimate,
    gap_days: float,
    signals: int,
    changed: bool,
) -> SourceRecord:
    """The record after a look at a page.

    estimate_before: of the page before the look.  gap_days: since the last good look.  signals: of this source since.
    """
    count, decay, gap_days = min(signals, MAX_COUNTED), 1 - 1 / VISITS_REMEMBERED, max(gap_days, 0.0)
    estimate, rate = record.estimate, estimate_before.rate_per_day
    expected_changes = rate * gap_days
    share = 1 / (1 + rate * LIST_READ_DAYS)  # known before the gap, so that no finding counts for more than another
    true_signals = (
        _estimate_true_signals(estimate, rate=rate, expected_changes=expected_changes, count=count) if changed else 0.0
    )
    missed = (1 - estimate.recall) * expected_changes
    merit_gain = _compute_merit(estimate, estimate_before, gap_days, count, changed=changed)
    # at least one of so many
    expected_silent = 0.0 if not changed else missed / -np.expm1(-missed) if missed > 1e-9 else 1.0
    return replace(
        record,
        page_days=record.page_days * decay + gap_days,
        false_signals=record.false_signals * decay + count - true_signals,
        true_signals=record.true_signals * decay + true_signals,
        signaled_changes=record.signaled_changes * decay + share * true_signals,
        expected_changes=record.expected_changes * decay + share * expected_changes,
        silent_changes=record.silent_changes * decay + (0.0 if count else share * float(expected_silent)),
        expected_silent_changes=record.expected_silent_changes * decay + (0.0 if count else share * expected_changes),
        merit=min(max(record.merit + merit_gain, MIN_MERIT), MAX_MERIT),
        prior_weight=record.prior_weight * decay,
    )


def record_arrivals(record: SourceRecord, *, days: float, pages: float, signals: float = 0.0) -> SourceRecord:
    """The record at an instant. days: since the one before.  signals: that came by now, about `pages` pages."""
    decay, usual_decay = (
        float(np.exp(-max(days, 0.0) / remembered)) for remembered in (ARRIVALS_REMEMBERED_DAYS, USUAL_REMEMBERED_DAYS)
    )
    return replace(
        record,
        recent_signals=record.recent_signals * decay + signals,
        recent_page_days=record.recent_page_days * decay + pages * ARRIVALS_REMEMBERED_DAYS * (1 - decay),
        usual_signals=record.usual_signals * usual_decay + signals,
        usual_page_days=record.usual_page_days * usual_decay + pages * USUAL_REMEMBERED_DAYS * (1 - usual_decay),
    )


def _compute_merit(
    estimate: SourceQuality, estimate_before: RateEstimate, gap_days: float, count: int, *, changed: bool
) -> float:
    """ln of how much likelier the finding of a look was with the source's word than without."""
    aged_days = float(
        compute_aged_days(estimate_before.a, estimate_before.b, gap_days, build_signal_state(float(count), estimate))
    )
    changes = (compute_change_chance(estimate_before, days) for days in (aged_days, gap_days))
    with_it, without = (max(each if changed else 1 - each, MIN_CHANCE) for each in changes)
    return math.log(with_it / without)


def _estimate_true_signals(estimate: SourceQuality, *, rate: float, expected_changes: float, count: int) -> float:
    """The expected number of true signals among `count`, where there was a change."""
    ratio = estimate.recall * rate / estimate.noise
    # Chances over the power of n signals: of one that is true, and of a change without any.
    power = np.exp(-count * np.log1p(ratio))
    some_true, none_true = 1 - power, power * -np.expm1(-(1 - estimate.recall) * expected_changes)
    true_signals = count * ratio / (1 + ratio) / max(float(some_true + none_true), MIN_CHANCE)
    return float(min(true_signals, count))
