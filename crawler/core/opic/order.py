"""The order in which unfetched pages are fetched: by cash, by cash and URL score, breadth-first, or depth-first.

The *rank* of an unfetched page is a 32-bit number; the highest rank is fetched first. Breadth-first uses a queue per
level, depth-first one stack, and a page's rank is its position. A new page gets the position behind the last waiting
page of its level, or above the top of the stack. So only ranks are stored, and those at the end of a queue or at the
top of the stack are used again when their pages have been fetched.
"""

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import assert_never

from msgspec import Struct

from crawler.core.http.urls import Url, UrlPattern, get_path_and_query, parse_pattern
from crawler.core.opic.opic import ENDOWMENT, Pool

RANK_STEPS = 8  # ranks per endowment of cash
AGE_PENALTY = 0.25  # endowments subtracted from later pages each time the domain's clock grows by the factor e
MAX_RANK = 10**9  # in both directions, to fit into 32 bits
BASE_SEGMENTS = 2  # a URL with this many path segments has score 1
MAX_SEGMENTS = 6  # more segments do not lower the score
DEFAULT_URL_SHARE = 0.3  # of the URL score in importance, in order `mixed`
DEFAULT_BOOST = 4.0  # factor
MAX_LEVELS = 512  # in links from the nearest seed; deeper pages share one queue
POSITIONS_PER_LEVEL = 1 << 22  # further pages of a level share the last position, ordered by key
MAX_STACK_RANK = 2**31 - 1
CLOCK_STEPS = 1 << 15  # positions each time the clock grows by the factor e


class Order(StrEnum):
    """The order of unfetched pages."""

    OPIC = "opic"  # most cash first: greedy, as published
    BREADTH = "breadth"  # by level, and within a level in order of discovery
    DEPTH = "depth"  # links of the last fetched page first, in their order
    MIXED = "mixed"  # by a mix of cash and URL score

    @property
    def is_by_position(self) -> bool:
        """Return whether the rank of a page is fixed when it is discovered, independent of its cash."""
        return self in {Order.BREADTH, Order.DEPTH}


@dataclass(frozen=True, slots=True)
class Ordering:
    """The discovery order of a domain.

    url_weight: the share of the URL score in importance, 0 to 1; only for `mixed`.
    boost: patterns, as in Scope, of pages that are more important.  boost_factor: the factor on what the virtual page
    pays them, on their cash when they are compared in order `opic`, and on their URL score.
    discovery_weight, revisit_weight: the weights of unfetched and fetched pages in what the virtual page pays, and in
    the guaranteed shares of requests (`compute_shares`).
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
        """Return the weight of one page of each pool when the virtual page pays.

        With 1 each, the virtual page links to all pages equally, as published.
        """
        return {
            Pool.UNFETCHED: self.discovery_weight,
            Pool.FETCHED: self.revisit_weight,
            Pool.UNFETCHED_BOOSTED: self.discovery_weight * self.boost_factor,
            Pool.FETCHED_BOOSTED: self.revisit_weight * self.boost_factor,
        }

    def compute_shares(self, *, discovery: float, refresh: float) -> tuple[float, float]:
        """Return the guaranteed shares of this domain's requests for unfetched pages and for revisits.

        discovery, refresh: the default shares, 0 to 1, which apply if both weights are equal. If one weight is 0, its
        share is 0 and the other share is 1; in between, shares are interpolated. If the sum of the defaults is at most
        1, so is the sum of the result.
        """
        weights = self.discovery_weight + self.revisit_weight
        part = self.discovery_weight / weights if weights else 0.5
        return _interpolate_share(part, usual=discovery), _interpolate_share(1 - part, usual=refresh)

    def is_boosted(self, url: Url) -> bool:
        path = get_path_and_query(url)
        return any(pattern.search(path) for pattern in self._boosted)

    def score_url(self, url: Url) -> float:
        """Return the score of a URL, including the boost."""
        return compute_url_score(url) * (self.boost_factor if self.is_boosted(url) else 1.0)

    def choose_pool(self, *, is_fetched: bool, is_boosted: bool) -> Pool:
        if is_fetched:
            return Pool.FETCHED_BOOSTED if is_boosted else Pool.FETCHED
        return Pool.UNFETCHED_BOOSTED if is_boosted else Pool.UNFETCHED

    def mix_importance(self, popularity: float, url_score: float) -> float:
        """Return link popularity (mean 1), or in order `mixed` its linear mix with the URL score.

        The mean URL score is not 1 on every site (compute_url_score).
        """
        if self.order is not Order.MIXED:
            return popularity
        return (1 - self.url_weight) * popularity + self.url_weight * url_score

    def compute_rank(self, cash: int, *, url_score: float, boost: float = 1.0) -> int:
        """Return the rank of an unfetched page by cash, as a 32-bit integer, highest first.

        cash: the page's cash after age_cash. Stored ranks are computed from nets instead, because they are only
        compared within a pool, whose pages have the same dividend.  boost: the factor on cash in order `opic`; for
        nets it is always 1. In order `mixed`, the URL score includes it.
        """
        match self.order:
            case Order.OPIC:
                return max(-MAX_RANK, min(round(cash * boost) * RANK_STEPS // ENDOWMENT, MAX_RANK))
            case Order.MIXED:
                # The mean page's cash is about one endowment.
                mixed = self.mix_importance(cash / ENDOWMENT, url_score)
                return math.floor(max(-MAX_RANK, min(mixed * RANK_STEPS, MAX_RANK)))
            case Order.BREADTH | Order.DEPTH:
                raise AssertionError("the rank of a page does not depend on its cash in this order")
            case _:
                assert_never(self.order)

    def compute_first_rank(self, net: int, *, clock: float, depth: int, url_score: float, ahead: int = 0) -> int:
        """Return the rank of a seed, or of an unfetched page discovered under another order.

        net, clock: of its account. The clock is that of the domain when the page was discovered; it approximates the
        order of discovery.  ahead: see compute_head_start.
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
    """Return a share that is 0 at part 0, `usual` at part 0.5 and 1 at part 1, and linear in between."""
    return 2 * part * usual if part <= 0.5 else usual + (2 * part - 1) * (1 - usual)


def age_cash(cash: int, *, clock: float) -> int:
    """Return cash minus a penalty that grows with the domain's clock at the discovery of the page.

    So among pages with equal cash, the longest waiting comes first, and a crawler trap, whose endless pages get a bit
    more cash than real pages, does not delay the real ones forever.
    """
    return cash - round(AGE_PENALTY * ENDOWMENT * math.log1p(clock / ENDOWMENT))


def compute_head_start(score: float) -> int:
    """Return the cash that a page score adds to the rank of a page; negative for a score below 1.

    score: from a plugin; 1 is neutral. The result is score - 1 endowments. It is added, because stored ranks are
    computed from nets, and a multiple of a net is not a multiple of the cash.
    """
    return round((score - 1) * ENDOWMENT)


def compute_url_score(url: Url) -> float:
    """Return the URL score of a page. Each path segment, up to MAX_SEGMENTS, halves it, and so does a query."""
    path, _, query = get_path_and_query(url).partition("?")
    segments = len([segment for segment in path.split("/") if segment])
    score = 2.0 ** (BASE_SEGMENTS - min(segments, MAX_SEGMENTS))
    return score / 2 if query else score


def get_level(depth: int) -> int:
    """Return the level of a page that is `depth` links away from the nearest seed."""
    return min(depth, MAX_LEVELS - 1)


def get_rank_range(level: int) -> tuple[int, int]:
    """Return the last and the first rank of a level's queue."""
    return -((level + 1) * POSITIONS_PER_LEVEL - 1), -level * POSITIONS_PER_LEVEL


def _compute_position(clock: float) -> int:
    return min(int(math.log1p(max(clock, 0.0) / ENDOWMENT) * CLOCK_STEPS), POSITIONS_PER_LEVEL - 1)


@dataclass(slots=True)
class LevelQueues:
    """Breadth-first order: by level, and within a level in order of discovery.

    last_rank_by_level: the lowest rank of each level with waiting pages.
    """

    last_rank_by_level: dict[int, int] = field(default_factory=dict)

    def add_page(self, depth: int) -> int:
        """Return the rank of a new page that is `depth` links away from the nearest seed."""
        level = get_level(depth)
        last_rank, first_rank = get_rank_range(level)
        rank = max(self.last_rank_by_level[level] - 1, last_rank) if level in self.last_rank_by_level else first_rank
        self.last_rank_by_level[level] = rank
        return rank


class PageStack(Struct):
    """Depth-first order: links of the last fetched page come next. top: the highest rank that waits."""

    top: int = 0

    def push_page(self) -> int:
        """Return the rank of a new page."""
        self.top = min(self.top + 1, MAX_STACK_RANK)
        return self.top
