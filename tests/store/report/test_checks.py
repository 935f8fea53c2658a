from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import psycopg
import pytest

from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.store import claim, domains, record, report
from crawler.store.database import Connection, Database, open_database
from crawler.store.report.checks import MAX_EXAMPLES
from tests.store.conftest import START
from tests.store.made_up import crawl, key, look, status, take, targets, url

LINKS = {0: [1, 2, 3], 1: [2], 2: [0], 3: [2]}


@dataclass(frozen=True, slots=True)
class UndoneDatabase(Database):
    """A database whose transactions are parts of one, which is rolled back in the end."""

    only: Connection

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        yield self.only


@pytest.fixture(scope="module")
async def walked(shared_database_url: str) -> Domain:
    """Return a domain that was crawled, with fetched, unfetched and gone pages and with changes in the feed."""
    async with open_database(shared_database_url) as db:
        domain = await domains.register(
            db, Authority("site.test"), scheme="http", domain_settings=DomainSettings(), at=START
        )
        lease = await take(db, START)
        await crawl(db, lease, LINKS, START)
        later = START + timedelta(days=100)
        by_key = {target.key: target for target in await targets(db, lease, later)}
        onward = status(301, location=url(domain, 1))
        done = [
            look(by_key[key(domain, 2)], onward, later, domain),
            look(by_key[key(domain, 3)], status(410), later, domain),
        ]
        await record.record_visits(db, lease, record.Batch(done, max_pages=100))
        await report.append_to_feed(db, at=later)
        await claim.release(db, lease, at=later)
    return domain


@pytest.fixture
async def walked_db(shared_database_url: str, walked: Domain) -> AsyncIterator[Database]:
    """Return the database of the crawled domain; what a test writes to it is undone."""
    async with open_database(shared_database_url) as db, db.connection() as connection:
        await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)  # as that of the checks
        async with connection.transaction(force_rollback=True):
            yield UndoneDatabase(db.pool, connection)


async def broken(db: Database, *statements: str) -> dict[str, str]:
    """Return the findings after the statements, by rule."""
    async with db.transaction() as connection:
        for statement in statements:
            await connection.execute(statement.encode())
    found = await report.check_invariants(db)
    assert len({finding.rule for finding in found}) == len(found)
    return {finding.rule: finding.text for finding in found}


async def test_a_crawled_domain_has_no_findings(walked_db: Database) -> None:
    assert await report.check_invariants(walked_db) == []
    assert await report.count_domains(walked_db) == 1


async def test_a_domain_that_was_never_crawled_has_no_findings(db: Database, domain: Domain) -> None:
    assert await report.check_invariants(db) == []


async def test_a_domain_can_be_checked_during_a_crawl(db: Database, domain: Domain) -> None:
    lease = await take(db, START)
    await crawl(db, lease, LINKS, START, most=2)

    assert await report.check_invariants(db) == []


async def test_missing_and_excess_cash_is_counted_exactly(walked_db: Database) -> None:
    lost = await broken(
        walked_db,
        "UPDATE domain_state SET virtual_page_cash = virtual_page_cash - 1 WHERE virtual_page_cash > 0",
        "UPDATE domain_state SET dormant = dormant - 1000000",
    )
    found = await broken(walked_db, "UPDATE domain_state SET dormant = dormant + 3000000")

    assert set(lost) == set(found) == {"cash"}
    assert "is missing" in lost["cash"]
    assert "is in excess" in found["cash"]


async def test_a_domain_that_sleeps_although_a_page_is_due_is_found(walked_db: Database, walked: Domain) -> None:
    found = await broken(walked_db, "UPDATE domain_state SET wake_at = paced_until + interval '400 days'")

    assert set(found) == {"asleep"}
    assert walked.root in found["asleep"]


async def test_a_wrong_count_of_a_pool_is_found(walked_db: Database) -> None:
    found = await broken(
        walked_db,
        "UPDATE pool SET pages = pages + 1 WHERE pool = 1",
        "UPDATE domain_state SET dormant = dormant - (SELECT dividend FROM pool WHERE pool = 1)",
    )

    assert found == {"pools": "pool 1 counts 3 pages, but 2 pages are in it"}


async def test_negative_cash_is_found(walked_db: Database) -> None:
    found = await broken(
        walked_db,
        """WITH poor AS (UPDATE cash SET net = net - 1000000000000000
                          WHERE key = (SELECT min(key) FROM cash) RETURNING 1)
           UPDATE domain_state SET dormant = dormant + 1000000000000000""",
    )

    assert set(found) == {"negative_cash"}
    assert found["negative_cash"].startswith("1 pages have negative cash: http://site.test/")


@pytest.mark.parametrize(
    ("statements", "rules"),
    [
        (["UPDATE frontier SET state = 'gone', due_at = now() WHERE state = 'fetched'"], {"inside_economy"}),
        (["UPDATE frontier SET state = 'fetched' WHERE state = 'gone'"], {"outside_economy"}),
        (["UPDATE frontier SET boosted = NOT boosted"], {"wrong_pool"}),
        (["UPDATE cash SET clock = clock + 1e18"], {"future_clock"}),
        (["UPDATE page SET signals = signals_with(signals, 1) WHERE version > 0"], {"unknown_source"}),
        (["DELETE FROM frontier WHERE state = 'gone'"], {"stateless"}),
        (["DELETE FROM frontier WHERE state = 'fetched'"], {"stateless", "inside_economy"}),
        (
            ["ALTER TABLE frontier DROP CONSTRAINT frontier_due", "UPDATE frontier SET due_at = NULL"],
            {"never_due"},
        ),
        (["UPDATE page SET version = 7 WHERE version > 0"], {"wrong_version"}),
        (["DELETE FROM snapshot"], {"wrong_version"}),
        (["UPDATE page SET text_digest = 'x'"], {"wrong_digest"}),
        (["UPDATE page SET body_digest = 'x'"], {"wrong_digest"}),
        (["UPDATE page SET fingerprint = 7"], {"wrong_digest"}),
        (["DELETE FROM content"], {"lost_content"}),
        (["UPDATE page SET moved_to = 'nobody' WHERE moved_to IS NOT NULL"], {"stray_moves"}),
        (["UPDATE page SET last_visit_at = now() + interval '9 years'"], {"future_visits"}),
        (["UPDATE visit SET key = 'nobody' WHERE ctid = (SELECT min(ctid) FROM visit)"], {"stray_visits"}),
        (["DELETE FROM event WHERE number = 2"], {"events"}),
        (["UPDATE domain_state SET next_event = next_event + 1"], {"events"}),
        (["UPDATE domain_state SET stamped_event = stamped_event - 1"], {"stamped"}),
        (["DELETE FROM feed WHERE position = (SELECT max(position) FROM feed)"], {"stamped"}),
        (["UPDATE feed SET position = position + 100 WHERE number = 2"], {"feed_positions", "feed_order"}),
        (["INSERT INTO domain_alias SELECT authority, id FROM domain"], {"shared_name"}),
        (["DELETE FROM domain"], {"orphans"}),
    ],
)
async def test_each_violation_gives_exactly_its_finding(
    walked_db: Database, statements: list[str], rules: set[str]
) -> None:
    async with walked_db.transaction() as connection:
        for statement in statements:
            await connection.execute(statement.encode())

    assert {finding.rule for finding in await report.check_invariants(walked_db)} == rules


async def test_settings_that_do_not_follow_from_the_tags_are_found(walked_db: Database) -> None:
    tag = """
        INSERT INTO tag (name, settings) VALUES ('news', '{"budget_per_day": 7, "max_age_s": 60}'),
               ('slow', '{"budget_per_day": 8}')
    """
    found = await broken(walked_db, tag, "INSERT INTO domain_tag (tag, domain_id) SELECT 'news', id FROM domain")
    assert found == {"settings": "settings do not follow from its tags: Budget per day, Maximum age"}

    repaired = "UPDATE domain SET budget_per_day = 9, own_settings = '{budget_per_day}', max_age_s = 60"
    assert await broken(walked_db, repaired) == {}
    at_odds = await broken(walked_db, "INSERT INTO domain_tag (tag, domain_id) SELECT 'slow', id FROM domain")
    assert at_odds["settings"].startswith("its settings cannot be combined: its tags news and slow")


async def test_a_frontier_row_without_a_page_is_found(walked_db: Database) -> None:
    found = await broken(walked_db, "DELETE FROM page WHERE url LIKE '%/3'")

    assert set(found) == {"pageless", "stray_visits", "wrong_version"}


async def test_many_broken_pages_are_one_finding_with_examples(walked_db: Database) -> None:
    found = await broken(walked_db, "UPDATE page SET main_digest = 'x'")

    assert found["wrong_digest"].startswith("4 pages have digests other than those of their newest snapshot: ")
    assert found["wrong_digest"].count("main text") == MAX_EXAMPLES
    assert found["wrong_digest"].endswith(", ...")


async def test_a_page_to_be_recrawled_in_full_gives_no_finding(walked_db: Database) -> None:
    assert await broken(walked_db, "UPDATE page SET body_digest = '', etag = NULL") == {}
