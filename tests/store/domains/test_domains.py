"""Storage of the users' settings of domains: rules, targets, budgets in bytes."""

import dataclasses
from collections.abc import Iterable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.estimates import PRIOR
from crawler.core.http.urls import Authority, Url, compute_page_key
from crawler.core.page_rules import PageRule
from crawler.errors import BadInput
from crawler.store import domain_rows, domains
from crawler.store.database import Database
from tests.store.conftest import START

WEEK = timedelta(days=7)
RULES = (
    PageRule("/news/", min_interval=timedelta(minutes=1, milliseconds=500), max_interval=WEEK, weight=3),
    PageRule("re:/[0-9]+$", once=True, max_pages=10),
    PageRule("*", weight=0.1),
)


async def found(db: Database, domain: Domain) -> Domain:
    again = await domains.find_domain(db, domain.authority)
    assert again is not None
    return again


async def rows(db: Database, statement: str, *values: object) -> list[tuple[object, ...]]:
    async with db.transaction() as connection:
        return list(await (await connection.execute(statement, values)).fetchall())


async def know(db: Database, domain: Domain, paths: Iterable[str]) -> None:
    """Add pages as the lease holder would."""
    urls = [Url(f"{domain.root}{path}") for path in paths]
    async with db.transaction() as connection, connection.cursor() as cursor:
        await cursor.executemany(
            "INSERT INTO page (domain_id, key, url, first_seen_at) VALUES (%s, %s, %s, %s)",
            [(domain.id, compute_page_key(url), url, START) for url in urls],
        )


async def admitted(db: Database, domain: Domain, *, pattern: str, pages: int) -> None:
    async with db.transaction() as connection:
        await connection.execute(
            "UPDATE rule SET pages = %s WHERE domain_id = %s AND pattern = %s", (pages, domain.id, pattern)
        )


async def pages_by_pattern(db: Database, domain: Domain) -> dict[object, object]:
    found = await rows(db, "SELECT pattern, pages FROM rule WHERE domain_id = %s ORDER BY no", domain.id)
    return {row[0]: row[1] for row in found}


@pytest.mark.parametrize(
    "domain_settings",
    [
        DomainSettings(rules=RULES, bytes_per_day=2**40, target_freshness=0.95),
        DomainSettings(bytes_per_day=0, max_age=timedelta(days=3)),
    ],
)
async def test_settings_are_stored_and_read_back(db: Database, domain_settings: DomainSettings) -> None:
    registered = await domains.register(
        db, Authority("a.test"), scheme="http", domain_settings=domain_settings, at=START
    )
    bare = await domains.register(db, Authority("b.test"), scheme="http", domain_settings=DomainSettings(), at=START)
    changed = await domains.change_settings(db, bare, domain_settings, at=START)

    assert registered.settings == domain_settings
    assert changed.settings == domain_settings
    assert [each.domain.settings for each in await domains.list_domains(db)] == [domain_settings, domain_settings]


async def test_settings_can_be_reset(db: Database) -> None:
    domain_settings = DomainSettings(rules=RULES, bytes_per_day=5, max_age=WEEK)
    domain = await domains.register(db, Authority("a.test"), scheme="http", domain_settings=domain_settings, at=START)

    await domains.change_settings(db, domain, DomainSettings(), at=START)

    assert (await found(db, domain)).settings == DomainSettings()


async def test_a_new_domain_starts_with_the_prior_of_all_domains(db: Database, domain: Domain) -> None:
    assert await rows(db, "SELECT no, template, a, b FROM prior WHERE domain_id = %s", domain.id) == [
        (0, "*", PRIOR.a, PRIOR.b)
    ]


async def test_a_domain_without_rules_writes_none(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(domain_rows, "copy_rows")

    await domains.register(db, Authority("a.test"), scheme="http", domain_settings=DomainSettings(), at=START)


async def test_changed_rules_wake_the_domain(db: Database, domain: Domain) -> None:
    ruled = await domains.change_settings(db, domain, DomainSettings(rules=RULES), at=START)
    await domains.change_settings(db, ruled, replace(ruled.settings, weight=2.0), at=START)

    assert await rows(db, "SELECT kind FROM inbox WHERE domain_id = %s ORDER BY id", domain.id) == [
        ("seed",),
        ("reprice",),
    ]


async def test_a_rule_keeps_its_page_count_at_another_position(db: Database, domain: Domain) -> None:
    ruled = await domains.change_settings(db, domain, DomainSettings(rules=RULES), at=START)
    await admitted(db, domain, pattern="re:/[0-9]+$", pages=7)

    limit = dataclasses.replace(RULES[1], max_pages=20)
    await domains.change_settings(
        db, ruled, DomainSettings(rules=(RULES[2], PageRule("/else", once=True), limit)), at=START
    )

    assert await pages_by_pattern(db, domain) == {"*": 0, "/else": 0, "re:/[0-9]+$": 7}


async def test_a_new_page_limit_counts_existing_pages(db: Database, domain: Domain) -> None:
    await know(db, domain, ["", "a/1", "a/2", "b/1?c"])
    limits = (PageRule("/a/", weight=2, max_pages=1), PageRule("*", max_pages=9), PageRule("/b/", once=True))

    ruled = await domains.change_settings(db, domain, DomainSettings(rules=limits), at=START)
    assert await pages_by_pattern(db, domain) == {"/a/": 2, "*": 4, "/b/": 0}

    await domains.change_settings(
        db, ruled, DomainSettings(rules=(dataclasses.replace(limits[2], max_pages=5), limits[0])), at=START
    )
    assert await pages_by_pattern(db, domain) == {"/b/": 1, "/a/": 2}


async def test_rules_are_deleted_with_their_domain(db: Database, domain: Domain) -> None:
    await domains.change_settings(db, domain, DomainSettings(rules=RULES), at=START)

    await domains.remove(db, domain)

    assert await rows(db, "SELECT FROM rule") == []
    with pytest.raises(BadInput, match="no longer registered"):
        await domains.read_status(db, domain, at=START)
