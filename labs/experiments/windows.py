"""Window policies: from which of a page's visits its importance is told, and what has to be stored for that.

The product has interpolation. The others stand here to be compared with it, over the same visits: the paper's, which
keep measures, pairs of a visit's cash and clock; and two blocks, which is ours. Each is read at its best: the cash that
is kept and what waits, over exactly the time in which it came.
Source: Abiteboul, Preda, Cobena, "Adaptive On-Line Page Importance Computation", WWW 2003, section 5.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

import numpy as np

from crawler.core.opic.opic import WINDOW_PASSES, compute_importance, update_history
from labs.experiments.graph import Floats, Ints
from labs.experiments.opic import Crawl, Log

LEAST_MEASURES = 3  # of the improved fixed window


class Window(StrEnum):
    """How far back a page's importance looks."""

    INTERPOLATION = "interpolation"  # the product's: two numbers a page
    VARIABLE = "variable"  # the last so many measures of each page
    FIXED = "fixed"  # all measures of the last so many passes of the clock
    IMPROVED = "improved"  # the same, and three measures at least
    BLOCKS = "blocks"  # the cash of this half of a window and of the half before: four numbers a page


USUAL_SIZE = {Window.VARIABLE: 8.0}  # measures; of all others passes of the clock, WINDOW_PASSES


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """A window and its size: measures of a variable one, else passes of the clock."""

    window: Window = Window.INTERPOLATION
    size: float = WINDOW_PASSES

    def __str__(self) -> str:
        return self.window.value if self == PRODUCT else f"{self.window.value}:{self.size:g}"


PRODUCT = WindowPolicy()


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Each page's importance, relative to the mean page, and how many numbers a page stores for it on average."""

    importance: Floats
    numbers_per_page: float


def policy_of(text: str) -> WindowPolicy:
    """A policy as it is typed: interpolation, variable:8, fixed:16. ValueError, a sentence, for anything else."""
    name, _, size = text.partition(":")
    try:
        window = Window(name)
        amount = float(size) if size else USUAL_SIZE.get(window, WINDOW_PASSES)
    except ValueError as error:
        raise ValueError(f"{text!r} is no window such as interpolation, variable:8, fixed:16 or blocks:24") from error
    if not 0 < amount <= 1e6 or (window is Window.VARIABLE and not amount.is_integer()):
        raise ValueError(f"{text!r}: a size is above 0, and of a variable window a whole number")
    return WindowPolicy(window, amount)


def estimate(crawl: Crawl, policy: WindowPolicy) -> Estimate:
    """What a policy tells after the visits that a crawl has made so far."""
    coins = policy.size * (crawl.economy.total_cash - crawl.economy.dormant)
    match policy.window:
        case Window.INTERPOLATION if policy == PRODUCT:
            return Estimate(crawl.estimate(), 2.0)
        case Window.INTERPOLATION:
            return Estimate(_interpolated(crawl, coins), 2.0)
        case Window.BLOCKS:
            return Estimate(_in_blocks(crawl, coins), 4.0)
        case Window.VARIABLE | Window.FIXED | Window.IMPROVED:
            measures = _Measures(crawl.log(), crawl.waiting())
            kept = measures.kept(policy, window=coins)
            rates = measures.rates(measures.ends - kept, now=crawl.economy.clock)
            # Beside each measure's cash and clock, the clock at which the oldest one's cash began to come.
            return Estimate(rates * len(rates), float(2 * kept.mean() + 1))
        case _:
            assert_never(policy.window)


def _interpolated(crawl: Crawl, window: float) -> Floats:
    """The product's estimate as it would be with another window."""
    waiting, now = crawl.waiting(), crawl.economy.clock
    pages = len(waiting)
    history, clock = [0.0] * pages, [0.0] * pages
    for page, cash, at in _visits(crawl.log()):
        history[page] = update_history(history[page], cash, clock_before=clock[page], clock_now=at, window=window)
        clock[page] = at
    told = zip(history, waiting.tolist(), clock, strict=True)
    found = [compute_importance(h, c, clock_last=g, clock_now=now, pages=pages, window=window) for h, c, g in told]
    return np.array(found)


def _in_blocks(crawl: Crawl, window: float) -> Floats:
    """The cash since the block before this one began, by that time; a block ends with a visit, half a window long."""
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
    """A log in order of pages, and of time within a page: the measures of page i end before ends[i]."""

    def __init__(self, log: Log, waiting: Floats) -> None:
        order = np.argsort(log.page, kind="stable")
        self.page, self.clock, self.waiting = log.page[order], log.clock[order], waiting
        self.counts: Ints = np.bincount(log.page, minlength=len(waiting))
        self.ends: Ints = np.cumsum(self.counts)
        self.received: Floats = np.concatenate([[0.0], np.cumsum(log.cash[order])])  # exact: whole numbers below 2^53

    def kept(self, policy: WindowPolicy, *, window: float) -> Ints:
        """How many measures each page keeps. window: of a fixed one, in coins."""
        recent = self.clock > self.clock.max(initial=0.0) - window
        within: Ints = np.bincount(self.page[recent], minlength=len(self.counts))
        if policy.window is Window.VARIABLE:
            return np.minimum(self.counts, round(policy.size))
        if policy.window is Window.IMPROVED:
            return np.maximum(within, np.minimum(self.counts, LEAST_MEASURES))
        return within

    def rates(self, firsts: Ints, *, now: float) -> Floats:
        """The share of the clock's coins that each page received since the measure before its first one."""
        is_known = firsts > self.ends - self.counts
        begins = np.where(is_known, self.clock[np.maximum(firsts - 1, 0)], 0.0)
        came = self.received[self.ends] - self.received[firsts] + self.waiting
        return np.asarray(came / np.maximum(now - begins, 1.0), dtype=np.float64)
