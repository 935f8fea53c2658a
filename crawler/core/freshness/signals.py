"""Change signals: reports of a source about pages that were not fetched, weighted by the quality of the source.

Signals affect the probability that a page is fresh, the value of a visit, and what a visit reveals about the rate.

The model of Busa-Fekete et al., WWW 2025: a page changes at random, `rate` times a day. Its source signals each change
with probability `recall`, and also sends `noise` false signals per page and day. t days and n signals after a visit,

    P(fresh) = exp(-(1 - recall) rate t) (noise / (noise + recall rate))^n.

So silence makes a page age more slowly, and a signal makes it older at once. `compute_aged_days` converts both to days
without a source, for the formulas of `estimates` and `visit_value`. With known rates, this order of pages came within
0.4 percentage points of freshness of the paper's own policy, which also anticipates later signals.

Arrays of pages as in estimates.py; times in days. With several sources, silence counts by the source with the highest
recall, and signals by the source with the strongest ones: sources of one site err together and do not add up.
"""

import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import numpy as np
from msgspec import Struct

from crawler.core.freshness.estimates import DAY, RateEstimate, learn_changed
from crawler.core.freshness.gamma import Floats, Numbers, compute_digamma, compute_log_gamma, solve_shape
from crawler.core.http.urls import Url

MAX_COUNTED = 255  # signals of one source about one page since its last visit
MAX_TERMS = 8  # signals that learn_changed_with_signals distinguishes; more are replaced by this many, equally strong
MAX_RECALL = 0.98  # no source is assumed to miss nothing: a silent page still ages, fifty times as slowly
# Factors by which the share of missed changes, or recall over noise, must move before due times are computed again.
MOVED_SILENCE_RATIO, MOVED_RATIO = 1.1, 1.5
MAX_EXPONENT = 30.0  # e^30 times b is practically infinite
SOURCE_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,31}")


class SignalSource(StrEnum):
    """The built-in sources of change signals. Users name the sources of hints that they send."""

    SITEMAP = "sitemap"  # a newer lastmod
    FEED = "feed"  # a new or updated RSS or Atom entry
    HUB = "hub"  # a listing page that changed and links to the page
    PUSH = "push"  # a hint of a user without a source name


class ChangeSignal(Struct, frozen=True):
    """A signal from a source that a page has changed.

    url: normalized; the page may be unknown.  source: a SignalSource, or a name that matches SOURCE_NAME.
    at: when the page changed according to the source, UTC; never after the signal was received.
    """

    url: Url
    source: str
    at: datetime


class SourceQuality(Struct, frozen=True):
    """The quality of one source in one domain.

    recall: the probability that it signals a change, 0 to 1.  noise: false signals per page and day; 0 in NO_SOURCE.
    liveliness: recent signals relative to the usual number, 0 to 1.  per_day: recent signals per page and day.
    """

    recall: float
    noise: float
    liveliness: float = 1.0
    per_day: float = 0.0

    @property
    def effective_recall(self) -> float:
        """Return the probability that the source would have signaled a recent change; at most MAX_RECALL."""
        return min(self.recall * self.liveliness, MAX_RECALL)


def has_quality_moved(before: SourceQuality, now: SourceQuality) -> bool:
    """Return whether the quality of a source changed so much that due times should be computed again."""
    missed = [1 - each.effective_recall for each in (before, now)]
    ratios = [each.recall / each.noise for each in (before, now)]
    return max(missed) / min(missed) > MOVED_SILENCE_RATIO or max(ratios) > MOVED_RATIO * min(ratios)


class SignalState(Struct, frozen=True):
    """The signals about pages since their last successful visits: numbers, or arrays that broadcast.

    recall: of the source with the highest one; 0 without a source.
    count: the signals of the source with the strongest evidence.  ratio: its recall over its noise, in days.
    """

    recall: Numbers
    count: Numbers
    ratio: Numbers


NO_SOURCE = SourceQuality(recall=0.0, noise=0.0)  # stands for a domain without a source


def combine_signals(
    counts: Sequence[Sequence[int]], sources: Sequence[Sequence[SourceQuality]], rate: Floats
) -> SignalState:
    """Combine the signals of all sources about each page.

    counts: for each page, the signals since its last successful visit per source; trailing sources may be missing.
    sources: for each page, the sources of its domain; many pages share one object.  rate: the estimated rates.
    """
    if not any(sources):
        nothing = np.zeros(len(counts))
        return SignalState(recall=nothing, count=nothing, ratio=nothing)
    strongest = [_find_strongest(*page) for page in zip(counts, sources, rate, strict=True)]
    return SignalState(*np.array(strongest, dtype=np.float64).reshape(-1, 3).T)


def build_signal_state(counts: Numbers, source: SourceQuality) -> SignalState:
    """Build the state from one source. counts: its signals since each page's last successful visit."""
    recall = np.full(np.shape(counts), source.effective_recall)
    return SignalState(recall=recall, count=np.asarray(counts, dtype=np.float64), ratio=source.recall / source.noise)


def find_best_source(sources: Sequence[SourceQuality]) -> SourceQuality:
    """Return the source with the highest recall, from which the plan predicts visits; NO_SOURCE without one."""
    return max(sources, key=lambda source: source.effective_recall, default=NO_SOURCE)


def estimate_signals_per_day(source: SourceQuality, rate: Floats) -> Floats:
    """Return the expected signals per day about pages with these rates, scaled to the number of recent signals.

    The scaling ensures that no visits are planned for signals that do not come.
    """
    shares = source.noise + source.recall * rate
    return np.asarray(source.per_day * shares / max(float(np.mean(shares)) if len(shares) else 1.0, 1e-12))


def find_max_recall(sources: Sequence[SourceQuality]) -> float:
    """Return the highest probability that a source signals a change; 0 without a source."""
    return max((source.effective_recall for source in sources), default=0.0)


def _find_strongest(counts: Sequence[int], sources: Sequence[SourceQuality], rate: float) -> tuple[float, float, float]:
    """Return the recall, count and ratio of one page's SignalState."""
    recall = find_max_recall(sources)
    candidates = [
        (min(count, MAX_COUNTED) * math.log1p(source.recall / source.noise * rate), count, source)
        for count, source in zip(counts, sources, strict=False)
        if count
    ]
    if not candidates:
        return recall, 0.0, 0.0
    _, count, source = max(candidates, key=lambda each: each[0])
    return recall, float(min(count, MAX_COUNTED)), source.recall / source.noise


def compute_days_ahead(a: Numbers, b: Numbers, signals: SignalState) -> Floats:
    """Return the days that n signals add to the age of pages, so that P(fresh) is (noise / (noise + recall a/b))^n."""
    exponent = signals.count * np.log1p(signals.ratio * a / b) / a
    return np.asarray(b * np.expm1(np.minimum(exponent, MAX_EXPONENT)))


def compute_aged_days(a: Numbers, b: Numbers, unseen: Numbers, signals: SignalState) -> Floats:
    """Return the days without any source after which a change would be as likely. unseen: days t since the last visit.

    With an estimated rate l, silence is also evidence of a slow page. After n signals, P(fresh) is the mean of
    exp(-l t) over that of exp(-recall l t) (1 + ratio l)^n. The result is exact for up to one signal.
    """
    unseen = np.maximum(unseen, 0.0)
    silent_b = b + signals.recall * unseen
    exponent = signals.count * np.log1p(signals.ratio * a / silent_b) / a
    return np.asarray(b * ((b + unseen) / silent_b * np.exp(np.minimum(exponent, MAX_EXPONENT)) - 1))


def compute_page_aged_days(
    estimate: RateEstimate, unseen_days: float, signals: Sequence[int], sources: Sequence[SourceQuality]
) -> float:
    """Return compute_aged_days for one page. signals, sources: its counts and sources as in combine_signals."""
    unseen = max(unseen_days, 0.0)
    recall, count, ratio = _find_strongest(signals, sources, estimate.rate_per_day)
    silent_b = estimate.b + recall * unseen
    exponent = count * math.log1p(ratio * estimate.a / silent_b) / estimate.a
    return estimate.b * ((estimate.b + unseen) / silent_b * math.exp(min(exponent, MAX_EXPONENT)) - 1)


def learn_changed_with_signals(a: Numbers, b: Numbers, gap: Numbers, signals: SignalState) -> tuple[Floats, Floats]:
    """Return (a, b) after visits that found a change within `gap` days (t) with these signals (n).

    The likelihood of the rate l, given the change and the signals, is exp(-r l t) (1 + ratio l)^n - exp(-l t) with
    recall r. Visits caused by signals are not a random sample of gaps, because such a gap ends due to a change. But the
    decision to visit depends only on the signals, so the likelihood is the same as for visits at fixed times. Without a
    change it is proportional to exp(-l t), so learn_unchanged applies.
    Expanded, the power gives one Gamma for each number of true signals among the n. The result is the Gamma with the
    mean and mean logarithm of this mixture, as in learn_changed. In addition, evidence only grows, and b grows by at
    least recall times the gap: changes without exposure time on some pages would make refitted priors diverge.
    """
    a, b, gap, recall, count, ratio = (
        np.atleast_1d(np.asarray(each, dtype=np.float64))
        for each in np.broadcast_arrays(a, b, np.maximum(gap, 0.0), signals.recall, signals.count, signals.ratio)
    )
    silent_b = b + recall * gap
    by_silence = learn_changed(a, silent_b, (1 - recall) * gap)
    if not count.any():
        return by_silence
    count, ratio = _limit_signal_count(count, ratio, a / b)
    log_silent = _compute_log_silent_chance(a, b, gap, recall)
    terms = [(log_silent, *by_silence)]
    for m in range(1, int(count.max()) + 1):
        with np.errstate(divide="ignore"):
            log_power = np.where(m <= count, _compute_log_choose(count, m) + m * np.log(ratio), -np.inf)
        rises = compute_log_gamma(a + m) - compute_log_gamma(a) - m * np.log(silent_b) - a * np.log1p(recall * gap / b)
        terms.append((log_power + rises, a + m, silent_b))
    shape, mean = _fit_gamma_mixture(terms)
    shape = np.clip(shape, a, a + count + 1)
    return shape, np.maximum(shape / mean, silent_b)


def combine_page_signals(
    estimate: RateEstimate, signals: Sequence[int], sources: Sequence[SourceQuality]
) -> SignalState:
    """Combine the signals about one page. signals, sources: its counts and sources as in combine_signals."""
    return SignalState(*_find_strongest(signals, sources, estimate.rate_per_day))


def update_changed_with_signals(estimate: RateEstimate, *, gap: timedelta, signals: SignalState) -> RateEstimate:
    """Return the estimate after a visit that found a change within `gap`; see learn_changed_with_signals."""
    a, b = learn_changed_with_signals(estimate.a, estimate.b, gap / DAY, signals)
    return RateEstimate(float(a[0]), float(b[0]))


def _limit_signal_count(count: Floats, ratio: Floats, rate: Floats) -> tuple[Floats, Floats]:
    """Replace signals beyond MAX_TERMS by MAX_TERMS signals that carry the same evidence at this rate."""
    fewer = np.minimum(count, MAX_TERMS)
    exponent = np.log1p(ratio * rate) * count / np.maximum(fewer, 1.0)
    return fewer, np.where(count > fewer, np.expm1(np.minimum(exponent, MAX_EXPONENT)) / rate, ratio)


def _compute_log_silent_chance(a: Floats, b: Floats, gap: Floats, recall: Floats) -> Floats:
    """Return ln E[exp(-r l t) - exp(-l t)]: the log probability of a change without a true signal."""
    silent_b = b + recall * gap
    chance = -np.expm1(-a * np.log1p((1 - recall) * gap / silent_b))
    return np.asarray(np.log(np.maximum(chance, 1e-300)) - a * np.log(silent_b / b))


def _compute_log_choose(n: Floats, m: int) -> Floats:
    all_ways, chosen = compute_log_gamma(n + 1), compute_log_gamma(m + 1.0)
    return np.asarray(all_ways - chosen - compute_log_gamma(np.maximum(n - m, 0.0) + 1))


def _fit_gamma_mixture(terms: Sequence[tuple[Floats, Floats, Floats]]) -> tuple[Floats, Floats]:
    """Return shape and mean of the Gamma with a mixture's mean and mean logarithm. terms: ln weight, a, b of each."""
    log_weight, a, b = (np.array([term[n] for term in terms]) for n in range(3))
    weight = np.exp(log_weight - log_weight.max(axis=0))
    weight /= weight.sum(axis=0)
    mean = (weight * a / b).sum(axis=0)
    mean_log = (weight * (compute_digamma(a) - np.log(b))).sum(axis=0)
    return solve_shape(np.maximum(np.log(mean) - mean_log, 1e-9)), mean
