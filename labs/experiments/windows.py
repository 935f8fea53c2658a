"""Window policies: from which of a page's visits its importance is estimated, and what must be stored for that.

The product uses interpolation. The others are compared with it, over the same visits: those of the paper, which keep
measures, pairs of a visit's cash and clock; and two blocks, our own. Each is evaluated optimally: the stored cash and
the waiting cash, divided by exactly the time in which it was received.
Source: Abiteboul, Preda, Cobena, "Adaptive On-Line Page Importance Computation", WWW 2003, section 5.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

import numpy as np

from crawler.core.opic.opic import WINDOW_PASSES, compute_importance, update_history
from labs.experiments.graph import Floats, Ints
from labs.experiments.opic import Crawl, Log

MIN_MEASURES = 3  # per page, in the improved fixed window


class Window(StrEnum):
    """The window of a page's importance."""

    INTERPOLATION = "interpolation"  # the product's: two numbers per page
    VARIABLE = "variable"  # the last measures of each page, a fixed number of them
    FIXED = "fixed"  # all measures of a fixed number of last passes of the clock
    IMPROVED = "improved"  # the same, but at least three measures
    BLOCKS = "blocks"  # the cash of this half of a window and of the half before: four numbers per page


USUAL_SIZE = {Window.VARIABLE: 8.0}  # measures; for all others passes of the clock, WINDOW_PASSES


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """A window and its size: measures for a variable one, else passes of the clock."""

    window: Window = Window.INTERPOLATION
    size: float = WINDOW_PASSES

    def __str__(self) -> str:
        return self.window.value if self == PRODUCT else f"{self.window.value}:{self.size:g}"


PRODUCT = WindowPolicy()


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Each page's importance, relative to the mean page, and how many numbers are stored per page on average."""

    importance: Floats
    numbers_per_page: float


def policy_of(text: str) -> WindowPolicy:
    """Parse a policy such as interpolation, variable:8 or fixed:16. Raise ValueError with a message for users."""
    name, _, size = text.partition(":")
    try:
        window = Window(name)
        amount = float(size) if size else USUAL_SIZE.get(window, WINDOW_PASSES)
    except ValueError as error:
        raise ValueError(
            f"{text!r} is not a window such as interpolation, variable:8, fixed:16 or blocks:24"
        ) from error
    if not 0 < amount <= 1e6 or (window is Window.VARIABLE and not amount.is_integer()):
        raise ValueError(f"{text!r}: the size must be above 0, and a whole number for a variable window")
    return WindowPolicy(window, amount)


def estimate(crawl: Crawl, policy: WindowPolicy) -> Estimate:
    """Return a policy's estimate after the visits of a crawl so far."""
    window = policy.size * (crawl.economy.total_cash - crawl.economy.dormant)
    match policy.window:
        case Window.INTERPOLATION if policy == PRODUCT:
            return Estimate(crawl.estimate(), 2.0)
        case Window.INTERPOLATION:
            return Estimate(_interpolated(crawl, window), 2.0)
        case Window.BLOCKS:
            return Estimate(_in_blocks(crawl, window), 4.0)
        case Window.VARIABLE | Window.FIXED | Window.IMPROVED:
            measures = _Measures(crawl.log(), crawl.waiting())
            kept = measures.kept(policy, window=window)
            rates = measures.rates(measures.ends - kept, now=crawl.economy.clock)
            # For each measure, its cash and clock, and the clock from which on the oldest one's cash was received.
            return Estimate(rates * len(rates), float(2 * kept.mean() + 1))
        case _:
            assert_never(policy.window)


def _interpolated(crawl: Crawl, window: float) -> Floats:
    """Return the product's estimate with another window."""
    waiting, now = crawl.waiting(), crawl.economy.clock
    pages = len(waiting)
    history, clock = [0.0] * pages, [0.0] * pages
    for page, cash, at in _visits(crawl.log()):
        history[page] = update_history(history[page], cash, clock_before=clock[page], clock_now=at, window=window)
        clock[page] = at
    estimates = zip(history, waiting.tolist(), clock, strict=True)
    found = [compute_importance(h, c, clock_last=g, clock_now=now, pages=pages, window=window) for h, c, g in estimates]
    return np.array(found)


def _in_blocks(crawl: Crawl, window: float) -> Floats:
    """Return cash per time since the beginning of the previous block; a block ends with a visit after half a window."""
    waiting, now = crawl.waiting(), crawl.economy.clock
    pages = len(waiting)
    earlier, current, earlier_began, began = ([0.0] * pages for _ in range(4))
    for page, cash, at in _visits(crawl.log()):
        current[page] += cash
        if at - began[page] >= window / 2:
            earlier[page], earlier_began[page] = current[page], began[page]
            current[page], began[page] = 0.0, at
    received = np.array(earlier) + np.array(current) + waiting
    return np.asarray(pages * received / np.maximum(now - np.array(earlier_began), 1.0), dtype=np.float64)


def _visits(log: Log) -> "zip[tuple[int, float, float]]":
    return zip(log.page.tolist(), log.cash.tolist(), log.clock.tolist(), strict=True)


class _Measures:
    """A log ordered by page, and by time within a page: the measures of page i end before ends[i]."""

    def __init__(self, log: Log, waiting: Floats) -> None:
        order = np.argsort(log.page, kind="stable")
        self.page, self.clock, self.waiting = log.page[order], log.clock[order], waiting
        self.counts: Ints = np.bincount(log.page, minlength=len(waiting))
        self.ends: Ints = np.cumsum(self.counts)
        self.received: Floats = np.concatenate([[0.0], np.cumsum(log.cash[order])])  # exact: whole numbers below 2^53

    def kept(self, policy: WindowPolicy, *, window: float) -> Ints:
        """Return how many measures each page keeps. window: of a fixed one, in cash."""
        recent = self.clock > self.clock.max(initial=0.0) - window
        within: Ints = np.bincount(self.page[recent], minlength=len(self.counts))
        if policy.window is Window.VARIABLE:
            return np.minimum(self.counts, round(policy.size))
        if policy.window is Window.IMPROVED:
            return np.maximum(within, np.minimum(self.counts, MIN_MEASURES))
        return within

    def rates(self, firsts: Ints, *, now: float) -> Floats:
        """Return the share of the clock's cash that each page received since the measure before its first one."""
        is_known = firsts > self.ends - self.counts
        begins = np.where(is_known, self.clock[np.maximum(firsts - 1, 0)], 0.0)
        came = self.received[self.ends] - self.received[firsts] + self.waiting
        return np.asarray(came / np.maximum(now - begins, 1.0), dtype=np.float64)
