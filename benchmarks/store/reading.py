"""Measure queries, views and web pages over a million pages and a hundred thousand changes."""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from benchmarks.harness.database import new_database
from benchmarks.harness.table import table
from benchmarks.store.served import BAR_BYTES, BAR_S, shown
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority, Url, compute_page_key
from crawler.core.visit.state import State
from crawler.store import domains, report
from crawler.store.database import Database, open_database
from crawler.store.report import ChangeFilter, EventKind

NOW = datetime.now(UTC)  # the views use the current time
SMALL = 1000  # pages of each domain except the first, which has half of all pages
TEMPLATES = 20
LINKS = 10  # per fetched page
MADE = """
    CREATE UNLOGGED TABLE made (n bigint PRIMARY KEY, domain_id bigint, key bytea, url text, changed bool, state text)
"""
COPY = "COPY made (n, domain_id, key, url, changed) FROM STDIN"
# All states occur. A page that was never fetched has no version and no visit.
STATES = """
    UPDATE made SET state = CASE WHEN n % 20 = 7 THEN 'unfetched' WHEN n % 1000 = 11 THEN 'gone'
                                 WHEN n % 1000 = 12 THEN 'moved' WHEN n % 1000 = 13 THEN 'excluded' ELSE 'fetched' END
"""
FILL = """
    INSERT INTO prior (domain_id, no, a, b, template)
    SELECT d.id, n, 1, 30, '/' || n || '/*' FROM domain d, generate_series(1, %(templates)s) n ON CONFLICT DO NOTHING;
    INSERT INTO page (domain_id, key, url, first_seen_at, etag, rate_a, rate_b, prior_no, visits, version,
                      last_visit_at, last_good_at, status, failures, received_bytes, moved_to, reason)
    SELECT domain_id, key, url, %(first)s, CASE WHEN read THEN '"v"' END, CASE WHEN read THEN 1 + n %% 5 ELSE 0 END,
           CASE WHEN read THEN 10 + n %% 90 ELSE 0 END, 1 + n %% %(templates)s, CASE WHEN read THEN 5 ELSE 0 END,
           CASE WHEN read THEN 1 + changed::int ELSE 0 END,
           CASE WHEN state <> 'unfetched' THEN %(last)s - n %% 30 * interval '1 day' END,
           CASE WHEN read THEN %(last)s - n %% 30 * interval '1 day' END,
           CASE state WHEN 'fetched' THEN 200 WHEN 'gone' THEN 404 WHEN 'moved' THEN 301 END,
           (read AND n %% 500 = 0)::int, CASE WHEN read THEN 20000 ELSE 0 END,
           CASE WHEN state = 'moved' THEN (SELECT o.key FROM made o WHERE o.n = m.n + 1) END,
           CASE WHEN state = 'excluded' THEN 'robots' ELSE '' END
      FROM (SELECT *, state IN ('fetched', 'gone', 'moved') AS read FROM made) m;
    INSERT INTO frontier (domain_id, key, state, rank, depth, due_at)
    SELECT domain_id, key, state, n %% 500, n %% 6,
           CASE WHEN state <> 'unfetched' THEN %(last)s + n %% 60 * interval '1 day' END FROM made;
    INSERT INTO cash (domain_id, key, pool, net, history, clock)
    SELECT domain_id, key, (state <> 'unfetched')::int, 1000 * (n %% 1000), 1e6 * (n %% 1000), 1e9
      FROM made WHERE state IN ('unfetched', 'fetched');
    INSERT INTO page_links (domain_id, key, targets)
    SELECT m.domain_id, m.key, (SELECT string_agg(o.key, '' ORDER BY o.key) FROM made o
                                 WHERE o.n BETWEEN m.n + 1 AND m.n + %(links)s AND o.domain_id = m.domain_id)
      FROM made m
     WHERE m.state = 'fetched' AND EXISTS (SELECT FROM made o WHERE o.n BETWEEN m.n + 1 AND m.n + %(links)s
                                                              AND o.domain_id = m.domain_id);
    INSERT INTO content (domain_id, digest, encoding, body_bytes, data)
    SELECT domain_id, key, 'identity', 400, convert_to(repeat(url || ' ', 8), 'UTF8')
      FROM made WHERE state IN ('fetched', 'gone', 'moved');
    INSERT INTO snapshot (domain_id, key, number, at, title, language, content_type, text, body_digest, text_digest,
                          main_digest)
    SELECT m.domain_id, m.key, v, %(first)s + (n %% 1000000 * interval '1 second' + (v - 1) * interval '1 day') * 7,
           'Page ' || n, 'en', 'text/html', repeat('some words of page ' || n || ' ', 12), key, key, key
      FROM made m, generate_series(1, 1 + m.changed::int) v WHERE m.state IN ('fetched', 'gone', 'moved');
    INSERT INTO visit (domain_id, key, at, outcome, status, change, evidence, conditional, requests, received_bytes,
                       saved_bytes, elapsed_ms)
    SELECT domain_id, key, at, 'fetched', 200, CASE WHEN number = 1 THEN 'added' ELSE 'changed' END, 'blocks', false, 1,
           20000, 0, 50
      FROM snapshot;
    INSERT INTO visit (domain_id, key, at, outcome, status, reason, change, evidence, conditional, requests,
                       received_bytes, saved_bytes, elapsed_ms)
    SELECT domain_id, key, %(last)s - n %% 30 * interval '1 day',
           CASE WHEN state = 'excluded' THEN 'unreached' WHEN state = 'fetched' THEN 'not_modified' ELSE 'fetched' END,
           CASE state WHEN 'fetched' THEN 304 WHEN 'gone' THEN 404 WHEN 'moved' THEN 301 END,
           CASE WHEN state = 'excluded' THEN 'robots' ELSE '' END,
           CASE state WHEN 'fetched' THEN 'unchanged' WHEN 'excluded' THEN 'unknown' ELSE state END, 'not_modified',
           true, (state <> 'excluded')::int, 300, 20000, 30
      FROM made WHERE state <> 'unfetched' ON CONFLICT DO NOTHING;
    INSERT INTO event (domain_id, number, at, key, url, change, version, parts, blocks, magnitude)
    SELECT s.domain_id, row_number() OVER (PARTITION BY s.domain_id ORDER BY s.at, m.n), s.at, s.key, m.url,
           CASE WHEN s.number = 1 THEN 'added' ELSE 'changed' END, s.number,
           CASE WHEN s.number = 1 THEN '' ELSE 'text' END,
           CASE WHEN s.number > 1 THEN '[["text", "costs four", "costs five"]]'::jsonb END,
           CASE WHEN s.number > 1 THEN 0.1 END
      FROM snapshot s JOIN made m ON m.domain_id = s.domain_id AND m.key = s.key;
    INSERT INTO feed (position, domain_id, number, appended_at)
    SELECT row_number() OVER (ORDER BY at, domain_id, number), domain_id, number, at FROM event;
    UPDATE domain_state s
       SET clock = 2e9, dormant = 0, total_cash = 10 ^ 15, last_visit_at = %(last)s, tracked = c.many,
           next_event = c.many * 2, stamped_event = c.many * 2
      FROM (SELECT domain_id, count(*) AS many FROM made GROUP BY domain_id) c WHERE c.domain_id = s.domain_id;
    UPDATE pool p SET pages = c.many
      FROM (SELECT domain_id, (state <> 'unfetched')::int AS pool, count(*) AS many
              FROM made WHERE state IN ('unfetched', 'fetched') GROUP BY 1, 2) c
     WHERE c.domain_id = p.domain_id AND p.pool = c.pool;
    DROP TABLE made
"""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks reading", description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000_000, metavar="PAGES", help="total number of pages")
    parser.add_argument(
        "--changes", type=int, default=100_000, metavar="CHANGES", help="number of changes, in addition to added pages"
    )
    parser.add_argument("--times", type=int, default=3, help="number of runs, of which the best counts")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="recrawl-bench-") as home:
        Path(home).chmod(0o755)
        with new_database(Path(home)) as url:
            great, rows = asyncio.run(measured(url, options))
            pages = list(shown(url, Path(home) / "served", great, "small0.test", pages=options.pages))
    print(table(["what", "rows", "best s", "first s"], rows))
    print()
    print(
        table(
            ["page", "status", "bytes", "first s", "again s", "server MB"],
            [(each.what, each.status, each.size, each.first_s, each.again_s, each.resident / 1e6) for each in pages],
        )
    )
    slow = [str(row[0]) for row in rows if float(str(row[2])) > BAR_S]
    slow += [each.what for each in pages if not each.is_within]
    print(f"over a limit: {', '.join(slow)}" if slow else f"all within {BAR_S:g} s and {BAR_BYTES / 1e6:g} MB")
    return 1 if slow else 0


async def measured(url: str, options: argparse.Namespace) -> tuple[Domain, list[tuple[object, ...]]]:
    async with open_database(url, max_connections=2) as db:
        great = await filled(db, pages=options.pages, changes=options.changes)
        rows: list[tuple[object, ...]] = []
        for name, work in queries(db, great, pages=options.pages):
            seconds, many = [], 0
            for _ in range(options.times):
                began = time.perf_counter()
                many = await work()
                seconds.append(time.perf_counter() - began)
            rows.append((name, many, min(seconds), seconds[0]))
        return great, rows


async def filled(db: Database, *, pages: int, changes: int) -> Domain:
    """Add domains with `pages` pages in total, half of them in the first domain."""
    small = max(pages // 2 // SMALL, 1)
    names = ["great.test", *(f"small{n}.test" for n in range(small))]
    every = [
        await domains.register(db, Authority(name), scheme="http", domain_settings=DomainSettings(), at=NOW)
        for name in names
    ]
    step = max(pages // max(changes, 1), 1)

    def rows() -> Iterator[tuple[object, ...]]:
        for n in range(1, pages + 1):
            domain = every[0] if n <= pages // 2 else every[1 + n % small]
            page = Url(f"{domain.root}{n % TEMPLATES}/page{n}")
            yield n, domain.id, compute_page_key(page), page, n % step == 0

    async with db.transaction() as connection:
        await connection.execute(MADE.encode())
        async with connection.cursor() as cursor, cursor.copy(COPY) as copy:
            for row in rows():
                await copy.write_row(row)
        await connection.execute(STATES)
    values = {"first": NOW - timedelta(days=100), "last": NOW, "templates": TEMPLATES, "links": LINKS}
    for statement in FILL.split(";\n"):
        async with db.transaction() as connection:
            await connection.execute(statement.encode(), values if "%" in statement else None)
    for domain in every:  # as the hourly plan does
        await report.store_figures(db, domain, at=NOW)
    async with db.pool.connection() as plain:
        await plain.set_autocommit(True)
        await plain.execute("VACUUM ANALYZE")
        await plain.set_autocommit(False)
    return every[0]


def queries(db: Database, great: Domain, *, pages: int) -> Iterator[tuple[str, Callable[[], Awaitable[int]]]]:
    """Yield queries by name, each with a function that runs it and returns the number of rows."""
    news = ChangeFilter(kinds=frozenset(EventKind) - {EventKind.ADDED})
    step = pages // 2
    page = Url(f"{great.root}{step % TEMPLATES}/page{step}")
    then = NOW - timedelta(days=50)

    async def sized(work: Awaitable[Sequence[object]]) -> int:
        return len(await work)

    async def counted(wanted: ChangeFilter) -> int:
        return sum((await report.count_changes(db, wanted)).values())

    async def one(work: Awaitable[object | None]) -> int:
        return int(await work is not None)

    async def sql(statement: str) -> int:
        async with report.run_query(db, statement, may_write=False) as answered:
            return len([row async for row in answered.rows])

    of_great = replace(news, domain_id=great.id)
    late = replace(news, since=NOW - timedelta(days=25))
    place = (then, pages)
    yield "newest changes", lambda: sized(report.list_newest_changes(db, news, max_count=50))
    yield (
        "newest changes, in the middle",
        lambda: sized(report.list_newest_changes(db, news, before=place, max_count=50)),
    )
    yield "newest changes of a domain", lambda: sized(report.list_newest_changes(db, of_great, max_count=50))
    yield (
        "newest changes of a page",
        lambda: sized(
            report.list_newest_changes(db, ChangeFilter(domain_id=great.id, key=compute_page_key(page)), max_count=50)
        ),
    )
    yield (
        "newest changes under a prefix",
        lambda: sized(report.list_newest_changes(db, replace(of_great, prefix=f"{great.root}10/"), max_count=50)),
    )
    yield (
        "newest added pages",
        lambda: sized(report.list_newest_changes(db, ChangeFilter(kinds=frozenset({EventKind.ADDED})), max_count=50)),
    )
    yield "counts of all changes", lambda: counted(ChangeFilter())
    yield "counts of 25 days", lambda: counted(replace(late, kinds=frozenset(EventKind)))
    yield "feed after a cursor", lambda: sized(report.read_feed(db, ChangeFilter(after=pages // 2), max_count=1000))
    yield "feed of 25 days", lambda: sized(report.read_feed(db, late, max_count=1000))
    yield "versions of a page", lambda: sized(report.list_versions(db, great, page))
    yield "a page at a time in the past", lambda: one(report.read_version(db, great, page, at=then))
    yield "a domain at a time in the past", lambda: sized(report.list_pages_at(db, great, at=then, max_count=100))
    yield "important pages", lambda: sized(report.list_top_pages(db, great, top=20, at=NOW))
    yield "failing pages", lambda: sized(report.list_top_pages(db, great, top=20, at=NOW, ranking=report.FAILING))
    yield "gone pages", lambda: sized(report.list_top_pages(db, great, top=20, at=NOW, ranking=State.GONE))
    yield "report of a domain", lambda: one(report.read_domain_report(db, great, at=NOW, window=timedelta(days=30)))
    month = [NOW - timedelta(days=days) for days in range(30)]
    yield "freshness over time", lambda: sized(report.read_freshness_history(db, great, instants=month))
    yield "near-duplicates", lambda: sized(report.read_largest_groups(db, great, at=NOW))
    yield "report_domain", lambda: sql("SELECT * FROM report_domain")
    yield "report_freshness", lambda: sql("SELECT * FROM report_freshness WHERE grouped_by = 'domain'")
    yield "report_freshness of a domain", lambda: sql(f"SELECT * FROM report_freshness WHERE domain_id = {great.id}")
    yield "page_text, 100 rows", lambda: sql(f"SELECT * FROM page_text WHERE domain_id = {great.id} LIMIT 100")
    yield "page_versions, 100 rows", lambda: sql(f"SELECT * FROM page_versions WHERE domain_id = {great.id} LIMIT 100")
