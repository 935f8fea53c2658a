"""Domains with many fetched pages, inserted without a crawl, as input of plans and audits."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey, compute_page_key
from crawler.store.database import Database
from tests.store.made_up import url

PAGES = """
    INSERT INTO page (domain_id, key, url, first_seen_at, etag, rate_a, rate_b, prior_no, version, last_good_at)
    SELECT %(id)s, x.key, x.url, %(at)s, CASE WHEN %(version)s > 0 THEN '"v"' END, %(a)s, %(b)s, %(no)s, %(version)s,
           %(at)s
      FROM unnest(%(keys)s::bytea[], %(urls)s::text[]) AS x(key, url)
"""
FRONTIER = """
    INSERT INTO frontier (domain_id, key, state, due_at)
    SELECT %(id)s, key, %(state)s, CASE WHEN %(state)s <> 'unfetched' THEN %(due_at)s::timestamptz END
      FROM unnest(%(keys)s::bytea[]) AS key
"""
VISITS = """
    INSERT INTO visit (domain_id, key, at, outcome, change, evidence, conditional, requests, received_bytes,
                       saved_bytes,
                       elapsed_ms, expected, audit)
    SELECT %(id)s, %(key)s, x.at, 'fetched', x.change, 'text', false, 1, 100, 0, 5, %(expected)s, %(audit)s
      FROM unnest(%(at)s::timestamptz[], %(change)s::text[]) AS x(at, change)
"""


@dataclass(frozen=True, slots=True)
class Bulk:
    """A group of equal pages. a, b: the evidence of their change rate."""

    count: int
    a: float = 0.0
    b: float = 0.0
    no: int = 0
    state: str = "fetched"
    first: int = 1


async def add(db: Database, domain: Domain, bulk: Bulk, *, at: datetime) -> list[PageKey]:
    """Add pages numbered from bulk.first, last visited at `at` and due a day later, outside the economy."""
    urls = [url(domain, n) for n in range(bulk.first, bulk.first + bulk.count)]
    keys = [compute_page_key(each) for each in urls]
    values = {
        "id": domain.id,
        "keys": keys,
        "urls": urls,
        "a": bulk.a,
        "b": bulk.b,
        "no": bulk.no,
        "version": 0 if bulk.state == "unfetched" else 1,
        "state": bulk.state,
        "at": at,
        "due_at": at + timedelta(days=1),
    }
    async with db.transaction() as connection:
        await connection.execute(PAGES, values)
        await connection.execute(FRONTIER, values)
        await connection.execute(
            "UPDATE domain_state SET tracked = tracked + %s WHERE domain_id = %s", (bulk.count, domain.id)
        )
    return keys


async def look(
    db: Database, domain: Domain, changes: list[str], *, at: datetime, expected: float | None, audit: bool = False
) -> None:
    """Add one visit per second from `at` on, with these outcomes and this predicted chance of a change."""
    values = {
        "id": domain.id,
        "key": compute_page_key(url(domain, 1)),
        "at": [at + timedelta(seconds=n) for n in range(len(changes))],
        "change": changes,
        "expected": expected,
        "audit": audit,
    }
    async with db.transaction() as connection:
        await connection.execute(VISITS, values)


async def fetched(db: Database, statement: str, *values: object) -> list[tuple[object, ...]]:
    """Return all rows of a query."""
    async with db.transaction() as connection:
        return list(await (await connection.execute(statement.encode(), values)).fetchall())
