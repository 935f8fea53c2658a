"""Why a domain is not being fetched now, and when it will be."""

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
from crawler.times import format_instant

MAX_CHECKED_DOMAINS = 1000  # candidates that are checked
MAX_WAITING_DOMAINS = 10  # domains that are returned


class WaitReason(StrEnum):
    """Why a domain is not being fetched now. The last three do not prevent a crawl that names the domain."""

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
        """Return whether the reason prevents all crawls, even one that names the domain."""
        return self not in {WaitReason.PACED, WaitReason.NOT_DUE, WaitReason.NO_WORKER}


_SENTENCES = {
    WaitReason.PAUSED: "is paused; to continue: recrawl domains resume {name}",
    WaitReason.LEASED: "is being crawled by {detail}",
    WaitReason.CLOCK_BEHIND: (
        "was last visited at {until}, which is later than now, so nothing is fetched before then; "
        "if that time was wrong: recrawl domains reset-clock {name}"
    ),
    WaitReason.SUSPENDED: "is suspended until {until}: {detail}",
    WaitReason.OUTSIDE_HOURS: "is outside its crawl hours until {until}",
    WaitReason.BUDGET_SPENT: (
        "has spent its daily budget of {detail} requests and continues at {until}; "
        "to continue sooner: recrawl domains set {name} --budget N"
    ),
    WaitReason.BYTES_SPENT: "has spent its daily byte budget and continues at {until}",
    WaitReason.SHARED_BUDGET_SPENT: (
        "waits until {until}: the shared daily budget of all domains is spent (RECRAWL_BUDGET_PER_DAY)"
    ),
    WaitReason.ADDRESS_BUSY: "shares its address with a domain that is being crawled",
    WaitReason.PACED: (
        "spreads its daily budget over the day and fetches its next page at {until}; to fetch now: recrawl crawl {name}"
    ),
    WaitReason.NOT_DUE: "has nothing due before {until}",
    WaitReason.NO_WORKER: "can be crawled now, but no worker is running: recrawl up, or recrawl crawl {name}",
}
# The end of "64 pages are ...", for messages with little room.
_BRIEFLY = {
    WaitReason.PAUSED: "paused",
    WaitReason.LEASED: "with another worker",
    WaitReason.CLOCK_BEHIND: "visited in the future",
    WaitReason.SUSPENDED: "suspended",
    WaitReason.OUTSIDE_HOURS: "outside crawl hours",
    WaitReason.BUDGET_SPENT: "over budget",
    WaitReason.BYTES_SPENT: "over the byte budget",
    WaitReason.SHARED_BUDGET_SPENT: "over the shared budget",
    WaitReason.ADDRESS_BUSY: "behind a shared address",
    WaitReason.PACED: "paced",
    WaitReason.NOT_DUE: "not due",
    WaitReason.NO_WORKER: "without a worker",
}
_WITHOUT_END = {
    WaitReason.BUDGET_SPENT: "has a budget of 0 requests a day; to change it: recrawl domains set {name} --budget N",
    WaitReason.NOT_DUE: "has no pages that will become due",
}


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a domain is not being fetched now.

    until: the end of the wait in knowledge time; None if it has no known end.
    detail: the holder of the lease, the reason for a suspension, or the size of a spent budget in requests.
    pages: the number of waiting pages that a user requested, up to a limit of the store.
    """

    reason: WaitReason
    until: datetime | None = None
    detail: str = ""
    pages: int = 0


async def find_wait(db: AppDatabase, domain: Domain, *, at: datetime) -> Wait | None:
    """Return why a domain is not being fetched; None if a worker starts within about a minute. Raises BadInput."""
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
    """Return why a domain that could be crawled is idle: it is paced, or nothing is due. None for a short pause.

    is_shared: whether there is a shared budget of all domains.
    """
    if status.wake_at is None or status.wake_at <= at:
        return None if status.wake_at is not None else Wait(WaitReason.NOT_DUE)
    if status.paced_until is None or status.wake_at > status.paced_until:
        return Wait(WaitReason.NOT_DUE, status.wake_at)
    # Without a budget, this is the pause of a minute after a lease without requests, too short to be reported.
    has_budget = status.budget is not None or status.bytes_left is not None or is_shared
    return Wait(WaitReason.PACED, status.wake_at) if has_budget else None


def _find_next_day_start(domain: Domain, at: datetime) -> datetime:
    """Return the start of the next UTC day, when budgets renew, or the next opening of the domain's hours after it."""
    midnight = datetime.combine(at.astimezone(UTC).date() + timedelta(days=1), time(), tzinfo=UTC)
    return find_opening(domain.hours, midnight)


async def list_waiting_domains(
    db: AppDatabase, *, at: datetime, only: Collection[Domain] | None = None, requested: bool = False
) -> list[tuple[Domain, Wait]]:
    """Return domains in which due or requested pages wait, with the reason, up to MAX_WAITING_DOMAINS by name.

    only: check only these domains.  requested: skip domains without requested pages.  Domains that wait for a worker,
    or in which nothing is due, are not returned.
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
    """Return `format_wait` of a page's domain; empty if nothing is due, because the page shows its own due time."""
    wait = await find_wait(db, domain, at=at)
    return "" if wait is not None and wait.reason is WaitReason.NOT_DUE else format_wait(wait, domain, now=at)


async def format_waits(
    db: AppDatabase, *, at: datetime, only: Collection[Domain] | None = None, requested: bool = False
) -> list[str]:
    """Return a sentence for each domain that `list_waiting_domains` returns."""
    waits = await list_waiting_domains(db, at=at, only=only, requested=requested)
    return [f"{domain.authority} {format_wait(wait, domain, now=at)}" for domain, wait in waits]


def format_wait(wait: Wait | None, domain: Domain, *, now: datetime) -> str:
    """Return the wait as the end of a sentence that begins with the domain's name; empty without a wait."""
    if wait is None:
        return ""
    sentences = _SENTENCES | _WITHOUT_END if wait.until is None else _SENTENCES
    detail = _explain_suspension(wait) or wait.detail
    until = format_when(wait.until, now=now)
    text = sentences[wait.reason].format(name=domain.authority, until=until, detail=detail)
    return f"{text}; {format_count(wait.pages, 'requested page')} waiting" if wait.pages else text


def format_waits_briefly(waits: Collection[tuple[Domain, Wait, int | None]], *, now: datetime) -> list[str]:
    """Return a few words for each reason to wait, such as "64 paced until 09:40Z".

    waits: waiting domains with the number of their due pages; None if it is unknown.  The times are the earliest.
    Suspensions for different reasons are different.
    """
    words = []
    for reason, why in dict.fromkeys((wait.reason, _explain_suspension(wait)) for _, wait, _ in waits):
        alike = [each for each in waits if (each[1].reason, _explain_suspension(each[1])) == (reason, why)]
        total = sum(pages or wait.pages for _, wait, pages in alike)
        subject = f"{total:,}" if total else alike[0][0].authority if len(alike) == 1 else f"{len(alike):,} domains"
        ends = [wait.until for _, wait, _ in alike if wait.until is not None]
        until = f" until {format_soon(min(ends), now=now)}" if ends else ""
        words.append(f"{subject} {_BRIEFLY[reason]}{until}{why and f' ({why})'}")
    return words


def _explain_suspension(wait: Wait) -> str:
    return format_reason(wait.detail) if wait.reason is WaitReason.SUSPENDED else ""


def format_soon(at: datetime, *, now: datetime) -> str:
    """Format a time without its date if it is on the same day."""
    text, today = format_instant(at), format_instant(now)
    return text.partition(" ")[2] if text.partition(" ")[0] == today.partition(" ")[0] else text
