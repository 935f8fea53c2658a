"""The sources of change signals of a domain, and what looks have shown their word to be worth."""

from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import dict_row

from crawler.core.domain import Domain
from crawler.store.database import Connection, Database

SOURCES = """
    SELECT o.source, o.signals, o.recall, o.precision, o.false_per_page_day, o.silence, o.measured_at
      FROM report_source o JOIN domain_source n ON n.domain_id = o.domain_id AND n.source = o.source
     WHERE o.domain_id = %(domain_id)s ORDER BY n.no
"""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """A source of change signals in a domain: a row of report_source, which says what its columns mean."""

    source: str
    signals: int
    recall: float
    precision: float | None
    false_per_page_day: float
    silence: float
    measured_at: datetime


async def sources_measured(connection: Connection, domain: Domain) -> list[SourceFacts]:
    """The domain's sources, by their numbers."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(SOURCES, {"domain_id": domain.id})
        return [SourceFacts(**row) for row in await cursor.fetchall()]


async def signal_sources(db: Database, domain: Domain) -> list[SourceFacts]:
    """The domain's sources, by their numbers, read in a transaction of its own."""
    async with db.transaction() as connection:
        return await sources_measured(connection, domain)
