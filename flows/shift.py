"""What the crawling flows share: one shift in this run, a task run for each lease, the result as an artifact."""

import os
from collections.abc import Awaitable, Callable
from datetime import datetime
from uuid import UUID

from prefect import get_run_logger
from prefect.artifacts import acreate_markdown_artifact

from crawler import times
from crawler.app.crawl import (
    CrawlRequest,
    CrawlStats,
    Lease,
    LeaseResult,
    ShiftHooks,
    Targets,
    count_due,
    has_effect,
)
from crawler.app.crawl import crawl as crawl_targets
from crawler.app.database import Database
from crawler.app.running.local_stack import web_ui_origin
from crawler.app.status import WaitReason, format_wait
from crawler.clock import Clock
from crawler.errors import BadInput
from crawler.settings import Settings
from flows.ending import end_early, told_to_end
from flows.lease import Progress, as_task, if_heard
from flows.result import markdown, sentences
from flows.telling import show_told

RESULT = "crawl-result"
STACK = "RECRAWL_STACK"  # the local stack's name: it frees the leases of runs that it finds dead
MAX_NAMED = 3  # waiting domains in the message of a run's state


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
    db: Database, settings: Settings, targets: Targets, *, at: datetime | None, pages: int | None = None
) -> tuple[dict[str, object], str]:
    """Crawl until nothing is due, the shift's time is up or the run is cancelled; ends with a markdown artifact.

    Returns the figures of what was done, and a message for the state of the run: what was done, and why domains wait.
    """
    clock = Clock.at(at)
    progress: dict[UUID, Progress] = {}

    async def walk_lease(lease: Lease, walk_it: Callable[[], Awaitable[LeaseResult]]) -> LeaseResult:
        progress[lease.token] = Progress(pending=await count_due(db, [lease.domain], at=clock.now()) or 0)
        try:
            return await as_task(lease, walk_it, progress[lease.token])
        finally:
            del progress[lease.token]

    def show(lease: Lease, stats: CrawlStats) -> None:
        if lease.token in progress:
            progress[lease.token].stats = stats

    with told_to_end() as told:
        request = CrawlRequest(
            role="flow",
            stack=os.environ.get(STACK, ""),
            at=at,
            max_pages=pages,
            time_limit=settings.shift_time,
            stop=told,
            count_leases=True,
        )
        result = await crawl_targets(db, settings, targets, request, clock=clock, hooks=ShiftHooks(show, walk_lease))
    shift = result.shift
    waits = [(domain, wait) for domain, wait in result.waits if wait and wait.reason is not WaitReason.NOT_DUE]
    waiting = [f"{domain.authority} {format_wait(wait, domain, now=result.at)}" for domain, wait in waits]
    said = sentences(shift, waiting)
    for line in said:
        get_run_logger().info("%s", line)
    if has_effect(shift) or any(wait.pages for _, wait in waits):
        shown = markdown(shift, waiting, origin=web_ui_origin(settings))
        await if_heard(acreate_markdown_artifact(shown, key=RESULT, description="What this run did"))
    if result.was_stopped:
        await end_early()
    await show_told(result.delivered)
    if result.notify_error:
        get_run_logger().warning("%s; the next run of notify tells what was found", result.notify_error)
    if shift.broken:
        raise BrokenDomains("; ".join(f"{domain}: {error}" for domain, error in shift.broken.items()))
    more = [f"{len(waiting) - MAX_NAMED} more domains wait"] if len(waiting) > MAX_NAMED else []
    done = said[:1] if has_effect(shift) or not waiting else []
    return shift.stats.as_dict(), "; ".join([*done, *waiting[:MAX_NAMED], *more])
