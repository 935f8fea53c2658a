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

from crawler.app.database import Database
from crawler.app.delivery.notifications import deliver_due
from crawler.app.explain import explain_refusal
from crawler.app.registration import (
    domain_named,
    find_domains,
    home_seeds,
    require_not_before_last_visit,
    scope_of,
    url_of,
)
from crawler.app.status import Wait, WaitReason, format_wait, waiting_domains, why_not_now
from crawler.clock import Clock
from crawler.core.budget.hours import opening
from crawler.core.change.change import Change
from crawler.core.domain import Domain, Lease
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Authority, Url, authority_of, path_and_query
from crawler.engine.coordinator import BAD_PATTERN, CrawlLimits
from crawler.engine.machine import settle_memory
from crawler.engine.resources import open_resources
from crawler.engine.shift import ShiftHooks, holder_name, run_shift
from crawler.engine.stats import CrawlStats, FoundPage, LeaseResult, ShiftResult
from crawler.errors import StoreUnavailable
from crawler.notify.one_subscription import Delivered
from crawler.plugins import load, require_policy
from crawler.prune import Pruned, keep_quota
from crawler.runtime.metrics.counted import counted_into
from crawler.runtime.secrets import secrets_of
from crawler.settings import Settings
from crawler.store import claim, domains, report

MAX_COUNTED = 100  # domains whose due pages are counted
NOTIFY_WITHIN = timedelta(seconds=30)  # at the end of a crawl; `recrawl notify run` and the flow go on with the rest
EXPECTED = {
    WaitReason.BUDGET_SPENT,
    WaitReason.BYTES_SPENT,
    WaitReason.SHARED_BUDGET_SPENT,
    WaitReason.OUTSIDE_HOURS,
}

# Register a domain that a user named; return it with the response of its root, if that was fetched just now.
Register = Callable[[str], Awaitable[tuple[Domain, Fetched | None]]]


class Targets(NamedTuple):
    """What to crawl.

    domains: None for all that are registered.  known: those of them that were registered before.
    answered: responses of roots that were fetched during registration, so that they are not fetched twice.
    requested: pages that were named, each with its domain.
    """

    domains: Sequence[Domain] | None
    known: Sequence[Domain] = ()
    answered: Mapping[Url, Fetched] = {}
    requested: Sequence[tuple[Domain, Url]] = ()


@dataclass(frozen=True, slots=True)
class CrawlRequest:
    """How to crawl some targets.

    role: who crawls, in the name of the leases' holder.  stack: the local stack that frees the leases if it dies.
    at: knowledge time; None for now.
    max_pages, time_limit, stop: end the crawl early; what is in flight then is still recorded.
    ignore_pace: spend what is left of the daily budget now, instead of spreading it over the day.
    notify: tell subscribers what was found, for at most `NOTIFY_WITHIN`.
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
    was_stopped: `stop` ended it.  left: pages that were due then; None where there are too many domains to count.
    refused: URLs that were named and may not be fetched, and why not.
    pruned: domains whose versions were thinned out to keep their quota, or that exceed it.
    delivered: which subscribers were told.  notify_error: why it broke off; the next delivery goes on from there.
    """

    shift: ShiftResult
    at: datetime
    domains: Sequence[Domain] | None = None
    waits: Sequence[tuple[Domain, Wait | None]] = ()
    next_due_at: datetime | None = None
    was_stopped: bool = False
    left: int | None = None
    refused: Mapping[Url, str] = field(default_factory=dict)
    pruned: Sequence[Pruned] = ()
    delivered: Delivered = field(default_factory=Delivered)
    notify_error: str = ""

    @property
    def stats(self) -> CrawlStats:
        """The counts of all domains together."""
        return self.shift.stats

    @property
    def idle(self) -> dict[str, str]:
        """Why domains wait, as the end of a sentence that begins with the name of the domain."""
        waits = ((domain, format_wait(wait, domain, now=self.at)) for domain, wait in self.waits)
        return {domain.authority: said or "had nothing to look at" for domain, said in waits}

    @property
    def problems(self) -> set[str]:
        """The idle domains that should worry the user: a limit that was set is not an error."""
        return {
            domain.authority
            for domain, wait in self.waits
            if wait is not None
            and (
                wait.reason is WaitReason.CLOCK_BEHIND
                or (self.domains is not None and wait.reason.is_obstacle and wait.reason not in EXPECTED)
            )
        }

    @property
    def is_well(self) -> bool:
        """Whether every domain could be crawled. A page that failed alone is no problem."""
        return not (self.shift.holds or self.shift.lost or self.shift.broken or self.problems or self.refused)


def has_effect(shift: ShiftResult) -> bool:
    """Whether a crawl did anything; most runs of a schedule find nothing due."""
    return bool(shift.stats.requests or shift.stats.looks or shift.stats.refused or shift.holds or shift.broken)


async def find_targets(
    db: Database,
    names: Sequence[str],
    *,
    at: datetime | None,
    register: Register | None = None,
    only_due: bool = False,
) -> Targets:
    """Return the domains that these names and URLs mean, or all where none is named.

    The page of a URL with a path is requested, whether it is due or not, unless `only_due`.
    register: called for a name that is not registered; without it such a name raises BadInput. Nothing is registered
    if any of the names is not a URL. Raises BadInput for an instant before the last visit of a domain, too.
    """
    if not names:
        if at is not None:
            await find_domains(db, at=at)
        return Targets(None)
    clock = Clock.at(at)
    urls = {name: url_of(name) for name in names}
    found: dict[int, Domain] = {}
    known: list[Domain] = []
    answered: dict[Url, Fetched] = {}
    requested: list[tuple[Domain, Url]] = []
    for name, url in urls.items():
        domain = await domains.find(db, authority_of(url))
        if domain is not None or register is None:
            domain = domain or await domain_named(db, name)
            await require_not_before_last_visit(db, [domain], at)
            known.append(domain)
        else:
            domain, answer = await register(name)
            if answer is not None:
                answered[domain.root] = answer
        if not only_due and path_and_query(url) != "/":
            scope = scope_of(domain, domain.settings)
            await domains.seed(db, domain, home_seeds(scope, [url]), at=clock.now(), before_root=True)
            requested.append((domain, scope.home(url)))
        found[domain.id] = domain
    return Targets(list(found.values()), known, answered, requested)


async def crawl(
    db: Database,
    targets: Targets,
    request: CrawlRequest,
    *,
    clock: Clock | None = None,
    hooks: ShiftHooks | None = None,
) -> CrawlResult:
    """Crawl until nothing is due or a limit of the request is reached, then keep quotas and tell subscribers.

    clock: shows the request's instant; given by a caller whose hooks read the same clock.
    Raises BadInput for plugins that cannot be used and for an instant before the last visit of a domain.
    """
    clock = clock or Clock.at(request.at)
    if request.ignore_pace:
        db = replace(db, settings=db.settings.model_copy(update={"pace": False}))
    load(db.settings.plugins)
    for domain in targets.domains or ():
        require_policy(domain.settings.revisit, db.settings.plugins)
    if db.settings.database_url is None:
        await free_dead_leases(db)
    if targets.domains and request.ignore_pace:
        await domains.wake(db, targets.domains, at=clock.now())
    limits = CrawlLimits(request.max_pages, request.time_limit, request.stop)
    async with open_resources(db.settings, answered=targets.answered, find_secret=secrets_of(db.settings)) as resources:
        settle_memory()
        shift = await run_shift(
            db,
            resources,
            settings=db.settings,
            clock=clock,
            holder="/".join(filter(None, (request.stack, holder_name(request.role)))),
            only=targets.domains,
            limits=limits,
            hooks=_counted(hooks or ShiftHooks(), db.settings) if request.count_leases else hooks,
        )
    result = CrawlResult(shift, clock.now(), targets.domains, was_stopped=request.stop.is_set())
    for domain in targets.domains or ():
        if (unused := resources.answered.get(domain.root)) is not None:
            await _charge(db, domain, unused, at=result.at)
    await _add_outlook(db, result)
    refusals = {url: await explain_refusal(db, domain, url, at=result.at) for domain, url in targets.requested}
    result.refused = {url: why for url, why in refusals.items() if why}
    if not result.was_stopped:
        result.pruned = await _keep_quotas(db, shift.by_domain)
        if request.notify:
            await _notify(db, result, clock=clock, stop=request.stop)
    return result


async def count_due(db: Database, wanted: Sequence[Domain] | None, *, at: datetime) -> int | None:
    """Return how many pages are due in these domains, or in all; None where counting them would take long."""
    found = await find_domains(db) if wanted is None else wanted
    if len(found) > MAX_COUNTED:
        return None
    return sum([(await report.workload(db, domain, at=at)).looks for domain in found])


async def free_dead_leases(db: Database) -> None:
    """Free what killed processes of this machine still hold of the embedded Postgres, which no other machine uses."""
    for holder in await report.holders(db):
        machine, _, rest = holder.partition("/")
        pid = rest.partition("/")[0]
        if machine == socket.gethostname() and pid.isdigit() and not psutil.pid_exists(int(pid)):
            await domains.expire_leases(db, holder_prefix=f"{machine}/{pid}/")


def _counted(hooks: ShiftHooks, settings: Settings) -> ShiftHooks:
    """Return the hooks of a crawl that counts its leases."""
    counted = counted_into(settings.home.resolve())

    def progress(lease: Lease, stats: CrawlStats) -> None:
        counted.progress(lease.token, stats)
        hooks.progress(lease, stats)

    async def walk_lease(lease: Lease, walk_it: Callable[[], Awaitable[LeaseResult]]) -> LeaseResult:
        return await counted.lease(lease.token, lambda: hooks.walk_lease(lease, walk_it))

    return ShiftHooks(progress, walk_lease)


async def _charge(db: Database, domain: Domain, answer: Fetched, *, at: datetime) -> None:
    """Charge a request that no visit was made of to its domain and to the shared budget."""
    taken = {"requests": 1, "received_bytes": answer.received_bytes}
    await claim.charge(db, domain, **taken, at=at)
    if db.settings.shared_budget.is_limited:
        await claim.charge_shared_budget(db, **taken, at=at)


async def _add_outlook(db: Database, result: CrawlResult) -> None:
    """Add why domains wait, when the next one is due and, after a stop, how much is left.

    The next report of a large domain counts it anew where this crawl may have changed much of it.
    """
    if result.was_stopped:
        result.left = await count_due(db, result.domains, at=result.at)
    result.waits = await _find_waits(db, result)
    waking = []
    for domain in result.domains or ():
        stats = result.shift.by_domain.get(domain.authority)
        if stats is not None and not result.was_stopped:
            await report.count_after(db, domain, looks=stats.looks, at=result.at)
        status = await domains.status_of(db, domain, at=result.at)
        if status.wake_at is not None:
            woken = max(status.wake_at, status.resume_at or status.wake_at)
            waking.append(max(woken, opening(domain.hours, woken)))
    result.next_due_at = min(waking, default=None)


async def _find_waits(db: Database, result: CrawlResult) -> Sequence[tuple[Domain, Wait | None]]:
    """Return the domains that a crawl has left waiting: named ones, or those in which something is due."""
    if result.domains is None:
        return await waiting_domains(db, at=result.at, requested=has_effect(result.shift))
    found: list[tuple[Domain, Wait | None]] = []
    for domain in result.domains:
        stats = result.shift.by_domain.get(domain.authority)
        wait = await why_not_now(db, domain, at=result.at)
        is_left = stats is None or not stats.looks or (wait is not None and wait.pages > 0)
        if is_left and domain.authority not in result.shift.holds:
            found.append((domain, None if wait is not None and wait.reason is WaitReason.NO_WORKER else wait))
    return found


async def _keep_quotas(db: Database, names: Collection[str]) -> list[Pruned]:
    """Thin out the versions of crawled domains that take more than their quota, as it is set now."""
    found = [await domains.find(db, Authority(name)) for name in names]
    limited = [each for each in found if each is not None and each.settings.quota is not None]
    done = [await keep_quota(db, domain) for domain in limited]
    return [each for each in done if each is not None]


async def _notify(db: Database, result: CrawlResult, *, clock: Clock, stop: asyncio.Event) -> None:
    """Tell subscribers what was found. Whoever cannot be told now is told later, which fails no crawl."""
    try:
        result.delivered = await deliver_due(db, clock=clock, within=NOTIFY_WITHIN, stop=stop)
    except StoreUnavailable as error:
        result.notify_error = str(error)
