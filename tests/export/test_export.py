"""Exports of a crawled site, read with independent libraries."""

import csv
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from fastwarc.warc import ArchiveIterator, WarcRecordType
from warcio.checker import Checker

from crawler.core.domain import Domain
from crawler.core.http.urls import Url
from crawler.errors import CrawlerError
from crawler.export.export import ExportResult, Format, RowKind, export
from crawler.store import report
from crawler.store.database import Database
from tests.engine.crawls import DAY, START, answered, answering, crawl, recrawl, register
from tests.engine.crawls import rows as rows_of

HOUR = timedelta(hours=1)
EVIL = '=HYPERLINK("http://127.0.0.1/","gratis")'


@dataclass
class Site:
    """A site of a few pages that a test may change. url: its root."""

    pages: dict[str, str]
    url: str = ""
    gone: set[str] = field(default_factory=set)

    def respond(self, target: str) -> bytes:
        if target in self.gone or target not in self.pages:
            return answered(404, b"nothing here")
        return answered(200, self.pages[target].encode()).replace(b"\r\n\r\n", b"\r\nX-Kept: by the house\r\n\r\n", 1)


GUIDE = """<!DOCTYPE html><html lang="en"><head><title>Guide</title></head><body>
<nav><a href="/">Home</a> Somewhere <a href="/other?x=1">Other</a></nav>
<main><h1>Guide</h1><p>First a word about <b>apples</b> and what they cost in winter.</p>
<h2>Setting up</h2><p>Put the basket <a href="fruit/pear">under the pear tree</a>, and wait until morning comes.</p>
<pre><code># not a heading
pick --all</code></pre>
<h2>Care</h2><p>Water them.</p><table><tr><th>Kind</th><th>Days</th></tr><tr><td>Boskoop</td><td>90</td></tr></table>
</main><footer>Imprint</footer><script>var x = "unseen";</script></body></html>"""

PAGES = {
    "/": f"<title>{EVIL}</title><p>The start of it all is <a href=/guide>the guide</a>, <a href=/fruit/pear>a pear</a>,"
    " <a href='/other?x=1'>others</a>, <a href=/twin>and</a> <a href=/fruit/>all of them</a>.",
    "/guide": GUIDE,
    "/fruit/pear": "<title>Pear</title><p>A pear is green or yellow, and soft when nobody has waited.",
    "/fruit/": "<title>Fruit</title><p>Everything that hangs from trees and may be eaten raw by those who climb.",
    "/other?x=1": "<title>Others</title><p>Plums, cherries, quinces that want cooking and many more that have none.",
    "/twin": "<title>Pear</title><p>A pear is green or yellow, and soft when nobody has waited.",
}


@asynccontextmanager
async def crawled(db: Database) -> AsyncIterator[tuple[Site, Domain]]:
    site = Site(dict(PAGES))
    async with answering(site.respond) as url:
        site.url = url
        domain = await register(db, url)
        await crawl(db, at=START)
        await report.append_to_feed(db, at=START)
        yield site, domain


async def taken(db: Database, domain: Domain, form: Format, **how: Any) -> tuple[bytes, ExportResult]:
    stream = io.BytesIO()
    done = await export(db, domain, form, stream, **how)
    return stream.getvalue(), done


def path(url: str, site: Site) -> str:
    return "/" + url.removeprefix(site.url)


async def texts(db: Database, domain: Domain, site: Site) -> dict[str, str]:
    """Return the main text of each page in the store."""
    found = {}
    for each in site.pages:
        version = await report.read_version(db, domain, Url(domain.root + each.removeprefix("/")))
        assert version is not None
        found[each] = version.content
    return found


async def test_json_lines_have_every_page_with_its_text(db: Database) -> None:
    async with crawled(db) as (site, domain):
        data, done = await taken(db, domain, Format.JSONL)
        rows = [json.loads(line) for line in data.splitlines()]

        assert {path(row["url"], site): row["content"] for row in rows} == await texts(db, domain, site)
    assert done.pages == len(rows) == len(PAGES)
    assert done.cursor == await report.read_feed_end(db)
    guide = next(row for row in rows if row["url"].endswith("/guide"))
    assert (guide["title"], guide["language"], guide["state"], guide["version"]) == ("Guide", "en", "fetched", 1)
    assert "Imprint" not in guide["content"]
    assert guide["version_at"].startswith("2026-01-01T00:00:0")


async def test_csv_equals_json_but_has_no_formulas(db: Database) -> None:
    async with crawled(db) as (site, domain):
        data, _ = await taken(db, domain, Format.CSV)
        lines, _ = await taken(db, domain, Format.JSONL)
        rows = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
        as_json = {row["url"]: row for row in map(json.loads, lines.splitlines())}

        for row in rows:
            other = as_json[row["url"]]
            assert row["content"] == other["content"]
            assert row["title"] == (f"'{EVIL}" if row["url"] == site.url else other["title"])
    assert len(rows) == len(PAGES)


async def test_parquet_has_the_same_rows_with_types(db: Database, tmp_path: Path) -> None:
    async with crawled(db) as (_, domain):
        data, _ = await taken(db, domain, Format.PARQUET)
        lines, _ = await taken(db, domain, Format.JSONL)
    rows = pq.read_table(io.BytesIO(data)).to_pylist()
    as_json = [json.loads(line) for line in lines.splitlines()]

    assert [row["content"] for row in rows] == [row["content"] for row in as_json]
    assert [row["version_at"].isoformat() for row in rows] == [row["version_at"] for row in as_json]
    assert [row["importance"] for row in rows] == [row["importance"] for row in as_json]


async def test_warc_is_valid_and_has_the_responses_of_the_server(db: Database, tmp_path: Path) -> None:
    async with crawled(db) as (site, domain):
        file = tmp_path / "site.warc.gz"
        with file.open("wb") as stream:
            done = await export(db, domain, Format.WARC, stream)
    kinds: list[WarcRecordType] = []
    bodies: dict[str, bytes] = {}
    for record in ArchiveIterator(file.open("rb"), parse_http=True, verify_digests=True):
        kinds.append(record.record_type)
        if record.record_type == WarcRecordType.response:
            assert record.http_headers.status_code == 200
            assert record.http_content_type == "text/html"
            assert record.http_headers["X-Kept"] == "by the house"
            bodies[record.headers["WARC-Target-URI"]] = record.reader.read()
        if record.record_type == WarcRecordType.revisit:
            first = record.headers["WARC-Refers-To-Target-URI"]
            bodies[record.headers["WARC-Target-URI"]] = bodies[first]

    assert done.pages == len(PAGES)
    assert kinds[0] == WarcRecordType.warcinfo
    assert kinds.count(WarcRecordType.revisit) == 1  # of the duplicate
    assert {path(url, site): body.decode() for url, body in bodies.items()} == PAGES
    assert passes_check(file)


def passes_check(file: Path) -> bool:
    """Return the output of `warcio check`."""
    checker = Checker(SimpleNamespace(inputs=[str(file)], verbose=False))
    checker.process_all()
    return bool(checker.exit_value == 0)


async def test_markdown_has_a_file_per_page_with_only_its_content(db: Database, tmp_path: Path) -> None:
    async with crawled(db) as (site, domain):
        await export(db, domain, Format.MARKDOWN, tmp_path)
        files = read(tmp_path)
        known = {}
        for name, text in files.items():
            _, front, body = text.split("---\n", 2)
            facts = yaml.safe_load(front)
            known[path(facts["url"], site)] = (name, facts, body)

        assert set(known) == set(PAGES)
        name, facts, body = known["/guide"]
        assert name == "guide.md"
        assert facts["title"] == "Guide"
        assert facts["version_at"] >= START
        for expected in (
            "# Guide",
            "## Setting up",
            "**apples**",
            "# not a heading",
            "| Boskoop",
            f"({site.url}fruit/pear)",
        ):
            assert expected in body
        for unwanted in ("Somewhere", "Imprint", "unseen"):
            assert unwanted not in body
        assert known["/"][1]["title"] == EVIL


def read(folder: Path) -> dict[str, str]:
    return {file.relative_to(folder).as_posix(): file.read_text() for file in folder.rglob("*.md")}


async def test_chunks_have_their_headings_and_keep_their_ids(db: Database) -> None:
    async with crawled(db) as (site, domain):
        before, _ = await taken(db, domain, Format.JSONL, row_kind=RowKind.CHUNKS)
        site.pages["/guide"] = GUIDE.replace("and wait until morning comes", "and go home, for it will take all night")
        await recrawl(db, domain, at=START + DAY)
        after, _ = await taken(db, domain, Format.JSONL, row_kind=RowKind.CHUNKS)
        table, _ = await taken(db, domain, Format.PARQUET, row_kind=RowKind.CHUNKS)

    def guide(data: bytes) -> dict[tuple[str, ...], dict[str, Any]]:
        rows = (json.loads(line) for line in data.splitlines())
        return {tuple(row["heading"]): row for row in rows if row["url"].endswith("/guide")}

    assert list(guide(before)) == [("Guide",), ("Guide", "Setting up"), ("Guide", "Care")]
    assert "# not a heading" in guide(before)["Guide", "Setting up"]["text"]
    assert {key: row["chunk"] for key, row in guide(before).items()} == {
        key: row["chunk"] for key, row in guide(after).items()
    }
    assert [key for key, row in guide(before).items() if row["text"] != guide(after)[key]["text"]] == [
        ("Guide", "Setting up")
    ]
    rows = pq.read_table(io.BytesIO(table)).to_pylist()
    assert [row["text"] for row in rows] == [json.loads(line)["text"] for line in after.splitlines()]


async def test_export_since_a_cursor_has_changed_and_removed_pages(db: Database, tmp_path: Path) -> None:
    async with crawled(db) as (site, domain):
        done = await export(db, domain, Format.MARKDOWN, tmp_path)
        assert (tmp_path / "fruit" / "pear.md").exists()
        site.pages["/guide"] = GUIDE.replace("Water them.", "Water them twice a day, and more often in the summer.")
        site.gone.add("/fruit/pear")
        for days in (1, 2, 4, 8):  # until it is gone
            await recrawl(db, domain, at=START + days * DAY)
        await report.append_to_feed(db, at=START + 9 * DAY)

        data, later = await taken(db, domain, Format.JSONL, since=done.cursor)
        await export(db, domain, Format.MARKDOWN, tmp_path, since=done.cursor)
        rows = {path(row["url"], site): row for row in map(json.loads, data.splitlines())}
        nothing, _ = await taken(db, domain, Format.JSONL, since=later.cursor)

    assert {(name, row["state"]) for name, row in rows.items()} == {("/guide", "fetched"), ("/fruit/pear", "gone")}
    assert "twice a day" in rows["/guide"]["content"]
    assert rows["/fruit/pear"]["content"] == ""
    assert not nothing
    assert not (tmp_path / "fruit" / "pear.md").exists()
    assert "twice a day" in (tmp_path / "guide.md").read_text()


async def test_second_export_removes_old_pages_and_no_other_files(db: Database, tmp_path: Path) -> None:
    own = {"notes.md": "mine", "fruit/mine.md": "---\ntitle: mine\n---\n", "fruit/other.md": "---\nurl: /a\n---\n"}
    other = "---\nurl: https://other.example/pear\n---\n"
    async with crawled(db) as (site, domain):
        await export(db, domain, Format.MARKDOWN, tmp_path)
        for name, text in own.items():
            (tmp_path / name).write_text(text)
        (tmp_path / "pear.md").write_text(other)
        (tmp_path / ".recrawl-x1").write_text("half of a pa")
        site.gone.add("/fruit/pear")
        for days in (1, 2, 4, 8):  # until it is gone
            await recrawl(db, domain, at=START + days * DAY)
        await export(db, domain, Format.MARKDOWN, tmp_path)

    files = read(tmp_path)
    assert own.items() <= files.items()
    assert files["pear.md"] == other
    assert len(files) == len(PAGES) - 1 + len(own) + 1
    assert "fruit/pear.md" not in files
    assert not (tmp_path / ".recrawl-x1").exists()


async def test_two_domains_cannot_share_a_markdown_folder(db: Database, tmp_path: Path) -> None:
    async with crawled(db) as (_, domain):
        guide = tmp_path / "guide.md"
        for text, whose in (
            ("---\nurl: https://other.example/guide\n---\n", "other.example"),
            ("mine", "not written by an export"),
        ):
            guide.write_text(text)
            with pytest.raises(CrawlerError, match=f"{whose}.*a separate folder"):
                await export(db, domain, Format.MARKDOWN, tmp_path)
            assert guide.read_text() == text


async def test_warc_keeps_the_response_after_its_visit_was_deleted(db: Database, tmp_path: Path) -> None:
    file = tmp_path / "site.warc.gz"
    async with crawled(db) as (_, domain):
        assert await rows_of(db, "DELETE FROM visit RETURNING 1")
        with file.open("wb") as stream:
            await export(db, domain, Format.WARC, stream)

    answers = [
        (record.http_headers.status_code, record.http_headers["X-Kept"])
        for record in ArchiveIterator(file.open("rb"), parse_http=True)
        if record.record_type == WarcRecordType.response
    ]
    assert answers == [(200, "by the house")] * (len(PAGES) - 1)
    assert passes_check(file)


async def test_deeply_nested_page_has_its_text_in_markdown(db: Database, tmp_path: Path) -> None:
    deep = (
        "<title>Deep</title>" + "<blockquote>" * 3000 + "What stands at the very bottom of it all is a word of thanks."
    )
    site = Site({"/": deep})
    async with answering(site.respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)
        await export(db, domain, Format.MARKDOWN, tmp_path)

    assert ["a word of thanks" in text for text in read(tmp_path).values()] == [True]


@pytest.mark.parametrize("form", [Format.JSONL, Format.CSV, Format.PARQUET, Format.WARC])
async def test_domain_without_pages_gives_an_empty_export(db: Database, form: Format) -> None:
    domain = await register(db, "http://127.0.0.1:9/")

    data, done = await taken(db, domain, form)

    assert done == ExportResult(0, 0)
    assert (form is Format.JSONL) == (not data)


async def test_broken_body_does_not_stop_the_export(db: Database) -> None:
    async with crawled(db) as (site, domain):
        async with db.transaction() as connection:
            await connection.execute(
                "UPDATE content SET encoding = 'zstd', data = '\\x00ff' WHERE domain_id = %s", (domain.id,)
            )

        data, done = await taken(db, domain, Format.JSONL, row_kind=RowKind.CHUNKS)

        rows = [json.loads(line) for line in data.splitlines()]
        assert done.pages == len(PAGES)
        assert {row["url"] for row in rows} == {domain.root + each.removeprefix("/") for each in site.pages}
