"""A site of pages that change at random, each with a mean period in days of knowledge time."""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil
from random import Random

from crawler.clock import Clock
from crawler.core.domain import Domain
from crawler.engine.resources import open_resources
from crawler.engine.shift import run_shift
from crawler.settings import Settings
from crawler.store.database import Database
from tests.engine.crawls import DAY, QUICK, START, answered, rows

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = 150  # of a page that stay, and as many that change: if all changed, a crawl would fetch twice
STEP = timedelta(hours=12)  # between two shifts, if something is due
LAST_DAY = 3000


@dataclass(slots=True)
class Periods:
    """The site at an instant that the test sets.

    periods: of its kinds of pages, in days.  pages: how many of each kind.  Each change replaces a random share of half
    a page's words.  asked: path and instant of each request.
    """

    periods: Sequence[float]
    pages: int
    seed: int = 1
    now: datetime = START
    asked: list[tuple[str, datetime]] = field(default_factory=list)
    _period: dict[str, float] = field(default_factory=dict)
    _changes: dict[str, list[datetime]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind, period in enumerate(self.periods):
            for number in range(self.pages):
                path = f"/{LETTERS[kind]}/{LETTERS[number // 26]}{LETTERS[number % 26]}"
                odds, at, changes = Random(f"{self.seed} {path}"), 0.0, []
                while at < LAST_DAY:
                    at += odds.expovariate(1 / period)
                    changes.append(START + at * DAY)
                self._period[path], self._changes[path] = period, changes

    def respond(self, target: str) -> bytes:
        self.asked.append((target, self.now))
        if target == "/":
            links = " ".join(f'<a href="{path}">{_word(Random(path))}</a>' for path in self._period)
            return answered(200, f"<title>All</title><p>The first page of this site</p>{links}".encode())
        if target not in self._period:
            return answered(404, b"nothing here")
        words = " ".join(self._words(target))
        return answered(200, f"<title>{_word(Random(target))}</title><p>{words}</p>".encode())

    def period_of(self, path: str) -> float | None:
        """Return the true period of a page in days; None for the front page and missing pages."""
        return self._period.get(path)

    def _words(self, path: str) -> list[str]:
        version = bisect.bisect_right(self._changes[path], self.now)
        words = [_word(odds) for odds in [Random(f"{path} words")] for _ in range(WORDS)]
        for number in range(version):
            odds = Random(f"{path} {number}")
            share = odds.uniform(0.1, 1.0)
            words = [_word(odds) if odds.random() < share else word for word in words]
        return [*(_word(odds) for odds in [Random(f"{path} always")] for _ in range(WORDS)), *words]


def _word(odds: Random) -> str:
    return "".join(odds.choices(LETTERS, k=7))


async def live(
    db: Database, domain: Domain, site: Periods, *, until: datetime, since: datetime = START, settings: Settings = QUICK
) -> datetime:
    """Run shifts whenever something is due, at most twice a day; return the instant of the next one."""
    at = since
    async with open_resources(settings) as webs:
        while at <= until:
            site.now = at
            await run_shift(db, webs, settings=settings, clock=Clock.from_instant(at), holder="test", only=[domain])
            found = await rows(
                db, "SELECT min(due_at) FROM frontier WHERE domain_id = %s AND state = 'fetched'", domain.id
            )
            due = found[0][0]
            at += STEP * max(ceil((due - at) / STEP), 1)
    return at


async def waits_after(db: Database, domain: Domain, site: Periods, *, visits: int) -> dict[float, list[float]]:
    """Return the days from the nth visit of each page to the next one, by the page's true period."""
    found: dict[float, list[float]] = {period: [] for period in site.periods}
    for url, days in await rows(
        db,
        "SELECT p.url, date_part('epoch', v.next - v.at) / 86400 FROM page p JOIN ("
        " SELECT domain_id, key, at, lead(at) OVER w AS next, row_number() OVER w AS number FROM visit"
        " WINDOW w AS (PARTITION BY domain_id, key ORDER BY at)) v USING (domain_id, key)"
        " WHERE domain_id = %s AND v.number = %s AND v.next IS NOT NULL",
        domain.id,
        visits,
    ):
        period = site.period_of("/" + url.removeprefix(domain.root))
        if period is not None:
            found[period].append(days)
    return found
