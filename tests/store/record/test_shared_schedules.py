"""Shared schedules of pages with equal texts, in a real Postgres."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.shared_schedule import MIN_SHARED_BYTES, MIN_VISITS, SharedPair
from crawler.core.http.response import Response
from crawler.core.http.urls import Authority, Url
from crawler.store import claim, domains, record, report
from crawler.store.database import PREFER_KEY_LOOKUPS, Database
from crawler.store.record.shared_schedules import (
    DUPLICATES,
    END_SHARING,
    MAX_REQUESTED,
    MAX_UNLINKED,
    OFTEN_CHANGED,
    REQUEST_DUPLICATES,
    SUSPEND_DUPLICATES,
    UNLINK_DUPLICATES,
    begin_sharing,
)
from tests.store.conftest import START
from tests.store.made_up import TERM, html, key, look, status, targets
from tests.store.report.test_duplicates import LONG, OTHER

DAY = timedelta(days=1)
SETTLED = 60  # days until pages that never change have enough visits
NEXT = "another text altogether, " + OTHER


def site(domain: Domain, texts: Mapping[int, str]) -> dict[int, Response]:
    pages: dict[int, Response] = {n: html(domain, [], words=text) for n, text in texts.items()}
    return {0: html(domain, pages, words="the root has links and no more"), **pages}


async def day(db: Database, domain: Domain, answers: Mapping[int, Response], *, at: datetime) -> list[int]:
    """Visit all due pages, let a plan propose pairs, and return the visited pages in order."""
    lease = await claim.claim(db, at=at, holder="test", term=TERM, only=[domain])
    if lease is None:
        return []
    while await record.drain_inbox(db, lease, at=at):
        pass
    numbers, looked = {key(domain, n): n for n in answers}, []
    while batch := await targets(db, lease, at):
        at += timedelta(seconds=1)
        done = [look(each, answers[numbers[each.key]], at, domain) for each in batch]
        await record.record_visits(db, lease, record.Batch(done, max_pages=1000))
        looked += [numbers[each.key] for each in batch]
    await claim.release(db, lease, at=at)
    return looked


async def days(
    db: Database, domain: Domain, answers: Mapping[int, Response], first: int, last: int, *, every: int = 5
) -> Counter[int]:
    """Visit due pages every few days, with a plan after each, and return the number of visits of each page."""
    visits = Counter[int]()
    for n in range(first, last, every):
        visits += Counter(await day(db, domain, answers, at=START + n * DAY))
        await report.fill_fingerprints(db, domain)
        await record.propose_pairs(db, domain, at=START + n * DAY)
    assert await report.check_invariants(db) == []
    return visits


async def duplicates(db: Database, domain: Domain) -> dict[int, int]:
    """Return the canonical page of each duplicate."""
    async with db.transaction() as connection:
        cursor = await connection.execute(
            "SELECT p.url, l.url FROM page p JOIN page l ON l.domain_id = p.domain_id AND l.key = p.canonical"
            " WHERE p.domain_id = %s",
            (domain.id,),
        )
        return {_number(one, domain): _number(other, domain) for one, other in await cursor.fetchall()}


def _number(url: str, domain: Domain) -> int:
    return int(url.removeprefix(domain.root) or 0)


async def rate_estimate(db: Database, domain: Domain, n: int) -> tuple[float, float]:
    async with db.transaction() as connection:
        values = domain.id, key(domain, n)
        cursor = await connection.execute("SELECT rate_a, rate_b FROM page WHERE domain_id = %s AND key = %s", values)
        row = await cursor.fetchone()
        assert row is not None
        return row


async def shared(db: Database, domain: Domain, texts: Mapping[int, str]) -> tuple[int, int, datetime]:
    """Make pages 1 and 2 share a schedule after a visit of both; return canonical page, duplicate and time."""
    await days(db, domain, site(domain, texts), 0, SETTLED)
    ((follower, canonical),) = (await duplicates(db, domain)).items()
    await make_due(db, START + SETTLED * DAY)
    await day(db, domain, site(domain, texts), at=START + SETTLED * DAY)
    return canonical, follower, START + (SETTLED + 1) * DAY


async def make_due(db: Database, at: datetime, n: int | None = None, *, domain: Domain | None = None) -> None:
    """Make all pages due, or one."""
    only = key(domain, n) if domain is not None and n is not None else None
    async with db.transaction() as connection:
        await connection.execute(
            "UPDATE frontier SET due_at = %(at)s, request_reason = 1 WHERE %(key)s::bytea IS NULL OR key = %(key)s",
            {"at": at, "key": only},
        )
        await connection.execute("UPDATE domain_state SET wake_at = %s", (at,))


async def due_in(db: Database, domain: Domain, n: int, *, at: datetime) -> timedelta:
    async with db.transaction() as connection:
        values = domain.id, key(domain, n)
        cursor = await connection.execute("SELECT due_at FROM frontier WHERE domain_id = %s AND key = %s", values)
        row = await cursor.fetchone()
        assert row is not None
        return timedelta(seconds=(row[0] - at).total_seconds())


@pytest.mark.soak
async def test_duplicates_are_visited_less_often_than_their_canonical_page(db: Database, domain: Domain) -> None:
    texts = {1: LONG, 2: LONG, 3: OTHER}
    canonical, follower, _ = await shared(db, domain, texts)

    visits = await days(db, domain, site(domain, texts), SETTLED + 5, SETTLED + 205)

    assert {canonical, follower} == {1, 2}
    assert min(visits[canonical], visits[3]) >= 3 * max(visits[follower], 1)
    assert await duplicates(db, domain) == {follower: canonical}


async def test_schedules_are_not_shared_under_other_revisit_policies(db: Database, domain: Domain) -> None:
    texts = {1: LONG, 2: LONG, 3: OTHER}
    domain = await domains.change_settings(db, domain, replace(domain.settings, revisit="fixed 10d"), at=START)

    visits = await days(db, domain, site(domain, texts), 0, SETTLED)

    assert await duplicates(db, domain) == {}
    assert visits[1] >= 5
    assert visits[2] >= 5


async def test_a_change_of_the_canonical_page_requests_its_duplicates_which_keep_sharing(
    db: Database, domain: Domain
) -> None:
    canonical, follower, at = await shared(db, domain, {1: LONG, 2: LONG})
    await make_due(db, at, canonical, domain=domain)

    looked = await day(db, domain, site(domain, {1: NEXT, 2: NEXT}), at=at)

    assert looked == [canonical, follower]
    assert await duplicates(db, domain) == {follower: canonical}
    assert await due_in(db, domain, follower, at=at) > 3 * await due_in(db, domain, canonical, at=at)


async def test_a_duplicate_that_did_not_change_gets_its_own_schedule_and_estimate(db: Database, domain: Domain) -> None:
    canonical, follower, at = await shared(db, domain, {1: LONG, 2: LONG})
    before = await rate_estimate(db, domain, follower)
    await make_due(db, at, canonical, domain=domain)

    await day(db, domain, site(domain, {canonical: NEXT, follower: LONG}), at=at)
    visits = await days(db, domain, site(domain, {canonical: NEXT, follower: LONG}), SETTLED + 5, SETTLED + 105)

    assert await duplicates(db, domain) == {}
    assert (await rate_estimate(db, domain, follower))[1] > before[1]
    assert visits[follower] >= 2


async def test_a_check_that_finds_another_text_ends_the_sharing(db: Database, domain: Domain) -> None:
    canonical, follower, at = await shared(db, domain, {1: LONG, 2: LONG})
    answers = site(domain, {canonical: LONG, follower: NEXT})
    rests = await due_in(db, domain, follower, at=at)

    looked = await day(db, domain, answers, at=at + rests)

    assert follower in looked
    assert await duplicates(db, domain) == {}
    assert await due_in(db, domain, follower, at=at + rests) < rests
    assert (await days(db, domain, answers, SETTLED + 300, SETTLED + 400))[follower] > 1


async def test_duplicates_of_a_gone_page_get_their_own_schedules(db: Database, domain: Domain) -> None:
    canonical, follower, at = await shared(db, domain, {1: LONG, 2: LONG})
    await make_due(db, at, canonical, domain=domain)
    rests = await due_in(db, domain, follower, at=at)

    await day(db, domain, {**site(domain, {1: LONG, 2: LONG}), canonical: status(410)}, at=at)

    assert await duplicates(db, domain) == {}
    assert await due_in(db, domain, follower, at=at) < rests / 3


async def test_duplicates_of_a_page_that_changes_often_get_their_own_schedules(db: Database, domain: Domain) -> None:
    canonical, follower, at = await shared(db, domain, {1: LONG, 2: LONG})
    shares = []
    for n in range(3):
        await make_due(db, at + n * DAY, canonical, domain=domain)
        text = f"{NEXT} in edition {n}"
        await day(db, domain, site(domain, {1: text, 2: text}), at=at + n * DAY)
        shares.append(await duplicates(db, domain))

    assert shares == [{follower: canonical}, {follower: canonical}, {}]


async def test_one_record_requests_and_releases_a_limited_number_of_duplicates(db: Database, domain: Domain) -> None:
    canonical, follower, at = await shared(db, domain, {1: LONG, 2: LONG})
    copies = max(MAX_REQUESTED, MAX_UNLINKED) + 20
    async with db.transaction() as connection:
        values = {"domain_id": domain.id, "key": key(domain, follower), "copies": copies, "at": at}
        for table in ("page", "frontier"):
            cursor = await connection.execute(
                "SELECT string_agg(column_name, ', ') FROM information_schema.columns WHERE table_schema = 'public'"
                " AND table_name = %s AND column_name <> ALL(%s)",
                (table, ["key", "url"]),
            )
            row = await cursor.fetchone()
            assert row is not None
            named = "key, url" if table == "page" else "key"
            given = "decode(md5(n::text), 'hex')" + (", url || n" if table == "page" else "")
            await connection.execute(
                f"INSERT INTO {table} ({named}, {row[0]}) SELECT {given}, {row[0]}"
                f" FROM {table}, generate_series(1, %(copies)s) n WHERE domain_id = %(domain_id)s AND key = %(key)s",
                values,
            )
        counts = {"request_reason": 3, "max_requested": MAX_REQUESTED}
        news = {"keys": [], "changed_or_lost": [key(domain, canonical)], "lost": [], **counts}
        called = (await connection.execute(REQUEST_DUPLICATES, values | news)).rowcount
        lost = {"lost_or_often_changed": [key(domain, canonical)], "lost": [], "max_unlinked": MAX_UNLINKED}
        left = [(await connection.execute(UNLINK_DUPLICATES, values | lost)).rowcount for _ in range(3)]

    assert called == MAX_REQUESTED
    assert left == [MAX_UNLINKED, copies + 1 - MAX_UNLINKED, 0]


@pytest.mark.parametrize(
    "lost", ["UPDATE frontier SET state = 'gone' WHERE key = %s", "UPDATE page SET failures = 3 WHERE key = %s"]
)
async def test_a_duplicate_that_was_not_released_leaves_at_its_own_check(
    db: Database, domain: Domain, lost: str
) -> None:
    texts = {1: LONG, 2: LONG}
    canonical, follower, at = await shared(db, domain, texts)
    async with db.transaction() as connection:
        await connection.execute(lost.encode(), (key(domain, canonical),))
    await make_due(db, at, follower, domain=domain)

    looked = await day(db, domain, site(domain, texts), at=at)

    assert looked == [follower]
    assert await duplicates(db, domain) == {}


async def test_sharing_needs_enough_visits_and_text(db: Database, domain: Domain) -> None:
    note = " ".join(LONG.split()[:40])
    answers = site(domain, {1: LONG, 2: LONG, 3: note, 4: note})
    assert len(note.encode()) < MIN_SHARED_BYTES
    for n in range(MIN_VISITS - 1):
        await make_due(db, START + n * DAY)
        await day(db, domain, answers, at=START + n * DAY)
    await report.fill_fingerprints(db, domain)
    assert await record.propose_pairs(db, domain, at=START + DAY) == 0

    await make_due(db, START + 9 * DAY)
    await day(db, domain, answers, at=START + 9 * DAY)

    assert await record.propose_pairs(db, domain, at=START + 9 * DAY) == 1
    assert await record.propose_pairs(db, domain, at=START + 9 * DAY) == 0  # pairs wait in the inbox


async def test_a_pair_that_changed_before_it_is_applied_is_not_shared(db: Database, domain: Domain) -> None:
    answers = site(domain, {1: LONG, 2: LONG})
    for n in range(MIN_VISITS):
        await make_due(db, START + n * DAY)
        await day(db, domain, answers, at=START + n * DAY)
    await report.fill_fingerprints(db, domain)
    async with db.transaction() as connection:
        await connection.execute("UPDATE page SET main_digest = 'other' WHERE key = %s", (key(domain, 2),))

    assert await record.propose_pairs(db, domain, at=START + 3 * DAY) == 0
    async with db.transaction() as connection:
        await begin_sharing(connection, domain.id, [SharedPair(key(domain, 1), key(domain, 2))])
    assert await duplicates(db, domain) == {}


def named(domain: Domain, urls: Mapping[str, str]) -> dict[Url, Response]:
    """Return responses with these paths and texts, and that of a root that links to all of them."""
    answers: dict[Url, Response] = {
        Url(domain.root + path): html(domain, [], words=text) for path, text in urls.items()
    }
    links = "".join(f'<a href="{url}">x</a>' for url in answers)
    root = status(200, f"<title>root</title><p>the root has links and no more {links}".encode())
    return {**answers, Url(domain.root): root}


async def visited(db: Database, domain: Domain, answers: Mapping[Url, Response], first: int, last: int) -> Counter[str]:
    """Visit what is due each few days, with a plan after each; return how often each path was visited."""
    found = Counter[str]()
    for n in range(first, last, 3):
        at = START + n * DAY
        lease = await claim.claim(db, at=at, holder="test", term=TERM, only=[domain])
        while lease is not None and await record.drain_inbox(db, lease, at=at):
            pass
        while lease is not None and (batch := await targets(db, lease, at)):
            at += timedelta(seconds=1)
            done = [look(each, answers[each.url], at, domain) for each in batch]
            await record.record_visits(db, lease, record.Batch(done, max_pages=1000))
            found.update(each.url.removeprefix(domain.root) for each in batch)
        if lease is not None:
            await claim.release(db, lease, at=at)
        await report.fill_fingerprints(db, domain)
        await record.propose_pairs(db, domain, at=at)
    assert await report.check_invariants(db) == []
    return found


async def read_canonicals(db: Database, domain: Domain) -> dict[str, str]:
    """Return the path of the canonical page of each duplicate, by path."""
    async with db.transaction() as connection:
        cursor = await connection.execute(
            "SELECT p.url, l.url FROM page p JOIN page l ON l.domain_id = p.domain_id AND l.key = p.canonical"
            " WHERE p.domain_id = %s",
            (domain.id,),
        )
        return {one.removeprefix(domain.root): to.removeprefix(domain.root) for one, to in await cursor.fetchall()}


COPIES = ("guide.html", "guide/", "guide?print=1", "guide?lang=en")


async def test_urls_of_one_page_share_a_schedule_after_one_visit_each(db: Database, domain: Domain) -> None:
    answers = named(domain, {"guide": LONG, **dict.fromkeys(COPIES, LONG), "other": OTHER, "third": NEXT})

    await visited(db, domain, answers, 0, 4)
    shares = await read_canonicals(db, domain)
    visits = await visited(db, domain, answers, 4, 124)

    (canonical,) = set(shares.values())
    assert {canonical, *shares} == {"guide", *COPIES}
    assert sum(visits[path] for path in shares) <= 4 * len(shares)  # once a month each
    assert visits["other"] >= 2 * max(visits[path] for path in shares)


@pytest.mark.soak
async def test_copies_are_not_visited_at_each_change_of_their_page(db: Database, domain: Domain) -> None:
    answers = named(domain, dict.fromkeys(("guide", *COPIES), LONG))
    await visited(db, domain, answers, 0, 4)
    shares = await read_canonicals(db, domain)
    visits = Counter[str]()
    for n in range(4, 64, 3):
        answers = named(domain, dict.fromkeys(("guide", *COPIES), f"{LONG} edition {'abcdefghik'[n % 10] * n}"))
        visits += await visited(db, domain, answers, n, n + 1)

    assert await read_canonicals(db, domain) == shares
    assert sum(visits[path] for path in shares) <= 2 * len(shares)


@pytest.mark.soak
async def test_copies_whose_texts_diverge_stop_sharing(db: Database, domain: Domain) -> None:
    answers = named(domain, {"guide": LONG, "guide.html": LONG})
    await visited(db, domain, answers, 0, 4)
    ((copy, canonical),) = (await read_canonicals(db, domain)).items()

    answers |= {Url(domain.root + copy): html(domain, [], words=NEXT)}
    await visited(db, domain, answers, 4, 60)

    assert await read_canonicals(db, domain) == {}
    assert (await visited(db, domain, answers, 60, 200))[copy] >= 3
    assert canonical != copy


async def test_a_canonical_link_to_an_equal_page_starts_sharing_at_the_first_visit(
    db: Database, domain: Domain
) -> None:
    answers = named(domain, dict.fromkeys(("article", "print-7", "other-7"), LONG))
    head = f'<title>page</title><link rel="canonical" href="{domain.root}article">'
    answers[Url(f"{domain.root}other-7")] = status(200, f"{head}<p>{NEXT}".encode())
    printed = Url(f"{domain.root}print-7")
    await visited(db, domain, {**answers, printed: status(503)}, 0, 1)  # the article is fetched first

    answers[printed] = status(200, f"{head}<p>{LONG}".encode())
    await visited(db, domain, answers, 1, 4)

    assert await read_canonicals(db, domain) == {"print-7": "article"}


async def test_pages_of_different_domains_do_not_share(db: Database, domain: Domain) -> None:
    other = await domains.register(
        db, Authority("other.test"), scheme="http", domain_settings=DomainSettings(), at=START
    )
    for n in range(MIN_VISITS):
        await make_due(db, START + n * DAY)
        for each in (domain, other):
            await day(db, each, site(each, {1: LONG}), at=START + n * DAY)
    for each in (domain, other):
        await report.fill_fingerprints(db, each)
        assert await record.propose_pairs(db, each, at=START + 3 * DAY) == 0


async def test_recording_scans_no_table_for_shared_schedules(db: Database, domain: Domain) -> None:
    values = {"domain_id": domain.id, "keys": [key(domain, 1)], "changed_or_lost": [key(domain, 2)]}
    async with db.transaction() as connection:
        await connection.execute(PREFER_KEY_LOOKUPS)
        for statement in (
            DUPLICATES,
            END_SHARING,
            SUSPEND_DUPLICATES,
            OFTEN_CHANGED,
            REQUEST_DUPLICATES,
            UNLINK_DUPLICATES,
        ):
            at = {
                "at": START,
                "key": [key(domain, 1)],
                "due_at": [START],
                "request_reason": 3,
                "changed": [key(domain, 2)],
                "visits": 3,
                "many": 2,
                "max_requested": 9,
                "max_unlinked": 9,
                "lost": [key(domain, 3)],
                "lost_or_often_changed": [key(domain, 3)],
                "failures": 3,
            }
            cursor = await connection.execute(f"EXPLAIN {statement}".encode(), values | at)
            plan = "\n".join(row[0] for row in await cursor.fetchall())
            assert "Seq Scan" not in plan, plan
