"""A domain of any size without a crawl: a third of its pages is fetched, the rest unfetched, and cash is conserved."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec.structs import replace

from crawler.core.domain import Domain, Lease
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.response import Fetched
from crawler.core.http.robots import ALLOW_ALL
from crawler.core.http.urls import Authority, PageKey, Url, compute_page_key
from crawler.core.opic.opic import ENDOWMENT, Pool
from crawler.core.opic.order import RANK_STEPS
from crawler.core.visit.decide import decide_visit
from crawler.core.visit.visit import DomainKnowledge, Visit
from crawler.store import claim, domains, frontier, record
from crawler.store.database import Database
from tests.store.made_up import USUAL

TERM = timedelta(hours=1)
MAX_RANK_STEPS = 50  # the ranks of pages are less than this many steps above that of an endowment
PAGES = "COPY page (domain_id, key, url, first_seen_at) FROM STDIN"
FRONTIER = "COPY frontier (domain_id, key, state, rank, depth, due_at, boosted) FROM STDIN"
CASH = "COPY cash (domain_id, key, pool, net, history, clock) FROM STDIN"
WROTE = """
    SELECT coalesce(sum(n_tup_upd + n_tup_ins + n_tup_del), 0), coalesce(sum(seq_tup_read), 0)
      FROM pg_stat_user_tables
     WHERE relid IN (SELECT relid FROM pg_partition_tree(%s::regclass))
"""


@dataclass(frozen=True, slots=True)
class Filled:
    """A domain with pages numbered from 1, and a lease of it."""

    domain: Domain
    lease: Lease
    pages: int

    def url(self, n: int) -> Url:
        return Url(f"{self.domain.root}p{n}")


async def filled(db: Database, name: str, *, pages: int, at: datetime) -> Filled:
    """Register a domain and add its pages. Every third page is fetched and due in a year."""
    domain_settings = DomainSettings()
    domain = await domains.register(db, Authority(name), scheme="http", domain_settings=domain_settings, at=at)
    lease = await claim.claim(db, at=at, holder="bench", term=TERM, only=[domain])
    assert lease is not None
    while await record.drain_inbox(db, lease, at=at):
        pass
    site = Filled(domain, lease, pages)
    made = [Made(n, compute_page_key(site.url(n))) for n in range(1, pages + 1)]
    domain_id = domain.id
    await _copy(db, PAGES, ((domain_id, page.key, site.url(page.n), at) for page in made))
    later = at + timedelta(days=365)
    await _copy(
        db,
        FRONTIER,
        (
            (domain_id, p.key, "fetched", 0, 1, later, False)
            if p.is_fetched
            else (domain_id, p.key, "unfetched", p.rank, 1, None, False)
            for p in made
        ),
    )
    await _copy(db, CASH, ((domain_id, page.key, page.pool.value, page.net, 0.0, 0.0) for page in made))
    await _account(db, site, made)
    return site


@dataclass(frozen=True, slots=True)
class Made:
    """Page number n."""

    n: int
    key: PageKey

    @property
    def is_fetched(self) -> bool:
        return self.n % 3 == 0

    @property
    def pool(self) -> Pool:
        return Pool.FETCHED if self.is_fetched else Pool.UNFETCHED

    @property
    def rank(self) -> int:
        return RANK_STEPS + self.n % MAX_RANK_STEPS

    @property
    def net(self) -> int:
        return self.rank * ENDOWMENT // RANK_STEPS


async def _copy(db: Database, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
    async with (
        db.transaction() as connection,
        connection.cursor() as cursor,
        cursor.copy(statement.encode()) as copy,
    ):
        for row in rows:
            await copy.write_row(row)


async def _account(db: Database, site: Filled, made: list[Made]) -> None:
    """Take the cash of the pages from the dormant cash."""
    async with db.transaction() as connection:
        await connection.execute(
            "UPDATE domain_state SET dormant = dormant - %s, tracked = tracked + %s WHERE domain_id = %s",
            (sum(page.net for page in made), len(made), site.domain.id),
        )
        for pool in (Pool.UNFETCHED, Pool.FETCHED):
            many = sum(page.pool is pool for page in made)
            await connection.execute(
                "UPDATE pool SET pages = pages + %s WHERE domain_id = %s AND pool = %s",
                (many, site.domain.id, pool.value),
            )
    async with db.transaction() as connection:
        await connection.execute("ANALYZE page, frontier, cash")


async def visit_pages(
    db: Database, site: Filled, chance: random.Random, *, most: int, links: int, at: datetime
) -> list[Visit]:
    """Visit the best unfetched pages, each with `links` links to existing pages."""
    defaults = replace(USUAL, discovery_share=1.0, refresh_share=0.0)
    selected = await frontier.select_targets(db, site.lease, max_targets=most, at=at, dispatched=(), defaults=defaults)
    known = DomainKnowledge(
        scope=site.domain.build_scope(max_depth=100),
        rules=ALLOW_ALL,
        agent="recrawl",
    )
    return [decide_visit(target, _page(site, chance, links), now=at, knowledge=known) for target in selected]


def _page(site: Filled, chance: random.Random, links: int) -> Fetched:
    chosen = chance.sample(range(1, site.pages + 1), links)
    body = "<title>p</title><p>words</p>" + "".join(f'<a href="{site.url(n)}">{n}</a> ' for n in chosen)
    return Fetched(
        status=200,
        body=body.encode(),
        received_bytes=len(body),
        elapsed=timedelta(milliseconds=5),
        content_type="text/html; charset=utf-8",
    )


async def touched(db: Database, table: str) -> tuple[int, int]:
    """Return the rows of a table written so far, and the rows read by sequential scans, by the server's statistics.

    db must have only one connection, whose counters are flushed first.
    """
    async with db.transaction() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
    async with db.transaction() as connection:
        row = await (await connection.execute(WROTE.encode(), (table,))).fetchone()
        assert row is not None
        return int(row[0]), int(row[1])
