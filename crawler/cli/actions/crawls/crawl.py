"""recrawl crawl: one shift in this process, from names to a table of what was done."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.app import Wait, WaitReason, waiting_domains, why_not_now
from crawler.app.registration import home_seeds, require_not_before_last_visit, scope_of, url_of
from crawler.app.status import format_wait
from crawler.cli.actions.crawls.dead_leases import free_dead_leases
from crawler.cli.actions.crawls.outcome import CrawlOutcome, print_result
from crawler.cli.actions.domains.register import ask_and_register, charge_request
from crawler.cli.actions.explain.why import defaults_in_use, why_refused
from crawler.cli.actions.upkeep.prune import keep_quotas
from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import err, remark
from crawler.cli.progress import CrawlProgress
from crawler.cli.session import Interrupts, with_database
from crawler.cli.settings_options import SettingsPatch
from crawler.clock import Clock
from crawler.core.budget import opening
from crawler.core.domain import Domain
from crawler.core.http import Authority, Fetched, Url, authority_of, path_and_query
from crawler.engine import (
    CrawlLimits,
    ShiftHooks,
    ShiftResult,
    holder_name,
    open_resources,
    run_shift,
    settle_memory,
)
from crawler.errors import BadInput
from crawler.format.values import format_count, format_instant
from crawler.plugins import load, require_policy
from crawler.runtime.secrets import secrets_of
from crawler.settings import Settings, settings
from crawler.store import domains, report, subscriptions
from crawler.store.database import Database

NEARLY_NOW = timedelta(minutes=1)
# A limit that the user has set is not an error.
EXPECTED = {
    WaitReason.BUDGET_SPENT,
    WaitReason.BYTES_SPENT,
    WaitReason.SHARED_BUDGET_SPENT,
    WaitReason.OUTSIDE_HOURS,
}
MOST_COUNTED = 100  # domains whose work is format_count for the progress bar


@dataclass(frozen=True, slots=True)
class CrawlRequest:
    """What the command line asks for. names: URLs and names; none with `due` means all that are registered."""

    names: tuple[str, ...]
    pages: int | None
    due: bool
    patch: SettingsPatch
    offline: bool
    shift_time: timedelta | None
    at: datetime | None


def crawl(request: CrawlRequest, *, as_json: bool) -> int:
    require_names(request)
    load(settings().plugins)  # whatever is wrong with one is said before anything begins
    # Who names a domain wants it now, not spread over the day.
    used = settings().model_copy(update={"pace": False}) if request.names else settings()

    async def work(db: Database, interrupts: Interrupts) -> CrawlOutcome:
        clock = Clock.at(request.at)
        if used.database_url is None:
            await free_dead_leases(db)
        wanted, answered = await _wanted(db, request, clock)
        for domain in wanted or ():
            require_policy(domain.settings.revisit, used.plugins)
        if request.at is not None and request.at > datetime.now(UTC) + NEARLY_NOW:
            then = format_instant(request.at)
            remark(f"recrawl: what is read now counts as read at {then}; until then, go on with --at")
        shift = await _walk(
            db, wanted, request=request, clock=clock, used=used, interrupts=interrupts, answered=answered
        )
        outcome = CrawlOutcome(
            shift=shift,
            at=clock.now(),
            names=[domain.authority for domain in wanted or ()],
            signal=interrupts.number,
        )
        if outcome.signal is not None:
            outcome.left = await _looks_due(db, wanted, at=outcome.at)
        await _count_pages(db, wanted, outcome)
        await _explain_idleness(db, wanted, outcome)
        if not request.due:
            outcome.refused = await _refused(db, request, outcome.at)
        if outcome.signal is None:
            await keep_quotas(db, await _crawled_with_quota(db, outcome))
            await _tell(db, clock, stop=interrupts.stop)
        return outcome

    # Every lease needs a connection for its records and one for its renewals.
    outcome = with_database(work, connections=2 * used.leases_at_once + 2, patient=True)
    print_result(outcome, as_json=as_json)
    if outcome.signal is not None:
        return 128 + outcome.signal
    return DONE if outcome.is_well else PROBLEM


async def _crawled_with_quota(db: Database, outcome: CrawlOutcome) -> list[Domain]:
    """The domains that this crawl has looked at and that have a quota, as they are set now."""
    found = [await domains.find(db, Authority(name)) for name in outcome.shift.by_domain]
    return [each for each in found if each is not None and each.settings.quota is not None]


async def _tell(db: Database, clock: Clock, *, stop: asyncio.Event) -> None:
    """Tell those who asked for it what was found; whoever cannot be told now is told later, and fails no crawl."""
    if not await subscriptions.every(db):
        return
    from crawler.cli.actions.delivery import notify_run

    told = await notify_run.deliver_found(db, clock, stop=stop)
    if told.messages:
        remark(f"Told: {format_count(told.changes, 'change')} in {format_count(told.messages, 'message')}")
    notify_run.tell_failures(told)


def require_names(request: CrawlRequest) -> None:
    if not request.names and not request.due:
        raise BadInput("nothing to crawl: name a URL or a domain, or say --due for all that is registered")


async def _wanted(db: Database, request: CrawlRequest, clock: Clock) -> tuple[list[Domain] | None, dict[Url, Fetched]]:
    """The domains to crawl, registered where they were not; None for all that there are. With what roots said then."""
    if not request.names:
        if request.at is not None:
            await require_not_before_last_visit(db, [listed.domain for listed in await domains.every(db)], request.at)
        return None, {}
    urls = {name: url_of(name) for name in request.names}  # nothing is registered while any of them is none
    found: dict[int, Domain] = {}
    answered: dict[Url, Fetched] = {}
    for name, url in urls.items():
        domain = await domains.find(db, authority_of(url))
        if domain is None:
            domain, answer = await ask_and_register(db, name, request.patch, offline=request.offline, at=clock.now())
            if answer is not None:
                answered[domain.root] = answer
        else:
            await require_not_before_last_visit(db, [domain], request.at)
            if request.patch.differs_from(domain.settings):
                remark(f"{domain.authority} is registered: its settings stay (recrawl domains set {domain.authority})")
        if not request.due and path_and_query(url) != "/":
            await _look_at(db, domain, url, at=clock.now())
        found[domain.id] = domain
    await domains.wake(db, list(found.values()), at=clock.now())
    return list(found.values()), answered


async def _look_at(db: Database, domain: Domain, url: Url, *, at: datetime) -> None:
    """Have one page looked at, due or not, known or not."""
    await domains.seed(db, domain, home_seeds(scope_of(domain, domain.settings), [url]), at=at, before_root=True)


async def _walk(
    db: Database,
    wanted: Sequence[Domain] | None,
    *,
    request: CrawlRequest,
    clock: Clock,
    used: Settings,
    interrupts: Interrupts,
    answered: Mapping[Url, Fetched],
) -> ShiftResult:
    pending = (await _looks_due(db, wanted, at=clock.now()) if err().is_terminal else 0) or 0  # for the bar alone
    with CrawlProgress(pending=pending, most=request.pages) as progress:
        async with open_resources(used, answered=answered, find_secret=secrets_of(used)) as webs:
            settle_memory()
            result = await run_shift(
                db,
                webs,
                settings=used,
                clock=clock,
                holder=holder_name("crawl"),
                only=wanted,
                limits=CrawlLimits(request.pages, request.shift_time, interrupts.stop),
                hooks=ShiftHooks(progress=progress.advance),
            )
    for domain in wanted or ():
        if (unused := webs.answered.get(domain.root)) is not None:
            await charge_request(db, domain, unused, at=clock.now())
    return result


async def _looks_due(db: Database, wanted: Sequence[Domain] | None, *, at: datetime) -> int | None:
    """Looks that wait in these domains, or in all; None where counting them would take long."""
    format_count = [each.domain for each in await domains.every(db)] if wanted is None else wanted
    if len(format_count) > MOST_COUNTED:
        return None
    loads = [await report.workload(db, domain, at=at) for domain in format_count]
    return sum(load.looks for load in loads)


async def _count_pages(db: Database, wanted: Sequence[Domain] | None, outcome: CrawlOutcome) -> None:
    """Have the next report of a large domain say what this crawl has made of it, where that may be much."""
    for domain in wanted or ():
        stats = outcome.shift.by_domain.get(domain.authority)
        if stats is not None and outcome.signal is None:
            await report.count_after(db, domain, looks=stats.looks, at=outcome.at)


async def _refused(db: Database, request: CrawlRequest, at: datetime) -> dict[Url, str]:
    """The URLs that were named and may not be asked for, and why not."""
    found = {}
    for url in map(url_of, request.names):
        domain = await domains.find(db, authority_of(url))
        if domain is None or path_and_query(url) == "/":
            continue
        home = domain.scope(max_depth=settings().max_depth).home(url)
        known = await report.explain(db, domain, home, at=at, defaults=defaults_in_use())
        why = why_refused(home, domain, known.robots)
        if why:
            found[home] = why
    return found


async def _explain_idleness(db: Database, wanted: Sequence[Domain] | None, outcome: CrawlOutcome) -> None:
    """Say why domains were not crawled, or requested pages of them were left, and when they are next."""
    for domain, wait in await _waits(db, wanted, outcome):
        outcome.idle[domain.authority] = format_wait(wait, domain, now=outcome.at) or "had nothing to look at"
        if wait is not None and (
            wait.reason is WaitReason.CLOCK_BEHIND
            or (wanted is not None and wait.reason.is_obstacle and wait.reason not in EXPECTED)
        ):
            outcome.problems.add(domain.authority)
    waking = []
    for domain in wanted or ():
        status = await domains.status_of(db, domain, at=outcome.at)
        if status.wake_at is not None:
            woken = max(status.wake_at, status.resume_at or status.wake_at)
            waking.append(max(woken, opening(domain.hours, woken)))
    outcome.next_due_at = min(waking, default=None)


async def _waits(
    db: Database, wanted: Sequence[Domain] | None, outcome: CrawlOutcome
) -> Sequence[tuple[Domain, Wait | None]]:
    """Return the domains that this crawl has left waiting: named ones, or those in which something is due."""
    if wanted is None:
        has_fetched = outcome.shift.stats.requests > 0
        return await waiting_domains(db, settings(), at=outcome.at, requested=has_fetched)
    found = []
    for domain in wanted:
        stats = outcome.shift.by_domain.get(domain.authority)
        has_fetched = stats is not None and stats.looks > 0
        wait = await why_not_now(db, domain, settings(), at=outcome.at)
        is_left = not has_fetched or (wait is not None and wait.pages > 0)
        if is_left and domain.authority not in outcome.shift.holds:
            found.append((domain, None if wait is not None and wait.reason is WaitReason.NO_WORKER else wait))
    return found
