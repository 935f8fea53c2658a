"""The product's own rule, in the order of the product's own steps: learn, appraise, claim, plan; all from core.

Nothing here decides by itself: beliefs, values, prices and the selection are core's, as the store calls them. What the
store keeps in tables stands in arrays: evidence relative to the group's prior, the last good look, and the due time.
"""

import numpy as np

from crawler.core.freshness import (
    MOST_UNSEEN,
    NO_SOURCE,
    PRIOR,
    UNKNOWN,
    USUAL_AMOUNT,
    Candidates,
    Heard,
    SourceWorth,
    amount_factor,
    amount_of_bits,
    blend,
    chance_fresh,
    chances,
    days_ahead,
    drift_of,
    due_gap,
    expected_amount,
    faded,
    heard_days,
    is_believable,
    learn_amount,
    learn_changed_at,
    learn_changed_heard,
    learn_same,
    moments,
    pooled,
    refit,
    refit_amounts,
    scores_after,
    select,
    share_redrawn,
    weights_of,
    with_prior,
    without_prior,
)
from crawler.lab.policies.activities import SiteActivities
from crawler.lab.policies.planning import PlannedRates, new_pages, plan
from crawler.lab.policies.policy import LookBatch, Scene, places
from crawler.lab.worlds.world import Flags, Floats, Ints

SHORTEST_GAP_DAYS = 1e-6
LEAST_DAYS = 1 / 144  # between two looks at a page
WINDOW = 4  # windows of the due index, in requests wanted,
WINDOW_LEAST = 8  # and at least so many more
MOST_OVERDUE = 400  # pages that are overdue and compete for the budget: so many of them are weighed
MOST_WINDOWS = 50
DISCOVERY_SHARE = REFRESH_SHARE = 0.3


class Ours:
    """Beliefs learnt from a cold start, a price for every request, due times stored and scored again when read."""

    def __init__(self, scene: Scene, *, by_amount: bool = False) -> None:
        """by_amount: a change counts by how much it changes."""
        size, groups = scene.size, int(scene.group.max()) + 1
        self._scene = scene
        self._by_amount = by_amount
        self._weight = weights_of(scene.importance)
        self._amount_total, self._amount_changes = np.zeros(size), np.zeros(size)  # of the changes found
        self._usual_amounts = np.full(groups, USUAL_AMOUNT), USUAL_AMOUNT
        self._a0, self._b0 = np.full(groups, PRIOR.a), np.full(groups, PRIOR.b)
        self._evidence_a, self._evidence_b = np.zeros(size), np.zeros(size)
        self._since = np.full(size, np.nan)  # the last good look
        self._due = np.full(size, np.inf)  # the due index: inf for pages that are new, gone, or not met yet
        # The part of its first gap that a page waits; 1 here, so that at the first claims pages not worth a look yet
        # get their whole gap. It costs weeks of the budget that nobody measures after years.
        self._phase = np.ones(size)
        self._new = np.zeros(0, np.int64)
        self._hosts = int(scene.host.max()) + 1
        self._drift, self._drift_at = UNKNOWN, 0.0
        self._activities = SiteActivities(self._hosts)
        self._rng = np.random.default_rng(0)  # samples and first gaps; the world has a seed of its own
        self._planned_day, self._refitted_at = -1, 0.0
        self._plan = PlannedRates(np.full(self._hosts, 0.25), np.full(self._hosts, 180.0), 0, np.ones(self._hosts))
        self._used = np.zeros(self._hosts)  # requests of the day
        self.read = self.handed_out = self.put_off = 0  # rows of the due index, for whoever counts

    # claim

    def choose(self, now: float, slots: int, room: Ints | None) -> Ints:
        if int(now) > self._planned_day:
            self._replan(now)
        chosen = np.zeros(0, np.int64)
        for _ in range(MOST_WINDOWS):
            found, further = self._window(now, slots - len(chosen), self._left(room, chosen))
            chosen = np.append(chosen, found)
            if not further or len(chosen) >= slots:
                break
        self._used += np.bincount(self._scene.host[chosen], minlength=self._hosts)
        if room is None:
            waiting = float(self._waiting(now).sum())
            self._plan.watch(now, used=len(chosen), allowed=slots, waiting=waiting)
        self.handed_out += len(chosen)
        return chosen

    def _waiting(self, now: float) -> Floats:
        """How many pages are due at each host and were not chosen."""
        late = self._scene.host[self._due <= now]
        return np.bincount(late, minlength=self._hosts).astype(np.float64)

    def _window(self, now: float, slots: int, room: Ints | None) -> tuple[Ints, bool]:
        """Read one window of the due index and of the order of discovery, and let core choose."""
        pages, head = self._head(now, slots, room)
        if not len(pages):
            return pages, False
        picked = select(
            head,
            slots=slots if room is None else len(pages),
            discovery_share=DISCOVERY_SHARE,
            refresh_share=REFRESH_SHARE,
            slots_before=self.handed_out,
            floor_left=self._plan.floor_left,
        )
        self._due[pages[picked.later]] = now + picked.due_in
        chosen = pages[picked.chosen]
        if room is not None:
            chosen = chosen[places(self._scene.host[chosen]) < room[self._scene.host[chosen]]][:slots]
        self._due[chosen] = np.inf  # in flight
        self._new = np.setdiff1d(self._new, chosen)
        self._plan.floor_left -= picked.floor
        self.read += len(pages)
        self.put_off += len(picked.later)
        return chosen, picked.further and len(chosen) > 0

    def _head(self, now: float, slots: int, room: Ints | None) -> tuple[Ints, Candidates]:
        """The pages that the claim reads: the heads of the due index, of each host where hosts have caps; new ones."""
        window = WINDOW * slots + WINDOW_LEAST
        if room is None:
            window = max(window, min(int((self._due <= now).sum()), MOST_OVERDUE))
            known = (
                np.argpartition(self._due, window)[:window] if window < len(self._due) else np.arange(len(self._due))
            )
        else:
            order = np.argsort(self._due, kind="stable")
            host = self._scene.host[order]
            known = order[(room[host] > 0) & (places(host) < WINDOW * room[host] + WINDOW_LEAST)]
        known = known[np.isfinite(self._due[known])]
        new = self._new[np.argsort(-self._weight[self._new], kind="stable")[:slots]]
        pages = np.append(known, new)
        is_new = np.arange(len(pages)) >= len(known)
        a, b = self._beliefs(pages)
        heard = self._heard(pages)
        head = Candidates(
            a=a,
            b=b,
            weight=self._weight[pages],
            price=self._plan.prices[self._scene.host[pages]],
            least=np.full(len(pages), LEAST_DAYS),
            most=self._plan.longest_days[self._scene.host[pages]],
            unseen=np.where(is_new, 0.0, now - self._since[pages]),
            due_in=np.where(is_new, 0.0, self._due[pages] - now),
            is_new=is_new,
            is_wanted=np.zeros(len(pages), bool),
            is_timed=np.zeros(len(pages), bool),
            is_dead=np.zeros(len(pages), bool),
            is_follower=np.zeros(len(pages), bool),
            is_ruled=np.zeros(len(pages), bool),
            cash=self._weight[pages],
            phase=self._phase[pages],
            gap=np.full(len(pages), np.nan),
            activity_ahead=np.where(is_new, 0.0, self._activity_ahead(pages)),
            recall=np.asarray(heard.recall),
            ahead=days_ahead(a, b, heard),
        )
        return pages, head

    def _left(self, room: Ints | None, chosen: Ints) -> Ints | None:
        return None if room is None else room - np.bincount(self._scene.host[chosen], minlength=len(room))

    # learn and appraise

    def learn(self, looks: LookBatch) -> None:
        page, again = looks.page, ~looks.first & ~looks.gone
        group = self._scene.group[page]
        a0, b0 = self._a0[group], self._b0[group]
        a, b = self._beliefs(page)
        by_site = self._by_site(looks)
        a, b = faded(a, b, a0, b0, looks.gap)
        heard = self._heard(page)
        given = chances(a, b, heard_days(a, b, by_site, heard), looks.changed)
        by_prior = chances(a0, b0, heard_days(a0, b0, by_site, heard), looks.changed)
        redrawn = share_redrawn(given, by_prior, looks.gap, drift=drift_of(self._drift))
        self._learn_drift(looks, again, given, by_prior)
        learnt = blend(_learnt(a, b, looks, heard, by_site), _learnt(a0, b0, looks, heard, by_site), redrawn)
        a, b = np.where(again, learnt[0], a), np.where(again, learnt[1], b)
        self._evidence_a[page], self._evidence_b[page] = without_prior(a, b, a0, b0)
        self._learn_amounts(page[looks.changed], looks.distance_bits[looks.changed])
        self._activities.keep(looks, 1 - np.asarray(heard.recall))
        self._since[page] = looks.at
        self._looked_at(page)
        self._due[page] = np.where(looks.gone, np.inf, looks.at + self._gaps(page))
        self._since[page[looks.gone]] = np.nan

    def _learn_amounts(self, pages: Ints, bits: Floats) -> None:
        found = np.maximum(amount_of_bits(bits), MOST_UNSEEN)
        self._amount_total[pages], self._amount_changes[pages] = learn_amount(
            self._amount_total[pages], self._amount_changes[pages], found
        )
        self._weigh(pages)

    def _weigh(self, pages: Ints) -> None:
        """What pages weigh: their importance by how much they change, beside the mean page."""
        if self._by_amount:
            group, mean = self._usual_amounts
            usual = group[self._scene.group[pages]]
            expected = expected_amount(self._amount_total[pages], self._amount_changes[pages], usual)
            self._weight[pages] = weights_of(self._scene.importance[pages] * amount_factor(expected, mean))

    def _learn_drift(self, looks: LookBatch, again: Flags, given: Floats, by_prior: Floats) -> None:
        """Tell the domain's drift what was found, and what chances that had been given."""
        now = float(looks.at[-1])
        self._drift = scores_after(
            self._drift, days=now - self._drift_at, before=given[again], prior=by_prior[again], gap=looks.gap[again]
        )
        self._drift_at = now

    def _gaps(self, pages: Ints) -> Floats:
        host = self._scene.host[pages]
        a, b = self._beliefs(pages)
        heard = self._heard(pages)
        activity_ahead = self._activity_ahead(pages)
        by_site = due_gap(
            a,
            b,
            self._weight[pages],
            self._plan.prices[host],
            least=LEAST_DAYS + activity_ahead,
            most=self._plan.longest_days[host] + activity_ahead,
            recall=heard.recall,
            ahead=days_ahead(a, b, heard),
        )
        return by_site - activity_ahead

    def _activity_ahead(self, pages: Ints) -> Floats:
        """The days by which the hosts' activity has gone ahead of the calendar since the pages were seen."""
        return self._activities.ahead(self._scene.host[pages], self._since[pages])

    def _by_site(self, looks: LookBatch) -> Floats:
        """The gaps in days of the hosts' activity."""
        return np.maximum(
            looks.gap + self._activities.ahead(self._scene.host[looks.page], self._since[looks.page]), 0.0
        )

    def _source(self) -> SourceWorth:
        """What the source of signals that is listened to is worth."""
        return NO_SOURCE

    def _looked_at(self, pages: Ints) -> None:
        """What was said of pages before a look says nothing after it."""

    def _heard(self, pages: Ints) -> Heard:
        """What signals say of pages since the last look: nothing, to who does not listen."""
        nothing = np.zeros(len(pages))
        return Heard(recall=nothing, count=nothing, ratio=nothing)

    def _beliefs(self, pages: Ints) -> tuple[Floats, Floats]:
        group = self._scene.group[pages]
        return with_prior(self._evidence_a[pages], self._evidence_b[pages], self._a0[group], self._b0[group])

    # plan

    def _replan(self, now: float) -> None:
        self._planned_day = int(now)
        known = np.flatnonzero(~np.isnan(self._since))
        if now > 0:
            self._refitted_at = now
            self._refit(known)
            a, b = self._beliefs(np.arange(self._scene.size))
            self._activities.learn(now, self._scene.host, a / b)
            self._due[known] = np.where(np.isfinite(self._due[known]), self._since[known] + self._gaps(known), np.inf)
            if self._scene.cap_per_day is not None:
                self._plan.watch_hosts(
                    used=self._used,
                    allowed=self._scene.budget_per_day,
                    cap=self._scene.cap_per_day,
                    waiting=self._waiting(now),
                )
        self._used = np.zeros(self._hosts)
        a, b = self._beliefs(known)
        new = new_pages(
            *self._beliefs(self._new),
            self._weight[self._new],
            self._scene,
            pages=self._new,
            longest=self._plan.longest_days,
        )
        weight = self._weight[known]
        self._plan.source = self._source()
        self._plan = plan(
            a,
            b,
            weight,
            self._scene,
            known=known,
            new=new,
            rng=self._rng,
            before=self._plan,
        )
        if now == 0:
            # All pages were fetched at once: what would fall due together is spread over its first gap.
            self._due[known] = self.first_phases(known) * self._gaps(known)

    def first_phases(self, pages: Ints) -> Floats:
        """The parts of their first gaps after which pages that came in together are due."""
        return self._rng.random(len(pages))

    def _refit(self, known: Ints) -> None:
        """New priors from all pages known; those without evidence stand for the prior, and keep it from leaping."""
        self._a0, self._b0 = self.refitted(known)
        group = self._scene.group[known]
        self._usual_amounts = refit_amounts(
            self._amount_total[known], self._amount_changes[known], group, groups=len(self._a0)
        )
        self._weigh(known)

    def refitted(self, known: Ints) -> tuple[Floats, Floats]:
        """The priors (a0, b0) of all groups, which are templates of one domain, from the beliefs of the pages known."""
        a, b = self._beliefs(known)
        groups = moments(a, b + self._silent_days(known), self._scene.group[known], groups=len(self._a0))
        return refit(groups, everywhere=pooled(groups))[:2]

    def _silent_days(self, known: Ints) -> Floats:
        """The days since the last look at pages of which nothing was said since, as far as their changes are told."""
        heard, unseen = self._heard(known), self._refitted_at - self._since[known] + self._activity_ahead(known)
        return np.where(np.equal(heard.count, 0), heard.recall * np.maximum(unseen, 0.0), 0.0)

    def meet(self, pages: Ints, now: float) -> None:
        if now == 0:
            self._since[pages] = 0.0
        else:
            self._new = np.append(self._new, pages)

    def expects(self, now: float) -> Floats | None:
        """The report's own formula: a page that nobody fetched yet is not fresh."""
        pages = np.arange(self._scene.size)
        unseen = np.where(np.isnan(self._since), 1e9, now - self._since)
        a, b = self._beliefs(pages)
        unseen = np.maximum(unseen + self._activity_ahead(pages), 0.0)
        return chance_fresh(a, b, heard_days(a, b, unseen, self._heard(pages)))


def _learnt(a: Floats, b: Floats, looks: LookBatch, heard: Heard, by_site: Floats) -> tuple[Floats, Floats]:
    """Beliefs after looks, by what each of them found; a Last-Modified that cannot be true is not heard.

    by_site: the gaps in days of activity.
    """
    same = learn_same(a, b, by_site)
    changed = learn_changed_heard(a, b, by_site, heard)
    pace = by_site / np.maximum(looks.gap, SHORTEST_GAP_DAYS)
    told = learn_changed_at(a, b, np.nan_to_num(looks.modified_age) * pace)
    is_told = looks.changed & is_believable(looks.modified_age, looks.gap)
    kinds = [is_told, looks.changed]
    return (
        np.select(kinds, [told[0], changed[0]], same[0]),
        np.select(kinds, [told[1], changed[1]], same[1]),
    )
