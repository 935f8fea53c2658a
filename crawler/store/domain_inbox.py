"""What is left in a domain's inbox, for the holder of its lease."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from crawler.core.freshness.signals import ChangeSignal
from crawler.store.database import Connection
from crawler.store.rows import Place, execute

POST = "INSERT INTO inbox (domain_id, kind, payload, arrived_at) VALUES (%s, %s, %s, %s)"
# A row that no pass has begun serves for this, too; behind one that is under way another full pass is needed.
REPRICE = """
    WITH waiting AS (
        UPDATE inbox SET arrived_at = %(at)s
         WHERE domain_id = %(domain_id)s AND kind = 'reprice' AND NOT payload ? 'after' RETURNING id)
    INSERT INTO inbox (domain_id, kind, payload, arrived_at)
    SELECT %(domain_id)s, 'reprice', '{}', %(at)s WHERE NOT EXISTS (SELECT FROM waiting)
"""
GO_ON_AFTER = "UPDATE inbox SET payload = payload || jsonb_build_object('after', %s::text) WHERE id = %s"
SIGNALS_CHUNK = 1000  # of one inbox row


async def post(place: Place, domain_id: int, kind: str, payload: dict[str, Any], *, at: datetime) -> None:
    """Leave something of a kind in the inbox."""
    await execute(place, POST, (domain_id, kind, Jsonb(payload), at))


async def post_reprice(connection: Connection, domain_id: int, *, at: datetime) -> None:
    """Let all pages of a domain be scored again: by another price, other settings or other evidence."""
    await connection.execute(REPRICE, {"domain_id": domain_id, "at": at})


async def go_on_after(connection: Connection, inbox_id: int, key: bytes) -> None:
    """Keep how far a row of the inbox that means all pages was applied: up to this page."""
    await connection.execute(GO_ON_AFTER, (key.hex(), inbox_id))


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
            await post(connection, domain_id, "signal", payload, at=at)
