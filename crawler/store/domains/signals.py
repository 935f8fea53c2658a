"""Change signals about a domain's pages, left for the holder of its lease to weigh."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from psycopg.types.json import Jsonb

from crawler.core.domain import Domain
from crawler.core.freshness import ChangeSignal
from crawler.errors import BadInput
from crawler.store.database import Connection, Database

POST = "INSERT INTO inbox (domain_id, kind, payload, arrived_at) VALUES (%s, 'signal', %s, %s)"
WAITING_SIGNALS = """
    SELECT coalesce(sum(jsonb_array_length(payload->'signals')), 0)::bigint
      FROM inbox WHERE domain_id = %s AND kind = 'signal'
"""
SIGNALS_CHUNK = 1000  # of one inbox row
MOST_WAITING_SIGNALS = 100_000  # of one domain


async def signal(db: Database, domain: Domain, signals: Sequence[ChangeSignal], *, at: datetime) -> None:
    """Leave change signals for the holder to weigh. Raises BadInput where too many wait already."""
    async with db.transaction() as connection:
        waiting = await (await connection.execute(WAITING_SIGNALS, (domain.id,))).fetchone()
        if waiting is not None and waiting[0] + len(signals) > MOST_WAITING_SIGNALS:
            raise BadInput(
                f"{waiting[0]:,} signals wait for {domain.authority} already: recrawl crawl {domain.authority}"
            )
        await post_signals(connection, domain.id, signals, at=at)


async def post_signals(
    connection: Connection, domain_id: int, signals: Iterable[ChangeSignal], *, at: datetime
) -> None:
    """Leave change signals in the inbox: rows of one source each, so that none takes long to apply."""
    by_source: dict[str, list[tuple[str, str]]] = {}
    for each in signals:
        by_source.setdefault(each.source, []).append((each.url, each.at.isoformat()))
    for source, told in by_source.items():
        for first in range(0, len(told), SIGNALS_CHUNK):
            payload = {"source": source, "signals": told[first : first + SIGNALS_CHUNK]}
            await connection.execute(POST, (domain_id, Jsonb(payload), at))
