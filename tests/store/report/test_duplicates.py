"""Near duplicates in a real Postgres, filled from events through all changes of pages."""

import asyncio
import random
from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest

from crawler.core.change.near_duplicates import MIN_TEXT_BYTES, compute_bands
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.response import Response
from crawler.core.http.urls import Authority
from crawler.core.page.fingerprint import Fingerprint, compute_fingerprint, count_distance_bits
from crawler.store import claim, domains, record, report
from crawler.store.database import PREFER_KEY_LOOKUPS, Database
from crawler.store.report.duplicates import (
    CURRENT_FINGERPRINTS,
    DELETE_BANDS,
    DELETE_FINGERPRINTS,
    EVENTS,
    INSERT_BANDS,
    INSERT_FINGERPRINTS,
    NEAR_DUPLICATES,
    PAGES,
)
from crawler.store.rows import encode_fingerprint
from tests.store.conftest import START
from tests.store.made_up import TERM, html, key, look, status, targets, url

WORDS = [f"word{n}" for n in range(50)]
LONG = " ".join(random.Random(1).choices(WORDS, k=300))
OTHER = " ".join(random.Random(2).choices(WORDS, k=300))


def nearly(text: str, *, bits: int) -> str:
    """Return the text with two more words, at a distance of a number of bits."""
    longer = (f"{text} and more{n}" for n in range(1000))
    return next(each for each in longer if difference(text, each) == bits)


def difference(one: str, other: str) -> int:
    first, second = compute_fingerprint(one), compute_fingerprint(other)
    assert first is not None
    assert second is not None
    return count_distance_bits(first, second)


NEARLY = nearly(LONG, bits=2)
SHORT = "Loading, please wait"


async def looked_at(db: Database, domain: Domain, answers: dict[int, Response], *, at: datetime) -> None:
    """Visit all due pages, with these responses by page number."""
    lease = await claim.claim(db, at=at, holder="test", term=TERM, only=[domain])
    assert lease is not None
    while await record.drain_inbox(db, lease, at=at):
        pass
    while batch := await targets(db, lease, at):
        at += timedelta(seconds=1)
        numbers = {key(domain, n): n for n in answers}
        done = [look(each, answers[numbers[each.key]], at, domain) for each in batch]
        await record.record_visits(db, lease, record.Batch(done, max_pages=1000))
    await claim.release(db, lease, at=at)


def site(domain: Domain, texts: Iterable[str]) -> dict[int, Response]:
    """Return the responses of a root without text and of pages with these texts, numbered from 1."""
    pages: dict[int, Response] = {n: html(domain, [], words=text) for n, text in enumerate(texts, 1)}
    return {0: html(domain, pages, words=""), **pages}


async def groups(db: Database, domain: Domain, *, bits: int = 3) -> list[set[str]]:
    """Fill the fingerprints and return the paths of each group's pages."""
    await report.fill_fingerprints(db, domain)
    found = await report.find_near_duplicate_groups(db, domain, bits=bits, max_groups=10, max_members=10)
    assert [each.pages for each in found] == [len(each.members) for each in found]
    assert await report.check_invariants(db) == []
    return [{page.url.removeprefix(domain.root) for page in each.members} for each in found]


async def test_only_near_duplicates_form_a_group(db: Database, domain: Domain) -> None:
    await looked_at(db, domain, site(domain, [LONG, OTHER, NEARLY, LONG]), at=START)

    assert await groups(db, domain) == [{"1", "3", "4"}]
    assert await groups(db, domain, bits=0) == [{"1", "4"}]
    found = await report.find_near_duplicates(db, domain, key(domain, 3), bits=3, max_pages=10)
    assert found is not None
    assert {(page.url, page.bits) for page in found} == {(url(domain, 1), 2), (url(domain, 4), 2)}
    assert await report.find_near_duplicates(db, domain, key(domain, 2), bits=3, max_pages=10) == []


async def test_pages_with_little_text_are_not_compared(db: Database, domain: Domain) -> None:
    assert len(SHORT) < MIN_TEXT_BYTES
    await looked_at(db, domain, site(domain, [SHORT, SHORT]), at=START)

    assert await groups(db, domain) == []
    assert await report.find_near_duplicates(db, domain, key(domain, 1), bits=3, max_pages=10) is None


async def test_changed_moved_and_gone_pages_leave_the_index_and_restored_ones_return(
    db: Database, domain: Domain
) -> None:
    before = site(domain, [LONG] * 5)
    await looked_at(db, domain, before, at=START)
    assert await groups(db, domain) == [{"1", "2", "3", "4", "5"}]

    after = before | {
        2: html(domain, [], words=OTHER),
        3: status(410),
        4: status(301, location=url(domain, 1)),
        5: html(domain, [], words=SHORT),
    }
    await looked_at(db, domain, after, at=START + timedelta(days=200))
    left = await groups(db, domain)
    await looked_at(db, domain, before, at=START + timedelta(days=600))
    again = await groups(db, domain)

    assert left == []
    assert again == [{"1", "2", "3", "4", "5"}]


async def test_filling_continues_where_it_ended_and_concurrent_runs_share_the_work(
    db: Database, domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.store.report.duplicates.CHUNK", 2)
    await looked_at(db, domain, site(domain, [LONG, NEARLY, LONG, OTHER]), at=START)

    first = await report.fill_fingerprints(db, domain, max_chunks=1)
    rest = await asyncio.gather(*(report.fill_fingerprints(db, domain) for _ in range(3)))

    assert (first, sum(rest)) == (2, 3)
    assert await report.fill_fingerprints(db, domain) == 0
    assert await groups(db, domain) == [{"1", "2", "3"}]


async def test_domains_are_not_compared_and_a_deleted_domain_leaves_no_rows(db: Database, domain: Domain) -> None:
    other = await domains.register(
        db, Authority("other.test"), scheme="http", domain_settings=DomainSettings(), at=START
    )
    for each in (domain, other):
        await looked_at(db, each, site(each, [LONG, LONG]), at=START)
    assert await groups(db, domain) == await groups(db, other) == [{"1", "2"}]

    await domains.remove(db, other)

    assert await report.fill_fingerprints(db, other) == 0
    assert await groups(db, domain) == [{"1", "2"}]


async def test_bands_and_distances_in_sql_equal_those_in_core(db: Database) -> None:
    chance = random.Random(3)
    edges = [0, 2**64 - 1, 2**63, 2**63 - 1, *(chance.getrandbits(64) for _ in range(50))]
    async with db.transaction() as connection:
        for one in map(Fingerprint, edges):
            cursor = await connection.execute(
                "SELECT array_agg(fingerprint_band(%s::bigint, q) ORDER BY q), distance_bits(%s::bigint, 5)"
                "  FROM generate_series(0, 3) q",
                (encode_fingerprint(one), encode_fingerprint(one)),
            )
            assert await cursor.fetchone() == (list(compute_bands(one)), (one ^ 5).bit_count())


async def test_the_view_lists_each_page_with_the_first_near_duplicate(db: Database, domain: Domain) -> None:
    await looked_at(db, domain, site(domain, [LONG, OTHER, NEARLY, LONG]), at=START)
    await report.fill_fingerprints(db, domain)

    async with db.transaction() as connection:
        cursor = await connection.execute(
            "SELECT url, near_url, near_pages, distance_bits FROM report_duplicates WHERE domain_id = %s", (domain.id,)
        )
        rows = await cursor.fetchall()

    same = [row for row in rows if row[3] == 0]
    assert [{row[0], row[1]} for row in same] == [{url(domain, 1), url(domain, 4)}]
    assert {(row[0], row[2]) for row in rows if row[3] > 0} == {
        (url(domain, 1), 1),
        (url(domain, 4), 1),
        (url(domain, 3), 2),
    }


async def test_no_table_is_scanned_in_a_large_domain(db: Database, domain: Domain) -> None:
    async with db.transaction() as connection:
        await connection.execute(
            """INSERT INTO page_fingerprint
               SELECT %(id)s, decode(md5(n::text), 'hex'), ('x' || md5('f' || n))::bit(64)::bigint
                 FROM generate_series(1, 20000) n""",
            {"id": domain.id},
        )
        await connection.execute(
            """INSERT INTO fingerprint_band
               SELECT domain_id, fingerprint_band(fingerprint, q), fingerprint
                 FROM page_fingerprint, generate_series(0, 3) q""",
        )
        await connection.execute("ANALYZE page_fingerprint, fingerprint_band")
        cursor = await connection.execute("SELECT key, fingerprint FROM page_fingerprint ORDER BY key LIMIT 50")
        rows = await cursor.fetchall()
        values = {
            "domain_id": domain.id,
            "key": rows[0][0],
            "bits": 3,
            "most": 50,
            "after": 0,
            "least_bytes": MIN_TEXT_BYTES,
            "keys": [row[0] for row in rows],
            "fingerprints": [row[1] for row in rows],
        }
        await connection.execute(PREFER_KEY_LOOKUPS)
        for statement in (
            EVENTS,
            CURRENT_FINGERPRINTS,
            DELETE_FINGERPRINTS,
            INSERT_FINGERPRINTS,
            DELETE_BANDS,
            INSERT_BANDS,
            NEAR_DUPLICATES,
            PAGES,
        ):
            cursor = await connection.execute(f"EXPLAIN {statement}".encode(), values)
            plan = "\n".join(row[0] for row in await cursor.fetchall())
            assert "Seq Scan" not in plan, plan
        cursor = await connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {NEAR_DUPLICATES}".encode(), values)
        row = await cursor.fetchone()

    assert row is not None
    assert sum(scanned(row[0][0]["Plan"], "fingerprint_band")) < 50  # of 80,000 rows


def scanned(plan: dict[str, object], table: str) -> Iterable[float]:
    """Yield the number of rows that each scan of the table's partitions has read."""
    if str(plan.get("Relation Name", "")).startswith(table):
        loops = float(str(plan["Actual Loops"]))
        yield loops * (float(str(plan["Actual Rows"])) + float(str(plan.get("Rows Removed by Filter", 0))))
    for part in plan.get("Plans", []):  # type: ignore[attr-defined]
        yield from scanned(part, table)
