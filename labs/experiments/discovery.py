"""The share of a site's importance in its first fetched pages, by the order in which pages are fetched.

Source of the experiment: Baeza-Yates, Castillo, Marin, Rodriguez, "Crawling a country: better strategies than
breadth-first for web page ordering", WWW 2005.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

import numpy as np

from crawler.core.http.urls import PageKey, compute_page_key
from crawler.core.opic.opic import ENDOWMENT, FIRST_SEEDS, TOTAL_CASH, Economy, Pool, settle_cash
from crawler.core.opic.order import LevelQueues, Order, Ordering, PageStack, age_cash, compute_url_score
from labs.experiments.fixpoint import fixpoint
from labs.experiments.graph import Floats, Graph, rows

CLAIMED = 10  # pages at a time, as a lease selects them


class Way(StrEnum):
    """The order in which unfetched pages are fetched."""

    OPIC = "opic"  # these four are the product's (core/opic/order.py)
    BREADTH = "breadth"
    DEPTH = "depth"
    MIXED = "mixed"
    RANDOM = "random"
    OMNISCIENT = "omniscient"  # the page with the highest true importance; nearly the best possible


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of the whole graph's importance in the first pages: shares[n] after n + 1 fetches."""

    way: Way
    shares: tuple[float, ...]

    def after(self, part: float) -> float:
        """Return what was covered after this share of the fetches, above 0 and up to 1."""
        return self.shares[max(round(part * len(self.shares)), 1) - 1]


def cover(
    graph: Graph, way: Way, *, max_pages: int, seed: int, claimed: int = CLAIMED, root_cash: float = FIRST_SEEDS
) -> Coverage:
    """Crawl from page 0 on until `max_pages` pages are fetched or no more are known.

    claimed: pages at a time; depth-first always takes one, as in a crawl.
    root_cash: initial endowments of page 0; FIRST_SEEDS in the product, while all other pages begin with one.
    """
    truth = fixpoint(graph)
    discovery = _Discovery(graph, _priority(graph, way, truth, seed=seed), places=_places(way))
    discovery.endow_root(round((root_cash - 1) * ENDOWMENT))
    fetched = discovery.run(max_pages=max_pages, claimed=1 if way is Way.DEPTH else claimed)
    return Coverage(way, tuple((np.cumsum(truth[fetched]) / graph.pages).tolist()))


def mean_of(coverages: Sequence[Coverage]) -> Coverage:
    """Return the mean of several crawls in one order, up to the shortest of them."""
    columns = zip(*(each.shares for each in coverages), strict=False)
    return Coverage(coverages[0].way, tuple(sum(column) / len(column) for column in columns))


def best_of_all(graph: Graph, *, max_pages: int) -> float:
    """Return the share of importance in the most important pages, regardless of links."""
    truth = np.sort(fixpoint(graph))[::-1]
    return float(truth[:max_pages].sum() / graph.pages)


@dataclass(slots=True)
class _Found:
    """A page that was found. place: its rank, if pages are ordered by place.  net: its cash, aged by `age_cash`."""

    page: int
    depth: int
    place: int = 0
    net: int = 0


Priority = Callable[[_Found], float]


def _priority(graph: Graph, way: Way, truth: Floats, *, seed: int) -> Priority:
    """Return the priority of pages; the highest comes first."""
    chances = np.random.default_rng(seed).random(graph.pages).tolist()
    match way:
        case Way.OPIC | Way.MIXED:
            ordering = Ordering(Order(way.value))
            scores = [compute_url_score(url) for url in graph.urls] or [1.0] * graph.pages
            return lambda found: ordering.compute_rank(found.net, url_score=scores[found.page])
        case Way.BREADTH | Way.DEPTH:
            return lambda found: found.place
        case Way.RANDOM:
            return lambda found: chances[found.page]
        case Way.OMNISCIENT:
            return lambda found: float(truth[found.page])
        case _:
            assert_never(way)


def _places(way: Way) -> LevelQueues | PageStack | None:
    match way:
        case Way.BREADTH:
            return LevelQueues()
        case Way.DEPTH:
            return PageStack()
        case _:
            return None


class _Discovery:
    """A crawl that discovers a graph page by page, settled in batches like in the store."""

    def __init__(self, graph: Graph, priority: Priority, *, places: LevelQueues | PageStack | None) -> None:
        self._places = places
        self._economy = Economy(virtual_page_cash=0, dormant=TOTAL_CASH, clock=0.0, pages=[0] * 4, dividend=[0] * 4)
        self._keys = _keys(graph)
        self._numbers = {key: n for n, key in enumerate(self._keys)}
        self._links = [[self._keys[target] for target in row] for row in rows(graph)]
        self._priority = priority
        self._found: dict[PageKey, _Found] = {}
        self._heap: list[tuple[float, int, PageKey]] = []
        self._meet(self._keys[0], depth=0)

    def endow_root(self, amount: int) -> None:
        """Give page 0 more cash, which flows to the pages that it links to."""
        self._economy.dormant -= amount
        self._economy.pay_page(self._keys[0], amount)
        self._rank(self._keys[0])

    def run(self, *, max_pages: int, claimed: int) -> list[int]:
        """Return the fetched pages in order."""
        fetched: list[PageKey] = []
        while len(fetched) < max_pages and (batch := self._claim(min(claimed, max_pages - len(fetched)))):
            cash = [self._economy.get_cash(key) for key in batch]
            for key, amount in zip(batch, cash, strict=True):
                self._visit(key, amount)
            self._economy.pay_dividends()
            fetched += batch
        return [self._numbers[key] for key in fetched]

    def _claim(self, max_pages: int) -> list[PageKey]:
        """Return the best unfetched pages; the heap has an entry for each net of a page; only the last one counts."""
        batch: dict[PageKey, None] = {}
        while self._heap and len(batch) < max_pages:
            place = heapq.heappop(self._heap)
            key = place[2]
            if self._economy.accounts[key].pool is Pool.UNFETCHED and place == self._place(key):
                batch[key] = None
        return list(batch)

    def _visit(self, key: PageKey, cash: int) -> None:
        economy, links = self._economy, self._links[self._numbers[key]]
        met = [link for link in links if self._meet(link, depth=self._found[key].depth + 1)]
        self._line_up(met, links)
        economy.collect_cash(key, cash, is_first_visit=True)
        economy.change_pool(key, Pool.FETCHED)
        done = settle_cash(cash, links)
        economy.virtual_page_cash += done.to_virtual_page
        for link, amount in done.shares.items():
            economy.pay_page(link, amount)
            self._rank(link)

    def _meet(self, key: PageKey, *, depth: int) -> bool:
        """Admit a linked page if it is new; return whether the link is the shortest path so far."""
        found = self._found.get(key)
        if found is None:
            self._economy.admit_page(key, Pool.UNFETCHED)
            self._found[key] = _Found(page=self._numbers[key], depth=depth)
        elif depth < found.depth:
            found.depth = depth
        else:
            return False
        self._rank(key)
        return True

    def _line_up(self, met: Sequence[PageKey], links: Sequence[PageKey]) -> None:
        """Assign places like the store (store/record/opic.py). met: the links that are new or nearer."""
        match self._places:
            case LevelQueues() as queues:
                for key in met:
                    self._found[key].place = queues.add_page(self._found[key].depth)
                    self._rank(key)
            case PageStack() as stack:
                for key in reversed(links):
                    self._found[key].place = stack.push_page()
                    self._rank(key)
            case None:
                pass

    def _rank(self, key: PageKey) -> None:
        purse = self._economy.accounts[key]
        if purse.pool is Pool.UNFETCHED:
            self._found[key].net = age_cash(purse.net, clock=purse.clock)
            heapq.heappush(self._heap, self._place(key))

    def _place(self, key: PageKey) -> tuple[float, int, PageKey]:
        """Return the sort key: by rank, and for equal ranks by cash, as in a claim; the lowest comes first."""
        found = self._found[key]
        return -self._priority(found), -found.net, key


def _keys(graph: Graph) -> Sequence[PageKey]:
    """Return keys in the store's order, in which pages of equal rank come by key."""
    return [compute_page_key(url) for url in graph.urls] or [PageKey(n.to_bytes(16)) for n in range(graph.pages)]
