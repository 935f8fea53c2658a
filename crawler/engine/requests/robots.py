"""Fetch a domain's robots.txt with an ordinary request of the lease, when its own due time has come (RFC 9309)."""

from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from crawler.core.domain import Lease, RobotsCopy
from crawler.core.http.backoff import parse_retry_after
from crawler.core.http.response import DEFAULT_LIMITS, Fetched, NotModified, RequestLimits, Response, Unreached
from crawler.core.http.robots import ALLOW_ALL, DISALLOW_ALL, MAX_ROBOTS_BYTES, RobotsRules, parse_robots
from crawler.core.http.urls import Authority, Url, get_authority
from crawler.core.page.fingerprint import compute_digest
from crawler.core.visit.state import NETWORK_FAILURES, OVERLOAD_STATUSES, PERMANENT_REDIRECTS, TEMPORARY_REDIRECTS
from crawler.engine.store_port import LeasedStore

MAX_REDIRECTS = 5  # RFC 9309, section 2.3.1.2
COPY_LIFETIME = timedelta(days=1)  # section 2.4: not longer
RETRY_AFTER = timedelta(hours=1)
GIVE_UP_AFTER = timedelta(days=30)  # section 2.3.1.4: then an unreachable robots.txt without a copy allows everything
MAX_READ_BYTES = MAX_ROBOTS_BYTES + 1  # one more byte, to detect a longer file

# Sends a paced request; returns None if the budget is spent or the crawl hours are closed.
RequestUrl = Callable[[Url], Awaitable[Response | None]]


class RequestUrlWithin(Protocol):
    """A RequestUrl with limits."""

    async def __call__(self, url: Url, *, limits: RequestLimits = DEFAULT_LIMITS) -> Response | None: ...


class RobotsResult(Struct, frozen=True):
    """The rules of a robots.txt and how they were obtained.

    copy: the copy to store; None if the stored one remains.  outage: why the domain may not be crawled now, or None.
    rules_changed: whether the text differs from the stored copy.  requested_wait: the server's Retry-After.
    is_budget_spent: the day's budget ended, or the crawl hours closed, before the rules were known.
    """

    rules: RobotsRules
    copy: RobotsCopy | None = None
    rules_changed: bool = False
    outage: str | None = None
    requested_wait: timedelta | None = None
    is_budget_spent: bool = False


async def load_robots(store: LeasedStore, request_url: RequestUrlWithin) -> RobotsResult:
    """Return the rules of the leased domain: the stored ones, or new ones if robots.txt is due."""
    lease, clock = store.lease, store.clock
    stored = lease.robots
    if stored is not None and stored.due_at > clock.now() and stored.body is not None:
        return RobotsResult(rules=parse_robots(stored.body))
    own_authorities = frozenset({lease.domain.authority, *lease.domain.aliases})
    response, _ = await fetch_robots(request_url, lease.domain.root, own_authorities=own_authorities)
    if response is None:
        return RobotsResult(rules=DISALLOW_ALL, is_budget_spent=True)
    result = _interpret_response(response, lease, now=clock.now())
    if result.copy is not None:
        await store.save_robots(result.copy, changed=result.rules_changed)
    return result


async def fetch_robots(
    request_url: RequestUrlWithin, root: Url, *, own_authorities: Collection[Authority]
) -> tuple[Response | None, int]:
    """Fetch the robots.txt of a root; return the response and the number of requests.

    own_authorities: those of the domain. Redirects to other authorities are followed, but only to public addresses:
    --allow-private applies only to the domain itself. The response is None if no request may be sent now. Only the
    beginning of a file beyond MAX_ROBOTS_BYTES is read.
    """
    url = Url(f"{root}robots.txt")
    requests = 0
    while True:
        limits = RequestLimits(first_bytes=MAX_READ_BYTES, public_only=get_authority(url) not in own_authorities)
        response = await request_url(url, limits=limits)
        if response is None:
            return None, requests
        requests += 1
        is_redirect = isinstance(response, Fetched) and response.status in PERMANENT_REDIRECTS | TEMPORARY_REDIRECTS
        next_url = response.location if isinstance(response, Fetched) and is_redirect else None
        if next_url in {None, url} or requests > MAX_REDIRECTS:
            return response, requests
        url = next_url


def _interpret_response(response: Response, lease: Lease, *, now: datetime) -> RobotsResult:
    match response:
        case Fetched(status=status) if status in OVERLOAD_STATUSES:
            requested_wait = parse_retry_after(response.retry_after, now=now, server_date=response.date)
            return RobotsResult(rules=ALLOW_ALL, outage=f"http_{status}", requested_wait=requested_wait)
        case Fetched(status=status) if 200 <= status < 300:
            return _accept_body(response.body, lease, outcome="ok", now=now)
        case Fetched(status=status) if 300 <= status < 500:  # endless redirects count as "unavailable", like 404
            return _accept_body(b"", lease, outcome=f"http_{status}", now=now)
        case Fetched(status=status):
            return _use_last_copy(f"http_{status}", lease, now=now)
        case NotModified():
            return _use_last_copy("unasked_304", lease, now=now)
        case Unreached(reason=reason) if reason in NETWORK_FAILURES:
            return RobotsResult(rules=ALLOW_ALL, outage=reason.value)
        case Unreached(reason=reason):
            return _use_last_copy(reason.value, lease, now=now)


def _accept_body(body: bytes, lease: Lease, *, outcome: str, now: datetime) -> RobotsResult:
    old_body = lease.robots.body if lease.robots else None
    copy = build_good_copy(body, outcome=outcome, at=now)
    changed = old_body is not None and compute_digest(old_body) != compute_digest(body)
    return RobotsResult(rules=parse_robots(body), copy=copy, rules_changed=changed)


def build_good_copy(body: bytes, *, outcome: str = "ok", at: datetime) -> RobotsCopy:
    """Build the copy of a robots.txt that was just fetched successfully."""
    return RobotsCopy(body=body, outcome=outcome, fetched_at=at, good_at=at, due_at=at + COPY_LIFETIME)


def _use_last_copy(outcome: str, lease: Lease, *, now: datetime) -> RobotsResult:
    """Return the last good copy; without one, the domain may not be crawled until GIVE_UP_AFTER is over."""
    body, good_at = (lease.robots.body, lease.robots.good_at) if lease.robots else (None, None)
    copy = RobotsCopy(body=body, outcome=outcome, fetched_at=now, good_at=good_at, due_at=now + RETRY_AFTER)
    if body is not None:
        return RobotsResult(rules=parse_robots(body), copy=copy)
    is_given_up = now - (good_at or lease.domain.registered_at) > GIVE_UP_AFTER
    return RobotsResult(rules=ALLOW_ALL, copy=copy, outage=None if is_given_up else f"robots_{outcome}")
