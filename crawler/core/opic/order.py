"""The order in which new pages are fetched: by cash, by cash and the score of the URL, by levels, or depth first.

The last two are the textbook's: a queue for each level, and one stack. There a new page's place is its rank in the
frontier, 32 bits, the greatest first. The next place follows from the last one that waits: behind it in a level's
queue, above it on the stack. So nothing but the ranks themselves has to be stored, places that were left are used
again. What bounds a queue is how many pages wait there, not how many there ever were; a stack grows with the links
that pages just read have to pages that wait, until it is empty.
"""

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import assert_never

from crawler.core.http.urls import Url, UrlPattern, get_path_and_query, parse_pattern
from crawler.core.opic.opic import ENDOWMENT, Pool

RANK_STEPS = 8  # of rank for each endowment of cash
AGE_PENALTY = 0.25  # endowments by which new pages fall behind while the clock grows by the factor e
MAX_RANK = 10**9  # either way, so that it fits 32 bits
DEFAULT_FOLDERS = 2  # a page so many folders down has a score of 1
MAX_FOLDERS = 6  # deeper ones score no less: a deep site is not without importance
DEFAULT_URL_SHARE = 0.3
DEFAULT_BOOST = 4.0
MAX_LEVELS = 512  # links away from the nearest seed; pages still deeper stand in one queue
# of a level: four million pages in their order; any beyond share the last place, by their keys
POSITIONS_PER_LEVEL = 1 << 22
MAX_STACK_RANK = 2**31 - 1  # of the stack: two thousand million pages
CLOCK_STEPS = 1 << 15  # of places, while a domain's clock grows by the factor e; below PLACES for any clock


class Order(StrEnum):
    """The order of pages that were never fetched."""

    OPIC = "opic"  # most cash first: greedy, as published
    BREADTH = "breadth"  # by levels, and in a level in the order in which pages were found
    DEPTH = "depth"  # what the page just read links to, its first link first
    MIXED = "mixed"  # by importance that is partly the URL's

    @property
    def is_by_position(self) -> bool:
        """Whether pages come by the place that they were given when a link led to them, whatever their cash is."""
        return self in {Order.BREADTH, Order.DEPTH}


@dataclass(frozen=True, slots=True)
class Ordering:
    """The order of discovery that a domain's user wants.

    url_weight: share of the URL's score in importance, 0 to 1; for `mixed` alone.
    boost: patterns, as in Scope, of the pages that matter more.  boost_factor: factor on what the reserve pays them,
    and on their URLs' score. Breadth and depth first leave them in their places.
    discovery_weight, revisit_weight: weights of new pages and of revisits: by them the reserve pays a page that was
    never fetched and a known page, and requests are guaranteed to each (`shares`).
    """

    order: Order = Order.OPIC
    url_weight: float = DEFAULT_URL_SHARE
    boost: tuple[str, ...] = ()
    boost_factor: float = DEFAULT_BOOST
    discovery_weight: float = 1.0
    revisit_weight: float = 1.0
    _boosted: tuple[UrlPattern, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_boosted", tuple(map(parse_pattern, self.boost)))

    @property
    def pool_weights(self) -> dict[Pool, float]:
        """The weight of one page of each pool when the reserve pays out: the paper's dial.

        1 each is the virtual page as published, which links to all pages alike.
        """
        return {
            Pool.UNFETCHED: self.discovery_weight,
            Pool.FETCHED: self.revisit_weight,
            Pool.UNFETCHED_BOOSTED: self.discovery_weight * self.boost_factor,
            Pool.FETCHED_BOOSTED: self.revisit_weight * self.boost_factor,
        }

    def compute_shares(self, *, discovery: float, refresh: float) -> tuple[float, float]:
        """Return the shares of this domain's requests that are guaranteed to new pages and to revisits.

        discovery, refresh: the shares of all domains, 0 to 1; they hold where both weights are equal. They grow to 1
        with a weight's part of both weights, and fall to 0 with it. The sum never exceeds 1 if theirs does not.
        """
        weights = self.discovery_weight + self.revisit_weight
        part = self.discovery_weight / weights if weights else 0.5
        return _interpolate_share(part, usual=discovery), _interpolate_share(1 - part, usual=refresh)

    def is_boosted(self, url: Url) -> bool:
        path = get_path_and_query(url)
        return any(pattern.search(path) for pattern in self._boosted)

    def score_url(self, url: Url) -> float:
        """The URL's score for this user."""
        return compute_url_score(url) * (self.boost_factor if self.is_boosted(url) else 1.0)

    def choose_pool(self, *, is_fetched: bool, is_boosted: bool) -> Pool:
        """The pool that a page belongs to."""
        if is_fetched:
            return Pool.FETCHED_BOOSTED if is_boosted else Pool.FETCHED
        return Pool.UNFETCHED_BOOSTED if is_boosted else Pool.UNFETCHED

    def mix_importance(self, popularity: float, url_score: float) -> float:
        """Link popularity, or its linear mix with the score of the URL; 1 is the mean page's in both.

        Source: the textbook's I(P) = a IB(P) + b IL(P).
        """
        if self.order is not Order.MIXED:
            return popularity
        return (1 - self.url_weight) * popularity + self.url_weight * url_score

    def compute_rank(self, cash: int, *, url_score: float, boost: float = 1.0) -> int:
        """The rank of a new page as a 32-bit integer, the greatest first, where the order is by cash.

        cash: `aged`; a page's net where pages of one pool are compared, since dividends change neither their order nor
        their ranks; its cash where pages of several pools are.  boost: factor on the coins in the order by
        cash alone; in the mixed order the URL's score holds it.
        """
        match self.order:
            case Order.OPIC:
                return max(-MAX_RANK, min(round(cash * boost) * RANK_STEPS // ENDOWMENT, MAX_RANK))
            case Order.MIXED:
                # The mean page's cash is an endowment, so that both parts are relative to the mean.
                mixed = self.mix_importance(cash / ENDOWMENT, url_score)
                return math.floor(max(-MAX_RANK, min(mixed * RANK_STEPS, MAX_RANK)))
            case Order.BREADTH | Order.DEPTH:
                raise AssertionError("a page's place does not follow from its cash")
            case _:
                assert_never(self.order)

    def compute_first_rank(self, net: int, *, clock: float, depth: int, url_score: float, ahead: int = 0) -> int:
        """The rank of a new page that no page just read has led to: a seed, or one found under another order.

        net, clock: of its account; the clock is the domain's when the page was found, which tells the order of
        discovery nearly: pages found by one page have one clock.  ahead: see `head_start`.
        """
        match self.order:
            case Order.BREADTH:
                return get_rank_range(get_level(depth))[1] - _compute_position(clock)
            case Order.DEPTH:
                return _compute_position(clock)
            case Order.OPIC | Order.MIXED:
                return self.compute_rank(age_cash(net, clock=clock) + ahead, url_score=url_score)
            case _:
                assert_never(self.order)


def _interpolate_share(part: float, *, usual: float) -> float:
    """Return a share that is `usual` at one half, 0 at 0 and 1 at 1, and linear between these."""
    return 2 * part * usual if part <= 0.5 else usual + (2 * part - 1) * (1 - usual)


def age_cash(cash: int, *, clock: float) -> int:
    """Coins as the order of discovery counts them: less, the later on the domain's clock a page was found.

    So of pages with equal cash the longest waiting comes first, and a trap, whose pages get a little more cash than
    real ones and have no end, does not keep those waiting for ever. The published virtual page pays all pages alike
    for the same reason; but the more pages are found, the less it has for each.
    """
    return cash - round(AGE_PENALTY * ENDOWMENT * math.log1p(clock / ENDOWMENT))


def compute_head_start(score: float) -> int:
    """Coins by which a page with that score stands ahead in the order of discovery; behind, for a score below 1.

    As many endowments, the mean page's cash, as the score is above 1. They are added where a factor would be expected:
    ranks come from nets, which mean something only in comparison with those of their pool.
    """
    return round((score - 1) * ENDOWMENT)


def compute_url_score(url: Url) -> float:
    """The importance of a page judged by its URL alone: each folder further down halves it, and so does a query."""
    path, _, query = get_path_and_query(url).partition("?")
    folders = len([part for part in path.split("/") if part])
    score = 2.0 ** (DEFAULT_FOLDERS - min(folders, MAX_FOLDERS))
    return score / 2 if query else score


def get_level(depth: int) -> int:
    """The level in whose queue a page so many links away waits."""
    return min(depth, MAX_LEVELS - 1)


def get_rank_range(level: int) -> tuple[int, int]:
    """The last and the first rank of a level's queue."""
    return -((level + 1) * POSITIONS_PER_LEVEL - 1), -level * POSITIONS_PER_LEVEL


def _compute_position(clock: float) -> int:
    return min(int(math.log1p(max(clock, 0.0) / ENDOWMENT) * CLOCK_STEPS), POSITIONS_PER_LEVEL - 1)


@dataclass(slots=True)
class LevelQueues:
    """Breadth first: pages wait by level, and in a level in the order in which they were found.

    last_rank_by_level: by level, the least rank that waits there; levels where nobody waits are absent.
    """

    last_rank_by_level: dict[int, int] = field(default_factory=dict)

    def add_page(self, depth: int) -> int:
        """The rank of one more page so many links away."""
        level = get_level(depth)
        last_rank, first_rank = get_rank_range(level)
        rank = max(self.last_rank_by_level[level] - 1, last_rank) if level in self.last_rank_by_level else first_rank
        self.last_rank_by_level[level] = rank
        return rank


@dataclass(slots=True)
class PageStack:
    """Depth first: what the page just read links to comes next. top: the greatest rank that waits."""

    top: int = 0

    def push_page(self) -> int:
        """The rank of one more page."""
        self.top = min(self.top + 1, MAX_STACK_RANK)
        return self.top
