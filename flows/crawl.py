"""The flows crawl, recrawl and add: crawl what is due, a domain in full, or a new domain. Each lease is a task run."""

import os
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from uuid import UUID

from prefect import State, flow, get_run_logger
from prefect.runtime import flow_run
from prefect.states import Completed

from crawler.app import crawl as app
from crawler.app.changes import read_changes_of_pages
from crawler.app.database import AppDatabase, open_configured_database
from crawler.app.domains import add_domains
from crawler.app.revisits import request_refresh
from crawler.app.running.local_stack import get_web_ui_origin
from crawler.app.status import WaitReason, format_wait, format_waits_briefly
from crawler.app.tags import add_tagged_names
from crawler.clock import Clock
from crawler.errors import BadInput
from crawler.settings import get_settings
from flows.form import SettingsForm, build_patch, parse_instant, update_forms
from flows.lease import Progress, run_as_task, show_markdown, try_prefect_call
from flows.notify import show_delivery
from flows.result import format_state, has_findings, list_notable_urls, render_markdown, summarize_shift
from flows.run_ending import build_run_name, end_early, report_errors, stop_on_sigterm

STACK = "RECRAWL_STACK"  # set by the local stack, so that it can free the leases of its dead runs


class DomainsFailed(Exception):
    """An internal error that ended the leases of some domains; the others were crawled."""


@flow(name="crawl", flow_run_name=build_run_name("crawl", without="crawl all due pages"), persist_result=False)
@report_errors
async def crawl(domain: str = "", pages: int = 0, at: str = "", tag: str = "") -> State[dict[str, object]]:
    """Crawl due and unfetched pages, the most valuable first.

    Args:
        domain: Only this domain, such as docs.example.com; empty for all registered domains.
        pages: The maximum number of pages; 0 for no limit.
        at: Act as if it were this time, such as 2026-01-31T12:00:00Z; empty for now.
        tag: Only domains with this tag; empty for all.

    """
    async with open_configured_database(get_settings()) as db:
        names = await add_tagged_names(db, [domain] if domain else [], tag)
        targets = await app.find_targets(db, names, at=parse_instant(at), only_due=True)
        return await run_crawl(db, targets, at=parse_instant(at), pages=pages or None)


def _format_recrawl_name() -> str:
    domain, path = flow_run.parameters.get("domain", ""), flow_run.parameters.get("path", "")
    tag = flow_run.parameters.get("tag", "")
    is_all = path in {"", "/*", *(f"{scheme}://{domain}/*" for scheme in ("http", "https"))}
    return " ".join(filter(None, ("recrawl", domain, tag and f"tag {tag}", "" if is_all else path)))


@flow(name="recrawl", flow_run_name=_format_recrawl_name, persist_result=False)
@report_errors
async def recrawl(domain: str = "", path: str = "", at: str = "", tag: str = "") -> State[dict[str, object]]:
    """Make all pages of a domain, or those of a path, due now and crawl them.

    Args:
        domain: A registered domain, such as docs.example.com; empty for those with the tag.
        path: One page, such as /blog/new or a whole URL; with * at the end, all pages whose URL starts with it;
            empty for the whole domain.
        at: Act as if it were this time, such as 2026-01-31T12:00:00Z; empty for now.
        tag: Recrawl the domains with this tag.

    """
    when = parse_instant(at)
    async with open_configured_database(get_settings()) as db:
        names = await add_tagged_names(db, [domain] if domain else [], tag)
        if not names:
            raise BadInput("name a domain or a tag")
        refreshed = [(await request_refresh(db, name, path=path, at=when)).domain for name in dict.fromkeys(names)]
        return await run_crawl(db, app.CrawlTargets(refreshed), at=when)


@flow(name="add", flow_run_name="add {site}", persist_result=False)
@report_errors
async def add(
    site: str,
    *,
    crawl_now: bool = True,
    domain_settings: SettingsForm = SettingsForm(),  # noqa: B008
) -> dict[str, object] | State[dict[str, object]]:
    """Register a domain and crawl it for the first time.

    Args:
        site: A name such as docs.example.com, or the URL of a page to start with.
        crawl_now: Crawl the domain immediately; otherwise it waits for the next scheduled crawl.
        domain_settings: The settings of the domain. You can change all of them later.

    """
    chosen, now = get_settings(), datetime.now(UTC)
    patch = build_patch(domain_settings)
    async with open_configured_database(chosen) as db:
        (added,) = await add_domains(db, [site], patch, at=now)
        domain = added.new_domain
        if added.warning:
            get_run_logger().warning("%s", added.warning)
        await try_prefect_call(update_forms(db))
        if not crawl_now:
            return {"domain": domain.authority}
        return await run_crawl(db, app.CrawlTargets([domain]), at=None, domain=domain.authority)


async def run_crawl(
    db: AppDatabase, targets: app.CrawlTargets, *, at: datetime | None, pages: int | None = None, **facts: object
) -> State[dict[str, object]]:
    """Crawl until nothing is due, a limit is reached or the run is canceled. Show the result as a Markdown artifact.

    facts: further data of the run.  Return the state of the run: its data are the counts and `facts`, and its message
    says what was done and why domains wait. Raises DomainsFailed.
    """
    clock = Clock.from_instant(at)
    started_at = clock.now()
    progress: dict[UUID, Progress] = {}

    async def track_lease(lease: app.Lease, crawl_it: Callable[[], Awaitable[app.LeaseResult]]) -> app.LeaseResult:
        progress[lease.token] = Progress(pending=await app.count_due_pages(db, [lease.domain], at=clock.now()) or 0)
        try:
            return await run_as_task(lease, crawl_it, progress[lease.token])
        finally:
            del progress[lease.token]

    def update_progress(lease: app.Lease, stats: app.CrawlStats) -> None:
        if lease.token in progress:
            progress[lease.token].stats = stats

    with stop_on_sigterm() as stop:
        stack, max_time = os.environ.get(STACK, ""), get_settings().max_run_time
        request = app.CrawlRequest(
            role="flow", stack=stack, at=at, max_pages=pages, time_limit=max_time, stop=stop, count_leases=True
        )
        result = await app.crawl(db, targets, request, clock=clock, hooks=app.ShiftHooks(update_progress, track_lease))
    shift = result.shift
    waits = [(domain, wait) for domain, wait in result.waits if wait and wait.reason is not WaitReason.NOT_DUE]
    waiting = [f"{domain.authority} {format_wait(wait, domain, now=result.at)}" for domain, wait in waits]
    for line in summarize_shift(shift, waiting):
        get_run_logger().info("%s", line)
    if has_findings(shift):
        changes = await read_changes_of_pages(db, list_notable_urls(shift), since=started_at, at=result.at)
        summary = render_markdown(shift, changes, waiting, origin=get_web_ui_origin(get_settings()))
        await show_markdown(summary, key="crawl-result", description="Crawl results")
    if result.was_stopped:
        await end_early()
    await show_delivery(result.delivered)
    if result.notify_error:
        get_run_logger().warning("%s; the next notify run sends the notifications", result.notify_error)
    if shift.broken:
        raise DomainsFailed("; ".join(f"{domain}: {error}" for domain, error in shift.broken.items()))
    is_counted = len(waits) <= app.MAX_COUNTED  # `count_due_pages` sees one domain at a time
    due = [
        (domain, wait, await app.count_due_pages(db, [domain], at=result.at) if is_counted else None)
        for domain, wait in waits
    ]
    message = format_state(shift, format_waits_briefly(due, now=result.at))
    return Completed(data=facts | shift.stats.as_dict(), message=message)
