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

from crawler.core.freshness.estimates import Belief, chance_changed_of_one
from crawler.core.freshness.signals import MOST_COUNTED, SourceWorth, heard_days, heard_of

USUAL_RECALL, USUAL_CHANGES = 0.1, 15.0  # of a source that was never heard, and as how many changes that counts
LEAST_DOUBT = 0.07  # of these, however many looks have been made
USUAL_NOISE, USUAL_DAYS = 0.06, 20.0  # per page and day, and as how many page-days that counts
LOOKS_REMEMBERED = 300.0  # older ones fade
# About as often a list is read. It tells a page once, however often that has changed since: of pages that change many
# times between, a source that misses nothing seems to miss most.
READ_EVERY_DAYS = 1.0
FULL_VOICE, MOST_MERIT, LEAST_MERIT = 3.0, 6.0, -3.0  # of merit, in nats: e^3 is odds of twenty to one
ARRIVALS_REMEMBERED_DAYS, USUAL_REMEMBERED_DAYS = 7.0, 90.0
FEW_SIGNALS = 3.0  # that are missing are chance
LEAST_CHANCE = 1e-12


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """What looks have said of a source, as sums that fade.

    page_days: between looks.  false, true: signals in that time.
    told, expected: true signals and changes in that time, by the beliefs.  silent_changes, silent_expected: changes
    found and expected in gaps without a signal. In these four a page counts the less the faster it changes.
    doubt: the part of what is usual of sources that still counts beside these sums, 0 to 1; it fades like them.
    merit: how much likelier looks of late were with its word than without, in nats, within bounds.
    arrived, arrived_page_days: signals of late, about any page, and page-days in which they came.
    usual, usual_page_days: the same of longer ago, too.
    """

    page_days: float = 0.0
    false: float = 0.0
    true: float = 0.0
    told: float = 0.0
    expected: float = 0.0
    silent_changes: float = 0.0
    silent_expected: float = 0.0
    merit: float = 0.0
    arrived: float = 0.0
    arrived_page_days: float = 0.0
    usual: float = 0.0
    usual_page_days: float = 0.0
    doubt: float = 1.0

    @property
    def worth(self) -> SourceWorth:
        """What its word is worth: nothing, until looks have shown that it tells something."""
        recall = min(max(self.merit / FULL_VOICE, 0.0), 1.0) * self.estimate.recall
        per_day = self.arrived / max(self.arrived_page_days, 1.0)
        return SourceWorth(recall=recall, noise=self.estimate.noise, liveliness=self.liveliness, per_day=per_day)

    @property
    def estimate(self) -> SourceWorth:
        """What its word would be worth if it erred by chance."""
        usual = USUAL_CHANGES * max(self.doubt, LEAST_DOUBT)
        told = (USUAL_RECALL * usual + self.told) / (usual + self.expected)
        missed = ((1 - USUAL_RECALL) * usual + self.silent_changes) / (usual + self.silent_expected)
        noise = (USUAL_NOISE * USUAL_DAYS + self.false) / (USUAL_DAYS + self.page_days)
        return SourceWorth(recall=told / (told + missed), noise=noise)

    @property
    def liveliness(self) -> float:
        """How many signals come of late, by how many used to; 1 at most. A dead source's silence says nothing.

        Both are about all pages: those that were looked at of late are the ones that change, and are signalled, most.
        """
        expected = self.usual / max(self.usual_page_days, 1.0) * self.arrived_page_days
        return min((self.arrived + FEW_SIGNALS) / (expected + FEW_SIGNALS), 1.0)

    @property
    def precision(self) -> float | None:
        """The share of its signals that were true; None before the first of them was looked into."""
        told = self.true + self.false
        return self.true / told if told else None


NEVER_HEARD = SourceRecord()


def record_after(
    record: SourceRecord,
    *,
    believed: Belief,
    gap_days: float,
    signals: int,
    changed: bool,
) -> SourceRecord:
    """The record after a look at a page.

    believed: of the page before the look.  gap_days: since the last good look.  signals: of this source since.
    """
    count, kept, gap_days = min(signals, MOST_COUNTED), 1 - 1 / LOOKS_REMEMBERED, max(gap_days, 0.0)
    estimate, rate = record.estimate, believed.rate_per_day
    expected = rate * gap_days
    share = 1 / (1 + rate * READ_EVERY_DAYS)  # known before the gap, so that no finding counts for more than another
    true = _true_signals(estimate, rate=rate, expected=expected, count=count) if changed else 0.0
    untold = (1 - estimate.recall) * expected
    said = _merit(estimate, believed, gap_days, count, changed=changed)
    found = 0.0 if not changed else untold / -np.expm1(-untold) if untold > 1e-9 else 1.0  # at least one of so many
    return replace(
        record,
        page_days=record.page_days * kept + gap_days,
        false=record.false * kept + count - true,
        true=record.true * kept + true,
        told=record.told * kept + share * true,
        expected=record.expected * kept + share * expected,
        silent_changes=record.silent_changes * kept + (0.0 if count else share * float(found)),
        silent_expected=record.silent_expected * kept + (0.0 if count else share * expected),
        merit=min(max(record.merit + said, LEAST_MERIT), MOST_MERIT),
        doubt=record.doubt * kept,
    )


def arrived(record: SourceRecord, *, days: float, pages: float, signals: float = 0.0) -> SourceRecord:
    """The record at an instant. days: since the one before.  signals: that came by now, about `pages` pages."""
    kept, kept_long = (
        float(np.exp(-max(days, 0.0) / remembered)) for remembered in (ARRIVALS_REMEMBERED_DAYS, USUAL_REMEMBERED_DAYS)
    )
    return replace(
        record,
        arrived=record.arrived * kept + signals,
        arrived_page_days=record.arrived_page_days * kept + pages * ARRIVALS_REMEMBERED_DAYS * (1 - kept),
        usual=record.usual * kept_long + signals,
        usual_page_days=record.usual_page_days * kept_long + pages * USUAL_REMEMBERED_DAYS * (1 - kept_long),
    )


def _merit(estimate: SourceWorth, believed: Belief, gap_days: float, count: int, *, changed: bool) -> float:
    """ln of how much likelier the finding of a look was with the source's word than without."""
    told = float(heard_days(believed.a, believed.b, gap_days, heard_of(float(count), estimate)))
    changes = (chance_changed_of_one(believed, days) for days in (told, gap_days))
    with_it, without = (max(each if changed else 1 - each, LEAST_CHANCE) for each in changes)
    return math.log(with_it / without)


def _true_signals(estimate: SourceWorth, *, rate: float, expected: float, count: int) -> float:
    """The expected number of true signals among `count`, where there was a change."""
    ratio = estimate.recall * rate / estimate.noise
    # Chances over the power of n signals: of one that is true, and of a change without any.
    power = np.exp(-count * np.log1p(ratio))
    some_true, none_true = 1 - power, power * -np.expm1(-(1 - estimate.recall) * expected)
    true = count * ratio / (1 + ratio) / max(float(some_true + none_true), LEAST_CHANCE)
    return float(min(true, count))
