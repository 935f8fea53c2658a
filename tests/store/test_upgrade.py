"""Databases of earlier releases, with a crawled site in them, brought up to date and crawled on."""

from collections import Counter
from datetime import timedelta

import psycopg
import pytest
from psycopg import sql

from crawler.prune import prune
from crawler.store import domains, report
from crawler.store.database import libpq_url, open_database, upgrade
from tests.commands import serving
from tests.engine.crawls import DAY, START, coins_missing, crawl, recrawl, register, rows, versions

NAMES = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath")
# Partitions come with their table; what stands in the database of an earlier release but the revision.
TABLES = """
    SELECT c.relname FROM pg_class c
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
       AND c.relname <> 'alembic_version'
     ORDER BY c.relname <> 'domain', c.relname
"""
COLUMNS = """
    SELECT attname FROM pg_attribute
     WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""


def copied(source: str, target: str) -> int:
    """Take all rows into a database of an earlier schema, as far as it has room for them; gives how many."""
    many = 0
    with psycopg.connect(libpq_url(source)) as giver, psycopg.connect(libpq_url(target)) as taker:
        for (table,) in taker.execute(TABLES).fetchall():
            there = {name for (name,) in giver.execute(COLUMNS, (table,))}
            common = [sql.Identifier(name) for (name,) in taker.execute(COLUMNS, (table,)) if name in there]
            if not common:
                continue
            place = sql.SQL("{} ({})").format(sql.Identifier(table), sql.SQL(", ").join(common))
            taker.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
            chosen = sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(common), sql.Identifier(table))
            with (
                giver.cursor().copy(sql.SQL("COPY ({}) TO STDOUT").format(chosen)) as read,
                taker.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(place)) as write,
            ):
                for rows_read in read:
                    write.write(rows_read)
                    many += bytes(rows_read).count(b"\n")
            if table == "domain":
                taker.execute("SELECT setval(pg_get_serial_sequence('domain', 'id'), max(id)) FROM domain")
            if table == "inbox":
                taker.execute("SELECT setval(pg_get_serial_sequence('inbox', 'id'), coalesce(max(id), 1)) FROM inbox")
    return many


@pytest.mark.parametrize("revision", ["0029", "0036", "0040"])
async def test_a_crawled_site_of_an_earlier_release_is_crawled_on(
    database_url: str, empty_database_url: str, revision: str
) -> None:
    with serving() as site:
        site.page("/", *(f"/{name}" for name in NAMES), text="the way to all of it")
        for name in NAMES:
            site.page(f"/{name}", text=" ".join(f"{other}{name}" for other in NAMES))
        async with open_database(database_url) as db:
            domain = await register(db, site.url)
            await crawl(db, at=START)
            for day in range(1, 4):
                site.page("/birch", text=" ".join(f"{other}birch{'now' * day}" for other in NAMES))
                await recrawl(db, domain, at=START + day * DAY)
            await report.stamp_feed(db, at=START + 3 * DAY)
        upgrade(empty_database_url, to=revision)
        assert copied(database_url, empty_database_url) > 100

        upgrade(empty_database_url)

        site.asked.clear()
        async with open_database(empty_database_url) as db:
            (listed,) = await domains.every(db)
            assert await report.check(db) == []
            assert await coins_missing(db) == 0
            assert (await versions(db, listed.domain))["/birch"] >= 2
            await crawl(db, at=START + 3 * DAY + timedelta(minutes=5))
            assert site.asked == [], "nothing is due yet"
            await recrawl(db, listed.domain, at=START + 30 * DAY)
            asked = Counter(path for path in site.asked if path != "/robots.txt")
            assert set(asked) == {"/", *(f"/{name}" for name in NAMES)}
            await report.stamp_feed(db, at=START + 30 * DAY)
            await prune(db, [listed.domain], at=START + 400 * DAY)
            assert await report.check(db) == []
            assert await coins_missing(db) == 0
            positions = [position for (position,) in await rows(db, "SELECT position FROM feed ORDER BY position")]
            assert positions == list(range(1, len(positions) + 1))
