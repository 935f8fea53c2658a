"""Positions of pages in the frontier while a batch is recorded, and the next place in an order by place."""

from dataclasses import dataclass
from datetime import datetime

from crawler.core.http import PageKey
from crawler.core.opic import LevelQueues, Order, PageStack, level_of, ranks_of
from crawler.core.visit.lifecycle import LOOK_AGAIN_REFUSED
from crawler.core.visit.visit import State
from crawler.store.database import Connection

MOST_MOVES = 5  # of a page that moved on and on; coins for a longer chain go to the reserve
IN = frozenset({State.NEW, State.KNOWN})  # who takes part: exactly the pages that have a row in cash


POSITIONS = """
    SELECT key, state, depth, favoured, url_score, rank FROM frontier WHERE domain_id = %s AND key = ANY(%s)
"""
MOVES = "SELECT key, moved_to FROM page WHERE domain_id = %s AND key = ANY(%s) AND moved_to IS NOT NULL"
# Where the next new page goes: behind the last one that waits in a level, or above the one that comes next.
LAST = """
    SELECT x.level, min(e.rank)
      FROM unnest(%(levels)s::int[], %(least)s::int[], %(first)s::int[]) AS x(level, least, first)
     CROSS JOIN LATERAL (
        (SELECT rank FROM frontier
          WHERE domain_id = %(domain_id)s AND NOT favoured AND state = 'new' AND due_at IS NULL
            AND rank BETWEEN x.least AND x.first ORDER BY rank LIMIT 1)
        UNION ALL
        (SELECT rank FROM frontier
          WHERE domain_id = %(domain_id)s AND favoured AND state = 'new' AND due_at IS NULL
            AND rank BETWEEN x.least AND x.first ORDER BY rank LIMIT 1)) e
     GROUP BY 1
"""
TOP = """
    SELECT max(rank) FROM (
        (SELECT rank FROM frontier
          WHERE domain_id = %(domain_id)s AND NOT favoured AND state = 'new' AND due_at IS NULL
          ORDER BY rank DESC LIMIT 1)
        UNION ALL
        (SELECT rank FROM frontier
          WHERE domain_id = %(domain_id)s AND favoured AND state = 'new' AND due_at IS NULL
          ORDER BY rank DESC LIMIT 1)) x
"""


@dataclass(slots=True)
class PagePosition:
    """A page's place in the frontier while a batch is settled."""

    state: State
    depth: int
    favoured: bool = False
    url_score: float = 1.0
    rank: int = 0
    level: int | None = None  # the depth by which it was given its place; None where it has none yet
    found_at: datetime | None = None  # for one that this batch made known
    is_nearer: bool = False
    held_until: datetime | None = None  # of a new page that is held back
    evidence: tuple[float, float] = (0.0, 0.0)  # of a new page, about its rate, beside its group's prior
    redirects: int = 0  # that lead to it one after another from a page's link
    head_start: int = 0  # coins by which its score puts it ahead of others, while it is new

    @property
    def is_out(self) -> bool:
        return self.state not in IN

    @property
    def due_at(self) -> datetime | None:
        if self.state is State.NEW or self.found_at is None:
            return self.held_until
        return self.found_at + LOOK_AGAIN_REFUSED

    def reach(self, depth: int) -> None:
        """Take in a link to the page at this depth; the least depth counts."""
        if depth < self.depth:
            self.depth = depth
            self.is_nearer = self.found_at is None


async def positions_of(
    connection: Connection, domain_id: int, keys: set[PageKey]
) -> tuple[dict[PageKey, PagePosition], dict[PageKey, PageKey]]:
    """Positions of the pages, and of each page that moved the target, redirect by redirect."""
    stands: dict[PageKey, PagePosition] = {}
    moved_to: dict[PageKey, PageKey] = {}
    wanted = list(keys)
    for _ in range(MOST_MOVES):
        cursor = await connection.execute(POSITIONS, (domain_id, wanted), binary=True)
        found = {
            PageKey(key): PagePosition(State(state), depth, favoured, score, rank=rank, level=depth)
            for key, state, depth, favoured, score, rank in await cursor.fetchall()
        }
        stands |= found
        moved = [key for key, stand in found.items() if stand.state is State.MOVED]
        if not moved:
            break
        cursor = await connection.execute(MOVES, (domain_id, moved), binary=True)
        onward = {PageKey(key): PageKey(to) for key, to in await cursor.fetchall()}
        moved_to |= onward
        wanted = [to for to in onward.values() if to not in stands]
        if not wanted:
            break
    return stands, moved_to


async def places_for(connection: Connection, domain_id: int, order: Order, depths: set[int]) -> LevelQueues | PageStack:
    """Where new pages so many links away go."""
    if order is Order.DEPTH:
        top = await (await connection.execute(TOP, {"domain_id": domain_id})).fetchone()
        return PageStack(top[0] or 0 if top else 0)
    levels = sorted(set(map(level_of, depths)))
    least, first = zip(*map(ranks_of, levels), strict=True)
    values = {"domain_id": domain_id, "levels": levels, "least": list(least), "first": list(first)}
    return LevelQueues(dict(await (await connection.execute(LAST, values)).fetchall()))
