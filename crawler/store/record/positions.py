"""Positions of pages in the frontier while a batch is recorded, and queues for breadth-first and depth-first order."""

from datetime import datetime

from msgspec import Struct

from crawler.core.http.urls import PageKey
from crawler.core.opic.order import LevelQueues, Order, PageStack, get_level, get_rank_range
from crawler.core.visit.lifecycle import REVISIT_EXCLUDED_AFTER
from crawler.core.visit.state import State
from crawler.store.database import Connection
from crawler.store.rows import build_unnest, fetch_rows, fetch_value

MAX_MOVES = 5  # maximum length of a chain of moves; the cash of longer chains goes to the virtual page
IN_ECONOMY = frozenset({State.UNFETCHED, State.FETCHED})  # states of pages in OPIC, with a row in cash


POSITIONS = """
    SELECT f.key, f.state, f.depth, f.boosted, f.url_score, f.rank,
           CASE WHEN f.state = 'moved' THEN (SELECT p.moved_to FROM page p
                                              WHERE p.domain_id = %(domain_id)s AND p.key = f.key) END
      FROM frontier f WHERE f.domain_id = %(domain_id)s AND f.key = ANY(%(keys)b)
"""
# Ranks of unfetched pages that are not deferred: the first one by the order put in for {}, of unboosted and of boosted.
WAITING_RANKS = " UNION ALL ".join(
    f"""(SELECT rank FROM frontier
          WHERE domain_id = %(domain_id)s AND {pool} AND state = 'unfetched' AND due_at IS NULL {{}} LIMIT 1)"""  # noqa: S608
    for pool in ("NOT boosted", "boosted")
)
# The lowest rank of the waiting pages of each level (breadth first).
LAST_RANKS = f"""
    SELECT x.level, min(e.rank) FROM {build_unnest("level int, least int, first int")}
     CROSS JOIN LATERAL ({WAITING_RANKS.replace("{}", "AND rank BETWEEN x.least AND x.first ORDER BY rank")}) e
     GROUP BY 1
"""  # noqa: S608  only our own conditions are inserted
# The highest rank of all waiting pages (depth first).
TOP_RANK = f"SELECT max(rank) FROM ({WAITING_RANKS.replace('{}', 'ORDER BY rank DESC')}) x"  # noqa: S608  likewise


class PagePosition(Struct):
    """The position of a page in the frontier while a batch is settled."""

    state: State
    depth: int
    boosted: bool = False
    url_score: float = 1.0
    rank: int = 0
    level: int | None = None  # the depth that determined its rank; None if it has no rank yet
    found_at: datetime | None = None  # when this batch discovered it, or None
    is_nearer: bool = False  # whether its stored depth must be lowered
    deferred_until: datetime | None = None  # for a deferred new page
    rates: tuple[float, float] = (0.0, 0.0)  # rate_a and rate_b of a new page (core/freshness/prior.py)
    redirects: int = 0  # number of redirects in a row by which it was discovered
    head_start: int = 0  # cash that its score adds when its rank is computed

    @property
    def is_outside_economy(self) -> bool:
        return self.state not in IN_ECONOMY

    @property
    def due_at(self) -> datetime | None:
        if self.state is State.UNFETCHED or self.found_at is None:
            return self.deferred_until
        return self.found_at + REVISIT_EXCLUDED_AFTER

    def lower_depth(self, depth: int) -> None:
        """Set the depth of the page to that of a link to it if this is lower."""
        if depth < self.depth:
            self.depth = depth
            self.is_nearer = self.found_at is None


async def read_positions(
    connection: Connection, domain_id: int, keys: set[PageKey]
) -> tuple[dict[PageKey, PagePosition], dict[PageKey, PageKey]]:
    """Return the positions of pages, including the targets of moves, and the target of each page that moved."""
    positions: dict[PageKey, PagePosition] = {}
    moved_to: dict[PageKey, PageKey] = {}
    unread = list(keys)
    for _ in range(MAX_MOVES):
        rows = await fetch_rows(connection, POSITIONS, {"domain_id": domain_id, "keys": unread}, binary=True)
        for key, state, depth, boosted, score, rank, _ in rows:
            positions[PageKey(key)] = PagePosition(State(state), depth, boosted, score, rank=rank, level=depth)
        onward = {PageKey(row[0]): PageKey(row[-1]) for row in rows if row[-1] is not None}
        moved_to |= onward
        unread = [target_key for target_key in onward.values() if target_key not in positions]
        if not unread:
            break
    return positions, moved_to


async def load_queue(connection: Connection, domain_id: int, order: Order, depths: set[int]) -> LevelQueues | PageStack:
    """Return the queues for new pages at these depths (breadth first), or the stack (depth first)."""
    if order is Order.DEPTH:
        return PageStack(await fetch_value(connection, TOP_RANK, {"domain_id": domain_id}) or 0)
    levels = sorted(set(map(get_level, depths)))
    min_ranks, first_ranks = zip(*map(get_rank_range, levels), strict=True)
    values = {"domain_id": domain_id, "level": levels, "least": list(min_ranks), "first": list(first_ranks)}
    return LevelQueues(dict(await fetch_rows(connection, LAST_RANKS, values)))
