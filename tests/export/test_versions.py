"""Exports of all versions, also of gone pages, in full and since a cursor."""

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from msgspec.structs import replace
from warcio.checker import Checker

from crawler.core.domain import Domain
from crawler.errors import CursorTooOld
from crawler.export.export import Format, RowKind, export
from crawler.prune import prune_domain
from crawler.store import domains, report
from crawler.store.database import Database
from tests.engine.crawls import DAY, START, recrawl, rows
from tests.export.test_export import GUIDE, PAGES, Site, crawled, path, taken

CHANGED = GUIDE.replace("Water them.", "Water them twice a day, and more often in the summer.")
EVERY = """SELECT p.url, s.number, version_content(s.text, s.content, s.content_ranges)
             FROM snapshot s JOIN page p USING (domain_id, key) ORDER BY key, number"""


async def lived(db: Database, site: Site, domain: Domain) -> int:
    """Change the guide and change it back, remove the pear, and return the cursor before that."""
    before = await report.read_feed_end(db)
    site.pages["/guide"] = CHANGED
    await recrawl(db, domain, at=START + DAY)
    site.pages["/guide"] = GUIDE
    site.gone.add("/fruit/pear")
    for days in (2, 3, 5, 9):  # until it is gone
        await recrawl(db, domain, at=START + days * DAY)
    await report.append_to_feed(db, at=START + 9 * DAY)
    return before


async def test_rows_have_every_version_in_order_also_of_gone_pages(db: Database) -> None:
    async with crawled(db) as (site, domain):
        cursor = await lived(db, site, domain)
        data, done = await taken(db, domain, Format.JSONL, row_kind=RowKind.VERSIONS)
        table, _ = await taken(db, domain, Format.PARQUET, row_kind=RowKind.VERSIONS)
        later, _ = await taken(db, domain, Format.JSONL, row_kind=RowKind.VERSIONS, since=cursor)
        stored = await rows(db, EVERY)

    found = [json.loads(line) for line in data.splitlines()]
    assert [(row["url"], row["version"], row["content"]) for row in found] == stored
    assert done.pages == len(found) == len(PAGES) + 2
    [pear] = [row for row in found if path(row["url"], site) == "/fruit/pear"]
    assert (pear["state"], pear["version"], "soft when nobody" in pear["content"]) == ("gone", 1, True)
    assert [row["content"] for row in pq.read_table(io.BytesIO(table)).to_pylist()] == [row["content"] for row in found]
    news = [json.loads(line) for line in later.splitlines()]
    assert [(path(row["url"], site), row["state"], row["version"]) for row in news] == [
        ("/guide", "fetched", 2),
        ("/guide", "fetched", 3),
        ("/fruit/pear", "gone", 0),
    ]
    assert ["twice a day" in row["content"] for row in news] == [True, False, False]
    assert (news[2]["content"], news[2]["version_at"], news[2]["digest"]) == ("", None, None)


async def test_versions_since_a_too_old_cursor_are_rejected(db: Database) -> None:
    async with crawled(db) as (site, domain):
        forgetful = await domains.change_settings(db, domain, replace(domain.settings, keep_changes=DAY), at=START)
        cursor = await lived(db, site, forgetful)
        await prune_domain(db, forgetful, at=START)
        with pytest.raises(CursorTooOld):
            await taken(db, domain, Format.JSONL, row_kind=RowKind.VERSIONS, since=cursor)


async def test_warc_of_all_versions_has_each_body_once(db: Database, tmp_path: Path) -> None:
    file = tmp_path / "site.warc.gz"
    async with crawled(db) as (site, domain):
        await lived(db, site, domain)
        with file.open("wb") as stream:
            await export(db, domain, Format.WARC, stream, row_kind=RowKind.VERSIONS)

    said: list[tuple[str, str, bool]] = []
    for record in ArchiveIterator(file.open("rb"), parse_http=True, verify_digests=True):
        if record.record_type != WarcRecordType.warcinfo:
            is_revisit = record.record_type == WarcRecordType.revisit
            said.append((path(record.headers["WARC-Target-URI"], site), record.headers["WARC-Date"], is_revisit))
            if record.record_type == WarcRecordType.response and said[-1][0] == "/guide":
                assert record.reader.read() in {GUIDE.encode(), CHANGED.encode()}
    guide = [(at[:10], is_revisit) for where, at, is_revisit in said if where == "/guide"]
    assert guide == [("2026-01-01", False), ("2026-01-02", False), ("2026-01-03", True)]
    assert len(said) == len(PAGES) + 2
    checker = Checker(SimpleNamespace(inputs=[str(file)], verbose=False))
    checker.process_all()
    assert checker.exit_value == 0
