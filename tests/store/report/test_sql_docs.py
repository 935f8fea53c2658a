"""Every query in docs/sql.md gives the result below it; RECRAWL_WRITE_DOCS=1 updates the results."""

import os
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.export.rows import format_value
from crawler.store import claim, domains, record, report
from crawler.store.database import Database
from tests.store.conftest import START
from tests.store.made_up import look, status, take, targets

PAGE = Path(__file__).parents[3] / "docs" / "sql.md"
QUERY = re.compile(r"```sql\n(.*?)\n```\n(?:\n```text\n(.*?)\n```\n)?", re.DOTALL)
DAY = timedelta(days=1)
CLAY = (
    "Pots of clay are made by hand, dried in the wind for a week, fired for a day and a night, glazed with what the"
    " river brings, and fired again; whoever buys one gets a lid that fits, a sheet that tells how to season it, and"
    " the name of the potter, who mends for nothing whatever breaks in the first year after that."
)
# Title and text of each page on each day; None where it is gone.
SAYS: dict[str, list[tuple[str, str] | None]] = {
    "": [("Shop", "The way to tea and pots")] * 3,
    "tea": [("Tea", "Green tea costs four"), ("Tea", "Green tea costs five"), ("Tea house", "Green tea costs six")],
    "pots": [("Pots", CLAY)] * 3,
    "jars": [("Jars", CLAY)] * 3,
    "offer": [("Offer", "Winter ends soon"), None, None],
}
BESIDE = """
    INSERT INTO calibration VALUES ({id}, '2026-01-02', true, 200, 24, 27, 20);
    INSERT INTO domain_trust (domain_id, prior_no, stats, validator_checks, revisits)
    VALUES ({id}, 0, '{{"etag": {{"changes_seen": 9, "missed": 0, "unchanged": 20, "flapped": 0}},
                       "last_modified": {{"changes_seen": 9, "missed": 4, "unchanged": 20, "flapped": 0}}}}', 5, 40);
    INSERT INTO url_list (domain_id, key, kind, found_by, found_at, entries, reads, new_pages, hints, hints_checked,
                          hints_true)
    SELECT {id}, key, 'sitemap', 'robots', '{at}', 5, 3, 4, 7, 6, 5 FROM page WHERE domain_id = {id} AND url LIKE '%/';
    INSERT INTO domain_source (domain_id, no, source, signals, measured_at, recall, noise, effective_recall,
                               applied_recall,
                               applied_noise, applied_effective_recall)
    VALUES ({id}, 1, 'sitemap', 7, '{at}', 0.75, 0.01, 0.5, 0.75, 0.01, 0.5);
    INSERT INTO subscription (target, kinds, created_at, position, failures, failing_since, resume_at, last_error)
    VALUES ('env:MAIL', '{{changed}}', '{at}', 8, 2, '{at}', '{at}', 'env:MAIL is not there');
    INSERT INTO page_value (domain_id, key, name, at, number, unit, text, finding, version)
    SELECT {id}, key, 'price', v.at::timestamptz, v.number, 'EUR', v.text, v.finding, v.version
      FROM page, (VALUES ('2026-01-01', 44.9, '44.90', '', 1), ('2026-01-02', 39.9, '39.90', '', 2),
                         ('2026-01-03', NULL, 'sold out', 'no_number', 3)) AS v(at, number, text, finding, version)
     WHERE domain_id = {id} AND url LIKE '%/tea';
    INSERT INTO notice (subscription_id, position, domain_id, key, due_at, content)
    SELECT 1, f.position, f.domain_id, e.key, f.appended_at, '{{}}' FROM feed f JOIN event e USING (domain_id, number)
     WHERE f.position = 8
"""


@pytest.fixture
async def shop(db: Database) -> Domain:
    """Crawl a shop on three days."""
    domain = await domains.register(
        db, Authority("shop.test"), scheme="http", domain_settings=DomainSettings(), at=START
    )
    for day in range(3):
        await looked_at(db, domain, day)
    await report.append_to_feed(db, at=START + 3 * DAY)
    await report.fill_fingerprints(db, domain)
    async with db.transaction() as connection:
        for statement in BESIDE.format(id=domain.id, at=START).split(";\n"):
            await connection.execute(statement.encode())
    return domain


async def looked_at(db: Database, domain: Domain, day: int, *, began: datetime = START) -> None:
    at = began + day * DAY
    await domains.request_refresh(db, domain, prefix=domain.root, at=at)
    lease = await take(db, at)
    seen: set[bytes] = set()
    while batch := [target for target in await targets(db, lease, at) if target.key not in seen]:
        visits = []
        for target in sorted(batch, key=lambda each: each.url):
            seen.add(target.key)
            said = SAYS[target.url.removeprefix(domain.root)][day]
            links = "".join(f'<a href="/{path}"></a>' for path in SAYS) if target.url == domain.root else ""
            body = "" if said is None else f"<title>{said[0]}</title><p>{said[1]}</p>{links}"
            visits.append(look(target, status(410 if said is None else 200, body.encode()), at, domain))
        await record.record_visits(db, lease, record.Batch(visits, max_pages=100))
    await claim.release(db, lease, at=at)


async def answer(db: Database, query: str) -> str:
    """Return the result of a query as a text table."""
    async with report.run_query(db, query, may_write=False) as answered:
        rows = [answered.columns, *[tuple(map(shown, row)) async for row in answered.rows]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def shown(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}Z"
    return format_value(value)


async def test_every_query_in_the_docs_gives_the_result_below_it(db: Database, shop: Domain) -> None:
    text = PAGE.read_text(encoding="utf-8")
    queries = [(found[1], found[2]) for found in QUERY.finditer(text)]
    answers = {query: await answer(db, query) for query, _ in queries}

    if os.environ.get("RECRAWL_WRITE_DOCS"):
        text = QUERY.sub(lambda found: f"```sql\n{found[1]}\n```\n\n```text\n{answers[found[1]]}\n```\n", text)
        PAGE.write_text(text, encoding="utf-8")
    assert len(queries) >= 13
    assert {query: told for query, told in queries if told != answers[query]} == {}
    assert all(len(told.splitlines()) > 2 for told in answers.values())


async def test_every_view_has_a_section_in_the_docs(db: Database) -> None:
    async with report.run_query(
        db,
        # except the views that other views use
        """SELECT relname FROM pg_class WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace
                                          AND relname NOT IN ('domain_counted_live', 'domain_counts', 'every_visit')""",
        may_write=False,
    ) as answered:
        views = {str(row[0]) async for row in answered.rows}

    assert set(re.findall(r"^## (\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)) == views
