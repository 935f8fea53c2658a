"""kill -9 at random times while users refresh, hint, add seeds and change settings of a site behind a login."""

import asyncio
import contextlib
import json
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from crawler.core.domain import Domain
from crawler.core.freshness.signals import ChangeSignal
from crawler.core.http.urls import Url
from crawler.core.page_rules import PageRule
from crawler.store import claim, domains, report
from crawler.store.database import Database, open_database, upgrade_schema
from tests.engine.crawls import DAY, RECRAWL, START, coins_missing, command, crawl, environ, register, rows
from tests.engine.disturbed import WORDS, kept
from tests.engine.doors import Asked, Reply, door
from tests.engine.scripted import text
from tests.engine.test_keys import LOGIN, PASSWORD, USER, Club
from tests.engine.test_kill import expire

ROUNDS = 100
PAGES = 80
TERM_S = 2  # of a lease, in seconds
SECRETS = {"DOCS_USER": USER, "DOCS_PASS": PASSWORD}


class ChangingClub(Club):
    """A site behind a login: page n changes every n % 7 + 1 rounds. It also receives webhooks."""

    def __init__(self) -> None:
        super().__init__()
        self.round = self.requests = 0
        self.notified: set[tuple[str, int]] = set()

    def __call__(self, asked: Asked) -> Reply:
        if asked.method == "POST" and asked.target == "/hook":
            self.notified |= {(change["url"], change["version"]) for change in json.loads(asked.body)["changes"]}
            return Reply("taken")
        self.requests += 1
        reply = super().__call__(asked)
        is_page = asked.target == "/" or asked.target[1:].isdigit()
        return self.page(asked.target) if is_page and reply.status in {200, 404} else reply

    def page(self, target: str) -> Reply:
        number = int(target[1:] or 0)
        if number > PAGES:
            return Reply("none", 404)
        links = [f"/{each}" for each in range(1, PAGES + 1)] if number == 0 else []
        chance = random.Random(1000 * number + self.round // (number % 7 + 1))
        return Reply(text(" ".join(chance.choices(WORDS, k=60)), *links).body)


@dataclass(slots=True)
class Rounds:
    """A crawl that is killed repeatedly, and what users do meanwhile."""

    club: ChangingClub
    url: str
    database_url: str
    home: Path
    chance: random.Random
    done: Counter[str] = field(default_factory=Counter)

    async def refresh(self, db: Database, domain: Domain, at: datetime) -> None:
        await domains.request_refresh(
            db, domain, prefix=Url(f"{domain.root}{self.chance.choice(['', '1', '2', '3'])}"), at=at
        )

    async def hint(self, db: Database, domain: Domain, at: datetime) -> None:
        urls = [Url(f"{domain.root}{self.chance.randint(1, PAGES)}") for _ in range(5)]
        await domains.add_signals(db, domain, [ChangeSignal(url=url, source="cms", at=at) for url in urls], at=at)

    async def add_seeds(self, db: Database, domain: Domain, at: datetime) -> None:
        await domains.add_seeds(db, domain, [Url(f"{domain.root}{self.chance.randint(1, PAGES)}")], at=at)

    async def change_settings(self, db: Database, domain: Domain, at: datetime) -> None:
        rules = (PageRule(pattern="/2", max_interval=timedelta(minutes=self.chance.randint(20, 90))),)
        budget = self.chance.choice([None, 100_000, 200_000])
        await domains.change_settings(db, domain, replace(domain.settings, rules=rules, budget_per_day=budget), at=at)

    def start(self, at: datetime) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(RECRAWL), "crawl", "--due", "--at", at.isoformat(), "--json"],
            env=environ(
                self.database_url,
                self.home,
                RECRAWL_LEASE_TERM=str(TERM_S),
                RECRAWL_MAX_BATCH_SIZE="4",
                RECRAWL_MAX_BATCH_AGE="0.1",
                **SECRETS,
            ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    async def round(self, db: Database, name: str, at: datetime) -> None:
        """Do one user action, start a crawl and kill it after some requests, or while it claims the lease."""
        domain = await domains.find_domain(db, name)  # type: ignore[arg-type]
        assert domain is not None
        actions: list[Callable[[Database, Domain, datetime], Awaitable[None]]]
        actions = [self.refresh, self.hint, self.add_seeds, self.change_settings]
        action = self.chance.choice(actions)
        await action(db, domain, at)
        self.done[action.__name__] += 1
        process = self.start(at)
        is_early, requests = self.chance.random() < 0.5, self.club.requests + self.chance.randint(0, 25)
        while process.poll() is None and not (await self.is_taken(db) if is_early else self.club.requests > requests):
            await asyncio.sleep(0.005)
        if is_early:
            await asyncio.sleep(self.chance.random() * 0.1)
        process.send_signal(signal.SIGKILL)
        if await asyncio.to_thread(process.wait) == -signal.SIGKILL:
            self.done["killed"] += 1

    async def is_taken(self, db: Database) -> bool:
        return bool(await rows(db, "SELECT FROM domain_state WHERE leased_until > now()"))


@pytest.mark.soak
async def test_requests_of_users_outlive_a_hundred_kills_and_no_due_page_sleeps(
    database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    club = ChangingClub()
    async with door(club) as server, open_database(database_url) as db:
        rounds = Rounds(club, server.url, database_url, tmp_path, random.Random(28))
        name = (await register(db, server.url, login=LOGIN, allow_private=True)).authority
        added = command(
            "notify", "add", f"{server.url}hook", "--allow-private", database_url=database_url, home=tmp_path
        )
        assert added.returncode == 0, added.stderr
        number = 0
        while rounds.done["killed"] < ROUNDS:
            club.round = number
            at = START + number * timedelta(minutes=10)
            await rounds.round(db, name, at)
            number += 1
            assert await coins_missing(db) == 0, (number, rounds.done)
            assert await report.check_invariants(db) == [], (number, rounds.done)
            await expire(db)
            await assert_nothing_due_sleeps(db, at + timedelta(minutes=1))
        print(rounds.done)  # noqa: T201  with -s, shows how often each action happened
        domain = await domains.find_domain(db, name)
        assert domain is not None
        end = START + number * timedelta(minutes=10) + DAY
        await domains.request_refresh(db, domain, prefix=domain.root, at=end)
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(rounds.start(end).wait, 120)
        told = command("notify", "run", "--at", (end + DAY).isoformat(), database_url=database_url, home=tmp_path)
        assert told.returncode == 0, told.stderr
        changed = await rows(db, "SELECT url, version FROM event WHERE change = 'changed'")
        assert {(url, version) for url, version in changed} <= club.notified
        copy = await kept(db, domain)
        twice = await rows(db, "SELECT key, at FROM visit GROUP BY 1, 2 HAVING count(*) > 1")
        ((numbers,),) = await rows(db, "SELECT array_agg(number ORDER BY number) FROM event")
        assert twice == []
        assert numbers == list(range(1, len(numbers) + 1))
        upgrade_schema(empty_database_url)
        async with open_database(empty_database_url) as twin_db:
            with pytest.MonkeyPatch.context() as patched:
                for key, value in SECRETS.items():
                    patched.setenv(key, value)
                twin = await register(twin_db, server.url, login=LOGIN, allow_private=True)
                await crawl(twin_db, at=START)
            expected = await kept(twin_db, twin)
        # Independent of how often each of them has changed.
        assert [(url, state, body) for url, state, _, body, _ in copy] == [
            (url, state, body) for url, state, _, body, _ in expected
        ]


async def assert_nothing_due_sleeps(db: Database, at: datetime) -> None:
    """Check that a domain with a due page can be claimed by the next worker."""
    due = await rows(db, "SELECT count(*) FROM frontier WHERE due_at <= %s OR request_reason IN (1, 4)", at)
    state = await rows(db, "SELECT wake_at, resume_at, resume_reason FROM domain_state")
    if due[0][0]:
        assert await claim.compute_claim_wait(db, at=at) is not None, (due, state)
