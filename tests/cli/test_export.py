"""recrawl export and sync."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.commands import in_this_process
from tests.engine.static import StaticServer


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("site")
    (root / "index.html").write_text("<title>Start</title><p>Read <a href=more.html>more</a> about wool and looms.")
    (root / "more.html").write_text("<title>More</title><h1>Looms</h1><p>A loom has a warp, a weft, and much patience.")
    return root


def test_an_export_is_taken_and_followed(site: Path, database_url: str, tmp_path: Path) -> None:
    with StaticServer(site) as server, in_this_process(database_url, tmp_path) as recrawl:
        domain = server.url.removeprefix("http://")

        def run(*words: str) -> tuple[int, str, str]:
            done = recrawl(*words)
            return done.code, done.out, done.err

        assert run("crawl", server.url, "--allow-private", "--delay", "0")[0] == 0
        code, lines, said = run("export", domain)
        assert code == 0
        assert {json.loads(line)["title"] for line in lines.splitlines()} == {"Start", "More"}
        assert f"recrawl export {domain} --since " in said
        cursor = said.split("--since ")[1].split()[0]

        assert run("export", domain, "--since", cursor)[:2] == (0, "")
        code, _, said = run("export", domain, "--format", "markdown", "--to", f"{tmp_path / 'notes'}")
        assert code == 0
        assert "A loom has a warp" in (tmp_path / "notes" / "more.html.md").read_text()
        assert f"--format markdown --to {tmp_path / 'notes'} --since {cursor}" in said
        file = tmp_path / "site.warc.gz"
        code, told, _ = run("export", domain, "--format", "warc", "--to", f"{file}", "--json")
        assert (code, json.loads(told)["pages"]) == (0, 2)
        assert file.stat().st_size > 0
        code, _, said = run("export", domain, "--format", "warc", "--to", f"{file}")
        assert code == 0
        assert f"--format warc --to FILE --since {cursor}" in said

        for wrong, why in (
            (("nobody.test",), "nobody.test"),
            ((domain, "--format", "pdf"), "not a format"),
            ((domain, "--format", "markdown"), "--to FOLDER"),
            ((domain, "--format", "csv", "--chunks"), "does not support --chunks"),
            ((domain, "--since", "999999"), "the feed ends at"),
            ((domain, "--json"), "--to"),
            ((domain, "--format", "markdown", "--to", f"{file}"), "is not a folder"),
            ((domain, "--to", f"{tmp_path}"), "is a folder: use --to FILE"),
            ((domain, "--to", "."), "is a folder: use --to FILE"),
        ):
            code, out, said = run("export", *wrong)
            assert code == 2, wrong
            assert not out
            assert why in said
            assert len(said.splitlines()) == 1
        code, _, said = run("export", domain, "--to", f"{tmp_path / 'none' / 'x.jsonl'}")
        assert code == 1
        assert "cannot be written" in said
        for where in (("--to", "/dev/full"), ("--format", "markdown", "--to", f"{file / 'notes'}")):
            code, _, said = run("export", domain, *where)
            assert code == 1, where
            assert "cannot be written" in said
            assert len(said.splitlines()) == 1
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        assert run("export", domain, "--to", f"{pipe}")[0] == 0
        assert len(os.read(reading, 1 << 16).splitlines()) == 2
        os.close(reading)
        assert pipe.is_fifo()
        assert not list(tmp_path.glob("**/*.part"))


def test_an_index_is_created_synced_and_cleared_of_removed_domains(
    site: Path, database_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "pages.sqlite"
    with StaticServer(site) as server, in_this_process(database_url, tmp_path) as recrawl:
        domain = server.url.removeprefix("http://")

        def run(*words: str) -> tuple[int, str, str]:
            done = recrawl(*words)
            return done.code, done.out, done.err

        assert run("sync", f"{file}")[0] == 0
        assert run("crawl", server.url, "--allow-private", "--delay", "0")[0] == 0
        assert run("sync", f"{file}")[1] == f"{domain}: 2 pages written, 0 deleted (all pages read)\n"
        code, told, _ = run("sync", f"{file}", domain, "--json")
        assert (code, json.loads(told)["domains"][domain]["put"]) == (0, 0)
        code, told, _ = run("sync", f"{file}", domain, "--full", "--json")
        assert (code, json.loads(told)["domains"][domain]["put"]) == (0, 2)
        with closing(sqlite3.connect(file)) as index:
            query = "SELECT heading FROM chunk_text WHERE chunk_text MATCH 'weft patience'"
            assert index.execute(query).fetchall() == [("Looms",)]
        assert run("domains", "remove", domain, "--yes")[0] == 0
        assert "2 pages deleted; the domain is no longer registered" in run("sync", f"{file}")[1]

        notes = tmp_path / "notes.txt"
        notes.write_text("not made by SQLite, and longer than the head of such a file would have to be, by some lines")
        code, _, said = run("sync", f"{notes}")
        assert code == 1
        assert "cannot be written" in said
        assert len(said.splitlines()) == 1
