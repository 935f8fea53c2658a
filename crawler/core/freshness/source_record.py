"""The record of a source of change signals in one domain: its precision and recall, learned from visits.

A visit reveals whether a page has changed; the number of signals since the last visit is known. Visits caused by
signals are not a random sample, so each quantity is measured over a period that does not depend on what it counts:

- False signals, over the time of all visits. Signals without a change are false. With a change, the number of true
  signals is unknown, and its expectation is used instead (one step of expectation maximization per visit). Over visits
  without a change only, the rate would be too high: a gap that a signal ends is short, and most short gaps have no
  change.
- True signals, over the changes that the estimates expect in the time of all visits.
- Missed changes, over the changes expected in gaps without a signal: the changes that a source misses do not depend on
  its signals. Estimates that are too high or too low cancel out.

All this assumes that a source errs at random. A source that lies may do so in any way, so it only counts as long as the
findings of visits are more likely with its signals than without. The *merit* of a source is the sum of these
log-likelihood ratios, kept within bounds, so that past merit does not outweigh recent lies (Page, "Continuous
inspection schemes", 1954; Dawid, "Prequential analysis", 1984).
"""

import math

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from crawler.core.freshness.estimates import RateEstimate, compute_change_chance
from crawler.core.freshness.signals import MAX_COUNTED, SourceQuality, build_signal_state, compute_aged_days

USUAL_RECALL, USUAL_CHANGES = 0.1, 15.0  # prior recall of a source, and its weight in changes
MIN_PRIOR_WEIGHT = 0.07  # share of the prior that never fades
USUAL_NOISE, USUAL_DAYS = 0.06, 20.0  # prior noise per page and day, and its weight in page-days
VISITS_REMEMBERED = 300.0  # older ones fade
# Approximate days between two reads of a list, which reports several changes in between only once. Pages that change
# many times between reads get less weight; otherwise a perfect source would seem to miss most changes.
LIST_READ_DAYS = 1.0
FULL_TRUST_MERIT, MAX_MERIT, MIN_MERIT = 3.0, 6.0, -3.0  # in nats; e^3 are odds of twenty to one
ARRIVALS_REMEMBERED_DAYS, USUAL_REMEMBERED_DAYS = 7.0, 90.0  # memory of the recent and of the usual number of signals
FEW_SIGNALS = 3.0  # a difference of this many signals may be chance
MIN_CHANCE = 1e-12


class SourceRecord(Struct, frozen=True):
    """What visits revealed about a source, as sums that fade.

    page_days: days between visits, over all pages.  false_signals, true_signals: expected numbers in that time.
    signaled_changes, expected_changes: true signals, and changes expected by the estimates, in that time.
    silent_changes, expected_silent_changes: changes found, and expected, in gaps without a signal. In these four sums,
    pages that change faster have a lower weight (LIST_READ_DAYS).  prior_weight: the remaining weight of the prior, 0
    to 1; it fades too.  merit: the log-likelihood ratio of recent findings with and without the source's signals,
    in nats, within [MIN_MERIT, MAX_MERIT].
    recent_signals, recent_page_days: recent signals about any page, and the page-days in which they came.
    usual_signals, usual_page_days: the same over a longer time.
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
        """Return the quality of the source. Its recall is 0 until visits have shown that its signals are useful."""
        recall = min(max(self.merit / FULL_TRUST_MERIT, 0.0), 1.0) * self.estimate.recall
        per_day = self.recent_signals / max(self.recent_page_days, 1.0)
        return SourceQuality(recall=recall, noise=self.estimate.noise, liveliness=self.liveliness, per_day=per_day)

    @property
    def estimate(self) -> SourceQuality:
        """Return the quality under the assumption that the source errs at random."""
        prior = USUAL_CHANGES * max(self.prior_weight, MIN_PRIOR_WEIGHT)
        signaled = (USUAL_RECALL * prior + self.signaled_changes) / (prior + self.expected_changes)
        missed = ((1 - USUAL_RECALL) * prior + self.silent_changes) / (prior + self.expected_silent_changes)
        noise = (USUAL_NOISE * USUAL_DAYS + self.false_signals) / (USUAL_DAYS + self.page_days)
        return SourceQuality(recall=signaled / (signaled + missed), noise=noise)

    @property
    def liveliness(self) -> float:
        """Return recent signals relative to the usual number, at most 1. The silence of a dead source is no evidence.

        Both numbers are for all pages, because recently visited pages change most and have the most signals.
        """
        expected_signals = self.usual_signals / max(self.usual_page_days, 1.0) * self.recent_page_days
        return min((self.recent_signals + FEW_SIGNALS) / (expected_signals + FEW_SIGNALS), 1.0)

    @property
    def precision(self) -> float | None:
        """Return the share of signals that were true; None before the first visit to a signaled page."""
        signals = self.true_signals + self.false_signals
        return self.true_signals / signals if signals else None


NEW_RECORD = SourceRecord()


def update_record(
    record: SourceRecord, *, estimate_before: RateEstimate, gap_days: float, signals: int, changed: bool
) -> SourceRecord:
    """Return the record after a visit to a page.

    estimate_before: the page's estimate before the visit.  gap_days: days of site activity since the last successful
    visit.  signals: the signals of this source since then.
    """
    count, decay, gap_days = min(signals, MAX_COUNTED), 1 - 1 / VISITS_REMEMBERED, max(gap_days, 0.0)
    estimate, rate = record.estimate, estimate_before.rate_per_day
    expected_changes = rate * gap_days
    share = 1 / (1 + rate * LIST_READ_DAYS)  # known before the gap, so it does not depend on the finding
    true_signals = _estimate_true_signals(estimate, rate, expected_changes, count) if changed else 0.0
    missed = (1 - estimate.recall) * expected_changes
    merit_gain = _compute_merit(estimate, estimate_before, gap_days, count, changed=changed)
    # The expected number of missed changes, given that there is at least one.
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
    """Return the record after `days` more days with `signals` signals. pages: the pages they could be about."""
    memories = ARRIVALS_REMEMBERED_DAYS, USUAL_REMEMBERED_DAYS
    decay, usual_decay = (float(np.exp(-max(days, 0.0) / remembered)) for remembered in memories)
    return replace(
        record,
        recent_signals=record.recent_signals * decay + signals,
        recent_page_days=record.recent_page_days * decay + pages * ARRIVALS_REMEMBERED_DAYS * (1 - decay),
        usual_signals=record.usual_signals * usual_decay + signals,
        usual_page_days=record.usual_page_days * usual_decay + pages * USUAL_REMEMBERED_DAYS * (1 - usual_decay),
    )


def _compute_merit(source: SourceQuality, rate: RateEstimate, gap_days: float, count: int, *, changed: bool) -> float:
    """Return the log-likelihood ratio of a visit's finding with and without the source's signals."""
    aged_days = float(compute_aged_days(rate.a, rate.b, gap_days, build_signal_state(float(count), source)))
    changes = (compute_change_chance(rate, days) for days in (aged_days, gap_days))
    with_it, without = (max(each if changed else 1 - each, MIN_CHANCE) for each in changes)
    return math.log(with_it / without)


def _estimate_true_signals(estimate: SourceQuality, rate: float, expected_changes: float, count: int) -> float:
    """Return the expected number of true signals among `count`, given that there was a change."""
    ratio = estimate.recall * rate / estimate.noise
    # Relative probabilities: at least one signal is true, or there is a change but no signal is true.
    power = np.exp(-count * np.log1p(ratio))
    some_true, none_true = 1 - power, power * -np.expm1(-(1 - estimate.recall) * expected_changes)
    true_signals = count * ratio / (1 + ratio) / max(float(some_true + none_true), MIN_CHANCE)
    return float(min(true_signals, count))
