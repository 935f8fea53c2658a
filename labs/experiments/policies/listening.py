"""The product's own rule with a source of signals, which are weighted by what visits show about them."""

import numpy as np

from crawler.core.freshness.estimates import RateEstimate
from crawler.core.freshness.signals import SignalState, build_signal_state
from crawler.core.freshness.source_record import NEW_RECORD, record_arrivals, update_record
from labs.experiments.policies.ours import Ours
from labs.experiments.policies.policy import Scene, VisitBatch
from labs.experiments.worlds.signal_sources import SignalLog
from labs.experiments.worlds.world import Ints

MAX_COUNT = 255  # signals counted per page, as in a page's row


class Listening(Ours):
    """The product's rule with one source of signals about all pages, whose reliability is learned from nothing."""

    def __init__(self, scene: Scene, signals: SignalLog) -> None:
        super().__init__(scene)
        self._signals, self._read, self._updated_at = signals, 0, 0.0
        self._counts = np.zeros(scene.size, np.int64)
        self.record = NEW_RECORD

    def choose(self, now: float, slots: int, room: Ints | None) -> Ints:
        self._read_signals(now)
        return super().choose(now, slots, room)

    def _read_signals(self, now: float) -> None:
        """Process the signals up to now."""
        until = int(np.searchsorted(self._signals.day, now, side="right"))
        page, day = self._signals.page[self._read : until], self._signals.day[self._read : until]
        self._read = until
        self.record = record_arrivals(
            self.record, days=now - self._updated_at, pages=self._scene.size, signals=len(page)
        )
        self._updated_at = now
        page = page[day > np.nan_to_num(self._since[page], nan=np.inf)]
        np.add.at(self._counts, page, 1)
        self._counts = np.minimum(self._counts, MAX_COUNT)

    def learn(self, visits: VisitBatch) -> None:
        a, b = self._estimate_rates(visits.page)
        again, by_site = ~visits.first & ~visits.gone, self._by_site(visits)
        for n in np.flatnonzero(again):
            self.record = update_record(
                self.record,
                estimate_before=RateEstimate(float(a[n]), float(b[n])),
                gap_days=float(by_site[n]),
                signals=int(self._counts[visits.page[n]]),
                changed=bool(visits.changed[n]),
            )
        super().learn(visits)

    def _reset_signals(self, pages: Ints) -> None:
        self._counts[pages] = 0

    def _signal_state(self, pages: Ints) -> SignalState:
        return build_signal_state(self._counts[pages].astype(np.float64), self.record.quality)
