"""Why is nothing of a domain fetched right now, and when will it be? One answer for every surface."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum

from crawler.app.database import AppDatabase
from crawler.core.budget.hours import find_opening
from crawler.core.domain import Domain, DomainStatus
from crawler.format.reasons import format_reason
from crawler.format.values import format_count, format_when
from crawler.runtime.stack import is_without_worker
from crawler.store import claim, domains

MAX_CHECKED_DOMAINS = 1000  # domains, to find those that wait
MAX_WAITING_DOMAINS = 10  # of these


class WaitReason(StrEnum):
    """Why a domain is not being fetched. The first ones let nobody fetch from it, the last three only a schedule."""

    PAUSED = "paused"
    LEASED = "leased"
    CLOCK_BEHIND = "clock_behind"
    SUSPENDED = "suspended"
    OUTSIDE_HOURS = "outside_hours"
    BUDGET_SPENT = "budget_spent"
    BYTES_SPENT = "bytes_spent"
    SHARED_BUDGET_SPENT = "shared_budget_spent"
    ADDRESS_BUSY = "address_busy"
    PACED = "paced"
    NOT_DUE = "not_due"
    NO_WORKER = "no_worker"

    @property
    def is_obstacle(self) -> bool:
        """Whether nobody may fetch from the domain now, not even a user who names it."""
        return self not in {WaitReason.PACED, WaitReason.NOT_DUE, WaitReason.NO_WORKER}


_SENTENCES = {
    WaitReason.PAUSED: "is paused; to go on: recrawl domains resume {name}",
    WaitReason.LEASED: "is being crawled by {detail}",
    WaitReason.CLOCK_BEHIND: (
        "was last visited at {until}, which is later than now, so nothing is fetched before then; "
        "if that time was wrong: recrawl domains reset-clock {name}"
    ),
    WaitReason.SUSPENDED: "is suspended until {until}: {detail}",
    WaitReason.OUTSIDE_HOURS: "is outside its crawl hours until {until}",
    WaitReason.BUDGET_SPENT: (
        "has spent its daily budget of {detail} requests and goes on at {until}; "
        "to go on sooner: recrawl domains set {name} --budget N"
    ),
    WaitReason.BYTES_SPENT: "has spent its daily byte budget and goes on at {until}",
    WaitReason.SHARED_BUDGET_SPENT: (
        "waits until {until}: the daily budget of all domains together is spent (RECRAWL_BUDGET_PER_DAY)"
    ),
    WaitReason.ADDRESS_BUSY: "shares its address with a domain that is being crawled",
    WaitReason.PACED: (
        "spreads its daily budget over the day and fetches its next page at {until}; to fetch now: recrawl crawl {name}"
    ),
    WaitReason.NOT_DUE: "has nothing due before {until}",
    WaitReason.NO_WORKER: "can be crawled now, but no worker is running: recrawl up, or recrawl crawl {name}",
}
_WITHOUT_END = {
    WaitReason.BUDGET_SPENT: "has a budget of 0 requests a day; to change it: recrawl domains set {name} --budget N",
    WaitReason.NOT_DUE: "has no page that will be due",
}


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a domain is not being fetched now.

    until: knowledge time; None where it does not end by itself, or nobody knows when.
    detail: the holder of the lease, the reason of a suspension, or the number of requests in a spent budget.
    pages: pages that a user has requested and that wait, counted up to a limit of the store.
    """

    reason: WaitReason
    until: datetime | None = None
    detail: str = ""
    pages: int = 0


async def find_wait(db: AppDatabase, domain: Domain, *, at: datetime) -> Wait | None:
    """Return why nothing of a domain is being fetched at an instant; None if a worker fetches from it any moment.

    Raises BadInput if the domain was removed meanwhile.
    """
    status = await domains.read_status(db, domain, at=at)
    wait = _find_obstacle(domain, status, at=at)
    if wait is None and await claim.count_shared_requests_left(db, db.settings.shared_budget, at=at) == 0:
        wait = Wait(WaitReason.SHARED_BUDGET_SPENT, _find_next_day_start(domain, at))
    if wait is None and status.addresses_busy:
        wait = Wait(WaitReason.ADDRESS_BUSY)
    if wait is None and not status.requested and not status.has_inbox:
        wait = _find_idleness(status, at=at, is_shared=db.settings.shared_budget.is_limited)
    if wait is None and is_without_worker(db.settings):
        wait = Wait(WaitReason.NO_WORKER)
    return None if wait is None else replace(wait, pages=status.requested)


def _find_obstacle(domain: Domain, status: DomainStatus, *, at: datetime) -> Wait | None:
    if status.paused:
        return Wait(WaitReason.PAUSED)
    if status.holder is not None:
        return Wait(WaitReason.LEASED, detail=status.holder)
    if status.last_visit_at is not None and status.last_visit_at > at + domains.CLOCK_SKEW:
        return Wait(WaitReason.CLOCK_BEHIND, status.last_visit_at)
    if status.resume_at is not None and status.resume_at > at:
        return Wait(WaitReason.SUSPENDED, status.resume_at, status.resume_reason)
    if (opens_at := find_opening(domain.hours, at)) > at:
        return Wait(WaitReason.OUTSIDE_HOURS, opens_at)
    if status.budget_left is not None and status.budget_left <= 0:
        budget = "" if status.budget is None else f"{status.budget:,}"
        return Wait(WaitReason.BUDGET_SPENT, _find_next_day_start(domain, at) if status.budget else None, budget)
    if status.bytes_left is not None and status.bytes_left <= 0:
        return Wait(WaitReason.BYTES_SPENT, _find_next_day_start(domain, at))
    return None


def _find_idleness(status: DomainStatus, *, at: datetime, is_shared: bool) -> Wait | None:
    """Return why nobody claims a domain that may be claimed: it sleeps by its pace, or nothing of it is due.

    is_shared: all domains together have a budget.
    """
    if status.wake_at is None or status.wake_at <= at:
        return None if status.wake_at is not None else Wait(WaitReason.NOT_DUE)
    if status.paced_until is None or status.wake_at > status.paced_until:
        return Wait(WaitReason.NOT_DUE, status.wake_at)
    # Without a budget it rests for a minute after a lease that made no request.
    has_budget = status.budget is not None or status.bytes_left is not None or is_shared
    return Wait(WaitReason.PACED, status.wake_at) if has_budget else None


def _find_next_day_start(domain: Domain, at: datetime) -> datetime:
    """Return when the budgets of the next UTC day begin, within the hours of the domain."""
    midnight = datetime.combine(at.astimezone(UTC).date() + timedelta(days=1), time(), tzinfo=UTC)
    return find_opening(domain.hours, midnight)


async def list_waiting_domains(
    db: AppDatabase, *, at: datetime, only: Collection[Domain] | None = None, requested: bool = False
) -> list[tuple[Domain, Wait]]:
    """Return domains in which pages are due or requested and wait, with the reason; the first ones by name.

    only: look at these.  requested: leave out those where no page is requested.  That no worker runs, or that nothing
    is due, is no reason here.
    """
    waits: list[tuple[Domain, Wait]] = []
    for domain in await domains.find_waiting_domains(
        db, at=at, only=only, requested=requested, max_count=MAX_CHECKED_DOMAINS
    ):
        wait = await find_wait(db, domain, at=at)
        if wait is not None and wait.reason not in {WaitReason.NO_WORKER, WaitReason.NOT_DUE}:
            waits.append((domain, wait))
        if len(waits) == MAX_WAITING_DOMAINS:
            break
    return waits


async def format_page_wait(db: AppDatabase, domain: Domain, *, at: datetime) -> str:
    """Return `format_wait` of the domain of a page, which says itself when it is due."""
    wait = await find_wait(db, domain, at=at)
    is_about_due = wait is not None and wait.reason is WaitReason.NOT_DUE
    return "" if is_about_due else format_wait(wait, domain, now=at)


async def format_waits(
    db: AppDatabase, *, at: datetime, only: Collection[Domain] | None = None, requested: bool = False
) -> list[str]:
    """Return a sentence for each domain in which something waits, as `list_waiting_domains` finds them."""
    waits = await list_waiting_domains(db, at=at, only=only, requested=requested)
    return [f"{domain.authority} {format_wait(wait, domain, now=at)}" for domain, wait in waits]


def format_wait(wait: Wait | None, domain: Domain, *, now: datetime) -> str:
    """Return the end of a sentence that begins with the name of the domain; empty where nothing holds it up."""
    if wait is None:
        return ""
    sentence = _WITHOUT_END.get(wait.reason) if wait.until is None else None
    detail = format_reason(wait.detail) if wait.reason is WaitReason.SUSPENDED else wait.detail
    text = (sentence or _SENTENCES[wait.reason]).format(
        name=domain.authority, until=format_when(wait.until, now=now), detail=detail
    )
    return f"{text}; {format_count(wait.pages, 'requested page')} waiting" if wait.pages else text
