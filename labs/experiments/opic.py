"""Adaptive OPIC on a whole graph: the product's own economy (core/opic), visit after visit, and its estimates."""

import heapq
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, assert_never

import numpy as np

from crawler.core.http.urls import PageKey
from crawler.core.opic.opic import (
    ENDOWMENT,
    FIRST_SEEDS,
    TOTAL_CASH,
    VIRTUAL_PAGE_SHARE,
    Economy,
    Pool,
    compute_importance,
    settle_cash,
)
from labs.experiments.graph import Floats, Graph, Ints, rows

STALE = 8  # maximum heap entries per page, before the heap is rebuilt


class SelectionOrder(StrEnum):
    """The order of visits."""

    GREEDY = "greedy"  # the page with the most cash
    CYCLE = "cycle"  # one after the other, in a fixed order
    RANDOM = "random"  # any page


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """All visits so far, in order. cash: taken by each, without the page's endowment.  clock: after it."""

    page: Ints
    cash: Floats
    clock: Floats


class Chooser(Protocol):
    """A selection of the next pages. `update` is called with every page that received or gave cash."""

    def choose(self, pages: int) -> list[int]: ...

    def update(self, paid: Iterable[int]) -> None: ...


class Crawl:
    """Endless visits of the pages of a graph, all of which are known from the start.

    All pages are in one pool, so that dividends of the virtual page do not change their order by cash.
    batch: pages claimed at a time, with the cash that they have then; 1 is the algorithm as published.
    root_cash: initial endowments of page 0; FIRST_SEEDS in the product, while all other pages begin with one.
    virtual_page_share: share of each visit's cash for the virtual page.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        selection: SelectionOrder,
        seed: int,
        batch: int = 1,
        root_cash: float = FIRST_SEEDS,
        virtual_page_share: float = VIRTUAL_PAGE_SHARE,
    ) -> None:
        self.virtual_page_share = virtual_page_share
        self.economy = Economy(virtual_page_cash=0, dormant=TOTAL_CASH, clock=0.0, pages=[0] * 4, dividend=[0] * 4)
        self.batch = min(batch, graph.pages)
        self._keys = [PageKey(n.to_bytes(16)) for n in range(graph.pages)]
        self._numbers = {key: n for n, key in enumerate(self._keys)}
        for key in self._keys:
            self.economy.admit_page(key, Pool.FETCHED)
        self._debts = [ENDOWMENT] * graph.pages
        self._endow_root(round((root_cash - 1) * ENDOWMENT))
        self._page, self._cash, self._clock = array("q"), array("d"), array("d")
        self.become(graph)
        self._chooser = _chooser(selection, self, pages=graph.pages, seed=seed)

    @property
    def passes(self) -> float:
        """Return the clock, in multiples of the cash in circulation."""
        return self.economy.clock / (self.economy.total_cash - self.economy.dormant)

    def become(self, graph: Graph) -> None:
        """Change the links; later visits see the new ones."""
        self._links = [[self._keys[target] for target in row] for row in rows(graph)]

    def _endow_root(self, amount: int) -> None:
        self.economy.dormant -= amount
        self.economy.pay_page(self._keys[0], amount)
        self.economy.accounts[self._keys[0]].history -= amount  # a debt, like every endowment
        self._debts[0] += amount

    def visit(self, visits: int) -> None:
        """Make this many visits, batch by batch."""
        done = 0
        while done < visits:
            pages = self._chooser.choose(min(self.batch, visits - done))
            self._record(pages)
            done += len(pages)

    def cash(self, page: int) -> int:
        """Return a page's current cash."""
        return self.economy.get_cash(self._keys[page])

    def net(self, page: int) -> int:
        """Return a page's cash less the dividend, which is equal for all pages; net suffices to compare them."""
        return self.economy.accounts[self._keys[page]].net

    def waiting(self) -> Floats:
        """Return each page's current cash without its endowment."""
        return np.array([self.cash(n) - debt for n, debt in enumerate(self._debts)], dtype=np.float64)

    def estimate(self) -> Floats:
        """Return each page's current importance by the product's own window, interpolation."""
        economy = self.economy
        purses = [economy.accounts[key] for key in self._keys]
        found = [
            compute_importance(
                purse.history,
                purse.net + economy.dividend[purse.pool],
                clock_last=purse.clock,
                clock_now=economy.clock,
                pages=len(purses),
                window=economy.window,
            )
            for purse in purses
        ]
        return np.array(found)

    def log(self) -> Log:
        """Return all visits so far."""
        return Log(page=np.array(self._page, dtype=np.int64), cash=np.array(self._cash), clock=np.array(self._clock))

    def _record(self, pages: Sequence[int]) -> None:
        """Settle a batch like the store: with the cash at the claim, and one payment of the virtual page."""
        claimed = [self.cash(page) for page in pages]
        for page, cash in zip(pages, claimed, strict=True):
            self._settle(page, cash)
        self.economy.pay_dividends()

    def _settle(self, page: int, cash: int) -> None:
        key, economy = self._keys[page], self.economy
        economy.collect_cash(key, cash, is_first_visit=False)
        done = settle_cash(cash, self._links[page], virtual_page_share=self.virtual_page_share)
        economy.virtual_page_cash += done.to_virtual_page
        for link, amount in done.shares.items():
            economy.pay_page(link, amount)
        self._page.append(page)
        self._cash.append(cash - self._debts[page])
        self._clock.append(economy.clock)
        self._debts[page] = 0
        self._chooser.update([page, *map(self._numbers.__getitem__, done.shares)])


def _chooser(selection: SelectionOrder, crawl: Crawl, *, pages: int, seed: int) -> Chooser:
    match selection:
        case SelectionOrder.GREEDY:
            return _Greedy(crawl, pages)
        case SelectionOrder.CYCLE:
            return _Cycle(pages, seed=seed)
        case SelectionOrder.RANDOM:
            return _Random(pages, seed=seed)
        case _:
            assert_never(selection)


class _Greedy:
    """The exact order by cash: a heap with an entry for each change, of which only the page's last one counts."""

    def __init__(self, crawl: Crawl, pages: int) -> None:
        self._crawl, self._pages = crawl, pages
        self._heap: list[tuple[int, int]] = []
        self._make()

    def choose(self, pages: int) -> list[int]:
        found: dict[int, None] = {}
        while len(found) < pages:
            net, page = heapq.heappop(self._heap)
            if -net == self._crawl.net(page):
                found[page] = None
        return list(found)

    def update(self, paid: Iterable[int]) -> None:
        for page in paid:
            heapq.heappush(self._heap, (-self._crawl.net(page), page))
        if len(self._heap) > STALE * self._pages:
            self._make()

    def _make(self) -> None:
        self._heap = [(-self._crawl.net(page), page) for page in range(self._pages)]
        heapq.heapify(self._heap)


class _Cycle:
    def __init__(self, pages: int, *, seed: int) -> None:
        self._order = np.random.default_rng(seed).permutation(pages).tolist()
        self._next = 0

    def choose(self, pages: int) -> list[int]:
        found = [self._order[(self._next + n) % len(self._order)] for n in range(pages)]
        self._next += pages
        return found

    def update(self, paid: Iterable[int]) -> None:
        """Do nothing: cash does not matter here."""


class _Random:
    def __init__(self, pages: int, *, seed: int) -> None:
        self._chance, self._pages = np.random.default_rng(seed), pages

    def choose(self, pages: int) -> list[int]:
        found: dict[int, None] = {}
        while len(found) < pages:
            found |= dict.fromkeys(self._chance.integers(self._pages, size=pages - len(found)).tolist())
        return list(found)

    def update(self, paid: Iterable[int]) -> None:
        """Do nothing: cash does not matter here."""
