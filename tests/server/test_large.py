"""Every list answers within a second in a domain of many pages, and among many domains."""

import asyncio
import time
from datetime import UTC, datetime

import psycopg
import pytest

from benchmarks.store.aged import aged
from crawler.server.ui.domain_tabs import Tab
from crawler.store import domains, report
from crawler.store.database import open_database
from crawler.store.report.page_list import PageOrder
from tests.patience import SLOW
from tests.server.conftest import Visitor

PAGES, DOMAINS = 200_000, 1000
MAX_SECONDS = 1.0
NAME = "large.example"
TABS = f"/domain?name={NAME}&tab="
PATHS = [
    *("/", "/domains", "/domains?sort=changes", "/changes", "/search?q=p19999", "/search?q=nowhere"),
    *(TABS + tab for tab in Tab),
    *(f"{TABS}pages&sort={order}" for order in PageOrder),
    *(f"{TABS}pages&{query}" for query in ("list=failing", "list=unfetched&sort=next", "q=p19999", "q=nowhere")),
]


async def fill(database_url: str) -> None:
    """Add a large domain that was counted, and many small ones."""
    at = datetime.now(UTC)
    async with open_database(database_url) as db:
        await aged(db, NAME, pages=PAGES, at=at)
        await domains.expire_leases(db, holder_prefix="")
        domain = next(each.domain for each in await domains.list_domains(db) if each.domain.authority == NAME)
        await report.store_figures(db, domain, at=at)
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO domain (authority, scheme, registered_at) "
            "SELECT 'd' || n || '.example', 'https', now() FROM generate_series(1, %s) n",
            (DOMAINS,),
        )
        connection.execute("""
            INSERT INTO domain_state (domain_id, total_cash, dormant, spent_requests, rejections, spent_floor)
            SELECT id, 0, 0, 0, 0, 0 FROM domain WHERE authority <> 'large.example'
        """)


@pytest.mark.soak
@SLOW
def test_each_page_takes_less_than_a_second(visitor: Visitor, database_url: str) -> None:
    asyncio.run(fill(database_url))
    slow = dict[str, list[float]]()
    for path in PATHS:
        took = [measure(visitor, path) for _ in range(3)]
        if min(took) > MAX_SECONDS:
            slow[path] = took
    assert slow == {}


def measure(visitor: Visitor, path: str) -> float:
    began = time.perf_counter()
    assert visitor.get(path).status == 200, path
    return time.perf_counter() - began
