"""Asking for a domain's robots.txt: an ordinary request of the lease, with a due time of its own (RFC 9309)."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from crawler.core.domain import Lease, RobotsCopy
from crawler.core.http.backoff import retry_after
from crawler.core.http.response import USUAL_BOUNDS, Answer, Bounds, Fetched, NotModified, Unreached
from crawler.core.http.robots import ALLOW_ALL, MAX_ROBOTS_BYTES, REFUSE_ALL, RobotsRules, parse_robots
from crawler.core.http.urls import Authority, Url, authority_of
from crawler.core.page.fingerprint import digest
from crawler.core.visit.visit import NETWORK_FAILURES, OVERLOADED, PERMANENT, TEMPORARY
from crawler.engine.store_port import LeasedStore

MOST_HOPS = 5  # RFC 9309, section 2.3.1.2
GOOD_FOR = timedelta(days=1)  # section 2.4: not longer
RETRY_AFTER = timedelta(hours=1)
GIVE_UP_AFTER = timedelta(days=30)  # section 2.3.1.4: then an unreachable robots.txt counts as none


WHOLE_FILE = MAX_ROBOTS_BYTES + 1  # so much of it is read; one byte more tells that there is more


Ask = Callable[[Url], Awaitable[Answer | None]]  # one request at the domain's pace; None: not affordable today


class AskWithin(Protocol):
    """One request at the domain's pace, within bounds; None: not affordable today."""

    async def __call__(self, url: Url, *, bounds: Bounds = USUAL_BOUNDS) -> Answer | None: ...


@dataclass(frozen=True, slots=True)
class FoundRules:
    """Rules of a robots.txt, and how they are known.

    copy: that is stored, or None if the one before is good enough.  outage: why nothing may be asked for now, or None.
    asked: how long the server wants to be left alone.  is_spent: the day's budget ended before the rules were known.
    """

    rules: RobotsRules
    copy: RobotsCopy | None = None
    rules_changed: bool = False
    outage: str | None = None
    asked: timedelta | None = None
    is_spent: bool = False


async def robots_of(store: LeasedStore, ask: AskWithin) -> FoundRules:
    """The rules of the leased domain: the stored ones, or those that its server gives now if these are due."""
    lease, clock = store.lease, store.clock
    kept = lease.robots
    if kept is not None and kept.due_at > clock.now() and kept.body is not None:
        return FoundRules(rules=parse_robots(kept.body))
    own = frozenset({lease.domain.authority, *lease.domain.aliases})
    answer, _ = await ask_for_robots(ask, lease.domain.root, own=own)
    if answer is None:
        return FoundRules(rules=REFUSE_ALL, is_spent=True)
    found = _judge(answer, lease, now=clock.now())
    if found.copy is not None:
        await store.save_robots(found.copy, changed=found.rules_changed)
    return found


async def ask_for_robots(ask: AskWithin, root: Url, *, own: Collection[Authority]) -> tuple[Answer | None, int]:
    """What the server says to a request for the robots.txt of a root, and how many requests it took.

    own: the names of the domain. Redirects are followed: the file of another authority then speaks for this domain. It
    has to be a public one, even where the domain's user allows private addresses: those were allowed for this domain.
    None if the budget has no request left. Of a file beyond MAX_ROBOTS_BYTES the beginning is enough.
    """
    url = Url(f"{root}robots.txt")
    requests = 0
    while True:
        bounds = Bounds(first_bytes=WHOLE_FILE, public_only=authority_of(url) not in own)
        answer = await ask(url, bounds=bounds)
        if answer is None:
            return None, requests
        requests += 1
        is_redirect = isinstance(answer, Fetched) and answer.status in PERMANENT | TEMPORARY
        onward = answer.location if isinstance(answer, Fetched) and is_redirect else None
        if onward in {None, url} or requests > MOST_HOPS:
            return answer, requests
        url = onward


def _judge(answer: Answer, lease: Lease, *, now: datetime) -> FoundRules:
    match answer:
        case Fetched(status=status) if status in OVERLOADED:
            asked = retry_after(answer.retry_after, now=now, server_date=answer.date)
            return FoundRules(rules=ALLOW_ALL, outage=f"http_{status}", asked=asked)
        case Fetched(status=status) if 200 <= status < 300:
            return _good(answer.body, lease, outcome="ok", now=now)
        case Fetched(status=status) if 300 <= status < 500:  # redirects without end are "unavailable", as 404 is
            return _good(b"", lease, outcome=f"http_{status}", now=now)
        case Fetched(status=status):
            return _unreachable(f"http_{status}", lease, now=now)
        case NotModified():
            return _unreachable("unasked_304", lease, now=now)
        case Unreached(reason=reason) if reason in NETWORK_FAILURES:
            return FoundRules(rules=ALLOW_ALL, outage=reason.value)
        case Unreached(reason=reason):
            return _unreachable(reason.value, lease, now=now)


def _good(body: bytes, lease: Lease, *, outcome: str, now: datetime) -> FoundRules:
    before = lease.robots.body if lease.robots else None
    copy = good_copy(body, outcome=outcome, at=now)
    changed = before is not None and digest(before) != digest(body)
    return FoundRules(rules=parse_robots(body), copy=copy, rules_changed=changed)


def good_copy(body: bytes, *, outcome: str = "ok", at: datetime) -> RobotsCopy:
    """The copy of a robots.txt that was had just now."""
    return RobotsCopy(body=body, outcome=outcome, fetched_at=at, good_at=at, due_at=at + GOOD_FOR)


def _unreachable(outcome: str, lease: Lease, *, now: datetime) -> FoundRules:
    """Rules while robots.txt cannot be had: the last good copy; without one nothing may be asked for, for a time."""
    body, good_at = (lease.robots.body, lease.robots.good_at) if lease.robots else (None, None)
    copy = RobotsCopy(body=body, outcome=outcome, fetched_at=now, good_at=good_at, due_at=now + RETRY_AFTER)
    if body is not None:
        return FoundRules(rules=parse_robots(body), copy=copy)
    is_given_up = now - (good_at or lease.domain.registered_at) > GIVE_UP_AFTER
    return FoundRules(rules=ALLOW_ALL, copy=copy, outage=None if is_given_up else f"robots_{outcome}")
