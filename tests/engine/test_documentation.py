"""A real corpus: Debian's Postgres documentation on a real web server, crawled by the real command."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crawler.core.opic.opic import WINDOW_PASSES, compute_importance
from crawler.store.database import Database, open_database
from tests.engine.corpus import copied, corpus, file_of, linked_pages
from tests.engine.crawls import coins_missing, command, json_of, rows
from tests.engine.static import StaticServer
from tests.exact import power_iteration, spearman
from tests.patience import SLOW

pytestmark = [pytest.mark.corpus, SLOW, pytest.mark.xdist_group("documentation")]
PASSES = 10
ANCHORS = {"/index.html", "/sql-commands.html"}  # the table of contents and the list of all commands


def seconds_later(path: Path, seconds: int) -> None:
    """Make a file look as if it was written this much later."""
    then = path.stat().st_mtime + seconds
    os.utime(path, (then, then))


@pytest.mark.soak
async def test_three_crawls_of_real_documentation(database_url: str, tmp_path: Path) -> None:
    root = copied(corpus("postgresql-doc-15"), tmp_path / "site")
    expected = linked_pages(root)
    with StaticServer(root) as server:

        def recrawl(*arguments: str) -> Any:
            server.clear()
            return json_of(command(*arguments, "--json", database_url=database_url, home=tmp_path))

        first = recrawl("crawl", f"{server.url}/", "--allow-private")
        first_bytes = server.counts["body_bytes"]
        recrawl("refresh", server.url)
        second = recrawl("crawl", server.url)
        entries = [entry for entry in server.entries if entry.path != "/robots.txt"]
        async with open_database(database_url) as db:
            stored = {"/" + row[0].split("/", 3)[3] for row in await rows(db, "SELECT url FROM page WHERE version = 1")}
            assert await coins_missing(db) == 0

        assert expected <= stored
        assert first["added"] == len(stored)
        assert len(entries) == len(stored)
        validator_checks = [entry for entry in entries if not entry.is_conditional]
        assert 5 <= len(validator_checks) < 0.03 * len(entries)
        assert server.counts["body_bytes"] < 0.05 * first_bytes
        assert (second["parsed_bodies"], second["changed"]) == (0, 0)
        assert second["not_modified"] == len(stored) - len(validator_checks)

        touched = sorted(path for path in expected if re.fullmatch(r"/app-[a-z]+\.html", path))[:3]
        for path in touched:
            seconds_later(file_of(root, path), 60)
        for path in touched[:2]:
            file = file_of(root, path)
            text = file.read_text(encoding="utf-8")
            assert "database" in text
            file.write_text(text.replace(" database ", " databank ", 1), encoding="utf-8")
        recrawl("refresh", server.url)
        third = recrawl("crawl", server.url)
        in_vain = [entry.path for entry in server.entries if entry.is_conditional and entry.status == 200]
        changes = recrawl("changes", "--limit", "100000")
        checked = command("db", "check", "--json", database_url=database_url, home=tmp_path)

    assert (third["changed"], third["cosmetic"], third["failed"]) == (2, 0, 0)
    assert set(in_vain) <= set(touched)
    changed = {"/" + each["url"].split("/", 3)[3] for each in changes["changes"] if each["change"] == "changed"}
    assert changed == set(touched[:2])
    assert checked.returncode == 0, checked.stdout


@pytest.mark.soak
async def test_after_ten_passes_importance_is_what_power_iteration_finds(database_url: str, tmp_path: Path) -> None:
    with StaticServer(corpus("postgresql-doc-15")) as server:
        json_of(
            command("crawl", f"{server.url}/", "--allow-private", "--json", database_url=database_url, home=tmp_path)
        )
        for _ in range(PASSES - 1):
            for arguments in (("refresh", server.url), ("crawl", server.url)):
                json_of(command(*arguments, "--json", database_url=database_url, home=tmp_path))
        top = json_of(command("pages", server.url, "--limit", "10", "--json", database_url=database_url, home=tmp_path))
        checked = command("db", "check", database_url=database_url, home=tmp_path)
    async with open_database(database_url) as db:
        found, graph = await estimates(db), await stored_graph(db)

    exact = power_iteration(graph)
    ours = np.array([found[key] for key in exact])
    best = np.array(list(exact.values()))
    assert checked.returncode == 0, checked.stdout
    assert spearman(ours, best) >= 0.95
    most_important = {"/" + each["url"].split("/", 3)[3] for each in top["pages"]}
    assert most_important >= ANCHORS


async def estimates(db: Database) -> dict[bytes, float]:
    found = await rows(
        db,
        """SELECT c.key, c.history, c.net + q.dividend, c.clock, s.clock, s.total_cash - s.dormant, count(*) OVER ()
             FROM cash c JOIN pool q USING (domain_id, pool) JOIN domain_state s USING (domain_id)""",
    )
    return {
        key: compute_importance(
            history, cash, clock_last=last, clock_now=now, pages=pages, window=WINDOW_PASSES * circulating
        )
        for key, history, cash, last, now, circulating, pages in found
    }


async def stored_graph(db: Database) -> Mapping[bytes, list[bytes]]:
    links = dict(await rows(db, "SELECT key, targets FROM page_links"))
    keys = [row[0] for row in await rows(db, "SELECT key FROM cash")]
    known = set(keys)
    return {
        key: [to for n in range(0, len(links.get(key, b"")), 16) if (to := links[key][n : n + 16]) in known]
        for key in keys
    }
