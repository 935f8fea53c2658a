"""Freshness of a statically built site by its pages' own text, beside visiting all pages in turn with as many requests.

The real crawl looks at a real server on a virtual clock: a few shifts over which the day's budget is spread, and a plan
after each. Each change counts alike. Beside it the same crawl without the site's activity.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean

from benchmarks.deploys.histories import KINDS, History, PageLife
from benchmarks.deploys.site import BuiltSite, serving
from benchmarks.harness.database import new_database
from benchmarks.harness.table import table
from crawler.clock import Clock
from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.estimates import ChangeWeight
from crawler.core.http.urls import Authority, get_path_and_query
from crawler.engine.resources import open_resources
from crawler.engine.shift import run_shift
from crawler.planner.plan import plan_domains
from crawler.settings import Settings
from crawler.store import domains, report
from crawler.store.database import Database, open_database
from labs.experiments.visits import costs, looks_by_url

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
SHIFTS = 2  # a day
WARM_UP = 0.2  # of the time, that is not counted
FORGET = """
    UPDATE domain_state SET activity_at = '{}', activity_ahead = '{}' WHERE domain_id = %s
"""
HEAD = (
    "history",
    "seed",
    "deploys",
    "with edits",
    "requests",
    "uniform",
    "deaf",
    "crawl",
    "gone, deaf",
    "gone",
    "says",
)

Times = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Run:
    """One crawl. fresh, uniform: of the own text of pages that are there.  reported: what the report said meanwhile."""

    requests: int
    fresh: float
    uniform: float
    reported: float

    @property
    def gone(self) -> float:
        """The part of uniform's staleness that the crawl has not."""
        return 1 - (1 - self.fresh) / (1 - self.uniform)


@dataclass(frozen=True, slots=True)
class Trial:
    """A history crawled twice. deaf: the crawl without the site's activity."""

    history: str
    seed: int
    deploys: int
    with_edits: int
    crawl: Run
    deaf: Run


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    trials = []
    for kind in given.kind or KINDS:
        for seed in range(1, given.seeds + 1):
            history = KINDS[kind](Random(f"{kind} {seed}"), given.days)
            crawl, deaf = (asyncio.run(lived(given, history, hears=hears)) for hears in (True, False))
            trials.append(Trial(kind, seed, len(history.days) - 1, history.with_edits, crawl, deaf))
            print(f"{kind} {seed}: {crawl} {deaf}", file=sys.stderr, flush=True)
    if given.json:
        print(json.dumps([asdict(trial) for trial in trials]))
    else:
        print(table(HEAD, [row(trial) for trial in trials]))
    return 0


def row(trial: Trial) -> tuple[object, ...]:
    crawl, deaf = trial.crawl, trial.deaf
    return (
        trial.history,
        trial.seed,
        trial.deploys,
        trial.with_edits,
        crawl.requests,
        f"{crawl.uniform:.4f}",
        f"{deaf.fresh:.4f}",
        f"{crawl.fresh:.4f}",
        f"{100 * deaf.gone:.0f} %",
        f"{100 * crawl.gone:.0f} %",
        f"{crawl.reported:.4f}",
    )


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks deploys", description=__doc__)
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="of history; all of them if not given")
    parser.add_argument("--seeds", type=int, default=2, help="histories of each kind")
    parser.add_argument("--days", type=float, default=120.0, help="of the virtual clock")
    parser.add_argument("--budget", type=int, default=40, help="requests a day")
    parser.add_argument("--home", type=Path, default=Path(".recrawl/bench"), help="of the Postgres server")
    parser.add_argument("--json", action="store_true")
    return parser


async def lived(given: argparse.Namespace, history: History, *, hears: bool) -> Run:
    site = BuiltSite(history)
    with new_database(given.home) as url:
        async with open_database(url) as db, serving(site) as root:
            return await crawled(db, site, history, root, days=int(given.days), budget=given.budget, hears=hears)


async def crawled(
    db: Database, site: BuiltSite, history: History, root: str, *, days: int, budget: int, hears: bool
) -> Run:
    wished = DomainSettings(allow_private=True, delay=timedelta(0), parallelism=4, change_weight=ChangeWeight.EQUAL)
    authority = Authority(root.split("/")[2])
    domain = await domains.register(db, authority, scheme="http", domain_settings=wished, at=START)
    settings = Settings(lease_term=timedelta(seconds=30), max_batch_size=20, pace=False)
    said, before = [], 0
    async with open_resources(settings) as webs:
        for step in range(days * SHIFTS):
            at = START + (step + 1) * DAY / SHIFTS - MINUTE  # by then its part of the day's budget is granted
            site.day = (at - START) / DAY
            if step == SHIFTS:  # everything that was there has been seen
                domain = await domains.change_settings(db, domain, replace(wished, budget_per_day=budget), at=at)
                settings = settings.model_copy(update={"pace": True})
            await run_shift(db, webs, settings=settings, clock=Clock.from_instant(at), holder="bench", only=[domain])
            await plan_domains(db, at=at, settings=settings, only=domain)  # for the next one, by what this one used
            if not hears:
                async with db.transaction() as connection:
                    await connection.execute(FORGET, (domain.id,))
            if step == SHIFTS - 1:
                before = (await costs(db, domain)).requests
            if site.day >= WARM_UP * days and step % SHIFTS == SHIFTS - 1:
                found = await report.read_domain_report(db, domain, at=at, window=DAY)
                said.append((found.freshness_plain or 0.0) if found is not None else 0.0)
    visits = {get_path_and_query(url): seen for url, seen in (await looks_by_url(db, domain)).items()}
    pages = {f"/{page.name}.html" for page in history.pages}
    times = {path: [(look.at - START) / DAY for look in seen] for path, seen in visits.items() if path in pages}
    requests = (await costs(db, domain)).requests - before
    span = WARM_UP * days, float(days)
    turns = in_turn(history, times, requests=requests, since=1.0, until=float(days))
    return Run(requests, freshness(history, times, *span), freshness(history, turns, *span), fmean(said))


def freshness(history: History, times: Times, since: float, until: float) -> float:
    """The share of the time of the pages that are there in which their copies have their own text of the moment."""
    fresh = there = 0.0
    for page in history.pages:
        born, gone = life(history, page)
        first, last = max(born, since), min(gone, until)
        if last <= first:
            continue
        there += last - first
        changes = [born, *(history.days[edit] for edit in page.edits if history.days[edit] < gone), gone]
        seen = times.get(f"/{page.name}.html", ())
        for begin, end in pairwise(changes):
            copied = next((at for at in seen if begin <= at < end), end)
            fresh += max(min(end, last) - max(copied, first), 0.0)
    return fresh / there


def life(history: History, page: PageLife) -> tuple[float, float]:
    gone = float("inf") if page.gone is None else history.days[page.gone]
    return history.days[page.born], gone


def in_turn(history: History, times: Times, *, requests: int, since: float, until: float) -> dict[str, list[float]]:
    """When a uniform policy would have looked: always at the page longest unseen, at even distances in time.

    What was known before, and when each new page was first met, is the same for both; such a first look counts, and so
    does one that finds a page gone.
    """
    ends = {f"/{page.name}.html": life(history, page)[1] for page in history.pages}
    found = {path: [at for at in seen if at <= since] or [seen[0]] for path, seen in times.items() if seen}
    turns = requests - sum(seen[0] > since for seen in found.values())
    waiting = [(seen[-1], path) for path, seen in found.items()]
    heapify(waiting)
    for n in range(turns):
        at = since + (n + 0.5) / turns * (until - since)
        if not waiting or waiting[0][0] > at:
            continue
        _, path = heappop(waiting)
        if at < ends[path]:
            found[path].append(at)
            heappush(waiting, (at, path))
    return found
