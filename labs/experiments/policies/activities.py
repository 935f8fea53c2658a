"""The activity of a world's hosts, learned from visits like in the store."""

import numpy as np

from crawler.core.freshness.estimates import DAY
from crawler.core.freshness.site_activity import ACTIVITY_WINDOW, VisitFindings, compute_activity_ahead
from labs.experiments.policies.policy import VisitBatch
from labs.experiments.worlds.world import Flags, Floats, Ints

REMEMBERED_DAYS = ACTIVITY_WINDOW / DAY


class SiteActivities:
    """The activity of each host, learned from nothing."""

    def __init__(self, hosts: int) -> None:
        self._curves: list[tuple[Floats, Floats] | None] = [None] * hosts  # limits in days, and days ahead at each
        self._learned_at = 0.0
        self._kept: list[tuple[Ints, Floats, Floats, Flags, Floats]] = []  # page, since, at, changed, unsignaled

    def ahead(self, host: Ints, since: Floats) -> Floats:
        """Return the days by which each page's host is ahead of the calendar since then; 0 where that is NaN."""
        found = np.zeros(len(host))
        for each in np.unique(host):
            curve = self._curves[each]
            if curve is not None:
                mine = host == each
                found[mine] = curve[1][-1] - np.interp(since[mine], *curve)
        return np.nan_to_num(found)

    def keep(self, visits: VisitBatch, unsignaled: Floats) -> None:
        """Add visits. unsignaled: the share of each page's changes that no source signals."""
        use = ~visits.first & ~visits.gone & (visits.gap > 0)
        at = visits.at[use]
        self._kept.append((visits.page[use], at - visits.gap[use], at, visits.changed[use], unsignaled[use]))

    def learn(self, now: float, host: Ints, rate: Floats) -> None:
        """Learn the activities of hosts with new visits up to now. host, rate: of all pages."""
        self._kept = [each for each in self._kept if len(each[2]) and each[2][-1] > now - REMEMBERED_DAYS]
        if not self._kept:
            return
        page, since, at, changed, unsignaled = (np.concatenate(parts) for parts in zip(*self._kept, strict=True))
        limits = np.append(np.arange(max(np.floor(since.min()), np.floor(now - REMEMBERED_DAYS)), now), now)
        new, self._learned_at = at > self._learned_at, now
        for each in np.unique(host[page[new]]):
            own = host[page] == each
            found = VisitFindings(since[own], at[own], changed[own], rate[page[own]], unsignaled[own])
            self._curves[each] = limits, compute_activity_ahead(found, limits)
