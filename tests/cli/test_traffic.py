"""recrawl traffic."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.engine.crawls import command
from tests.engine.doors import door
from tests.engine.test_keys import PAGES, site


@pytest.mark.soak
async def test_the_hour_of_a_crawl_is_shown_at_once_and_later(database_url: str, tmp_path: Path) -> None:
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()

    async def run(*arguments: str) -> str:
        done = await asyncio.to_thread(command, *arguments, database_url=database_url, home=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    async with door(site) as server:
        name = f"127.0.0.1:{server.port}"
        nothing = await run("traffic")
        await run("crawl", server.url, "--allow-private")
        document = json.loads(await run("traffic", name, "--at", later, "--json"))
        shown = await run("traffic")

    assert nothing.startswith("There were no visits in the 24 hours before")
    # The pages are similar, so the crawl may probe for a soft 404; that request counts, too.
    assert {"/", *(f"/{name}" for name in PAGES)} <= set(server.pages)
    assert sum(hour["requests"] for hour in document["hours"]) == len(server.pages)
    assert sum(hour["visits"] for hour in document["hours"]) == 1 + len(PAGES)
    assert {(hour["domain"], hour["anomaly"], hour["errors"]) for hour in document["hours"]} == {(name, "", 0)}
    assert name in shown
