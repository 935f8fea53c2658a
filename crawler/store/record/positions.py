"""Positions of pages in the frontier while a batch is recorded, and the next place in an order by place."""

from dataclasses import dataclass
from datetime import datetime

from crawler.core.http.urls import PageKey
from crawler.core.opic.order import LevelQueues, Order, PageStack, get_level, get_rank_range
from crawler.core.visit.lifecycle import REVISIT_EXCLUDED_AFTER
from crawler.core.visit.visit import State
from crawler.store.database import Connection
from crawler.store.rows import build_unnest, fetch_rows, fetch_value

MAX_MOVES = 5  # of a page that moved on and on; coins for a longer chain go to the reserve
IN_ECONOMY = frozenset({State.UNFETCHED, State.FETCHED})  # who takes part: exactly the pages that have a row in cash


POSITIONS = """
    SELECT f.key, f.state, f.depth, f.boosted, f.url_score, f.rank,
           CASE WHEN f.state = 'moved' THEN (SELECT p.moved_to FROM page p
                                              WHERE p.domain_id = %(domain_id)s AND p.key = f.key) END
      FROM frontier f WHERE f.domain_id = %(domain_id)s AND f.key = ANY(%(keys)s)
"""
# The ranks of new pages that wait, those that are boosted and the others: each have an index.
WAITING_RANKS = " UNION ALL ".join(
    f"""(SELECT rank FROM frontier
          WHERE domain_id = %(domain_id)s AND {pool} AND state = 'unfetched' AND due_at IS NULL {{}} LIMIT 1)"""  # noqa: S608
    for pool in ("NOT boosted", "boosted")
)
# Where the next new page goes: behind the last one that waits in a level, or above the one that comes next.
LAST_RANKS = f"""
    SELECT x.level, min(e.rank) FROM {build_unnest("level int, least int, first int")}
     CROSS JOIN LATERAL ({WAITING_RANKS.replace("{}", "AND rank BETWEEN x.least AND x.first ORDER BY rank")}) e
     GROUP BY 1
"""  # noqa: S608  only our own conditions are put in
TOP_RANK = f"SELECT max(rank) FROM ({WAITING_RANKS.replace('{}', 'ORDER BY rank DESC')}) x"  # noqa: S608  likewise


@dataclass(slots=True)
class PagePosition:
    """A page's place in the frontier while a batch is settled."""

    state: State
    depth: int
    boosted: bool = False
    url_score: float = 1.0
    rank: int = 0
    level: int | None = None  # the depth by which it was given its place; None where it has none yet
    found_at: datetime | None = None  # for one that this batch made known
    is_nearer: bool = False
    deferred_until: datetime | None = None  # of a new page that is held back
    rates: tuple[float, float] = (0.0, 0.0)  # of a new page, about its rate, beside its group's prior
    redirects: int = 0  # that lead to it one after another from a page's link
    head_start: int = 0  # coins by which its score puts it ahead of others, while it is new

    @property
    def is_outside_economy(self) -> bool:
        return self.state not in IN_ECONOMY

    @property
    def due_at(self) -> datetime | None:
        if self.state is State.UNFETCHED or self.found_at is None:
            return self.deferred_until
        return self.found_at + REVISIT_EXCLUDED_AFTER

    def lower_depth(self, depth: int) -> None:
        """Take in a link to the page at this depth; the least depth counts."""
        if depth < self.depth:
            self.depth = depth
            self.is_nearer = self.found_at is None


async def read_positions(
    connection: Connection, domain_id: int, keys: set[PageKey]
) -> tuple[dict[PageKey, PagePosition], dict[PageKey, PageKey]]:
    """Positions of the pages, and of each page that moved the target, redirect by redirect."""
    positions: dict[PageKey, PagePosition] = {}
    moved_to: dict[PageKey, PageKey] = {}
    unread_keys = list(keys)
    for _ in range(MAX_MOVES):
        onward: dict[PageKey, PageKey] = {}
        for key, state, depth, boosted, score, rank, target_key in await fetch_rows(
            connection, POSITIONS, {"domain_id": domain_id, "keys": unread_keys}, binary=True
        ):
            positions[PageKey(key)] = PagePosition(State(state), depth, boosted, score, rank=rank, level=depth)
            if target_key is not None:
                onward[PageKey(key)] = PageKey(target_key)
        moved_to |= onward
        unread_keys = [target_key for target_key in onward.values() if target_key not in positions]
        if not unread_keys:
            break
    return positions, moved_to


async def load_queue(connection: Connection, domain_id: int, order: Order, depths: set[int]) -> LevelQueues | PageStack:
    """Where new pages so many links away go."""
    if order is Order.DEPTH:
        return PageStack(await fetch_value(connection, TOP_RANK, {"domain_id": domain_id}) or 0)
    levels = sorted(set(map(get_level, depths)))
    min_ranks, first_ranks = zip(*map(get_rank_range, levels), strict=True)
    values = {"domain_id": domain_id, "level": levels, "least": list(min_ranks), "first": list(first_ranks)}
    return LevelQueues(dict(await fetch_rows(connection, LAST_RANKS, values)))
