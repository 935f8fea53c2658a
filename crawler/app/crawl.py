"""Crawl these domains, now, in this process: one implementation for the command, the Python API and the flows.

`find_targets` turns what a user named into domains and requested pages; `crawl` crawls them until nothing is due.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

import psutil

from crawler.app.database import AppDatabase
from crawler.app.delivery.notifications import deliver_due
from crawler.app.explain import explain_refusal
from crawler.app.registration import (
    find_domains,
    get_domain,
    make_scope,
    normalize_seeds,
    parse_typed_url,
    require_not_before_last_visit,
)
from crawler.app.status import Wait, WaitReason, find_wait, format_wait, list_waiting_domains
from crawler.clock import Clock
from crawler.core.budget.hours import find_opening
from crawler.core.change.change import Change
from crawler.core.domain import Domain, Lease
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Authority, Url, get_authority, get_path_and_query
from crawler.engine.coordinator import BAD_PATTERN, CrawlLimits
from crawler.engine.machine import prepare_memory
from crawler.engine.resources import open_resources
from crawler.engine.shift import ShiftHooks, build_holder_name, run_shift
from crawler.engine.stats import CrawlStats, LeaseResult, NotablePage, ShiftResult
from crawler.errors import StoreUnavailable
from crawler.notify.subscription_delivery import DeliveryStats
from crawler.plugins import load_plugins, require_policy
from crawler.prune import PruneStats, enforce_quota
from crawler.runtime.metrics.counting import open_counts_writer
from crawler.runtime.secrets import build_secret_finder
from crawler.settings import Settings
from crawler.store import claim, domains, report

MAX_COUNTED = 100  # domains whose due pages are counted
NOTIFY_TIMEOUT = timedelta(seconds=30)  # at the end of a crawl; `recrawl notify run` and the flow go on with the rest
EXPECTED_WAITS = {
    WaitReason.BUDGET_SPENT,
    WaitReason.BYTES_SPENT,
    WaitReason.SHARED_BUDGET_SPENT,
    WaitReason.OUTSIDE_HOURS,
}

# Register a domain that a user named; return it with the response of its root, if that was fetched just now.
Register = Callable[[str], Awaitable[tuple[Domain, Fetched | None]]]


class CrawlTargets(NamedTuple):
    """What to crawl.

    domains: None for all that are registered.  registered: those of them that were registered before.
    prefetched: responses of roots that were fetched during registration, so that they are not fetched twice.
    requested: pages that were named, each with its domain.
    """

    domains: Sequence[Domain] | None
    registered: Sequence[Domain] = ()
    prefetched: Mapping[Url, Fetched] = {}
    requested: Sequence[tuple[Domain, Url]] = ()


@dataclass(frozen=True, slots=True)
class CrawlRequest:
    """How to crawl some targets.

    role: who crawls, in the name of the leases' holder.  stack: the local stack that frees the leases if it dies.
    at: knowledge time; None for now.
    max_pages, time_limit, stop: end the crawl early; what is in flight then is still recorded.
    ignore_pace: spend what is left of the daily budget now, instead of spreading it over the day.
    notify: tell subscribers what was found, for at most `NOTIFY_TIMEOUT`.
    count_leases: add what was done to the metrics that RECRAWL_HOME keeps of its workers.
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


@dataclass(slots=True)
class CrawlResult:
    """What a crawl has done, and why domains wait.

    at: knowledge time at its end.  waits: domains that were left waiting; without a `Wait`, nothing was to be done.
    next_due_at: when the first of the named domains has something due.
    was_stopped: `stop` ended it.  pages_left: pages that were due then; None where there are too many domains to count.
    exclusions: URLs that were named and may not be fetched, and why not.
    pruned: domains whose versions were thinned out to keep their quota, or that exceed it.
    delivered: which subscribers were told.  notify_error: why it broke off; the next delivery goes on from there.
    """

    shift: ShiftResult
    at: datetime
    domains: Sequence[Domain] | None = None
    waits: Sequence[tuple[Domain, Wait | None]] = ()
    next_due_at: datetime | None = None
    was_stopped: bool = False
    pages_left: int | None = None
    exclusions: Mapping[Url, str] = field(default_factory=dict)
    pruned: Sequence[PruneStats] = ()
    delivered: DeliveryStats = field(default_factory=DeliveryStats)
    notify_error: str = ""

    @property
    def stats(self) -> CrawlStats:
        """The counts of all domains together."""
        return self.shift.stats

    @property
    def idle_reasons(self) -> dict[str, str]:
        """Why domains wait, as the end of a sentence that begins with the name of the domain."""
        waits = ((domain, format_wait(wait, domain, now=self.at)) for domain, wait in self.waits)
        return {domain.authority: sentence or "had nothing to look at" for domain, sentence in waits}

    @property
    def problem_domains(self) -> set[str]:
        """The idle domains that should worry the user: a limit that was set is not an error."""
        return {
            domain.authority
            for domain, wait in self.waits
            if wait is not None
            and (
                wait.reason is WaitReason.CLOCK_BEHIND
                or (self.domains is not None and wait.reason.is_obstacle and wait.reason not in EXPECTED_WAITS)
            )
        }

    @property
    def is_well(self) -> bool:
        """Whether every domain could be crawled. A page that failed alone is no problem."""
        return not (
            self.shift.suspensions or self.shift.lost or self.shift.broken or self.problem_domains or self.exclusions
        )


def has_effect(shift: ShiftResult) -> bool:
    """Whether a crawl did anything; most runs of a schedule find nothing due."""
    return bool(shift.stats.requests or shift.stats.visits or shift.stats.excluded or shift.suspensions or shift.broken)


async def find_targets(
    db: AppDatabase,
    names: Sequence[str],
    *,
    at: datetime | None,
    register: Register | None = None,
    only_due: bool = False,
) -> CrawlTargets:
    """Return the domains that these names and URLs mean, or all where none is named.

    The page of a URL with a path is requested, whether it is due or not, unless `only_due`.
    register: called for a name that is not registered; without it such a name raises BadInput. Nothing is registered
    if any of the names is not a URL. Raises BadInput for an instant before the last visit of a domain, too.
    """
    if not names:
        if at is not None:
            await find_domains(db, at=at)
        return CrawlTargets(None)
    clock = Clock.from_instant(at)
    urls = {name: parse_typed_url(name) for name in names}
    selected: dict[int, Domain] = {}
    registered: list[Domain] = []
    prefetched: dict[Url, Fetched] = {}
    requested: list[tuple[Domain, Url]] = []
    for name, url in urls.items():
        domain = await domains.find_domain(db, get_authority(url))
        if domain is not None or register is None:
            domain = domain or await get_domain(db, name)
            await require_not_before_last_visit(db, [domain], at)
            registered.append(domain)
        else:
            domain, response = await register(name)
            if response is not None:
                prefetched[domain.root] = response
        if not only_due and get_path_and_query(url) != "/":
            scope = make_scope(domain, domain.settings)
            await domains.add_seeds(db, domain, normalize_seeds(scope, [url]), at=clock.now(), before_root=True)
            requested.append((domain, scope.to_domain_url(url)))
        selected[domain.id] = domain
    return CrawlTargets(list(selected.values()), registered, prefetched, requested)


async def crawl(
    db: AppDatabase,
    targets: CrawlTargets,
    request: CrawlRequest,
    *,
    clock: Clock | None = None,
    hooks: ShiftHooks | None = None,
) -> CrawlResult:
    """Crawl until nothing is due or a limit of the request is reached, then keep quotas and tell subscribers.

    clock: shows the request's instant; given by a caller whose hooks read the same clock.
    Raises BadInput for plugins that cannot be used and for an instant before the last visit of a domain.
    """
    clock = clock or Clock.from_instant(request.at)
    if request.ignore_pace:
        db = replace(db, settings=db.settings.model_copy(update={"pace": False}))
    load_plugins(db.settings.plugins)
    for domain in targets.domains or ():
        require_policy(domain.settings.revisit, db.settings.plugins)
    if db.settings.database_url is None:
        await free_dead_leases(db)
    if targets.domains and request.ignore_pace:
        await domains.wake_domains(db, targets.domains, at=clock.now())
    limits = CrawlLimits(request.max_pages, request.time_limit, request.stop)
    async with open_resources(
        db.settings, prefetched=targets.prefetched, find_secret=build_secret_finder(db.settings)
    ) as resources:
        prepare_memory()
        shift = await run_shift(
            db,
            resources,
            settings=db.settings,
            clock=clock,
            holder="/".join(filter(None, (request.stack, build_holder_name(request.role)))),
            only=targets.domains,
            limits=limits,
            hooks=_wrap_hooks(hooks or ShiftHooks(), db.settings) if request.count_leases else hooks,
        )
    result = CrawlResult(shift, clock.now(), targets.domains, was_stopped=request.stop.is_set())
    for domain in targets.domains or ():
        if (unused := resources.prefetched.get(domain.root)) is not None:
            await _charge_request(db, domain, unused, at=result.at)
    await _add_outlook(db, result)
    refusals = {url: await explain_refusal(db, domain, url, at=result.at) for domain, url in targets.requested}
    result.exclusions = {url: why for url, why in refusals.items() if why}
    if not result.was_stopped:
        result.pruned = await _enforce_quotas(db, shift.by_domain)
        if request.notify:
            await _notify_subscribers(db, result, clock=clock, stop=request.stop)
    return result


async def count_due_pages(db: AppDatabase, selected: Sequence[Domain] | None, *, at: datetime) -> int | None:
    """Return how many pages are due in these domains, or in all; None where counting them would take long."""
    counted = await find_domains(db) if selected is None else selected
    if len(counted) > MAX_COUNTED:
        return None
    return sum([(await report.read_backlog(db, domain, at=at)).fetches for domain in counted])


async def free_dead_leases(db: AppDatabase) -> None:
    """Free what killed processes of this machine still hold of the embedded Postgres, which no other machine uses."""
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
    """Charge a request that no visit was made of to its domain and to the shared budget."""
    usage = {"requests": 1, "received_bytes": response.received_bytes}
    await claim.charge(db, domain, **usage, at=at)
    if db.settings.shared_budget.is_limited:
        await claim.charge_shared_budget(db, **usage, at=at)


async def _add_outlook(db: AppDatabase, result: CrawlResult) -> None:
    """Add why domains wait, when the next one is due and, after a stop, how much is left.

    The next report of a large domain counts it anew where this crawl may have changed much of it.
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
    """Return the domains that a crawl has left waiting: named ones, or those in which something is due."""
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


async def _enforce_quotas(db: AppDatabase, names: Collection[str]) -> list[PruneStats]:
    """Thin out the versions of crawled domains that take more than their quota, as it is set now."""
    crawled = [await domains.find_domain(db, Authority(name)) for name in names]
    limited = [each for each in crawled if each is not None and each.settings.quota is not None]
    pruned = [await enforce_quota(db, domain) for domain in limited]
    return [each for each in pruned if each is not None]


async def _notify_subscribers(db: AppDatabase, result: CrawlResult, *, clock: Clock, stop: asyncio.Event) -> None:
    """Tell subscribers what was found. Whoever cannot be told now is told later, which fails no crawl."""
    try:
        result.delivered = await deliver_due(db, clock=clock, max_duration=NOTIFY_TIMEOUT, stop=stop)
    except StoreUnavailable as error:
        result.notify_error = str(error)
