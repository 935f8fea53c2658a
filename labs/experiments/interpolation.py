"""The paper's figure 1: the importance in a window of the clock, and its interpolation from two numbers per page.

Source: Abiteboul, Preda, Cobena, "Adaptive On-Line Page Importance Computation", WWW 2003, section 5.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from labs.experiments.fixpoint import fixpoint
from labs.experiments.graph import Floats, Graph, relinked
from labs.experiments.opic import Crawl

CHANGED_SHARE = 0.1  # of the links, halfway
PARTS = 4  # measurements per pass of visits


@dataclass(frozen=True, slots=True)
class Moment:
    """The measurements at one moment. visits: of each page, on average, so far.

    exact: the followed page's importance by the cash received in the last window.  interpolated: by interpolation.
    apart: the mean of |interpolated - exact| / exact of all pages.
    """

    visits: float
    exact: float
    interpolated: float
    apart: float


@dataclass(frozen=True, slots=True)
class Interpolation:
    """How well interpolation followed the window while links were constant, and after some of them were replaced.

    page: the one that gains most by the change.  before, after: its true importance.  changed_at: in visits.
    """

    page: int
    before: float
    after: float
    changed_at: float
    moments: tuple[Moment, ...]

    @property
    def at_rest(self) -> float:
        """Return how far interpolation is apart from the window at the last moment before the change."""
        return [each.apart for each in self.moments if each.visits <= self.changed_at][-1]

    @property
    def at_worst(self) -> float:
        return max(each.apart for each in self.moments if each.visits > self.changed_at)


@dataclass(slots=True)
class _Received:
    """The cash that each page has received, by the clock, at every moment so far."""

    clocks: list[float] = field(default_factory=lambda: [0.0])
    cash: list[Floats] = field(default_factory=list)

    def add(self, clock: float, cash: Floats) -> None:
        if not self.cash:
            self.cash.append(np.zeros_like(cash))
        self.clocks.append(clock)
        self.cash.append(cash)

    def until(self, clock: float) -> Floats:
        """Return what had been received by then, interpolated between moments."""
        after = min(max(int(np.searchsorted(self.clocks, clock)), 1), len(self.clocks) - 1)
        begin, end = self.clocks[after - 1], self.clocks[after]
        part = min(max((clock - begin) / (end - begin), 0.0), 1.0)
        return (1 - part) * self.cash[after - 1] + part * self.cash[after]


def follow(crawl: Crawl, graph: Graph, *, passes: int, seed: int, progress: Callable[[int], None]) -> Interpolation:
    """Crawl for a number of passes of visits, replace a tenth of the links halfway, and compare continuously.

    crawl: of this graph, without visits so far.
    """
    changed = relinked(graph, CHANGED_SHARE, seed=seed)
    before, after = (fixpoint(each, virtual_page_share=crawl.virtual_page_share) for each in (graph, changed))
    page = int(np.argmax(after / before))
    received, moments, half = _Received(), list[Moment](), passes * PARTS // 2
    for n in range(passes * PARTS):
        if n == half:
            crawl.become(changed)
        crawl.visit(graph.pages // PARTS)
        progress(graph.pages // PARTS)
        exact, interpolated = _in_window(crawl, received), crawl.estimate()
        apart = float((np.abs(interpolated - exact) / np.maximum(exact, 1e-9)).mean())
        moments.append(Moment((n + 1) / PARTS, float(exact[page]), float(interpolated[page]), apart))
    return Interpolation(page, float(before[page]), float(after[page]), half / PARTS, tuple(moments))


def _in_window(crawl: Crawl, received: _Received) -> Floats:
    """Return each page's importance by the cash that it received within the window."""
    log, waiting = crawl.log(), crawl.waiting()
    now = crawl.economy.clock
    received.add(now, np.bincount(log.page, weights=log.cash, minlength=len(waiting)) + waiting)
    window = min(crawl.economy.window, now)
    return np.asarray(len(waiting) * (received.until(now) - received.until(now - window)) / window)
