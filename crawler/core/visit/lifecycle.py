"""Visits that bring no page: redirects, missing pages, failures and exclusions. What was learned of a page is kept."""

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from crawler.core.change.change import Change, Evidence
from crawler.core.change.verdict import Verdict
from crawler.core.freshness.visit_terms import RequestReason
from crawler.core.freshness.visit_value import compute_phase
from crawler.core.http.backoff import parse_retry_after
from crawler.core.http.response import FailureReason, Fetched, Response, Unreached
from crawler.core.page.content import PageContent
from crawler.core.rendering.outcome import RenderFailure
from crawler.core.visit.links import compute_redirect_key, resolve_link
from crawler.core.visit.state import (
    BULK_REDIRECT,
    NETWORK_FAILURES,
    OVERLOAD_STATUSES,
    PERMANENT_REDIRECTS,
    REDIRECT_TO_EXISTING,
    TEMPORARY_REDIRECTS,
    State,
)
from crawler.core.visit.visit import (
    FIRST_RETRY,
    UNKNOWN_VERDICT,
    DomainKnowledge,
    Link,
    Target,
    Visit,
    build_unchanged_visit,
)

FAILURES_UNTIL_LEAF = 3  # in a row, after which a page passes its cash on as if it had no links, rather than keep it
CONFIRM_404_AFTER = timedelta(minutes=30)  # until the second fetch of a page after its first 404
MIN_404_CONFIRMATION = timedelta(minutes=10)  # a second 404 sooner than this may have the same temporary cause
# If other failures follow a first 404, it counts for this long: a 404 before and one after an outage do not add up.
FIRST_404_VALIDITY = timedelta(days=1)
CONFIRM_MISSING_AFTER = timedelta(hours=1)  # minimum until a soft error, or a move to an existing page, is confirmed
REVISIT_UNCONFIRMED_AFTER = timedelta(days=1)  # if a redirect must be confirmed; doubles with each failed visit
# This many pages that move to one target within BULK_REDIRECT_PERIOD are an outage, or a site that hides removed pages.
BULK_REDIRECT_PAGES = 5
BULK_REDIRECT_PERIOD = timedelta(days=7)
CONFIRM_BULK_REDIRECT_AFTER = timedelta(days=3)  # minimum time between two visits; with earlier waits, about a week
REVISIT_REDIRECT_AFTER = timedelta(days=7)
REVISIT_GONE_AFTER = timedelta(days=30)
# Share by which the waits of URLs that never were pages differ, so that URLs found together are not due together.
DEAD_URL_SPREAD = 0.5
MAX_REDIRECTS = 5  # in a row, before the next target is deferred
FIRST_DEFERRAL = timedelta(days=1)  # doubles with each further redirect
REVISIT_EXCLUDED_AFTER = timedelta(days=7)  # makes no request while robots.txt or the scope still exclude the page
FIRST_BUSY_RETRY = timedelta(minutes=1)  # after a 429 or 503; doubles with each failed visit
MAX_RETRY = timedelta(days=7)  # the longest wait after a failed visit to a page with a version, without Retry-After


def build_excluded_visit(target: Target, *, reason: str, now: datetime) -> Visit:
    """Build the Visit, without a request, of a page that may no longer be fetched. It keeps its cash.

    A page that is gone or moved stays so; otherwise its return would not be reported.
    """
    return replace(
        build_unchanged_visit(target, now=now),
        outcome="unreached",
        state=target.state if target.state in {State.GONE, State.MOVED} else State.EXCLUDED,
        due_at=now + min(REVISIT_EXCLUDED_AFTER, target.terms.max_interval),
        reason=reason,
        withheld_since=None,  # nothing is fetched, so there is nothing to withhold
        requests=0,
        conditional=False,
    )


def build_unfinished_visit(target: Target, *, now: datetime) -> Visit:
    """Build the Visit if the end of the lease or the budget interrupted it: the page is due at once."""
    return replace(build_unchanged_visit(target, now=now), due_at=now, reason=FailureReason.LEASE.value)


def build_unrendered_visit(target: Target, response: Fetched, failure: RenderFailure, *, now: datetime) -> Visit:
    """Build the Visit of a page that is stored as rendered, if rendering failed this time."""
    if failure is RenderFailure.ENDING:
        return build_unfinished_visit(target, now=now)
    return build_failed_visit(target, response, now=now, reason=f"render_{failure.value}")


def build_refresh_visit(
    target: Target, response: Fetched, content: PageContent, *, now: datetime, knowledge: DomainKnowledge
) -> Visit:
    """Build the Visit of a page with an instant meta refresh, which counts like a 301."""
    as_redirect = replace(response, status=min(PERMANENT_REDIRECTS), location=content.refresh)
    return replace(build_redirected_visit(target, as_redirect, now=now, knowledge=knowledge), status=response.status)


def build_redirected_visit(target: Target, response: Fetched, *, now: datetime, knowledge: DomainKnowledge) -> Visit:
    assert response.location is not None
    link = resolve_link(response.location, depth=target.depth + 1, knowledge=knowledge)
    if link is not None and link.key == target.key:
        return build_failed_visit(target, response, now=now, reason="redirects_to_itself")
    if response.status in TEMPORARY_REDIRECTS:
        return _build_temporary_redirect_visit(target, response, link, now=now)
    was_moved = target.state is State.MOVED
    return replace(
        build_unchanged_visit(target, response, now=now),
        verdict=Verdict(Change.UNCHANGED if was_moved else Change.MOVED, Evidence.STATUS),
        state=State.MOVED,
        due_at=now + _compute_away_wait(target),
        reason="" if link else "moved_away",
        failures=0,
        moved_to=link,
        led_to=compute_redirect_key(target, response.location),
    )


def _build_temporary_redirect_visit(target: Target, response: Fetched, link: Link | None, *, now: datetime) -> Visit:
    """Build the Visit of a temporary redirect: the page keeps its state, unless UNFETCHED; the target becomes its link.

    The cash of a page with a version goes to the links of that version, because the redirect may be a soft error.
    """
    visit = replace(
        build_unchanged_visit(target, response, now=now),
        reason=f"http_{response.status}",
        links=(link,) if link else (),
        led_to=link.key if link else None,
        withheld_since=None,  # a redirect has no content
    )
    if target.version is None:
        due_at, recipients = now + _compute_redirect_wait(target), (link.key,) if link else ()
        return replace(visit, failures=0, due_at=due_at, recipients=recipients, external_links=())
    failures = target.failures + 1
    wait = REVISIT_REDIRECT_AFTER if visit.state is not State.FETCHED else compute_retry_wait(failures)
    due_at = now + min(wait, REVISIT_REDIRECT_AFTER, target.terms.max_interval)
    return replace(visit, failures=failures, due_at=due_at, recipients=target.outlinks)


class MoveTarget(Struct, frozen=True):
    """Knowledge about the target of a page's redirect.

    other_pages: the number of other pages with a version that started to redirect there within BULK_REDIRECT_PERIOD.
    first_seen_at: when the target was discovered; None if it has no version.
    is_loop: redirects lead from there back to the page.
    """

    other_pages: int = 0
    first_seen_at: datetime | None = None
    is_loop: bool = False

    def existed_before_redirect(self, page: Target) -> bool:
        """Return whether the target has a version and was discovered before the last successful visit to the page."""
        first_seen_at, good_at = self.first_seen_at, page.last_good_at
        return first_seen_at is not None and good_at is not None and first_seen_at < good_at


def confirm_move(visit: Visit, move_target: MoveTarget) -> Visit:
    """Confirm a redirect, or defer it while it may be an outage; until then the page keeps its state.

    If BULK_REDIRECT_PAGES pages redirect to one target, inside or outside of the domain, they are revisited for about a
    week. After that they count as gone, not as moved: the importance of all these pages does not belong to one page. If
    a page moves to a page that existed already, a second visit must confirm it, as for a 404. A page without a version
    moves at once.
    """
    target = visit.target
    if move_target.is_loop and (visit.change is Change.MOVED or visit.led_to is not None):
        # After some failures, a URL that never was a page is rarely requested.
        is_hopeless = target.version is None and target.failures + 1 >= FAILURES_UNTIL_LEAF
        wait = REVISIT_GONE_AFTER if is_hopeless else compute_retry_wait(target.failures + 1)
        return _defer_redirect(replace(visit, moved_to=None), "redirects_in_a_circle", wait=wait)
    if visit.change is not Change.MOVED or target.version is None:
        return visit
    redirect_time = _measure_redirect_time(visit)
    wait = min(REVISIT_UNCONFIRMED_AFTER * int(2 ** min(target.failures, 20)), MAX_RETRY)
    if move_target.other_pages + 1 >= BULK_REDIRECT_PAGES:
        if target.state is State.GONE or redirect_time >= CONFIRM_BULK_REDIRECT_AFTER:
            return _build_gone_visit(replace(visit, moved_to=None), reason=BULK_REDIRECT)
        return _defer_redirect(visit, BULK_REDIRECT, wait=wait)
    if move_target.existed_before_redirect(target) and redirect_time < CONFIRM_MISSING_AFTER:
        return _defer_redirect(visit, REDIRECT_TO_EXISTING, wait=wait)
    return visit


def _measure_redirect_time(visit: Visit) -> timedelta:
    """Return the time since the last visit if it found such a redirect too, else zero."""
    target = visit.target
    is_repeated = target.status in (PERMANENT_REDIRECTS if visit.status in PERMANENT_REDIRECTS else {visit.status})
    since = target.last_visit_at if is_repeated and target.failures else None
    return visit.at - since if since is not None else timedelta(0)


def _defer_redirect(visit: Visit, reason: str, *, wait: timedelta) -> Visit:
    """Build the Visit of a redirect that is not confirmed: it counts as a failed visit."""
    target = visit.target
    failures = target.failures + 1
    return replace(
        visit,
        verdict=UNKNOWN_VERDICT,
        state=build_unchanged_visit(target, now=visit.at).state,
        reason=reason,
        failures=failures,
        due_at=visit.at + min(wait, target.terms.max_interval),
        recipients=() if failures >= FAILURES_UNTIL_LEAF else None,
    )


def build_missing_visit(target: Target, response: Fetched, *, now: datetime) -> Visit:
    """Build the Visit of a 404 or 410.

    A 410 counts at once, and so does the 404 of a page without a version or one that is GONE. The first 404 of another
    page schedules a second fetch, and a second 404 at least MIN_404_CONFIRMATION after the first confirms it, even with
    other visits in between, but see FIRST_404_VALIDITY. The second fetch comes sooner if a user requested the page.
    """
    first = target.missing_since
    if first is None or (target.status != 404 and now - first > FIRST_404_VALIDITY):
        first = now  # starts a new confirmation period
    is_confirmed = target.version is None or target.state is State.GONE
    if response.status == 410 or is_confirmed or now - first >= MIN_404_CONFIRMATION:
        return _build_gone_visit(build_unchanged_visit(target, response, now=now), reason=f"http_{response.status}")
    is_requested = target.requested in {RequestReason.BY_USER, RequestReason.BY_URL}
    second = first + (MIN_404_CONFIRMATION if is_requested else CONFIRM_404_AFTER)
    return replace(
        build_failed_visit(target, response, now=now, reason="http_404"),
        missing_since=first,
        due_at=max(min(second, now + target.terms.max_interval), first + MIN_404_CONFIRMATION),
    )


def _build_gone_visit(visit: Visit, *, reason: str) -> Visit:
    target = visit.target
    was_gone = target.state is State.GONE
    return replace(
        visit,
        verdict=Verdict(Change.UNCHANGED if was_gone else Change.GONE, Evidence.STATUS),
        state=State.GONE,
        due_at=visit.at + _compute_away_wait(target),
        reason=reason,
        failures=0,
    )


def _compute_away_wait(target: Target) -> timedelta:
    """Return the wait until the next visit to a page that is gone or moved."""
    if target.version is not None:
        return min(REVISIT_GONE_AFTER, target.terms.max_interval)
    return _compute_dead_wait(target, first=REVISIT_GONE_AFTER)


def _compute_redirect_wait(target: Target) -> timedelta:
    """Return the wait until the next visit to a URL that never was a page and redirects temporarily.

    The wait doubles each time, except for a seed. It is longer if redirects led to the URL.
    """
    if target.depth == 0:
        return min(REVISIT_REDIRECT_AFTER, target.terms.max_interval)
    longer = REVISIT_GONE_AFTER * int(2 ** min(max(target.redirects - 1, 0), 10))
    return _compute_dead_wait(target, first=longer if target.redirects else REVISIT_REDIRECT_AFTER)


def _compute_dead_wait(target: Target, *, first: timedelta) -> timedelta:
    """Return the wait until the next visit to a URL that never was a page: `first`, then doubled each time.

    The wait is spread by a hash of the URL, and limited to the maximum revisit interval.
    """
    before = target.due_at - target.last_visit_at if target.due_at and target.last_visit_at else timedelta(0)
    return min(max(first * (1 + DEAD_URL_SPREAD * compute_phase(target.key)), 2 * before), target.terms.max_interval)


def count_redirects_to_new(visit: Visit) -> int:
    """Return how many redirects of URLs without a version lead to the page that this visit discovers, or 0.

    A URL that redirected before and now leads to a new page may do so forever, so that counts as too many.
    """
    target = visit.target
    if target.version is not None or visit.led_to is None:
        return 0
    return 1 + (target.redirects if target.state is State.UNFETCHED else max(target.redirects, MAX_REDIRECTS))


def compute_redirect_deferral(redirects: int) -> timedelta:
    """Return how long a new page is deferred after this many redirects in a row."""
    further = redirects - MAX_REDIRECTS
    return FIRST_DEFERRAL * int(2 ** min(further - 1, 9)) if further > 0 else timedelta(0)


def build_unreached_visit(target: Target, response: Unreached, *, now: datetime) -> Visit:
    if response.reason is FailureReason.ROBOTS:
        return build_excluded_visit(target, reason=response.reason.value, now=now)
    visit = build_failed_visit(target, response, now=now, reason=response.reason.value)
    return replace(visit, no_response=response.reason in NETWORK_FAILURES)


# The longest Retry-After of one page that applies to its whole domain. Longer ones apply if two pages send them.
MAX_PAGE_RETRY_AFTER = timedelta(days=1)


def build_failed_visit(target: Target, response: Response, *, now: datetime, reason: str) -> Visit:
    """Build the Visit of a failure: what was learned is kept, and the page is retried."""
    visit, failures = replace(build_unchanged_visit(target, response, now=now), reason=reason), target.failures + 1
    if isinstance(response, Fetched) and response.status in OVERLOAD_STATUSES:
        requested_wait = parse_retry_after(response.retry_after, now=now, server_date=response.date)
        # The page has its own back-off in addition to the domain's: if only this page fails, others must come first.
        wait = min(FIRST_BUSY_RETRY * int(2 ** min(target.failures, 20)), MAX_RETRY)
        if requested_wait is not None and requested_wait > MAX_PAGE_RETRY_AFTER:  # does not apply to the domain
            wait = requested_wait
        visit = replace(visit, overloaded=True, retry_after=requested_wait)
    else:
        wait = _compute_failed_wait(target, failures)
    due_at, recipients = now + min(wait, target.terms.max_interval), () if failures >= FAILURES_UNTIL_LEAF else None
    return replace(visit, failures=failures, due_at=due_at, recipients=recipients)


def compute_retry_wait(failures: int, *, longest: timedelta = MAX_RETRY) -> timedelta:
    """Return the wait after this many failed visits in a row, 1 or more."""
    return min(FIRST_RETRY * int(2 ** min(failures - 1, 20)), longest)


def _compute_failed_wait(target: Target, failures: int) -> timedelta:
    """Return the wait after this many failures in a row. For a URL that never was a page, it can exceed MAX_RETRY."""
    if target.version is not None:
        return compute_retry_wait(failures)
    spread = 1 + DEAD_URL_SPREAD * compute_phase(target.key) if failures > FAILURES_UNTIL_LEAF else 1
    return compute_retry_wait(failures, longest=target.terms.max_interval) * spread
