"""Audits: random samples of pages, and how well the chances of change given before looks agree with what they found."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from hashlib import blake2b
from typing import Any

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from crawler.core.calibration import Agreement
from crawler.core.domain import Domain
from crawler.core.urls import PageKey
from crawler.store.database import Connection, Database
from crawler.store.domains import COLUMNS, domain_from

DOMAINS = f"""
    SELECT {COLUMNS}, coalesce(d.budget_per_day, l.budget_per_day) AS budget
      FROM domain d LEFT JOIN domain_plan l ON l.domain_id = d.id
     WHERE %(only)s::bigint IS NULL OR d.id = %(only)s
     ORDER BY d.authority
"""  # noqa: S608  only our own column list is put in
# Looks that told changed from same, by the UTC day; one that told nothing had no chance, or another outcome.
FORGET = "DELETE FROM calibration WHERE domain_id = %(domain_id)s AND day >= %(since)s AND day < %(until)s"
CALIBRATE = """
    INSERT INTO calibration (domain_id, day, audit, looks, expected, found, variance)
    SELECT v.domain_id, (v.at AT TIME ZONE 'UTC')::date, v.audit, count(*), sum(v.expected),
           count(*) FILTER (WHERE v.change = 'changed'), sum(v.expected * (1 - v.expected))
      FROM visit v JOIN domain d ON d.id = v.domain_id  -- it may have been removed meanwhile
     WHERE v.domain_id = %(domain_id)s AND v.at >= %(since)s AND v.at < %(until)s
       AND v.expected IS NOT NULL AND v.change IN ('same', 'cosmetic', 'changed')
     GROUP BY v.domain_id, 2, v.audit
"""
REQUESTS = """
    SELECT coalesce(sum(requests), 0)::bigint FROM visit
     WHERE domain_id = %(domain_id)s AND at >= %(since)s AND at < %(until)s
"""
# From each of some points among the keys, which are hashes, the next known page; after the last comes the first.
SAMPLE = """
    SELECT DISTINCT drawn.key
      FROM unnest(%(points)s::bytea[]) AS point
     CROSS JOIN LATERAL (
        (SELECT f.key, 0 AS lap FROM frontier f JOIN page p ON p.domain_id = %(domain_id)s AND p.key = f.key
          WHERE f.domain_id = %(domain_id)s AND f.key >= point AND f.state = 'known' AND p.version > 0
          ORDER BY f.key LIMIT 1)
        UNION ALL
        (SELECT f.key, 1 AS lap FROM frontier f JOIN page p ON p.domain_id = %(domain_id)s AND p.key = f.key
          WHERE f.domain_id = %(domain_id)s AND f.state = 'known' AND p.version > 0
          ORDER BY f.key LIMIT 1)
        ORDER BY lap LIMIT 1) drawn
     ORDER BY drawn.key
"""
ASK = """
    INSERT INTO inbox (domain_id, kind, payload, arrived_at)
    SELECT d.id, 'audit', %(payload)s, %(at)s FROM domain d
     WHERE d.id = %(domain_id)s
       AND NOT EXISTS (SELECT FROM inbox WHERE domain_id = %(domain_id)s AND kind = 'audit')
 RETURNING id
"""
AUDITED = """
    SELECT coalesce(sum(looks), 0)::bigint AS looks, coalesce(sum(expected), 0) AS expected,
           coalesce(sum(found), 0)::bigint AS found, coalesce(sum(variance), 0) AS variance
      FROM calibration
     WHERE domain_id = %(domain_id)s AND audit AND day >= %(since)s AND day < %(until)s
"""


@dataclass(frozen=True, slots=True)
class Audited:
    """A domain to be audited. budget: requests a day by its user's or its target's wish, None without one."""

    domain: Domain
    budget: int | None


async def domains_to_audit(db: Database, *, only: Domain | None = None) -> list[Audited]:
    """All domains by name, or one of them."""
    async with db.transaction() as connection, connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(DOMAINS, {"only": only.id if only else None})
        return [Audited(domain_from(row), row["budget"]) for row in await cursor.fetchall()]


async def calibrate(db: Database, domain: Domain, *, since: date, until: date) -> None:
    """Count the looks of these UTC days, `until` not among them, against the chances that they were given.

    Asked again, it counts again, and what it wrote before is forgotten.
    """
    async with db.transaction() as connection:
        values = {"domain_id": domain.id, "since": since, "until": until}
        await connection.execute(FORGET, values)
        await connection.execute(CALIBRATE, values | {"since": _midnight(since), "until": _midnight(until)})


async def requests_of(db: Database, domain: Domain, *, day: date) -> int:
    """How many requests the domain's looks of a UTC day have taken."""
    span = {"domain_id": domain.id, "since": _midnight(day), "until": _midnight(day + timedelta(days=1))}
    async with db.transaction() as connection:
        row = await (await connection.execute(REQUESTS, span)).fetchone()
        return int(row[0]) if row else 0


async def draw(db: Database, domain: Domain, *, most: int, at: datetime) -> list[PageKey]:
    """At most so many known pages with a version, by chance, and leave them in the inbox to be looked at.

    The same pages all through a UTC day; none if an earlier draw still waits there.
    """
    points = [_point(domain, at.astimezone(UTC).date(), n) for n in range(most)]
    async with db.transaction() as connection:
        values = {"domain_id": domain.id, "points": points}
        keys = [PageKey(row[0]) for row in await (await connection.execute(SAMPLE, values)).fetchall()]
        return keys if keys and await _ask(connection, domain, keys, at=at) else []


async def audited(db: Database, domain: Domain, *, since: date, until: date) -> Agreement:
    """What the audits of these UTC days, `until` not among them, found against what was expected of them."""
    async with db.transaction() as connection, connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(AUDITED, {"domain_id": domain.id, "since": since, "until": until})
        row: dict[str, Any] | None = await cursor.fetchone()
        assert row is not None
        return Agreement(**row)


async def _ask(connection: Connection, domain: Domain, keys: Sequence[PageKey], *, at: datetime) -> bool:
    payload = Jsonb({"keys": [key.hex() for key in keys]})
    values = {"domain_id": domain.id, "payload": payload, "at": at}
    return await (await connection.execute(ASK, values)).fetchone() is not None


def _point(domain: Domain, day: date, n: int) -> bytes:
    return blake2b(f"{domain.id} {day.isoformat()} {n}".encode(), digest_size=16).digest()


def _midnight(day: date) -> datetime:
    return datetime.combine(day, datetime.min.time(), tzinfo=UTC)
