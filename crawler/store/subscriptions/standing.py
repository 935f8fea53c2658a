"""What a page was before a change of the feed."""

from dataclasses import dataclass

from crawler.store.database import Database
from crawler.store.report import EventKind

BEFORE = """
    SELECT e.domain_id, p.change, p.version
      FROM feed f
      JOIN event e ON e.domain_id = f.domain_id AND e.number = f.number
      LEFT JOIN LATERAL (SELECT o.change, o.version FROM event o
                          WHERE o.domain_id = e.domain_id AND o.key = e.key AND o.number < e.number
                            AND o.change IN ('first', 'changed', 'moved', 'gone', 'back')
                          ORDER BY o.number DESC LIMIT 1) p ON true
     WHERE f.position = %(position)s
"""
AWAY = frozenset({EventKind.GONE, EventKind.MOVED})


@dataclass(frozen=True, slots=True)
class Standing:
    """A page before a change. version: the one that it said then, as far as is known; None where it was not there."""

    domain_id: int
    version: int | None


async def standing_before(db: Database, position: int) -> Standing:
    """What the page was of which a change stands at that position of the feed."""
    async with db.transaction() as connection:
        row = await (await connection.execute(BEFORE, {"position": position})).fetchone()
    assert row is not None, f"no change stands at {position}"
    domain_id, change, version = row
    is_there = change is not None and EventKind(change) not in AWAY
    return Standing(domain_id=domain_id, version=version if is_there else None)
