"""Measure the freshness of a statically built site against a uniform policy with the same number of requests.

Freshness counts the own text of pages, without boilerplate. The real crawl visits a real server on a virtual clock: a
few crawl runs a day, over which the daily budget is spread, and a plan after each. All changes have equal weight. The
same crawl is repeated without the site's activity.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean

from msgspec.structs import replace

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
RUNS_PER_DAY = 2
WARM_UP = 0.2  # share of the time before measurement starts
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
    "no activity",
    "crawl",
    "gain, no activity",
    "gain",
    "reported",
)

Times = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one crawl.

    fresh, uniform: freshness of the crawl and of the uniform policy. reported: mean freshness according to the report.
    """

    requests: int
    fresh: float
    uniform: float
    reported: float

    @property
    def avoided_share(self) -> float:
        """Return the share of the uniform policy's staleness that the crawl avoids."""
        return 1 - (1 - self.fresh) / (1 - self.uniform)


@dataclass(frozen=True, slots=True)
class Trial:
    """A history crawled twice. without_activity: the crawl without the site's activity."""

    history: str
    seed: int
    deploys: int
    with_edits: int
    crawl: Run
    without_activity: Run


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    trials = []
    for kind in given.kind or KINDS:
        for seed in range(1, given.seeds + 1):
            history = KINDS[kind](Random(f"{kind} {seed}"), given.days)
            crawl, without_activity = (
                asyncio.run(run_crawl(given, history, uses_activity=uses_activity)) for uses_activity in (True, False)
            )
            trials.append(Trial(kind, seed, len(history.days) - 1, history.with_edits, crawl, without_activity))
            print(f"{kind} {seed}: {crawl} {without_activity}", file=sys.stderr, flush=True)
    if given.json:
        print(json.dumps([asdict(trial) for trial in trials]))
    else:
        print(table(HEAD, [row(trial) for trial in trials]))
    return 0


def row(trial: Trial) -> tuple[object, ...]:
    crawl, without_activity = trial.crawl, trial.without_activity
    return (
        trial.history,
        trial.seed,
        trial.deploys,
        trial.with_edits,
        crawl.requests,
        f"{crawl.uniform:.4f}",
        f"{without_activity.fresh:.4f}",
        f"{crawl.fresh:.4f}",
        f"{100 * without_activity.avoided_share:.0f} %",
        f"{100 * crawl.avoided_share:.0f} %",
        f"{crawl.reported:.4f}",
    )


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks deploys", description=__doc__)
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="kind of history; default: all kinds")
    parser.add_argument("--seeds", type=int, default=2, help="histories of each kind")
    parser.add_argument("--days", type=float, default=120.0, help="days of the virtual clock")
    parser.add_argument("--budget", type=int, default=40, help="requests per day")
    parser.add_argument("--home", type=Path, default=Path(".recrawl/bench"), help="folder of the Postgres server")
    parser.add_argument("--json", action="store_true")
    return parser


async def run_crawl(given: argparse.Namespace, history: History, *, uses_activity: bool) -> Run:
    site = BuiltSite(history)
    with new_database(given.home) as url:
        async with open_database(url) as db, serving(site) as root:
            return await crawled(
                db, site, history, root, days=int(given.days), budget=given.budget, uses_activity=uses_activity
            )


async def crawled(
    db: Database, site: BuiltSite, history: History, root: str, *, days: int, budget: int, uses_activity: bool
) -> Run:
    chosen = DomainSettings(allow_private=True, delay=timedelta(0), parallelism=4, change_weight=ChangeWeight.EQUAL)
    authority = Authority(root.split("/")[2])
    domain = await domains.register(db, authority, scheme="http", domain_settings=chosen, at=START)
    settings = Settings(lease_term=timedelta(seconds=30), max_batch_size=20, pace=False)
    reported, before = [], 0
    async with open_resources(settings) as resources:
        for step in range(days * RUNS_PER_DAY):
            # By then, this run's share of the daily budget is granted.
            at = START + (step + 1) * DAY / RUNS_PER_DAY - MINUTE
            site.day = (at - START) / DAY
            if step == RUNS_PER_DAY:  # all pages have been visited once
                domain = await domains.change_settings(db, domain, replace(chosen, budget_per_day=budget), at=at)
                settings = settings.model_copy(update={"pace": True})
            await run_shift(
                db, resources, settings=settings, clock=Clock.from_instant(at), holder="bench", only=[domain]
            )
            # The plan of the next run depends on the requests used so far.
            await plan_domains(db, at=at, settings=settings, only=domain)
            if not uses_activity:
                async with db.transaction() as connection:
                    await connection.execute(FORGET, (domain.id,))
            if step == RUNS_PER_DAY - 1:
                before = (await costs(db, domain)).requests
            if site.day >= WARM_UP * days and step % RUNS_PER_DAY == RUNS_PER_DAY - 1:
                found = await report.read_domain_report(db, domain, at=at, window=DAY)
                reported.append((found.freshness_plain or 0.0) if found is not None else 0.0)
    visits = {get_path_and_query(url): seen for url, seen in (await looks_by_url(db, domain)).items()}
    pages = {f"/{page.name}.html" for page in history.pages}
    times = {path: [(look.at - START) / DAY for look in seen] for path, seen in visits.items() if path in pages}
    requests = (await costs(db, domain)).requests - before
    span = WARM_UP * days, float(days)
    turns = in_turn(history, times, requests=requests, since=1.0, until=float(days))
    return Run(requests, freshness(history, times, *span), freshness(history, turns, *span), fmean(reported))


def freshness(history: History, times: Times, since: float, until: float) -> float:
    """Return the share of page-time during which the copies have the current own text."""
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
    """Return the visits of a uniform policy: always the page unvisited for longest, at equal intervals.

    Pages known before and the first visits of new pages are the same as in the crawl. First visits and visits that find
    a page gone count as requests.
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
