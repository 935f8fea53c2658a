"""What is sent beside a crawl (by readers of the feed, deliveries, copies, reports, plans, prune), by shard.

Each statement is planned by Postgres with the values that it had. Of every table that is split by domain it reads one
domain's part alone, unless it is listed here: with what it is for, and how often it is sent.
"""

import importlib
import pkgutil
import re
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import crawler.store
from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey, Url, key_of
from crawler.errors import CursorTooOld
from crawler.planner.plan import plan_domains
from crawler.prune import prune
from crawler.settings import Settings
from crawler.store import domains, report
from crawler.store.database import Database
from crawler.store.report import ChangeFilter
from crawler.store.retention.estimate import estimate
from models import metadata
from tests.commands import serving
from tests.engine.crawls import DAY, START, crawl, register
from tests.store.made_up import USUAL
from tests.store.test_shards import BY_DOMAIN, SENT, SHARED, SPLIT, as_bytes, tables_of, telling

__all__ = ["telling"]
DOCS = Path(__file__).parents[2] / "docs" / "scale.md"
NAMES = ("amber", "birch", "cedar", "delta", "ember")
LATE = START + 400 * DAY
# Over all shards on purpose: what for, and how often.
OVER_ALL = {
    "report.feed.STAMP": "one order of all changes; once a second while crawls go on",
    "report.feed.SHOWN": "each change looked up by the domain that its row names; once for 1000 that are read",
    "report.feed.COUNT": "how many changes of each kind; when a person asks about all domains",
    "report.gauges.DOMAINS": "pages due of each domain, for metrics; once a minute at most",
    "plan.plans.INPUTS": "pages due of each domain; once a plan, every hour",
}


def constants() -> dict[str, str]:
    """Every text that a module of the store keeps, by its name there."""
    found = {}
    for info in pkgutil.walk_packages(crawler.store.__path__, "crawler.store."):
        for name, value in vars(importlib.import_module(info.name)).items():
            if isinstance(value, str) and name.isupper():
                found[value] = f"{info.name.removeprefix('crawler.store.')}.{name}"
    return found


def name_of(query: str, known: dict[str, str]) -> str:
    """The constant that a statement is, or begins with, as far as nothing is put into its braces."""
    begins = [text for text in known if len(text) > 40 and query.startswith(text.partition("{")[0])]
    return known[max(begins, key=len)] if begins else query[:200]


def test_each_table_has_its_place_and_the_documentation_names_what_is_of_all_domains() -> None:
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
    """One of two sites, each crawled twice, with changes in between; nothing is noted yet."""
    with serving() as site, serving() as other:
        for each in (site, other):
            each.page("/", *(f"/{name}" for name in NAMES), text="the way to all of it")
            for name in NAMES:
                each.page(f"/{name}", text=" ".join(f"{word}{name}" for word in NAMES * 3))
        found = [await register(telling, each.url) for each in (site, other)]
        await crawl(telling, at=START)
        site.page("/birch", text=" ".join(f"{word}birchwood" for word in NAMES * 3))
        for domain in found:
            await domains.refresh(telling, domain, prefix=domain.root, at=START + DAY)
        await crawl(telling, at=START + DAY)
    SENT.clear()
    return found[0]


async def crossing(db: Database) -> tuple[set[str], set[str]]:
    """The statements noted that read parts of more than one domain's tables; and all tables that were read."""
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
    """What readers, copies, deliveries, reports and people ask of one domain."""
    end, url = await report.end_of_feed(db), Url(f"{domain.root}birch")
    of_it = ChangeFilter(domain_id=domain.id)
    await report.read_on(db, of_it, most=10, blocks=True)
    await report.read_feed(db, replace(of_it, after=1, until=end), most=10, blocks=True)
    await report.newest_changes(db, of_it)
    await report.count_changes(db, of_it)
    await report.changes_to_take(db, domain, after=0, until=end, most=10, bodies=True)
    await report.pages_to_take(db, domain, after=PageKey(b""), most=10, bodies=True)
    await report.changes_to_take(db, domain, after=0, until=end, most=10, bodies=True, versions=True)
    await report.versions_to_take(db, domain, after=report.FIRST_VERSION, most=10, bodies=True)
    await report.shared_digests(db, domain)
    await report.domain_report(db, domain, at=at, window=7 * DAY)
    await report.keep_figures(db, domain, at=at)
    await report.freshness_over_time(db, domain, instants=[START + DAY, at])
    await report.explain(db, domain, url, at=at, defaults=USUAL)
    await report.pages(db, domain, top=5, at=at)
    await report.pages_at(db, domain, at=at)
    await report.versions_of(db, domain, url)
    await report.version_of(db, domain, url, number=1)
    await report.workload(db, domain, at=at)
    await report.traffic(db, domain, since=START, until=at)
    await report.lists_of(db, domain)
    await report.signal_sources(db, domain)
    await report.fill(db, domain)
    await report.near(db, domain, key_of(url), bits=3, most=5)
    await report.alike(db, domain, bits=3, most=5, members=5)
    await plan_domains(db, at=at, settings=Settings(), only=domain)


async def test_what_is_asked_of_one_domain_reads_that_domains_part_alone(telling: Database, crawled: Domain) -> None:
    await read_one(telling, crawled, at=START + 2 * DAY)

    found, read = await crossing(telling)

    assert found == {"report.feed.SHOWN", "plan.plans.INPUTS"}
    assert {"page", "frontier", "cash", "snapshot", "content", "event", "page_fingerprint", "page_links"} <= read


async def test_pruning_a_domain_reads_that_domains_part_alone(telling: Database, crawled: Domain) -> None:
    days = timedelta(days=1)
    wanted: dict[str, Any] = {
        "keep_versions": 1,
        "keep_daily": days,
        "keep_weekly": days,
        "keep_monthly": days,
        "quota": 1,
    }
    settings = replace(crawled.settings, **wanted, keep_visits=days / 2, keep_changes=days / 2)
    domain = await domains.change(telling, crawled, settings, at=LATE)
    await estimate(telling, domain, read_until=None)

    (pruned,) = await prune(telling, [domain], at=LATE)

    found, read = await crossing(telling)
    assert pruned.versions
    assert pruned.changes
    assert found <= {"report.feed.STAMP"}  # what is to go has to be in the feed before
    assert {"snapshot", "content", "event", "visit_pack"} <= read
    with pytest.raises(CursorTooOld):
        await report.require_kept(telling, domain.id, since=0)


async def test_what_goes_over_all_shards_is_what_is_listed(telling: Database, crawled: Domain) -> None:
    at = START + 2 * DAY
    await report.stamp_feed(telling, at=at)
    await report.read_on(telling, most=10, blocks=True)
    await report.newest_changes(telling, most=10)
    await report.count_changes(telling)
    await report.domain_gauges(telling, at=at, most=10)
    await plan_domains(telling, at=at, settings=Settings())

    found, _ = await crossing(telling)

    assert found == OVER_ALL.keys()
