"""Crawl domains in this process: one implementation for the command, the Python API and the flows.

`find_targets` converts the names that a user gave to domains and requested pages; `crawl` crawls them until nothing is
due.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from crawler.app import registration
from crawler.app.database import AppDatabase
from crawler.app.registration import find_domains, get_domain, make_scope, parse_typed_url
from crawler.app.status import Wait, WaitReason, find_wait, format_wait, list_waiting_domains
from crawler.clock import Clock
from crawler.core.budget.hours import find_opening
from crawler.core.change.change import Change
from crawler.core.domain import Domain, Lease
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Authority, Url, get_authority, get_path_and_query
from crawler.engine.coordinator import BAD_PATTERN, CrawlLimits
from crawler.engine.machine_load import prepare_memory
from crawler.engine.resources import open_resources
from crawler.engine.shift import ShiftHooks, build_holder_name, run_shift
from crawler.engine.stats import CrawlStats, LeaseResult, NotablePage, ShiftResult
from crawler.errors import StoreUnavailable
from crawler.notify.delivery_stats import DeliveryStats
from crawler.plugins import load_plugins, require_policy
from crawler.runtime.metrics.counting import open_counts_writer
from crawler.runtime.secrets import build_secret_finder
from crawler.settings import Settings
from crawler.store import claim, domains, report
from crawler.store.subscriptions import list_subscription_ids

if TYPE_CHECKING:  # few crawls need it
    from crawler.prune import PruneStats

MAX_COUNTED = 100  # with more domains, due pages are not counted
NOTIFY_TIMEOUT = timedelta(seconds=30)  # at the end of a crawl; later deliveries send the rest
EXPECTED_WAITS = {WaitReason.BUDGET_SPENT, WaitReason.BYTES_SPENT, WaitReason.SHARED_BUDGET_SPENT}
EXPECTED_WAITS |= {WaitReason.OUTSIDE_HOURS}

NO_HOOKS = ShiftHooks()

# Registers a domain that a user named, and returns it with the response of its root if that was just fetched.
Register = Callable[[str], Awaitable[tuple[Domain, Fetched | None]]]


class CrawlTargets(NamedTuple):
    """The domains and pages to crawl.

    domains: None for all registered domains.  registered: the given domains that were already registered.
    prefetched: responses of roots fetched during registration, to avoid fetching them twice.
    requested: the requested pages, each with its domain.
    """

    domains: Sequence[Domain] | None
    registered: Sequence[Domain] = ()
    prefetched: Mapping[Url, Fetched] = {}
    requested: Sequence[tuple[Domain, Url]] = ()


class CrawlRequest(Struct, frozen=True):
    """The options of a crawl.

    role: what crawls, such as "crawl" or "python"; a part of the lease holder's name.
    stack: the tag by which a local stack later finds and frees the leases of its dead processes; empty outside a stack.
    at: knowledge time; None for now.
    max_pages, time_limit, stop: end the crawl early; requests in progress are still finished and recorded.
    ignore_pace: spend the rest of the daily budget now instead of spreading it over the day.
    notify: send notifications at the end, for at most `NOTIFY_TIMEOUT`.
    count_leases: add the counts of this crawl to the worker metrics in RECRAWL_HOME.
    """

    role: str
    stack: str = ""
    at: datetime | None = None
    max_pages: int | None = None
    time_limit: timedelta | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    ignore_pace: bool = False
    notify: bool = True
    count_leases: bool = False


class CrawlResult(Struct):
    """The result of a crawl, and why domains wait.

    at: knowledge time at the end of the crawl.  domains: the named domains; None for all.
    waits: domains in which pages still wait or nothing was fetched, each with the reason; None without a reason.
    next_due_at: when the next page of the named domains is due and may be fetched; None if none will be due.
    was_stopped: whether `stop` ended the crawl.
    pages_left: the number of pages due after a stop; None without a stop, or with more than MAX_COUNTED domains.
    exclusions: requested URLs that may not be fetched, with the reason.
    pruned: domains whose versions were deleted to keep their storage quota, or that exceed it.
    delivered: the notifications sent.  notify_error: why sending them was aborted; the next delivery continues.
    """

    shift: ShiftResult
    at: datetime
    domains: Sequence[Domain] | None = None
    waits: Sequence[tuple[Domain, Wait | None]] = ()
    next_due_at: datetime | None = None
    was_stopped: bool = False
    pages_left: int | None = None
    exclusions: Mapping[Url, str] = field(default_factory=dict)
    pruned: "Sequence[PruneStats]" = ()
    delivered: DeliveryStats = field(default_factory=DeliveryStats)
    notify_error: str = ""

    @property
    def stats(self) -> CrawlStats:
        """Return the counts of all domains together."""
        return self.shift.stats

    @property
    def idle_reasons(self) -> dict[str, str]:
        """Return why each domain waits, by its name: the end of a sentence that begins with this name."""
        waits = ((domain, format_wait(wait, domain, now=self.at)) for domain, wait in self.waits)
        return {domain.authority: sentence or "had nothing to fetch" for domain, sentence in waits}

    @property
    def problem_domains(self) -> set[str]:
        """Return the domains whose wait is a problem: a last visit in the future.

        In a crawl of named domains, also any other obstacle except spent budgets and crawl hours.
        """
        problems = {WaitReason.CLOCK_BEHIND}
        if self.domains is not None:
            problems = {reason for reason in WaitReason if reason.is_obstacle} - EXPECTED_WAITS
        return {domain.authority for domain, wait in self.waits if wait is not None and wait.reason in problems}

    @property
    def is_well(self) -> bool:
        """Return whether every domain could be crawled. Single failed pages do not count."""
        shift = self.shift
        return not (shift.suspensions or shift.lost or shift.broken or self.problem_domains or self.exclusions)


def has_effect(shift: ShiftResult) -> bool:
    """Return whether a crawl did anything. Most scheduled runs find nothing due."""
    return bool(shift.stats.requests or shift.stats.visits or shift.stats.excluded or shift.suspensions or shift.broken)


async def find_targets(
    db: AppDatabase,
    names: Sequence[str],
    *,
    at: datetime | None,
    register: Register | None = None,
    only_due: bool = False,
) -> CrawlTargets:
    """Return the domains of these names and URLs, or all domains if no names are given.

    The page of a URL with a path is requested even if it is not due, unless `only_due` is set.
    register: called for a name that is not registered; without it, such a name raises BadInput. Nothing is registered
    if any name is invalid. Raises BadInput, also if the time is before the last visit of a domain.
    """
    if not names:
        if at is not None:
            await find_domains(db, at=at)
        return CrawlTargets(None)
    clock = Clock.from_instant(at)
    selected: dict[int, Domain] = {}
    registered: list[Domain] = []
    prefetched: dict[Url, Fetched] = {}
    requested: list[tuple[Domain, Url]] = []
    for name, url in {name: parse_typed_url(name) for name in names}.items():  # registers nothing if any is invalid
        domain = await domains.find_domain(db, get_authority(url))
        if domain is not None or register is None:
            domain = domain or await get_domain(db, name)
            await registration.require_after_last_visit(db, [domain], at)
            registered.append(domain)
        else:
            domain, response = await register(name)
            if response is not None:
                prefetched[domain.root] = response
        if not only_due and get_path_and_query(url) != "/":
            scope = make_scope(domain, domain.settings)
            seeds = registration.normalize_seeds(scope, [url])
            await domains.add_seeds(db, domain, seeds, at=clock.now(), before_root=True)
            requested.append((domain, scope.to_domain_url(url)))
        selected[domain.id] = domain
    return CrawlTargets(list(selected.values()), registered, prefetched, requested)


async def crawl(
    db: AppDatabase,
    targets: CrawlTargets,
    request: CrawlRequest,
    *,
    clock: Clock | None = None,
    hooks: ShiftHooks = NO_HOOKS,
) -> CrawlResult:
    """Crawl until nothing is due or a limit is reached. Unless stopped, enforce storage quotas and send notifications.

    clock: a clock that starts at the request's time, for callers whose hooks also read it; None for a new one.
    Raises PluginBroken, and BadInput for an unknown revisit policy.
    """
    clock = clock or Clock.from_instant(request.at)
    if request.ignore_pace:
        db = AppDatabase(db.pool, settings=db.settings.model_copy(update={"pace": False}))
    load_plugins(db.settings.plugins)
    for domain in targets.domains or ():
        require_policy(domain.settings.revisit, db.settings.plugins)
    if db.settings.database_url is None:
        await free_dead_leases(db)
    if targets.domains and request.ignore_pace:
        await domains.wake_domains(db, targets.domains, at=clock.now())
    find_secret = build_secret_finder(db.settings)
    async with open_resources(db.settings, prefetched=targets.prefetched, find_secret=find_secret) as resources:
        prepare_memory()
        shift = await run_shift(
            db,
            resources,
            settings=db.settings,
            clock=clock,
            holder="/".join(filter(None, (request.stack, build_holder_name(request.role)))),
            only=targets.domains,
            limits=CrawlLimits(request.max_pages, request.time_limit, request.stop),
            hooks=_wrap_hooks(hooks, db.settings) if request.count_leases else hooks,
        )
    result = CrawlResult(shift, clock.now(), targets.domains, was_stopped=request.stop.is_set())
    for domain in targets.domains or ():
        if (unused := resources.prefetched.get(domain.root)) is not None:
            await _charge_request(db, domain, unused, at=result.at)
    await _add_outlook(db, result)
    result.exclusions = await _explain_exclusions(db, targets.requested, at=result.at)
    if not result.was_stopped:
        result.pruned = await _enforce_quotas(db, shift.by_domain)
        if request.notify:
            try:
                result.delivered = await _deliver_due(db, clock=clock, stop=request.stop)
            except StoreUnavailable as error:  # does not fail the crawl; the next delivery continues
                result.notify_error = str(error)
    return result


async def count_due_pages(db: AppDatabase, selected: Sequence[Domain] | None, *, at: datetime) -> int | None:
    """Return how many pages are due in these domains, or in all; None with more than MAX_COUNTED domains."""
    counted = await find_domains(db) if selected is None else selected
    if len(counted) > MAX_COUNTED:
        return None
    return sum([(await report.read_backlog(db, domain, at=at)).fetches for domain in counted])


async def free_dead_leases(db: AppDatabase) -> None:
    """Free the leases of dead processes on this machine. Only valid for the embedded Postgres."""
    import psutil

    for holder in await report.list_holders(db):
        machine, _, rest = holder.partition("/")
        pid = rest.partition("/")[0]
        if machine == socket.gethostname() and pid.isdigit() and not psutil.pid_exists(int(pid)):
            await domains.expire_leases(db, holder_prefix=f"{machine}/{pid}/")


def _wrap_hooks(hooks: ShiftHooks, settings: Settings) -> ShiftHooks:
    """Return the hooks of a crawl that counts its leases."""
    counted = open_counts_writer(settings.home.resolve())

    def on_progress(lease: Lease, stats: CrawlStats) -> None:
        counted.count_progress(lease.token, stats)
        hooks.progress(lease, stats)

    async def wrap_crawl(lease: Lease, crawl_it: Callable[[], Awaitable[LeaseResult]]) -> LeaseResult:
        return await counted.crawl_lease(lease.token, lambda: hooks.wrap_crawl(lease, crawl_it))

    return ShiftHooks(on_progress, wrap_crawl)


async def _charge_request(db: AppDatabase, domain: Domain, response: Fetched, *, at: datetime) -> None:
    """Charge a request that led to no visit: to the budget of its domain and to the shared budget."""
    usage = {"requests": 1, "received_bytes": response.received_bytes}
    await claim.charge(db, domain, **usage, at=at)
    if db.settings.shared_budget.is_limited:
        await claim.charge_shared_budget(db, **usage, at=at)


async def _add_outlook(db: AppDatabase, result: CrawlResult) -> None:
    """Add to the result why domains wait, when the next page is due and, after a stop, how many pages are left.

    A large domain with many visits is counted again, so that reports have current figures.
    """
    if result.was_stopped:
        result.pages_left = await count_due_pages(db, result.domains, at=result.at)
    result.waits = await _find_waits(db, result)
    wake_times = []
    for domain in result.domains or ():
        stats = result.shift.by_domain.get(domain.authority)
        if stats is not None and not result.was_stopped:
            await report.count_after_crawl(db, domain, visits=stats.visits, at=result.at)
        status = await domains.read_status(db, domain, at=result.at)
        if status.wake_at is not None:
            wakes_at = max(status.wake_at, status.resume_at or status.wake_at)
            wake_times.append(max(wakes_at, find_opening(domain.hours, wakes_at)))
    result.next_due_at = min(wake_times, default=None)


async def _find_waits(db: AppDatabase, result: CrawlResult) -> Sequence[tuple[Domain, Wait | None]]:
    """Return the domains that wait after a crawl: of the named ones, or of all domains in which something is due."""
    if result.domains is None:
        return await list_waiting_domains(db, at=result.at, requested=has_effect(result.shift))
    waits: list[tuple[Domain, Wait | None]] = []
    for domain in result.domains:
        stats = result.shift.by_domain.get(domain.authority)
        wait = await find_wait(db, domain, at=result.at)
        is_left = stats is None or not stats.visits or (wait is not None and wait.pages > 0)
        if is_left and domain.authority not in result.shift.suspensions:
            waits.append((domain, None if wait is not None and wait.reason is WaitReason.NO_WORKER else wait))
    return waits


async def _explain_exclusions(
    db: AppDatabase, requested: Sequence[tuple[Domain, Url]], *, at: datetime
) -> dict[Url, str]:
    if not requested:
        return {}
    from crawler.app.explain import explain_exclusion

    exclusions = {url: await explain_exclusion(db, domain, url, at=at) for domain, url in requested}
    return {url: why for url, why in exclusions.items() if why}


async def _deliver_due(db: AppDatabase, *, clock: Clock, stop: asyncio.Event) -> DeliveryStats:
    if not await list_subscription_ids(db):
        return DeliveryStats()
    from crawler.app.delivery.notifications import deliver_due

    return await deliver_due(db, clock=clock, max_duration=NOTIFY_TIMEOUT, stop=stop)


async def _enforce_quotas(db: AppDatabase, names: Collection[str]) -> "list[PruneStats]":
    """Delete versions of crawled domains that exceed their storage quota."""
    crawled = [await domains.find_domain(db, Authority(name)) for name in names]
    limited = [each for each in crawled if each is not None and each.settings.quota is not None]
    if not limited:
        return []
    from crawler.prune import enforce_quota

    pruned = [await enforce_quota(db, domain) for domain in limited]
    return [each for each in pruned if each is not None]
