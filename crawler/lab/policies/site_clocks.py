"""The clocks of a world's hosts, as the store keeps one with each domain."""

from datetime import UTC, datetime

import numpy as np

from crawler.core.freshness import DAY, NEW_CLOCK, Belief, LookFinding, clock_after, weighed_now
from crawler.lab.policies.policy import LookBatch
from crawler.lab.worlds.world import Flags, Floats, Ints

START = datetime(2000, 1, 1, tzinfo=UTC)  # of the virtual time, in days


class SiteClocks:
    """The clock of each host, learnt from nothing."""

    def __init__(self, hosts: int) -> None:
        self._clocks = [NEW_CLOCK] * hosts
        self._curves: list[tuple[Floats, Floats] | None] = [None] * hosts  # limits in days, and days ahead at each

    def ahead(self, host: Ints, since: Floats) -> Floats:
        """The days by which each page's host has gone ahead of the calendar since then; 0 where that is NaN."""
        found = np.zeros(len(host))
        for each in np.unique(host):
            curve = self._curves[each]
            if curve is not None:
                mine = host == each
                found[mine] = curve[1][-1] - np.interp(since[mine], *curve)
        return np.nan_to_num(found)

    def learn(self, looks: LookBatch, host: Ints, believed: tuple[Floats, Floats], untold: Floats, told: Flags) -> Ints:
        """Take in looks; the hosts whose clock has leapt. told: of pages about which a signal came, which are none."""
        a, b = believed
        use = ~looks.first & ~looks.gone & ~told & (looks.gap > 0)
        leapt = []
        for each in np.unique(host[use]):
            rows = np.flatnonzero(use & (host == each))
            rows = rows[np.argsort(looks.at[rows], kind="stable")]
            findings = [
                LookFinding(
                    at=START + float(looks.at[n]) * DAY,
                    before=START + float(looks.at[n] - looks.gap[n]) * DAY,
                    believed=Belief(float(a[n]), float(b[n])),
                    changed=bool(looks.changed[n]),
                    untold=float(untold[n]),
                )
                for n in rows
            ]
            clock = clock_after(self._clocks[each], findings)
            if clock.has_leapt:
                leapt.append(each)
                clock = weighed_now(clock)
            self._clocks[each] = clock
            self._curves[each] = np.array([(at - START) / DAY for at in clock.at]), np.array(clock.ahead)
        return np.array(leapt, np.int64)
