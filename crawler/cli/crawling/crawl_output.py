"""recrawl crawl: one crawl run in this process, from names to a table of what was done."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from crawler.app.crawl import CrawlRequest, CrawlResult, Domain, Fetched, ShiftHooks, Targets, count_due, find_targets
from crawler.app.crawl import crawl as crawl_targets
from crawler.app.database import Database
from crawler.app.settings import SettingsPatch
from crawler.cli.crawling.crawl_result import print_result
from crawler.cli.delivery.notify_output import remark_failures
from crawler.cli.domains.register import ask_and_register
from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import err, remark
from crawler.cli.progress import CrawlProgress
from crawler.cli.running.prune import remark_quotas
from crawler.cli.session import Interrupts, settings, with_database
from crawler.clock import Clock
from crawler.format.values import format_count, format_instant

NEARLY_NOW = timedelta(minutes=1)


def crawl(
    names: Sequence[str], request: CrawlRequest, *, patch: SettingsPatch, due: bool, offline: bool, as_json: bool
) -> int:
    """Crawl what is named. request: without the event that stops it.  due: only what is due."""
    used, at = settings(), request.at

    async def work(db: Database, interrupts: Interrupts) -> tuple[CrawlResult, Interrupts]:
        clock = Clock.at(at)

        async def register(name: str) -> tuple[Domain, Fetched | None]:
            return await ask_and_register(db, name, patch, offline=offline, at=clock.now())

        targets = await find_targets(db, names, at=at, register=register, only_due=due)
        _remark_before(targets, patch, at=at)
        pending = (await count_due(db, targets.domains, at=clock.now()) if err().is_terminal else 0) or 0
        with CrawlProgress(pending=pending, most=request.max_pages) as progress:
            hooks, stoppable = ShiftHooks(progress=progress.advance), replace(request, stop=interrupts.stop)
            result = await crawl_targets(db, used, targets, stoppable, clock=clock, hooks=hooks)
        return result, interrupts

    # Every lease needs a connection for its records and one for its renewals.
    result, interrupts = with_database(work, connections=2 * used.leases_at_once + 2, patient=True)
    remark_quotas(result.pruned)
    _remark_notified(result)
    print_result(result, as_json=as_json)
    if interrupts.number is not None:
        return 128 + interrupts.number
    return DONE if result.is_well else PROBLEM


def _remark_before(targets: Targets, patch: SettingsPatch, *, at: datetime | None) -> None:
    for domain in targets.known:
        if patch.differs_from(domain.settings):
            remark(f"{domain.authority} is registered: its settings stay (recrawl domains set {domain.authority})")
    if at is not None and at > datetime.now(UTC) + NEARLY_NOW:
        then = format_instant(at)
        remark(f"recrawl: what is read now counts as read at {then}; until then, go on with --at")


def _remark_notified(result: CrawlResult) -> None:
    done = result.delivered
    if done.messages:
        remark(f"Told: {format_count(done.changes, 'change')} in {format_count(done.messages, 'message')}")
    remark_failures(done)
    if result.notify_error:
        remark(f"recrawl: {result.notify_error}; recrawl notify run tells what was found")
