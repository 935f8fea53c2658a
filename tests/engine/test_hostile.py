"""A hostile server: its responses are recorded as they are, healthy pages lose nothing, and nothing grows."""

import asyncio
import subprocess
from collections import defaultdict
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import psutil
import pytest

from crawler.core.domain import Domain
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.core.page_rules import PageRules
from crawler.engine.parsing.parser_pool import DomainParser, ParserPool
from crawler.store import domains
from crawler.store.database import Database
from tests.engine.crawls import DAY, RECRAWL, START, coins_missing, environ, register, rows
from tests.engine.hostile import BEHAVIOURS, BODIES, CHANGING, HEALTHY, MB, hostile_server
from tests.patience import SLOW

ROUNDS = 2
GROWTH_BYTES = 200 * MB  # of all processes together, above what healthy pages need
LONGEST_CPU_S = 5.0 + 1.0  # for one page; the last second is for starting a parser process
# What a page could have obtained, or passed off as another response.
FORBIDDEN = ("forged", "root:x:0:0", "hahahahaha")


async def peak_of_a_crawl(url: str, database_url: str, home: Path, *, at: datetime) -> int:
    """Return the peak memory, in bytes, of the command and all its parser processes together."""
    with (home / "stderr").open("w") as stderr:
        process = psutil.Popen(
            [str(RECRAWL), "crawl", url, "--allow-private", "--at", at.isoformat(), "--json"],
            env=environ(database_url, home, RECRAWL_REQUEST_TIMEOUT="2", RECRAWL_PARSER_PROCESSES="2"),
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )
        peak = 0
        while process.poll() is None:
            peak = max(peak, await asyncio.to_thread(proportional_bytes, process))
            await asyncio.sleep(0.05)
    said = (home / "stderr").read_text()
    assert process.returncode == 0, said
    assert "Traceback" not in said
    return peak


def proportional_bytes(process: psutil.Popen) -> int:
    """Return the memory of a process and its descendants without the browser; shared memory counts once.

    The browser uses half a gigabyte from the start, and pages in it have their own limits (crawler/fetch/browser).
    """
    total = 0
    with suppress(psutil.Error):
        for each in (
            process,
            *(found for child in process.children() if not is_driver(child) for found in tree(child)),
        ):
            with suppress(psutil.Error):  # it has just ended
                total += each.memory_full_info().pss
    return total


def is_driver(process: psutil.Process) -> bool:
    """Return whether a process is the browser's driver, whose child the browser is."""
    with suppress(psutil.Error):
        return Path(process.exe()).name == "node"
    return False


def tree(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return [process, *process.children(recursive=True)]
    return []


async def found_on(db: Database, domain: Domain, at: datetime) -> dict[str, list[str]]:
    """Return what the visits of one day found, by path: outcome, status, reason and change."""
    found = await rows(
        db,
        """SELECT p.url, concat_ws(' ', v.outcome, v.status, nullif(v.reason, '')), v.change
             FROM visit v JOIN page p USING (domain_id, key)
            WHERE v.domain_id = %s AND v.at >= %s AND v.at < %s""",
        domain.id,
        at,
        at + DAY,
    )
    by_path: defaultdict[str, list[str]] = defaultdict(list)
    for url, seen, change in found:
        path = url.removeprefix(domain.root)
        by_path[path].append(f"{seen} {change}" if path.startswith("well-") else seen)
    return by_path


@pytest.mark.soak
@SLOW
async def test_rounds_on_a_hostile_server_are_told_as_they_are_and_cost_healthy_pages_nothing(
    db: Database, database_url: str, tmp_path: Path
) -> None:
    async with hostile_server() as site:
        seeds = [site.url + path for path in BEHAVIOURS]
        domain = await register(db, site.url, seeds=seeds)
        usual = await peak_of_a_crawl(site.url, database_url, tmp_path, at=START)
        peaks = []
        for turn in range(ROUNDS):
            await site.begin(turn)
            at = START + (turn + 1) * 30 * DAY
            await domains.request_refresh(db, domain, prefix=domain.root, at=at)
            peaks.append(await peak_of_a_crawl(site.url, database_url, tmp_path, at=at))

            found = await found_on(db, domain, at)
            other = {
                path: found[path]
                for path, how in BEHAVIOURS.items()
                if not found[path] or set(found[path]) - {*how.found}
            }
            assert other == {}
            words = [f"fetched 200 {'changed' if turn and n < CHANGING else 'unchanged'}" for n in range(HEALTHY)]
            assert [found[f"well-{n}"] for n in range(HEALTHY)] == [[word] for word in words]
            assert await coins_missing(db) == 0

    assert max(peaks) - usual < GROWTH_BYTES, [usual, *peaks]
    for text in FORBIDDEN:
        assert await rows(db, "SELECT url FROM page JOIN snapshot USING (domain_id, key) WHERE text ~ %s", text) == []


@pytest.mark.soak
@SLOW
async def test_no_page_takes_more_than_five_seconds_of_processor_time_to_read() -> None:
    took: dict[str, float] = {}
    async with ParserPool(1, inline=False) as readers:
        for path, how in BODIES.items():
            head, _, body = how.said(0).partition(b"\r\n\r\n")
            kind = head.decode("latin-1").partition("Content-Type: ")[2].partition("\r\n")[0]
            answer = Fetched(
                status=200, body=body, received_bytes=len(body), elapsed=DAY, content_type=kind or "text/html"
            )
            before = await asyncio.to_thread(cpu_seconds)
            await DomainParser(readers, PageRules()).parse(answer, Url(f"http://site.test/{path}"))
            took[path] = await asyncio.to_thread(cpu_seconds) - before
    assert max(took.values()) < LONGEST_CPU_S, took


def cpu_seconds() -> float:
    """Return the CPU time of this process and its children, including those that have ended."""
    me = psutil.Process()
    times = me.cpu_times()
    total = times.user + times.system + times.children_user + times.children_system
    for child in me.children(recursive=True):
        with suppress(psutil.Error):
            used = child.cpu_times()
            total += used.user + used.system
    return total
