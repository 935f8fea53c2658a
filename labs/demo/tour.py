"""The guided tour: a living site, a first crawl and a recrawl through Prefect, a month of days, and the outcome."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from crawler.app.database import AppDatabase as OpenDatabase
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.errors import StackFailed
from crawler.runtime.environment import build_client_environment
from crawler.runtime.lifecycle import start_stack, stop_stack
from crawler.runtime.machine import is_port_free
from crawler.runtime.prefect.runs import start_run
from crawler.runtime.stack import Stack, find_running_stack
from crawler.server import write_pages
from crawler.settings import Settings
from crawler.store import domains
from crawler.store.database import Database, open_database
from labs.demo.month import Days, live_through
from labs.demo.outcome import DemoOutcome, outcome_of
from labs.demo.server import Remote, living_process
from labs.demo.site import make_site

SEED = 11
PAGES = 250
DAYS = 30
BUDGET = 40  # requests per day after the first two crawls: enough to revisit every page in six days
DAY = timedelta(days=1)
MAX_DEPTH = 12  # the site has an endless calendar
RUN_PATIENCE = timedelta(minutes=3)
CONTROL = "/-/"
FOLDER = "report/demo"  # in RECRAWL_HOME: the web UI as files, which are kept
LOGIN = "You can watch the runs at their URLs; run recrawl ui to print the login"

T = TypeVar("T")
Report = Callable[[str], None]


def tour(settings: Settings, *, days: int = DAYS, keep: bool = False, report: Report, progress: Days) -> DemoOutcome:
    """Run the whole tour on the local stack; stop afterwards what was not running before, unless `keep` is set.

    days: virtual days after the recrawl.  keep: leave the stack running.
    Virtual time begins now, so scheduled runs of the stack, which use real time, do not crawl the site.
    Raise CrawlerError if a part of the stack fails.
    """
    stack = find_running_stack(settings)
    is_ours = stack is None
    stack = stack or start_stack(settings, report=report)
    try:
        return show_around(stack, settings, days=days, keep=keep, report=report, progress=progress)
    finally:
        if is_ours and not keep:
            stop_stack(settings, report=report)


def show_around(
    stack: Stack, settings: Settings, *, days: int, keep: bool, report: Report, progress: Days
) -> DemoOutcome:
    """Serve the site, crawl it twice through Prefect, run the days, and summarize.

    Its virtual visits do not belong in the user's data: the site is removed at the end, unless `keep` is set.
    """
    start = datetime.now(UTC).replace(microsecond=0)
    length = days + 5
    site = make_site(SEED, pages=PAGES, start=start, days=length)
    with living_process(SEED, pages=PAGES, start=start, days=length) as remote:
        report(f"A living site of {len(site.paths(start))} pages: {remote.url}")
        if stack.api.auth is not None:
            report(LOGIN)
        domain = asyncio.run(_with(stack, lambda db: begin(db, remote, at=start)))
        try:
            runs = [crawl_by(stack, "crawl/crawl", domain, at=start, report=report)]
            remote.set_instant(start + DAY)
            runs.append(crawl_by(stack, "recrawl/recrawl", domain, at=start + DAY, report=report))
            report(f"Running {days} days, each with a plan and a shift of at most {BUDGET} requests")

            async def live_and_sum_up(db: Database) -> DemoOutcome:
                month = await live_through(
                    db,
                    domain,
                    remote,
                    settings=settings,
                    budget=BUDGET,
                    since=start + DAY,
                    days=days,
                    progress=progress,
                )
                outcome = await outcome_of(db, domain, site, month, runs=tuple(runs), ui_url=stack.api.ui_url)
                opened = OpenDatabase(db.pool, settings)
                written = await write_pages(opened, [domain], settings.home.resolve() / FOLDER, at=month.until)
                return replace(outcome, index=str(written.index))

            return asyncio.run(_with(stack, live_and_sum_up))
        finally:
            asyncio.run(_with(stack, lambda db: leave(db, domain, keep=keep)))


async def _with(stack: Stack, work: Callable[[Database], Awaitable[T]]) -> T:
    async with open_database(stack.database_url) as db:
        return await work(db)


async def begin(db: Database, remote: Remote, *, at: datetime) -> Domain:
    """Register the living site as a private domain without a delay."""
    await forget_earlier_tours(db)
    authority = Authority(remote.url.removeprefix("http://"))
    domain_settings = DomainSettings(allow_private=True, delay=timedelta(0), max_depth=MAX_DEPTH, exclude=(CONTROL,))
    return await domains.register(db, authority, scheme="http", domain_settings=domain_settings, at=at)


def crawl_by(stack: Stack, deployment: str, domain: Domain, *, at: datetime, report: Report) -> str:
    """Run a deployment for the domain and wait for its end; return the run's URL. Raise StackFailed if it fails."""
    run = start_run(stack, deployment, {"domain": domain.authority, "at": at.isoformat()})
    report(f"Run {run.name} of {deployment}: {run.url}")
    os.environ.update(build_client_environment(stack.home, stack.api))
    from prefect.client.schemas.objects import FlowRun  # prefect reads the environment at import
    from prefect.flow_runs import wait_for_flow_run

    ended: FlowRun = asyncio.run(wait_for_flow_run(run.id, timeout=round(RUN_PATIENCE.total_seconds())))
    if ended.state is None or not ended.state.is_completed():
        raise StackFailed(f"the run {run.name} ended as {ended.state_name}: see {run.url}")
    return run.url


async def leave(db: Database, domain: Domain, *, keep: bool) -> None:
    """Remove the tour's domain, or pause it if it is kept, since its server has ended."""
    if keep:
        await domains.set_paused(db, domain, paused=True)
    else:
        await domains.remove(db, domain)


async def forget_earlier_tours(db: Database) -> None:
    """Remove domains of this machine that earlier tours have left; their servers have ended."""
    for listed in await domains.list_domains(db):
        if is_of_a_tour(listed.domain):
            await domains.remove(db, listed.domain)


def is_of_a_tour(domain: Domain) -> bool:
    """Return whether a tour added the domain: it excludes the site's control calls. A running tour has a server."""
    is_tours = domain.authority.startswith("127.0.0.1:") and domain.settings.exclude == (CONTROL,)
    return is_tours and (domain.paused or is_port_free(int(domain.authority.rpartition(":")[2])))
