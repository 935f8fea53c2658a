"""Measure the disk space of a page, a version and an unchanged visit, after crawls with changes, revisits and pruning.

The documentation of a package is crawled from a loopback server, and again after adding a sentence to every page. One
more crawl finds nothing changed; SQL repeats its visits hour by hour until there are --visits of them, with other times
and cash. Finally everything is pruned and vacuumed.
"""

import argparse
import asyncio
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.harness.database import HOME, new_database
from benchmarks.harness.machine import described
from benchmarks.harness.table import table
from benchmarks.store import sizes
from benchmarks.store.sizes import Stored
from crawler.core.domain import Domain
from crawler.json_lines import get_field_values
from crawler.prune import PruneStats, prune_domain
from crawler.store import report
from crawler.store.database import Database, open_database
from crawler.store.retention.vacuum import vacuum
from tests.engine.corpus import fetch
from tests.engine.crawls import DAY, START, crawl, recrawl, register
from tests.engine.static import StaticServer

HEAD = ("stage", "what", "rows", "MB of rows", "MB of indexes", "bytes each")
SENTENCE = (
    "<p>On day {day} of this measurement the page {name} says one sentence more than it did on the day before.</p>"
)
# Each unchanged visit again, an hour later each time, with different cash.
REPEAT = """
    INSERT INTO visit (domain_id, key, at, outcome, status, reason, change, evidence, distance_bits, conditional,
                       requests, received_bytes, saved_bytes, elapsed_ms, cash, expected, due_at, shadow_price, audit,
                       parts, magnitude, rendering, added_words, added_links)
    SELECT domain_id, key, at + n * interval '1 hour', outcome, status, reason, change, evidence, distance_bits,
           conditional, requests, received_bytes, saved_bytes, elapsed_ms + (random() * 20)::int,
           (cash * random())::bigint, expected * random(), due_at + (n + random()) * interval '1 hour',
           shadow_price * (1 + n / 1000.0), audit, parts, magnitude, rendering, added_words, added_links
      FROM visit, generate_series(%(first)s::int, %(last)s::int) n
     WHERE change = 'unchanged' AND at >= %(since)s AND at < %(since)s + interval '1 hour'
"""


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    with new_database(HOME) as url, tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        shutil.copytree(fetch(given.corpus), site, copy_function=shutil.copyfile)
        stages, pruned = asyncio.run(measured(url, site, given))
    if given.json:
        shown = {
            name: [get_field_values(each) | {"each": each.each} for each in found] for name, found in stages.items()
        }
        print(json.dumps({"stages": shown, "pruned": get_field_values(pruned)}))
        return 0
    print(f"{described('postgres')}\n")
    print(table(HEAD, [row(name, each) for name, found in stages.items() for each in found]))
    print(
        f"\nPacked: {pruned.packed:,} visits; thinned out: {pruned.versions:,} versions, {pruned.freed_bytes:,} bytes"
    )
    return 0


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks storage", description=__doc__)
    parser.add_argument("--corpus", default="postgresql-doc-15", help="a Debian documentation package")
    parser.add_argument("--versions", type=int, default=3, help="changed versions of each page, not counting the first")
    parser.add_argument("--visits", type=int, default=1_000_000, help="minimum number of unchanged visits")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


async def measured(
    url: str, site: Path, given: argparse.Namespace
) -> tuple[Mapping[str, Sequence[Stored]], PruneStats]:
    """Return what is stored after each stage, and the statistics of pruning."""
    stages: dict[str, Sequence[Stored]] = {}
    async with open_database(url) as db:
        with StaticServer(site) as server:
            domain = await register(db, server.url, keep_versions=1, keep_daily=DAY, keep_weekly=DAY, keep_monthly=DAY)
            await crawl(db, at=START)
            stages["first crawl"] = await stored(db)
            for day in range(1, given.versions + 1):
                change(site, day)
                await recrawl(db, domain, at=START + day * DAY)
            stages[f"{given.versions} changes of each page"] = await stored(db)
            at = START + (given.versions + 1) * DAY
            await recrawl(db, domain, at=at)
        await repeat(db, domain, given.visits, values={"since": at})
        stages["unchanged visits"] = await stored(db)
        pruned = await prune_domain(db, domain, at=at)
        await vacuum(db, full=True)
        stages["pruned"] = await stored(db)
        assert await report.check_invariants(db) == []
    return stages, pruned


def change(site: Path, day: int) -> None:
    """Add a sentence to every page."""
    for file in site.rglob("*.html"):
        said = SENTENCE.format(day=day, name=file.stem).encode()
        file.write_bytes(file.read_bytes().replace(b"</body>", said + b"</body>"))


async def repeat(db: Database, domain: Domain, wanted: int, *, values: Mapping[str, object]) -> None:
    async with db.transaction() as connection:
        row = await (
            await connection.execute(
                "SELECT count(*) FROM visit WHERE change = 'unchanged' AND at >= %(since)s", values
            )
        ).fetchone()
    once = int(row[0]) if row else 0
    assert once, "no page was revisited"
    hours = -(-wanted // once)
    for first in range(1, hours + 1, 50):
        async with db.transaction() as connection:
            await connection.execute(REPEAT, {**values, "first": first, "last": min(first + 49, hours)})
    async with db.transaction() as connection:
        await connection.execute(
            "UPDATE domain_state SET last_visit_at = %(since)s::timestamptz + %(hours)s * interval '1 hour'"
            " + interval '9 days' WHERE domain_id = %(id)s",
            {**values, "hours": hours, "id": domain.id},
        )


async def stored(db: Database) -> Sequence[Stored]:
    async with db.pool.connection() as connection:
        await connection.set_autocommit(True)  # VACUUM cannot run in a transaction
        await connection.execute("VACUUM (ANALYZE)")
        await connection.set_autocommit(False)
    return await sizes.stored(db)


def row(stage: str, each: Stored) -> tuple[object, ...]:
    return (stage, each.name, each.rows, each.table_bytes / 1e6, each.index_bytes / 1e6, each.each or 0)
