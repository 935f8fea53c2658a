"""The guided tour: a living site, a first crawl and a recrawl through Prefect, a month of days, and what came of it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TypeVar

from crawler.clock import Clock
from crawler.core.domain import Domain, Wishes
from crawler.core.urls import Authority, path_and_query
from crawler.demo.server import Remote, living_process
from crawler.demo.site import LIARS, Site, Tally, freshness, make_site, mean_freshness, tally
from crawler.errors import StackFailed
from crawler.local.runs import finish_run, start_run
from crawler.local.stack import Stack, down, running_stack, up
from crawler.settings import Settings
from crawler.shift import holder_name, open_webs, run_shift
from crawler.store import domains, reports
from crawler.store.database import Database, open_database
from crawler.store.looks import Look, costs, looks_by_url

SEED = 11
PAGES = 250
DAYS = 30
DAY = timedelta(days=1)
MAX_DEPTH = 12  # the site's calendar has no end
RUN_PATIENCE = timedelta(minutes=3)
CONTROL = "/-/"

T = TypeVar("T")
Report = Callable[[str], None]
Days = Callable[[int, int], None]  # days done, days in all


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a user wants to know at the end.

    freshness_*: a share of the pages that are there, weighted alike; mean: over the whole time.
    changes: what became of the true changes of the content, by the looks that were made; clocks are none.
    lied_away: changes of pages whose server denies them, among those that looks could have met.
    false_alarms: verdicts "changed" where nothing had.  *_daily: what fetching every page every day would have taken.
    """

    domain: str
    days: int
    pages: int
    freshness_reported: float
    freshness_true: float
    freshness_mean: float
    changes: Tally
    recognised: int
    lied_away: int
    false_alarms: int
    requests: int
    requests_daily: int
    received_bytes: int
    received_daily_bytes: int
    saved_bytes: int
    runs: tuple[str, ...]
    ui_url: str


def tour(settings: Settings, *, days: int = DAYS, keep: bool = False, report: Report, progress: Days) -> Outcome:
    """The whole story, on the local stack; what was not running before is stopped at the end, unless kept.

    days: virtual days after the recrawl.  keep: leave the stack running, to look at.
    Virtual time begins now, so that scheduled runs of the stack, which live in real time, leave the site alone.
    Raises CrawlerError where a part of the stack fails.
    """
    stack = running_stack(settings)
    is_ours = stack is None
    stack = stack or up(settings, report=report)
    try:
        return show_around(stack, settings, days=days, report=report, progress=progress)
    finally:
        if is_ours and not keep:
            down(settings, report=report)


def show_around(stack: Stack, settings: Settings, *, days: int, report: Report, progress: Days) -> Outcome:
    """Serve the site, crawl it twice through Prefect, live through the days, and sum up."""
    start = datetime.now(UTC).replace(microsecond=0)
    length = days + 5
    site = make_site(SEED, pages=PAGES, start=start, days=length)
    with living_process(SEED, pages=PAGES, start=start, days=length) as remote:
        report(f"A living site of {len(site.paths(start))} pages: {remote.url}")
        domain = asyncio.run(_with(stack, lambda db: begin(db, remote, at=start)))
        try:
            runs = [crawl_by(stack, "crawl/crawl", domain, at=start, report=report)]
            remote.set_instant(start + DAY)
            runs.append(crawl_by(stack, "recrawl/recrawl", domain, at=start + DAY, report=report))
            report(f"{days} days pass, a shift each")
            return asyncio.run(
                _with(
                    stack,
                    lambda db: live_and_sum_up(
                        db,
                        domain,
                        (site, remote),
                        settings=settings,
                        since=start + DAY,
                        days=days,
                        progress=progress,
                        runs=tuple(runs),
                        ui_url=stack.ui_url,
                    ),
                )
            )
        finally:
            asyncio.run(_with(stack, lambda db: domains.set_paused(db, domain, paused=True)))


async def _with(stack: Stack, work: Callable[[Database], Awaitable[T]]) -> T:
    async with open_database(stack.database_url) as db:
        return await work(db)


async def begin(db: Database, remote: Remote, *, at: datetime) -> Domain:
    """Register the living site as a domain: one's own server, so without a delay."""
    await forget_earlier_tours(db)
    authority = Authority(remote.url.removeprefix("http://"))
    wishes = Wishes(allow_private=True, delay=timedelta(0), max_depth=MAX_DEPTH, exclude=(CONTROL,))
    return await domains.register(db, authority, scheme="http", wishes=wishes, at=at)


def crawl_by(stack: Stack, deployment: str, domain: Domain, *, at: datetime, report: Report) -> str:
    """Run a deployment for the domain, wait for its end, and say where it can be looked at. StackFailed if it fails."""
    run = start_run(stack, deployment, {"domain": domain.authority, "at": at.isoformat()})
    report(f"Run {run.name} of {deployment}: {run.url}")
    run = finish_run(stack, run, within=RUN_PATIENCE)
    if not run.has_completed:
        raise StackFailed(f"the run {run.name} ended as {run.state}: see {run.url}")
    return run.url


async def live_and_sum_up(
    db: Database,
    domain: Domain,
    place: tuple[Site, Remote],
    *,
    settings: Settings,
    since: datetime,
    days: int,
    progress: Days,
    runs: tuple[str, ...],
    ui_url: str,
) -> Outcome:
    site, remote = place
    at = await live_through(db, domain, remote, settings=settings, since=since, days=days, progress=progress)
    return await outcome_of(db, domain, site, at=at, runs=runs, ui_url=ui_url)


async def forget_earlier_tours(db: Database) -> None:
    """Domains of this machine that an earlier tour has left: their servers are gone."""
    for listed in await domains.every(db):
        if is_of_a_tour(listed.domain):
            await domains.remove(db, listed.domain)


def is_of_a_tour(domain: Domain) -> bool:
    """A tour ends with its domain paused, and excludes the site's control calls, which no other site has."""
    return domain.paused and domain.authority.startswith("127.0.0.1:") and domain.wishes.exclude == (CONTROL,)


async def live_through(
    db: Database,
    domain: Domain,
    remote: Remote,
    *,
    settings: Settings,
    since: datetime,
    days: int,
    progress: Days,
) -> datetime:
    """Let the days pass, one shift each; gives the last instant."""
    async with open_webs(settings) as webs:
        for day in range(1, days + 1):
            at = since + day * DAY
            remote.set_instant(at)
            holder = holder_name("demo")
            await run_shift(db, webs, settings=settings, clock=Clock.at(at), holder=holder, only=[domain])
            progress(day, days)
    return since + days * DAY


async def outcome_of(
    db: Database, domain: Domain, site: Site, *, at: datetime, runs: tuple[str, ...], ui_url: str
) -> Outcome:
    """Compare what we say with what is true."""
    looks = {path_and_query(url): seen for url, seen in (await looks_by_url(db, domain)).items()}
    times = {path: [look.at for look in seen] for path, seen in looks.items()}
    report = await reports.report(db, domain, at=at, window=at - site.start + DAY)
    spent = await costs(db, domain)
    assert report is not None
    days = (at - site.start) / DAY
    recognised, lied_away, false_alarms = verdicts(site, looks)
    a_day_of_bytes = await reports.workload(db, domain, at=at)
    return Outcome(
        domain=domain.authority,
        days=round(days),
        pages=len(site.paths(at)),
        freshness_reported=report.freshness_plain or 0.0,
        freshness_true=freshness(site, {path: seen[-1] for path, seen in times.items()}, at),
        freshness_mean=mean_freshness(site, times, min(look for seen in times.values() for look in seen), at),
        changes=tally(site, times, site.start, at),
        recognised=recognised,
        lied_away=lied_away,
        false_alarms=false_alarms,
        requests=spent.requests,
        requests_daily=round(sum(len(site.paths(site.start + n * DAY)) for n in range(round(days) + 1))),
        received_bytes=spent.received_bytes,
        received_daily_bytes=round(a_day_of_bytes.mean_bytes * len(site.paths(at)) * (days + 1)),
        saved_bytes=spent.saved_bytes,
        runs=runs,
        ui_url=ui_url,
    )


def verdicts(site: Site, looks: Mapping[str, list[Look]]) -> tuple[int, int, int]:
    """Changes recognised, changes that the server denied, and verdicts "changed" where nothing had changed."""
    recognised = lied_away = false_alarms = 0
    for path, seen in looks.items():
        if site.find(path) is None:
            continue
        for before, look in pairwise(seen):
            differs = bool(site.changes(path, before.at, look.at))
            recognised += differs and look.changed
            lied_away += differs and not look.changed and site.serving(path) in LIARS
            false_alarms += look.changed and not differs and not lied_before(site, path, seen, look)
    return recognised, lied_away, false_alarms


def lied_before(site: Site, path: str, seen: list[Look], look: Look) -> bool:
    """Whether an earlier change, denied then, comes to light with this look."""
    return site.serving(path) in LIARS and bool(site.changes(path, seen[0].at, look.at))
