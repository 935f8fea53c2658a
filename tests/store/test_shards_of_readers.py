"""The statements outside a crawl (readers of the feed, deliveries, exports, reports, plans, prune), by shard.

Postgres plans each statement with its actual values. Of every table that is partitioned by domain, it may read only
one domain's partition, unless the statement is listed here with its purpose and frequency.
"""

import importlib
import pkgutil
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import crawler.store
from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey, Url, compute_page_key
from crawler.errors import CursorTooOld
from crawler.planner.plan import plan_domains
from crawler.prune import prune_domains
from crawler.settings import Settings
from crawler.store import domains, report
from crawler.store.database import Database
from crawler.store.report import ChangeFilter
from crawler.store.retention.estimate import estimate_size
from models import metadata
from tests.commands import serving
from tests.engine.crawls import DAY, START, crawl, register
from tests.store.made_up import USUAL
from tests.store.test_shards import BY_DOMAIN, SENT, SHARED, SPLIT, as_bytes, tables_of, telling

__all__ = ["telling"]
DOCS = Path(__file__).parents[2] / "docs" / "scale.md"
NAMES = ("amber", "birch", "cedar", "delta", "ember")
LATE = START + 400 * DAY
# Statements that read all shards on purpose, with their purpose and frequency.
OVER_ALL = {
    "report.feed.APPEND_EVENTS": "one order of all changes; once a second during crawls",
    "report.feed.FEED_ITEMS": "each change looked up by the domain that its row names; once for 1000 that are read",
    "report.feed.COUNT": "the number of changes of each kind; when a user asks about all domains",
    "report.gauges.DOMAINS": "pages due of each domain, for metrics; once a minute at most",
    "plan.plans.INPUTS": "pages due of each domain; once a plan, every hour",
}


def constants() -> dict[str, str]:
    """Return the string constants of all modules of the store, by qualified name."""
    found = {}
    for info in pkgutil.walk_packages(crawler.store.__path__, "crawler.store."):
        for name, value in vars(importlib.import_module(info.name)).items():
            if isinstance(value, str) and name.isupper():
                found[value] = f"{info.name.removeprefix('crawler.store.')}.{name}"
    return found


def name_of(query: str, known: dict[str, str]) -> str:
    """Return the name of the constant that a statement equals or starts with, up to its first placeholder in braces."""
    begins = [text for text in known if len(text) > 40 and query.startswith(text.partition("{")[0])]
    return known[max(begins, key=len)] if begins else query[:200]


def test_each_table_is_listed_and_the_docs_name_the_shared_ones() -> None:
    assert set(metadata.tables) | {"alembic_version"} == BY_DOMAIN | SHARED
    assert SPLIT <= BY_DOMAIN
    keyed = {t for t in BY_DOMAIN if "domain_id" in {c.name for c in metadata.tables[t].primary_key.columns}}
    assert BY_DOMAIN - keyed == {"inbox"}
    section = DOCS.read_text(encoding="utf-8").partition("## One Postgres")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", section))
    assert SHARED - {"alembic_version"} <= named
    assert {name.rpartition(".")[2] for name in OVER_ALL} <= named


@pytest.fixture
async def crawled(telling: Database) -> Domain:
    """Crawl two sites twice with changes in between, and return one of them with an empty log of statements."""
    with serving() as site, serving() as other:
        for each in (site, other):
            each.page("/", *(f"/{name}" for name in NAMES), text="the way to all of it")
            for name in NAMES:
                each.page(f"/{name}", text=" ".join(f"{word}{name}" for word in NAMES * 3))
        found = [await register(telling, each.url) for each in (site, other)]
        await crawl(telling, at=START)
        site.page("/birch", text=" ".join(f"{word}birchwood" for word in NAMES * 3))
        for domain in found:
            await domains.request_refresh(telling, domain, prefix=domain.root, at=START + DAY)
        await crawl(telling, at=START + DAY)
    SENT.clear()
    return found[0]


async def crossing(db: Database) -> tuple[set[str], set[str]]:
    """Return the logged statements that read partitions of several domains, and all tables that were read."""
    known = constants()
    sent = [(q, p) for q, p in SENT if re.match(rb"\s*(SELECT|WITH|UPDATE|INSERT|DELETE)", as_bytes(q))]
    found, read = set[str](), set[str]()
    for query, params in sent:
        parts = [relation.rpartition("_p") for relation in await tables_of(db, query, params)]
        split = [(table, part) for table, _, part in parts if table in SPLIT - {"visit"}]
        read |= {table for table, _ in split}
        if len({part for _, part in split}) > 1:
            found.add(name_of(as_bytes(query).decode(), known))
    return found, read


async def read_one(db: Database, domain: Domain, *, at: datetime) -> None:
    """Run the queries of readers, exports, deliveries, reports and users about one domain."""
    end, url = await report.read_feed_end(db), Url(f"{domain.root}birch")
    of_it = ChangeFilter(domain_id=domain.id)
    await report.read_feed_from(db, of_it, max_count=10, with_blocks=True)
    await report.read_feed(db, replace(of_it, after=1, until=end), max_count=10, with_blocks=True)
    await report.list_newest_changes(db, of_it)
    await report.count_changes(db, of_it)
    await report.read_changes_to_export(db, domain, after=0, until=end, max_count=10, with_bodies=True)
    await report.read_pages_to_export(db, domain, after=PageKey(b""), max_count=10, with_bodies=True)
    await report.read_changes_to_export(
        db, domain, after=0, until=end, max_count=10, with_bodies=True, with_versions=True
    )
    await report.read_versions_to_export(db, domain, after=report.FIRST_VERSION, max_count=10, with_bodies=True)
    await report.read_shared_digests(db, domain)
    await report.read_domain_report(db, domain, at=at, window=7 * DAY)
    await report.store_figures(db, domain, at=at)
    await report.read_freshness_history(db, domain, instants=[START + DAY, at])
    await report.explain_url(db, domain, url, at=at, defaults=USUAL)
    await report.list_top_pages(db, domain, top=5, at=at)
    await report.list_pages_at(db, domain, at=at)
    await report.list_versions(db, domain, url)
    await report.read_version(db, domain, url, number=1)
    await report.read_backlog(db, domain, at=at)
    await report.read_traffic(db, domain, since=START, until=at)
    await report.read_url_lists(db, domain)
    await report.list_signal_sources(db, domain)
    await report.fill_fingerprints(db, domain)
    await report.find_near_duplicates(db, domain, compute_page_key(url), bits=3, max_pages=5)
    await report.find_near_duplicate_groups(db, domain, bits=3, max_groups=5, max_members=5)
    await plan_domains(db, at=at, settings=Settings(), only=domain)


async def test_queries_about_one_domain_read_only_its_partitions(telling: Database, crawled: Domain) -> None:
    await read_one(telling, crawled, at=START + 2 * DAY)

    found, read = await crossing(telling)

    assert found == {"report.feed.FEED_ITEMS", "plan.plans.INPUTS"}
    assert {"page", "frontier", "cash", "snapshot", "content", "event", "page_fingerprint", "page_links"} <= read


async def test_pruning_a_domain_reads_only_its_partitions(telling: Database, crawled: Domain) -> None:
    days = timedelta(days=1)
    wanted: dict[str, Any] = {
        "keep_versions": 1,
        "keep_daily": days,
        "keep_weekly": days,
        "keep_monthly": days,
        "quota": 1,
    }
    settings = replace(crawled.settings, **wanted, keep_visits=days / 2, keep_changes=days / 2)
    domain = await domains.change_settings(telling, crawled, settings, at=LATE)
    await estimate_size(telling, domain, read_until=None)

    (pruned,) = await prune_domains(telling, [domain], at=LATE)

    found, read = await crossing(telling)
    assert pruned.versions
    assert pruned.changes
    assert found <= {"report.feed.APPEND_EVENTS"}  # events must be in the feed before they are deleted
    assert {"snapshot", "content", "event", "visit_pack"} <= read
    with pytest.raises(CursorTooOld):
        await report.require_stored(telling, domain.id, since=0)


async def test_statements_over_all_shards_are_the_listed_ones(telling: Database, crawled: Domain) -> None:
    at = START + 2 * DAY
    await report.append_to_feed(telling, at=at)
    await report.read_feed_from(telling, max_count=10, with_blocks=True)
    await report.list_newest_changes(telling, max_count=10)
    await report.count_changes(telling)
    await report.read_domain_gauges(telling, at=at, max_domains=10)
    await plan_domains(telling, at=at, settings=Settings())

    found, _ = await crossing(telling)

    assert found == OVER_ALL.keys()
