"""recrawl prune, and the errors for old cursors and versions."""

import asyncio
import random
from pathlib import Path

import pytest

from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.store import domains, report
from crawler.store.database import open_database
from tests.commands import Recrawl, Site
from tests.store.conftest import START
from tests.store.many_versions import PAGES, live

NAME = "site.test"
SET = ("--keep-versions", "2", "--keep-daily", "2d", "--keep-weekly", "2d", "--keep-monthly", "2d")


@pytest.fixture
def lived(database_url: str) -> int:
    """Crawl a domain that changes for twelve days; return the cursor of the third day."""

    async def run() -> int:
        async with open_database(database_url) as db:
            domain = await domains.register(
                db, Authority(NAME), scheme="http", domain_settings=DomainSettings(), at=START
            )
            await live(db, domain, range(3))
            cursor = await report.read_feed_end(db)
            await live(db, domain, range(3, 12))
            return cursor

    return asyncio.run(run())


def test_a_dry_run_shows_what_prune_then_deletes(recrawl: Recrawl, lived: int) -> None:
    url = f"http://{NAME}/1"
    assert [recrawl("prune", "--json").json["domains"][0][what] for what in ("versions", "visits", "changes")] == [
        0,
        0,
        0,
    ]
    assert "recrawl prune would free" not in recrawl("domains", "show", NAME).out
    assert (
        "of texts and bodies; recrawl prune would free"
        in recrawl("domains", "set", NAME, *SET, "--keep-changes", "4d").out
    )
    shown = recrawl("domains", "show", NAME).out
    assert "the newest 2" in shown
    assert "of texts and bodies; recrawl prune would free" in shown
    storage = recrawl("domains", "show", NAME, "--json").json["storage"]
    assert (storage["is_exact"], storage["stored_bytes"] > storage["freeable_bytes"] > 1000) == (True, True)

    foretold = recrawl("prune", NAME, "--dry-run", "--json").json
    assert recrawl("prune", NAME, "--dry-run").code == 0
    done = recrawl("prune", NAME, "--json").json

    assert done["not_vacuumed"] == []
    before, after = foretold["domains"][0], done["domains"][0]
    assert before["versions"] == after["versions"] > 10
    assert before["changes"] == after["changes"] > 5
    assert recrawl("prune", "--give-back").code == 0
    thinned = recrawl("show", url, "--version", "9")
    assert thinned.code == 1
    assert "is no longer stored" in thinned.complaint
    assert "is no longer stored" in recrawl("diff", url, "--from", "9").complaint
    assert "version 3 of" in recrawl("show", url, "--version", "3").complaint
    told = recrawl("versions", url, "--json").json["versions"]
    assert [(each["number"], each["is_stored"]) for each in told][:4] == [
        (12, True),
        (11, True),
        (10, True),
        (9, False),
    ]
    assert told[-1]["number"] == 1
    assert recrawl("db", "check").code == 0
    refused = recrawl("prune", "--dry-run", "--give-back")
    assert refused.code == 2
    assert refused.complaint
    assert recrawl("prune", "other.test").code == 2
    assert recrawl("domains", "set", NAME, "--quota", "1").code == 0
    full = recrawl("prune")
    assert full.code == 1
    assert "the storage quota is exceeded by" in full.err


@pytest.mark.soak
def test_a_paused_subscription_is_named_where_it_holds_versions_back(recrawl: Recrawl, lived: int) -> None:
    assert recrawl("notify", "add", "https://example.com/told").code == 0
    assert recrawl("notify", "pause", "1").code == 0
    assert recrawl("domains", "set", NAME, *SET, "--quota", "1").code == 0
    assert "are kept for" not in recrawl("prune", "--dry-run").err  # it has read all that there is
    assert recrawl("db", "sql", "--write", "UPDATE subscription SET position = 0 RETURNING 1").code == 0

    said = recrawl("prune").err
    told = recrawl("prune", "--json").json["domains"][0]

    assert "versions are kept for subscription 1, which has not read the changes since 2026-" in said
    assert "recrawl notify resume 1, or recrawl notify remove 1" in said
    assert (told["reader"], told["deferred_versions"] > 10) == ("subscription 1", True)
    assert told["reader_since"].startswith("2026-")
    assert "recrawl notify resume 1" in told["remedy"]
    assert recrawl("notify", "resume", "1").code == 0
    assert recrawl("prune", "--json").json["domains"][0]["versions"] == told["deferred_versions"]


def test_a_crawl_ends_within_the_quota_of_what_it_has_crawled(recrawl: Recrawl, site: Site) -> None:
    words = "".join(random.Random(7).choices("abcdefgh ijklmnop", k=1000))
    assert recrawl("crawl", site.url, "--allow-private", "--delay", "0").code == 0
    assert recrawl("domains", "set", site.name, "--quota", "1").code == 0
    site.page("/one", "/two", text=words)

    said = recrawl("crawl", f"{site.url}one").err

    assert "1 version deleted to keep its storage quota" in said
    assert "the newest versions, and versions that are still to be delivered, are never deleted" in said
    assert recrawl("prune", "--dry-run", "--json").json["domains"][0]["versions"] == 0
    assert recrawl("db", "check").code == 0


@pytest.mark.soak
def test_a_cursor_that_is_too_old_is_an_error_with_the_remedy(recrawl: Recrawl, lived: int, tmp_path: Path) -> None:
    assert recrawl("changes", "--since", str(lived), "--json").code == 0
    assert recrawl("domains", "set", NAME, *SET, "--keep-changes", "4d").code == 0
    assert recrawl("prune").code == 0

    for words in (
        ("changes", "--since", str(lived)),
        ("changes", NAME, "--since", str(lived)),
        ("changes", "--since", "0"),
        ("changes", "--follow", "--since", str(lived)),
        ("export", NAME, "--to", str(tmp_path / "pages"), "--since", str(lived)),
    ):
        done = recrawl(*words)
        assert done.code == 3, words
        assert "no longer stored" in done.complaint
        assert "recrawl export" in done.complaint
    for how in ((), ("--follow",)):
        done = recrawl("changes", NAME, *how, "--since", str(lived), "--json")
        told = done.json
        assert done.code == 3
        assert (told["error"], told["since"], told["domain"]) == ("cursor_too_old", lived, NAME)
        assert told["remedy"] == f"recrawl export {NAME}"
        kept = told["stored_from"]
    assert recrawl("changes", "--json").code == 0
    found = recrawl("changes", "--since", str(kept), "--json").json
    assert found["changes"][0]["position"] == kept + 1
    assert recrawl("export", NAME, "--to", str(tmp_path / "pages"), "--since", str(kept)).code == 0
    told = recrawl("export", NAME, "--to", str(tmp_path / "all"), "--since", "0", "--json").json
    assert told["pages"] == PAGES + 1
