"""The pages of a domain that somebody looks for: those that fail, are gone, moved or refused, or need a browser."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from psycopg.rows import class_row

from crawler.core.domain import Domain
from crawler.core.http import Url
from crawler.core.visit import State
from crawler.store.database import Database


class PageGroup(StrEnum):
    """Which pages are wanted."""

    FAILING = "failing"  # known or new, and the last looks at them had nothing
    GONE = "gone"
    MOVED = "moved"
    REFUSED = "refused"
    RENDERED = "rendered"  # the last version of them was made by a browser


CONDITIONS = {
    PageGroup.FAILING: "p.failures > 0 AND f.state IN ('new', 'known')",
    PageGroup.GONE: "f.state = 'gone'",
    PageGroup.MOVED: "f.state = 'moved'",
    PageGroup.REFUSED: "f.state = 'refused'",
    PageGroup.RENDERED: "p.is_rendered AND f.state = 'known'",
}
GROUPED = """
    SELECT p.url, f.state, p.status, p.reason, p.failures, p.last_look_at, f.due_at,
           (SELECT t.url FROM page t WHERE t.domain_id = %(domain_id)s AND t.key = p.moved_to) AS moved_to
      FROM page p JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key
     WHERE p.domain_id = %(domain_id)s AND {condition}
     ORDER BY p.last_look_at DESC NULLS LAST, p.key LIMIT %(most)s
"""
COUNTED = "SELECT {counts} FROM page p JOIN frontier f ON f.domain_id = p.domain_id AND f.key = p.key"


@dataclass(frozen=True, slots=True)
class GroupedPage:
    """One page of a group. failures: looks in a row that failed."""

    url: Url
    state: State
    status: int | None
    reason: str
    failures: int
    last_look_at: datetime | None
    due_at: datetime | None
    moved_to: Url | None


async def pages_of_group(db: Database, domain: Domain, group: PageGroup, *, most: int) -> list[GroupedPage]:
    """The pages of a group, those that were looked at last first."""
    statement = GROUPED.format(condition=CONDITIONS[group])
    async with db.transaction() as connection, connection.cursor(row_factory=class_row(GroupedPage)) as cursor:
        await cursor.execute(statement.encode(), {"domain_id": domain.id, "most": most})
        return await cursor.fetchall()


async def count_groups(db: Database, domain: Domain) -> dict[PageGroup, int]:
    """How many pages each group has."""
    counts = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in CONDITIONS.values())
    statement = f"{COUNTED.format(counts=counts)} WHERE p.domain_id = %(domain_id)s AND f.domain_id = %(domain_id)s"
    async with db.transaction() as connection:
        row = await (await connection.execute(statement.encode(), {"domain_id": domain.id})).fetchone()
    return dict(zip(CONDITIONS, row or (), strict=True))
