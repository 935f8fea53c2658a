"""What the crawling flows share: one shift in this run, a task run for each lease, the result as an artifact."""

import os
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta
from uuid import UUID

from prefect import get_run_logger
from prefect.artifacts import acreate_markdown_artifact

from crawler import times
from crawler.app import waiting_domains
from crawler.app.status import format_wait
from crawler.clock import Clock
from crawler.core.domain import Domain, Lease
from crawler.engine import (
    CrawlLimits,
    CrawlStats,
    LeaseResult,
    ShiftHooks,
    holder_name,
    open_resources,
    run_shift,
    settle_memory,
)
from crawler.errors import BadInput, StoreUnavailable
from crawler.runtime.metrics.counted import counted_into
from crawler.runtime.pages import pages_origin
from crawler.runtime.secrets import secrets_of
from crawler.settings import Settings
from crawler.store import report
from crawler.store.database import Database
from flows.ending import end_early, told_to_end
from flows.lease import Progress, as_task, if_heard
from flows.result import is_worth_showing, markdown, sentences
from flows.telling import tell

RESULT = "crawl-result"
STACK = "RECRAWL_STACK"  # the local stack's name: it frees the leases of runs that it finds dead
MAX_NAMED = 3  # waiting domains in the message of a run's state
TELLING = timedelta(seconds=30)  # that a crawl takes at its end to tell what it has found; notify goes on with the rest


class BrokenDomains(Exception):
    """An error of our own has ended the leases of some domains; the others were crawled."""


def instant(text: str) -> datetime | None:
    """The knowledge time that a run was given, or None for the present. Raises BadInput."""
    if not text:
        return None
    try:
        return times.instant(text)
    except ValueError as error:
        raise BadInput(str(error)) from error


async def run(
    db: Database, settings: Settings, *, only: Collection[Domain] | None, at: datetime | None, pages: int | None = None
) -> tuple[dict[str, object], str]:
    """Crawl until nothing is due, the shift's time is up or the run is cancelled; ends with a markdown artifact.

    Returns the figures of what was done, and a message for the state of the run: what was done, and why domains wait.
    """
    clock = Clock.at(at)
    progress: dict[UUID, Progress] = {}
    counted = counted_into(settings.home.resolve())

    async def walk_lease(lease: Lease, walk_it: Callable[[], Awaitable[LeaseResult]]) -> LeaseResult:
        work = await report.workload(db, lease.domain, at=clock.now())
        progress[lease.token] = Progress(pending=work.looks)
        try:
            async with counted.lease(lease.token) as count:
                count.result = await as_task(lease, walk_it, progress[lease.token])
                return count.result
        finally:
            del progress[lease.token]

    def show(lease: Lease, stats: CrawlStats) -> None:
        counted.progress(lease.token, stats)
        if lease.token in progress:
            progress[lease.token].stats = stats

    with told_to_end() as told:
        async with open_resources(settings, find_secret=secrets_of(settings)) as webs:
            settle_memory()
            shift = await run_shift(
                db,
                webs,
                settings=settings,
                clock=clock,
                holder="/".join(filter(None, (os.environ.get(STACK), holder_name("flow")))),
                only=only,
                limits=CrawlLimits(pages, settings.shift_time, told),
                hooks=ShiftHooks(show, walk_lease),
            )
    waits = await waiting_domains(db, settings, at=clock.now(), only=only, requested=is_worth_showing(shift))
    waiting = [f"{domain.authority} {format_wait(wait, domain, now=clock.now())}" for domain, wait in waits]
    said = sentences(shift, waiting)
    for line in said:
        get_run_logger().info("%s", line)
    if is_worth_showing(shift) or any(wait.pages for _, wait in waits):
        shown = markdown(shift, waiting, origin=pages_origin(settings.home.resolve()))
        await if_heard(acreate_markdown_artifact(shown, key=RESULT, description="What this run did"))
    if told.is_set():
        await end_early()
    try:
        await tell(db, settings, at=at, within=TELLING)
    except StoreUnavailable as error:  # what was crawled is recorded: that nobody was told yet fails no crawl
        get_run_logger().warning("%s; the next run of notify tells what was found", error)
    if shift.broken:
        raise BrokenDomains("; ".join(f"{domain}: {error}" for domain, error in shift.broken.items()))
    more = [f"{len(waiting) - MAX_NAMED} more domains wait"] if len(waiting) > MAX_NAMED else []
    done = said[:1] if is_worth_showing(shift) or not waiting else []
    return shift.stats.as_dict(), "; ".join([*done, *waiting[:MAX_NAMED], *more])
