"""Change signals: what somebody says about a page that was not fetched, weighed by what its source is worth.

Signals move the chance that a page is fresh, the worth of a look, and what a look then says of its rate.

The model of Busa-Fekete et al., WWW 2025: a page changes by chance `rate` times a day; its source tells each change
with chance `recall`, and besides sends false signals, `noise` of them a day and page. Time t and n signals after a look

    P(fresh) = exp(-(1 - recall) rate t) (noise / (noise + recall rate))^n.

So silence makes a page age more slowly, and a signal makes it older at once. Both are told as days without any source,
`compute_aged_days`, in the formulas of belief and value. With known rates this order of pages came within 0.4 points of
freshness of the paper's own policy, which also knows that a signal may come later, and brought 19 points of 19 at best.

Arrays of pages as in estimates.py; times in days. Several sources: silence counts by the one that misses least, and
signals by the one that says max_interval: sources of one site err together, so that their words do not add up.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import numpy as np

from crawler.core.freshness.estimates import DAY, RateEstimate, learn_changed
from crawler.core.freshness.gamma import Floats, Numbers, compute_digamma, compute_log_gamma, solve_shape
from crawler.core.http.urls import Url

MAX_COUNTED = 255  # signals of one source about one page since its last look
MAX_TERMS = 8  # of a power of many signals, which then count as so many that say as much together
MAX_RECALL = 0.98  # no source is trusted to miss nothing: a silent page goes on ageing, fifty times as slowly
MOVED_SILENCE_RATIO, MOVED_RATIO = (
    1.1,
    1.5,
)  # times as much or as little, of the changes missed, and of recall over noise
MAX_EXPONENT = 30.0  # e^30 times b is beyond all days
SOURCE_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,31}")


class SignalSource(StrEnum):
    """The sources that recrawl itself listens to. Others, of hints from outside, have the names that users gave."""

    SITEMAP = "sitemap"  # a lastmod later than the one before
    FEED = "feed"  # an entry of RSS or Atom that is new, or updated
    HUB = "hub"  # a listing that changed, and names the page
    PUSH = "push"  # a hint from outside that names no source


@dataclass(frozen=True, slots=True)
class ChangeSignal:
    """A source's word that a page has changed.

    url: of the page, normalised; known or not.  source: a SignalSource, or a name that SOURCE_NAME allows.
    at: when the page is said to have changed, UTC; no later than the signal was heard.
    """

    url: Url
    source: str
    at: datetime


@dataclass(frozen=True, slots=True)
class SourceQuality:
    """What the word of one source is worth in one domain.

    recall: the chance that it tells a change, 0 to 1.  noise: false signals per page and day, above 0.
    liveliness: how many signals come of late, by what is usual, 0 to 1.  per_day: so many, about each page.
    """

    recall: float
    noise: float
    liveliness: float = 1.0
    per_day: float = 0.0

    @property
    def effective_recall(self) -> float:
        """The chance that a change would have been told of late; never quite certain."""
        return min(self.recall * self.liveliness, MAX_RECALL)


def has_quality_moved(before: SourceQuality, now: SourceQuality) -> bool:
    """Whether pages that wait by what a source was worth should be weighed again."""
    effective_recall = max(
        (1 - before.effective_recall) / (1 - now.effective_recall),
        (1 - now.effective_recall) / (1 - before.effective_recall),
    )
    ratios = [each.recall / each.noise for each in (before, now)]
    return effective_recall > MOVED_SILENCE_RATIO or max(ratios) > MOVED_RATIO * min(ratios)


@dataclass(frozen=True, slots=True)
class SignalState:
    """What was heard of pages since their last good looks; arrays that broadcast.

    recall: of the source whose silence says most; 0 where there is none.
    count: signals of the source that says most.  ratio: its recall over its noise, in days.
    """

    recall: Numbers
    count: Numbers
    ratio: Numbers


NO_SOURCE = SourceQuality(recall=0.0, noise=0.0)  # and no signals


def combine_signals(
    counts: Sequence[Sequence[int]], sources: Sequence[Sequence[SourceQuality]], rate: Floats
) -> SignalState:
    """The Heard of pages.

    counts: of each page, signals since its last good look, by the number of the source; later ones may be missing.
    sources: of each page's domain, by their numbers; many pages share one object.  rate: of each page, by its belief.
    """
    if not any(sources):
        nothing = np.zeros(len(counts))
        return SignalState(recall=nothing, count=nothing, ratio=nothing)
    strongest = [
        _find_strongest_signal(page_counts, page_sources, each)
        for page_counts, page_sources, each in zip(counts, sources, rate, strict=True)
    ]
    recall, count, ratio = np.array(strongest, dtype=np.float64).reshape(-1, 3).T
    return SignalState(recall=recall, count=count, ratio=ratio)


def build_signal_state(counts: Numbers, source: SourceQuality) -> SignalState:
    """The Heard of pages from one source. counts: its signals since each page's last good look."""
    recall = np.full(np.shape(counts), source.effective_recall)
    return SignalState(recall=recall, count=np.asarray(counts, dtype=np.float64), ratio=source.recall / source.noise)


def find_best_source(sources: Sequence[SourceQuality]) -> SourceQuality:
    """The source by which pages of a domain are expected to be looked at: the one that misses least."""
    return max(sources, key=lambda source: source.effective_recall, default=NO_SOURCE)


def estimate_signals_per_day(source: SourceQuality, rate: Floats) -> Floats:
    """The signals a day to expect about pages that change so often: in all as many as come of late.

    Whatever the source is worth, no look is planned for signals that do not come.
    """
    shares = source.noise + source.recall * rate
    return np.asarray(source.per_day * shares / max(float(np.mean(shares)) if len(shares) else 1.0, 1e-12))


def find_max_recall(sources: Sequence[SourceQuality]) -> float:
    """The chance that a change is told, by the source that misses least; 0 without a source."""
    return max((source.effective_recall for source in sources), default=0.0)


def _find_strongest_signal(
    counts: Sequence[int], sources: Sequence[SourceQuality], rate: float
) -> tuple[float, float, float]:
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
    """The days by which signals make pages older: right after them P(fresh) is (noise / (noise + recall a/b))^n."""
    exponent = signals.count * np.log1p(signals.ratio * a / b) / a
    return np.asarray(b * np.expm1(np.minimum(exponent, MAX_EXPONENT)))


def compute_aged_days(a: Numbers, b: Numbers, unseen: Numbers, signals: SignalState) -> Floats:
    """The days without any source after which pages would be as likely to have changed. unseen: since the last look.

    Of a rate that is known by a belief only, silence tells something, too: pages of which nothing was said for long
    are likely slow. P(fresh) is the mean of exp(-l t) over that of exp(-recall l t) (1 + ratio l)^n, which is exact for
    up to one signal, and ((b + recall t)/(b + t))^a without any.
    """
    unseen = np.maximum(unseen, 0.0)
    silent_b = b + signals.recall * unseen
    exponent = signals.count * np.log1p(signals.ratio * a / silent_b) / a
    return np.asarray(b * ((b + unseen) / silent_b * np.exp(np.minimum(exponent, MAX_EXPONENT)) - 1))


def compute_page_aged_days(
    estimate: RateEstimate, unseen_days: float, signals: Sequence[int], sources: Sequence[SourceQuality]
) -> float:
    """`compute_aged_days` of one page. signals, sources: see heard_from."""
    unseen = max(unseen_days, 0.0)
    recall, count, ratio = _find_strongest_signal(signals, sources, estimate.rate_per_day)
    silent_b = estimate.b + recall * unseen
    exponent = count * math.log1p(ratio * estimate.a / silent_b) / estimate.a
    return estimate.b * ((estimate.b + unseen) / silent_b * math.exp(min(exponent, MAX_EXPONENT)) - 1)


def learn_changed_with_signals(a: Numbers, b: Numbers, gap: Numbers, signals: SignalState) -> tuple[Floats, Floats]:
    """(a, b) after looks that found a change within `gap` days in which so much was heard.

    The chance of both, by the rate l, is exp(-r l t) (1 + ratio l)^n - exp(-l t), with recall r. Looks that signals
    bring about are no fair sample of gaps: such a gap ends because there was a change. Signals decide when to look, but
    what was heard is all they go by, so that the chance of everything seen is the same as for looks at fixed times,
    and is all that counts. Without a change it is exp(-l t): learn_same holds as it stands.
    The terms of the power are Gammas: one for each number of true signals among the n. The result is the Gamma with
    their mean and mean logarithm, as in learn_changed, but that evidence only grows, and by the time over which the
    source spoke: an event without any time, found on some pages, would make refitted priors run away.
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
        log_rises = (
            compute_log_gamma(a + m) - compute_log_gamma(a) - m * np.log(silent_b) - a * np.log1p(recall * gap / b)
        )
        terms.append((log_power + log_rises, a + m, silent_b))
    shape, mean = _fit_gamma_mixture(terms)
    shape = np.clip(shape, a, a + count + 1)
    return shape, np.maximum(shape / mean, silent_b)


def combine_page_signals(
    estimate: RateEstimate, signals: Sequence[int], sources: Sequence[SourceQuality]
) -> SignalState:
    """The Heard of one page, as numbers. signals, sources: see heard_from."""
    recall, count, ratio = _find_strongest_signal(signals, sources, estimate.rate_per_day)
    return SignalState(recall=recall, count=count, ratio=ratio)


def update_changed_with_signals(estimate: RateEstimate, *, gap: timedelta, signals: SignalState) -> RateEstimate:
    """The belief after a look that found at least one change within `gap`, in which so much was heard."""
    a, b = learn_changed_with_signals(estimate.a, estimate.b, gap / DAY, signals)
    return RateEstimate(float(a[0]), float(b[0]))


def _limit_signal_count(count: Floats, ratio: Floats, rate: Floats) -> tuple[Floats, Floats]:
    """At most MAX_TERMS signals that together say of a page of this rate what `count` of them do."""
    fewer = np.minimum(count, MAX_TERMS)
    exponent = np.log1p(ratio * rate) * count / np.maximum(fewer, 1.0)
    return fewer, np.where(count > fewer, np.expm1(np.minimum(exponent, MAX_EXPONENT)) / rate, ratio)


def _compute_log_silent_chance(a: Floats, b: Floats, gap: Floats, recall: Floats) -> Floats:
    """ln of E[exp(-r l t) - exp(-l t)]: there was a change, and no signal was true."""
    silent_b = b + recall * gap
    chance = -np.expm1(-a * np.log1p((1 - recall) * gap / silent_b))
    return np.asarray(np.log(np.maximum(chance, 1e-300)) - a * np.log(silent_b / b))


def _compute_log_choose(n: Floats, m: int) -> Floats:
    return np.asarray(
        compute_log_gamma(n + 1) - compute_log_gamma(m + 1.0) - compute_log_gamma(np.maximum(n - m, 0.0) + 1)
    )


def _fit_gamma_mixture(terms: Sequence[tuple[Floats, Floats, Floats]]) -> tuple[Floats, Floats]:
    """Shape and mean of the Gamma with a mixture's mean and mean logarithm. terms: ln of each weight, a and b."""
    log_weight, a, b = (np.array([term[n] for term in terms]) for n in range(3))
    weight = np.exp(log_weight - log_weight.max(axis=0))
    weight /= weight.sum(axis=0)
    mean = (weight * a / b).sum(axis=0)
    mean_log = (weight * (compute_digamma(a) - np.log(b))).sum(axis=0)
    return solve_shape(np.maximum(np.log(mean) - mean_log, 1e-9)), mean
