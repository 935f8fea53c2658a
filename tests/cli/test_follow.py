"""recrawl changes --follow and sync --follow: changes arrive as they are found, and can be continued."""

import json
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.commands import RECRAWL, Recrawl, environ
from tests.engine.static import StaticServer
from tests.patience import PATIENCE_S


def test_changes_appear_during_a_crawl_and_continue_from_a_cursor(
    recrawl: Recrawl, database_url: str, tmp_path: Path
) -> None:
    root = tmp_path / "site"
    root.mkdir()
    (root / "index.html").write_text("<title>Start</title><p>Wool costs four crowns a pound this week, and no less.")
    with StaticServer(root) as server:
        domain = server.url.removeprefix("http://")
        assert recrawl("crawl", server.url, "--allow-private").code == 0
        following = subprocess.Popen(
            [str(RECRAWL), "changes", domain, "--follow", "--json", "--since", "0"],
            env=environ(database_url, tmp_path),
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert following.stdout is not None
            first = json.loads(following.stdout.readline())
            (root / "index.html").write_text(
                "<title>Start</title><p>Wool costs nine crowns a pound this week, and no less."
            )
            recrawl("refresh", domain)
            assert recrawl("crawl", domain).code == 0
            second = json.loads(following.stdout.readline())
        finally:
            following.send_signal(signal.SIGINT)
            code = following.wait(PATIENCE_S)

    assert code == 128 + signal.SIGINT
    assert (first["change"], second["change"]) == ("added", "changed")
    assert second["position"] == first["position"] + 1
    assert second["blocks"][0]["after"].startswith("Wool costs nine crowns")
    later = recrawl("changes", "--since", str(first["position"]), "--json").json["changes"]
    assert [item["position"] for item in later] == [second["position"]]


def test_follow_cannot_be_combined_with_a_limit(recrawl: Recrawl) -> None:
    done = recrawl("changes", "--follow", "--limit", "3")

    assert done.code == 2
    assert "--follow cannot be combined" in done.complaint


@contextmanager
def syncing(target: Path, database_url: str, home: Path, *names: str) -> Iterator[tuple[Callable[[], Any], list[int]]]:
    """A running command: its next output and, after SIGTERM, its exit code."""
    process = subprocess.Popen(
        [str(RECRAWL), "sync", str(target), *names, "--follow", "--json"],
        env=environ(database_url, home),
        stdout=subprocess.PIPE,
        text=True,
    )
    stdout, codes = process.stdout, list[int]()
    assert stdout is not None
    try:
        yield lambda: json.loads(stdout.readline()), codes
    finally:
        process.terminate()
        codes.append(process.wait(PATIENCE_S))
        stdout.close()


def texts(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as index:
        return [text for (text,) in index.execute("SELECT text FROM chunk ORDER BY text")]


@pytest.mark.soak
def test_an_index_is_kept_in_step_until_it_is_ended_and_again_from_there(
    recrawl: Recrawl, database_url: str, tmp_path: Path
) -> None:
    root, file = tmp_path / "site", tmp_path / "pages.sqlite"
    root.mkdir()

    def say(price: str) -> None:
        (root / "index.html").write_text(
            f"<title>Start</title><p>Wool costs {price} crowns a pound this week, no less."
        )

    def run(*words: str) -> None:
        assert recrawl(*words).code == 0

    say("four")
    with StaticServer(root) as server:
        domain = server.url.removeprefix("http://")
        run("crawl", server.url, "--allow-private")

        with syncing(file, database_url, tmp_path) as (told, codes):
            first = told()
            assert texts(file) == ["Wool costs four crowns a pound this week, no less."]
            say("nine")
            run("refresh", domain)
            run("crawl", domain)
            second = told()
            assert texts(file) == ["Wool costs nine crowns a pound this week, no less."]
        assert codes == [0]

        say("ten")
        run("refresh", domain)
        run("crawl", domain)
        with syncing(file, database_url, tmp_path, domain) as (told, codes):
            third = told()
            assert texts(file) == ["Wool costs ten crowns a pound this week, no less."]
            run("domains", "remove", domain, "--yes")
            gone = told()
            assert texts(file) == []
        assert codes == [0]

    rounds = [each["domains"][domain] for each in (first, second, third)]
    assert [(each["put"], each["is_anew"]) for each in rounds] == [(1, True), (1, False), (1, False)]
    assert (gone["domains"], gone["unregistered"]) == ({}, {domain: 1})


def test_without_domains_it_waits_and_stops_immediately_on_a_signal(database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "pages.sqlite"
    with syncing(file, database_url, tmp_path) as (told, codes):
        assert told() == {"index": str(file), "domains": {}, "unregistered": {}}
    assert codes == [0]
