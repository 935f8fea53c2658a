"""The product's own rule, with its steps in the product's order: learn, score, choose; all from core.

Nothing is decided here: estimates, values and selection come from core, as the store calls it. What the store keeps in
tables is in arrays: evidence relative to the group's prior, and the last good visit.
"""

from dataclasses import dataclass

import numpy as np

from crawler.core.budget.shadow_price import compute_longest_gap
from crawler.core.freshness.estimates import (
    DEFAULT_MAGNITUDE,
    MAX_UNDETECTED,
    PRIOR,
    compute_clipped_factor,
    compute_expected_magnitude,
    compute_fresh_chance,
    convert_bits_to_magnitude,
    fade_evidence,
    is_credible_age,
    learn_changed_at,
    learn_magnitude,
    learn_unchanged,
    refit_magnitudes,
)
from crawler.core.freshness.prior import add_prior, compute_moments, pool_moments, refit_priors, subtract_prior
from crawler.core.freshness.selection import Candidates, select_pages
from crawler.core.freshness.signals import (
    SignalState,
    compute_aged_days,
    compute_days_ahead,
    learn_changed_with_signals,
)
from crawler.core.freshness.visit_value import compute_weights
from labs.experiments.policies.activities import SiteActivities
from labs.experiments.policies.policy import Scene, VisitBatch, places
from labs.experiments.worlds.world import Floats, Ints

SHORTEST_GAP_DAYS = 1e-6
MIN_DAYS = 1 / 144  # minimum between two visits of a page
LONGEST_DAYS = 180.0  # maximum between two visits of a page, if the budget allows it
DISCOVERY_SHARE = REFRESH_SHARE = 0.3
PLANS_A_DAY = 4  # the default of the product
MIN_SHADOW_PRICE = 1e-9  # every visit has a higher value, so the best ones get the available slots


@dataclass(frozen=True, slots=True)
class Mechanisms:
    """The mechanisms of a rule, beyond exact updates that fade over a year, one prior, and selection by value.

    activity: learn on which days a host's pages change.
    prior: refit the prior every day.  groups: use a prior for each URL template.
    modified: use a Last-Modified that can be true.  magnitudes: weight a change by its magnitude.
    mix: effect of importance on a page's weight, 0 to 1.
    """

    activity: bool = True
    prior: bool = True
    groups: bool = True
    modified: bool = True
    magnitudes: bool = False  # off, since freshness is compared, in which each change counts equally
    mix: float = 1.0  # freshness is weighted by importance


ALL = Mechanisms()
NOTHING = Mechanisms(activity=False, groups=False, modified=False)


class Ours:
    """Estimates learned from a cold start; each slot of the budget goes to the page with the highest value.

    The store reads the head of an index of due times and fills the remaining slots by value (decision 0048). Here all
    pages are read, so there are neither due times nor prices, which only determine the content of the index.
    """

    def __init__(self, scene: Scene, mechanisms: Mechanisms = ALL) -> None:
        size = scene.size
        self._scene, self._has = scene, mechanisms
        self._group = scene.group if mechanisms.groups else np.zeros(size, np.int64)
        groups = int(self._group.max()) + 1
        self._importance = 1 - mechanisms.mix + mechanisms.mix * scene.importance
        self._weight = compute_weights(self._importance)
        self._amount_total, self._amount_changes = np.zeros(size), np.zeros(size)  # of the changes found
        self._usual_amounts = np.full(groups, DEFAULT_MAGNITUDE), DEFAULT_MAGNITUDE
        self._a0, self._b0 = np.full(groups, PRIOR.a), np.full(groups, PRIOR.b)
        self._evidence_a, self._evidence_b = np.zeros(size), np.zeros(size)
        self._since = np.full(size, np.nan)  # the last good visit
        self._phase = np.ones(size)  # the fraction of its first interval that a page waits
        self._is_new = np.zeros(size, bool)
        self._activities = SiteActivities(int(scene.host.max()) + 1)
        self._planned_at = 0.0
        self._dispatched = 0

    # claim

    def choose(self, now: float, slots: int, room: Ints | None) -> Ints:
        if int(now * PLANS_A_DAY) > int(self._planned_at * PLANS_A_DAY):
            self._plan(now)
        pages = np.flatnonzero(self._is_new | ~np.isnan(self._since))
        picked = select_pages(
            self._candidates(pages, now),
            slots=slots if room is None else len(pages),
            discovery_share=DISCOVERY_SHARE,
            refresh_share=REFRESH_SHARE,
            slots_before=self._dispatched,
        )
        chosen = pages[picked.chosen]
        if room is not None:
            chosen = chosen[places(self._scene.host[chosen]) < room[self._scene.host[chosen]]][:slots]
        self._dispatched += len(chosen)
        return chosen

    def _candidates(self, pages: Ints, now: float) -> Candidates:
        is_new, no, nothing = self._is_new[pages], np.zeros(len(pages), bool), np.zeros(len(pages))
        a, b = self._estimate_rates(pages)
        signals = self._signal_state(pages)
        longest = compute_longest_gap(float(len(pages)), self._scene.budget_per_day, max_interval=LONGEST_DAYS)
        return Candidates(
            a=a,
            b=b,
            weight=self._weight[pages],
            shadow_price=nothing + MIN_SHADOW_PRICE,
            min_interval=nothing + MIN_DAYS,
            max_interval=nothing + longest,
            unseen=np.where(is_new, 0.0, now - self._since[pages]),
            due_in=nothing,
            is_unfetched=is_new,
            is_requested=no,
            is_timed=no,
            is_dead=no,
            is_duplicate=no,
            is_ruled=no,
            cash=self._weight[pages],
            phase=self._phase[pages],
            gap=np.full(len(pages), np.nan),
            activity_ahead=np.where(is_new, 0.0, self._activity_ahead(pages)),
            recall=np.asarray(signals.recall),
            signal_days_ahead=compute_days_ahead(a, b, signals),
        )

    # learn and score

    def learn(self, visits: VisitBatch) -> None:
        page, again = visits.page, ~visits.first & ~visits.gone
        group = self._group[page]
        a0, b0 = self._a0[group], self._b0[group]
        a, b = self._estimate_rates(page)
        by_site = self._by_site(visits)
        a, b = fade_evidence(a, b, a0, b0, visits.gap)
        signals = self._signal_state(page)
        learned = self._learn_visits(a, b, visits, signals, by_site)
        a, b = np.where(again, learned[0], a), np.where(again, learned[1], b)
        self._evidence_a[page], self._evidence_b[page] = subtract_prior(a, b, a0, b0)
        self._learn_amounts(page[visits.changed], visits.distance_bits[visits.changed])
        self._activities.keep(visits, 1 - np.asarray(signals.recall))
        self._since[page], self._is_new[page], self._phase[page] = visits.at, False, 1.0
        self._reset_signals(page)
        self._since[page[visits.gone]] = np.nan

    def _learn_visits(
        self, a: Floats, b: Floats, visits: VisitBatch, signals: SignalState, by_site: Floats
    ) -> tuple[Floats, Floats]:
        """Return estimates after visits with these results; a Last-Modified that cannot be true is ignored.

        by_site: the gaps in days of activity.
        """
        same = learn_unchanged(a, b, by_site)
        changed = learn_changed_with_signals(a, b, by_site, signals)
        pace = by_site / np.maximum(visits.gap, SHORTEST_GAP_DAYS)
        modified = learn_changed_at(a, b, np.nan_to_num(visits.modified_age) * pace)
        is_dated = visits.changed & is_credible_age(visits.modified_age, visits.gap) & self._has.modified
        kinds = [is_dated, visits.changed]
        return (
            np.select(kinds, [modified[0], changed[0]], same[0]),
            np.select(kinds, [modified[1], changed[1]], same[1]),
        )

    def _learn_amounts(self, pages: Ints, bits: Floats) -> None:
        found = np.maximum(convert_bits_to_magnitude(bits), MAX_UNDETECTED)
        self._amount_total[pages], self._amount_changes[pages] = learn_magnitude(
            self._amount_total[pages], self._amount_changes[pages], found
        )
        self._weigh(pages)

    def _weigh(self, pages: Ints) -> None:
        """Set the weights of pages: their importance times their change magnitude, relative to the mean page."""
        if self._has.magnitudes:
            group, mean = self._usual_amounts
            usual = group[self._group[pages]]
            expected = compute_expected_magnitude(self._amount_total[pages], self._amount_changes[pages], usual)
            self._weight[pages] = compute_weights(self._importance[pages] * compute_clipped_factor(expected, mean))

    def _activity_ahead(self, pages: Ints) -> Floats:
        """Return the days by which the hosts' activity is ahead of the calendar since the pages were visited."""
        return self._activities.ahead(self._scene.host[pages], self._since[pages])

    def _by_site(self, visits: VisitBatch) -> Floats:
        """Return the gaps in days of the hosts' activity."""
        return np.maximum(
            visits.gap + self._activities.ahead(self._scene.host[visits.page], self._since[visits.page]), 0.0
        )

    def _reset_signals(self, pages: Ints) -> None:
        """Reset the signals about visited pages."""

    def _signal_state(self, pages: Ints) -> SignalState:
        """Return the signals about pages since their last visits: none without a source."""
        nothing = np.zeros(len(pages))
        return SignalState(recall=nothing, count=nothing, ratio=nothing)

    def _estimate_rates(self, pages: Ints) -> tuple[Floats, Floats]:
        group = self._group[pages]
        return add_prior(self._evidence_a[pages], self._evidence_b[pages], self._a0[group], self._b0[group])

    # plan

    def _plan(self, now: float) -> None:
        self._planned_at = now
        if self._has.prior:
            self._refit(np.flatnonzero(~np.isnan(self._since)))
        if self._has.activity:
            a, b = self._estimate_rates(np.arange(self._scene.size))
            self._activities.learn(now, self._scene.host, a / b)

    def _refit(self, known: Ints) -> None:
        """Fit new priors from all known pages; those without evidence keep the prior from jumping."""
        self._a0, self._b0 = self.refitted(known)
        group = self._group[known]
        self._usual_amounts = refit_magnitudes(
            self._amount_total[known], self._amount_changes[known], group, groups=len(self._a0)
        )
        self._weigh(known)

    def refitted(self, known: Ints) -> tuple[Floats, Floats]:
        """Return the priors (a0, b0) of all groups, which are templates of one domain, from the known pages."""
        a, b = self._estimate_rates(known)
        groups = compute_moments(a, b + self._silent_days(known), self._group[known], group_count=len(self._a0))
        return refit_priors(groups, everywhere=pool_moments(groups))[:2]

    def _silent_days(self, known: Ints) -> Floats:
        """Return the days since the last visit times the share of signaled changes; 0 for pages with signals."""
        signals, unseen = self._signal_state(known), self._planned_at - self._since[known] + self._activity_ahead(known)
        return np.where(np.equal(signals.count, 0), signals.recall * np.maximum(unseen, 0.0), 0.0)

    def meet(self, pages: Ints, now: float) -> None:
        if now == 0:
            self._since[pages] = 0.0
        else:
            self._is_new[pages] = True

    def expects(self, now: float) -> Floats | None:
        """Apply the report's formula: an unfetched page is not fresh."""
        pages = np.arange(self._scene.size)
        unseen = np.where(np.isnan(self._since), 1e9, now - self._since)
        a, b = self._estimate_rates(pages)
        unseen = np.maximum(unseen + self._activity_ahead(pages), 0.0)
        return compute_fresh_chance(a, b, compute_aged_days(a, b, unseen, self._signal_state(pages)))
