"""The plain rule that the crawler is compared with: each request goes to the page with the highest value.

Every request of the budget is used, verdicts are right, and nothing is discovered: the rule knows the pages of the
first day. A page changes with the hazard rate x activity. Its rate is a posterior over a grid, under a prior that the
pages of the site share; the activity is the site's, learned by expectation maximization (crawler/core/freshness). The
value of a visit is its gain at the optimum for Poisson changes under a budget, w (1 - (1 + x) exp(-x)) / rate with
x = rate x activity since the last visit, as the mean over the posterior.
Source: Azar, Horvitz, Lubetzky, Peres and Shahaf, "Tractable near-optimal policies for crawling", PNAS 2018.
"""

from collections.abc import Sequence

import numpy as np

from crawler.core.freshness.estimates import DAY
from crawler.core.freshness.gamma import Floats
from crawler.core.freshness.site_activity import ACTIVITY_WINDOW, VisitFindings, compute_activity_ahead
from labs.replay.history import PageLife

GRID = np.geomspace(1 / 3000, 12, 40)  # changes per day: from one in eight years to one in two hours
FIRST_PRIOR = np.exp(-0.5 * (np.log(60 * GRID) / 1.8) ** 2)  # one in 60 days, within a factor of 37 in 19 of 20 cases
KEPT_PRIOR = 0.02  # share of FIRST_PRIOR in the learned prior, so that no rate is ever excluded
ROUNDS_A_DAY = 24  # of choosing the pages with the highest values; more change no ratio by more than .01


class _Visits:
    """The results of the visits so far: page, times of the previous visit and of this one, whether it had changed."""

    def __init__(self, pages: int) -> None:
        self._pages = pages
        self._rows: list[tuple[int, float, float, bool]] = []
        self._limits, self._ahead = np.zeros(1), np.zeros(1)
        self.posterior = np.tile(FIRST_PRIOR / FIRST_PRIOR.sum(), (pages, 1))

    def add(self, page: int, since: float, at: float, *, changed: bool) -> None:
        """Add a visit; it counts from the next `learn` on."""
        self._rows.append((page, since, at, changed))

    def passed(self, at: Floats) -> Floats:
        """Return the days of activity up to each time."""
        return np.asarray(at + np.interp(at, self._limits, self._ahead))

    def learn(self, now: float) -> None:
        """Learn the activity of the days up to now, and from it the rates of all pages from all visits."""
        if not self._rows:
            return
        page, since, at, changed = (np.array(column) for column in zip(*self._rows, strict=True))
        first = max(0.0, np.floor(now - ACTIVITY_WINDOW / DAY))
        self._limits = np.unique([*np.arange(first, now), now])
        found = VisitFindings(since, at, changed, (self.posterior @ GRID)[page])
        self._ahead = compute_activity_ahead(found, self._limits)
        gap = np.maximum(self.passed(at) - self.passed(since), 1e-9)
        unchanged = np.bincount(page[~changed], gap[~changed], self._pages)
        log = -unchanged[:, None] * GRID
        np.add.at(log, page[changed], np.log(-np.expm1(-gap[changed, None] * GRID)))
        prior = self.posterior.mean(0) + KEPT_PRIOR * FIRST_PRIOR / FIRST_PRIOR.sum()
        log += np.log(prior)
        posterior = np.exp(log - log.max(1, keepdims=True))
        self.posterior = posterior / posterior.sum(1, keepdims=True)


def rule_visits(
    lives: Sequence[PageLife], weights: Floats, per_day: float, *, since: float, until: float
) -> list[list[float]]:
    """Return the times at which the rule visits each page. It begins with fresh copies of all pages at `since`.

    weights: of the pages.  per_day: visits per day, evenly spaced.
    """
    visits = _Visits(len(lives))
    times = [[since] for _ in lives]
    last = np.full(len(lives), since)
    gone = np.array([life.gone for life in lives])
    changes = [np.array(life.changes) for life in lives]
    owed = 0.0
    for n in range(1, round((until - since) * ROUNDS_A_DAY) + 1):
        now = since + n / ROUNDS_A_DAY
        if n % ROUNDS_A_DAY == 1:
            visits.learn(now)
        owed += per_day / ROUNDS_A_DAY
        x = np.maximum(visits.passed(np.full(1, now)) - visits.passed(last), 0.0)[:, None] * GRID
        values = weights * ((1 - np.exp(-x) * (1 + x)) / GRID * visits.posterior).sum(1)
        values[gone <= now] = -1.0
        for page in np.argsort(-values)[: int(owed)].tolist():
            if values[page] >= 0:
                changed = bool(np.any((changes[page] > last[page]) & (changes[page] <= now)))
                visits.add(page, last[page], now, changed=changed)
                times[page].append(now)
                last[page] = now
        owed -= int(owed)
    return times
