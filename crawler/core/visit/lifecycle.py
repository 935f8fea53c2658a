"""Looks that bring no page: redirects, pages that are missing, failures and refusals. None erases what was learnt."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from crawler.core.change.change import Change, Evidence, Verdict
from crawler.core.freshness.terms import RequestReason
from crawler.core.freshness.value import compute_phase
from crawler.core.http.backoff import parse_retry_after
from crawler.core.http.response import FailureReason, Fetched, Response, Unreached
from crawler.core.page.content import PageContent
from crawler.core.rendering.outcome import RenderFailure
from crawler.core.visit.links import compute_redirect_key, resolve_link
from crawler.core.visit.visit import (
    FIRST_RETRY,
    NETWORK_FAILURES,
    OVERLOAD_STATUSES,
    PERMANENT_REDIRECTS,
    TEMPORARY_REDIRECTS,
    UNKNOWN_VERDICT,
    DomainKnowledge,
    Link,
    State,
    Target,
    Visit,
    build_unchanged_visit,
)

FAILURES_UNTIL_LEAF = 3  # then it settles as a leaf, so that nothing holds cash for ever
CONFIRM_404_AFTER = timedelta(minutes=30)  # the second fetch of a page that answers 404
MIN_404_CONFIRMATION = timedelta(minutes=10)  # after the first 404; a second one sooner may be the same accident
# Across failures of other kinds: a 404 before and one after an outage are two firsts.
FIRST_404_VALIDITY = timedelta(days=1)
CONFIRM_MISSING_AFTER = timedelta(hours=1)  # a soft error, or a move onto a page that existed, is confirmed no sooner
REVISIT_MISSING_AFTER = timedelta(days=1)
BULK_REDIRECT_PAGES = (
    5  # pages that move to one target within BULK_REDIRECT_PERIOD: an outage, or a site that hides what it took away
)
BULK_REDIRECT_PERIOD = timedelta(days=7)
BULK_REDIRECT = "bulk_redirect"  # reason: many pages redirect to one target (a bulk redirect)
# Reason: the target existed beside the page, so that a second look must confirm.
REDIRECT_TO_EXISTING = "redirect_to_existing"
# between two looks; with the waits before it, a week after the first one
CONFIRM_BULK_REDIRECT_AFTER = timedelta(days=3)
REVISIT_REDIRECT_AFTER = timedelta(days=7)
REVISIT_GONE_AFTER = timedelta(days=30)
# Of the wait of a URL that never was a page, by its key, so that many found at once do not come back so.
DEAD_URL_SPREAD = 0.5
MAX_REDIRECTS = 5  # one after another, before the page that the next one leads to is held back
FIRST_DEFERRAL = timedelta(days=1)  # of such a page; twice as long after each further redirect
REVISIT_EXCLUDED_AFTER = timedelta(days=7)  # costs no request while robots.txt or the scope still refuse
FIRST_BUSY_RETRY = timedelta(minutes=1)
MAX_RETRY = timedelta(days=7)


def build_excluded_visit(target: Target, *, reason: str, now: datetime) -> Visit:
    """The Visit of a page that may not be fetched any more: no request, no cash, looked at again in a week.

    A page that is gone or has moved stays so: otherwise its return would not be reported.
    """
    return replace(
        build_unchanged_visit(target, now=now),
        outcome="unreached",
        state=target.state if target.state in {State.GONE, State.MOVED} else State.EXCLUDED,
        due_at=now + min(REVISIT_EXCLUDED_AFTER, target.terms.max_interval),
        reason=reason,
        withheld_since=None,  # nothing is fetched that could be accepted
        requests=0,
        conditional=False,
    )


def build_unfinished_visit(target: Target, *, now: datetime) -> Visit:
    """The Visit of a look that the end of the lease or the budget cut off: the page stays as due as it was."""
    return replace(build_unchanged_visit(target, now=now), due_at=now, reason=FailureReason.LEASE.value)


def build_unrendered_visit(target: Target, response: Fetched, failure: RenderFailure, *, now: datetime) -> Visit:
    """The Visit of a page that is kept as a browser shows it, and that none has shown this time."""
    if failure is RenderFailure.ENDING:
        return build_unfinished_visit(target, now=now)
    return build_failed_visit(target, response, now=now, reason=f"render_{failure.value}")


def build_refresh_visit(
    target: Target, response: Fetched, content: PageContent, *, now: datetime, knowledge: DomainKnowledge
) -> Visit:
    """The Visit of a page whose markup redirects at once (meta refresh): as if its server had answered 301."""
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
    """The Visit of a page that redirects for now: the page stays, and the target is a link like any other.

    A page that has a version keeps that version's links: the redirect may be a soft error.
    """
    visit = replace(
        build_unchanged_visit(target, response, now=now),
        reason=f"http_{response.status}",
        links=(link,) if link else (),
        led_to=link.key if link else None,
        withheld_since=None,  # a redirect has no content
    )
    if target.version is None:
        recipients = (link.key,) if link else ()
        due_at = now + _compute_redirect_wait(target)
        return replace(visit, failures=0, due_at=due_at, recipients=recipients, external_links=())
    failures = target.failures + 1
    wait = REVISIT_REDIRECT_AFTER if visit.state is not State.FETCHED else compute_retry_wait(failures)
    due_at = now + min(wait, REVISIT_REDIRECT_AFTER, target.terms.max_interval)
    return replace(visit, failures=failures, due_at=due_at, recipients=target.outlinks)


@dataclass(frozen=True, slots=True)
class MoveTarget:
    """Knowledge about the target of a page's redirect.

    other_pages: pages with a version, beside this one, that began to redirect there within BULK_REDIRECT_PERIOD.
    first_read_at: when the target was first read, None if never.  is_loop: redirects lead from there back to the page.
    """

    other_pages: int = 0
    first_read_at: datetime | None = None
    is_loop: bool = False

    def existed_beside(self, target: Target) -> bool:
        """Whether the target existed already while the page was still a page of its own."""
        if self.first_read_at is None or target.last_good_at is None:
            return False
        return self.first_read_at < target.last_good_at


def confirm_move(visit: Visit, move_target: MoveTarget) -> Visit:
    """Confirm a redirect, or put it off as long as it may be an outage; the page keeps its state until then.

    Where BULK_REDIRECT_PAGES pages redirect to one target, in the domain or out of it, each is looked at again for
    about a week. Then it is gone rather than moved: the importance of all of them does not belong to one page. Where a
    page moves onto one that existed beside it, a second look must confirm, as for a 404. A page that never had a
    version moves at once.
    """
    target = visit.target
    if move_target.is_loop and (visit.change is Change.MOVED or visit.led_to is not None):
        # After some looks, a page that never was is hardly asked for.
        is_hopeless = target.version is None and target.failures + 1 >= FAILURES_UNTIL_LEAF
        wait = REVISIT_GONE_AFTER if is_hopeless else compute_retry_wait(target.failures + 1)
        return _defer_redirect(replace(visit, moved_to=None), "redirects_in_a_circle", wait=wait)
    if visit.change is not Change.MOVED or target.version is None:
        return visit
    redirect_time = _measure_redirect_time(visit)
    wait = min(REVISIT_MISSING_AFTER * int(2 ** min(target.failures, 20)), MAX_RETRY)
    if move_target.other_pages + 1 >= BULK_REDIRECT_PAGES:
        if target.state is State.GONE or redirect_time >= CONFIRM_BULK_REDIRECT_AFTER:
            return _build_gone_visit(replace(visit, moved_to=None), reason=BULK_REDIRECT)
        return _defer_redirect(visit, BULK_REDIRECT, wait=wait)
    if move_target.existed_beside(target) and redirect_time < CONFIRM_MISSING_AFTER:
        return _defer_redirect(visit, REDIRECT_TO_EXISTING, wait=wait)
    return visit


def _measure_redirect_time(visit: Visit) -> timedelta:
    """Time since the last look, if that one found a redirect of the same kind, too; else zero."""
    target = visit.target
    is_repeated = (
        target.status in PERMANENT_REDIRECTS if visit.status in PERMANENT_REDIRECTS else target.status == visit.status
    )
    if not is_repeated or target.failures == 0 or target.last_visit_at is None:
        return timedelta(0)
    return visit.at - target.last_visit_at


def _defer_redirect(visit: Visit, reason: str, *, wait: timedelta) -> Visit:
    """The Visit of a redirect that is not believed yet: it counts as a look without a good answer."""
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
    """Return the Visit of a 404 or 410.

    A 410 is believed at once, as is the 404 of a page without any version. The first 404 of a page with a version
    schedules a second fetch, and a second 404 at least MIN_404_CONFIRMATION after the first decides, however many
    visits lie between them. It comes sooner where a user asked for the page.
    """
    first = target.missing_since
    if first is None or (target.status != 404 and now - first > FIRST_404_VALIDITY):
        first = now  # of those that count together with this one
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
    """Return how long to leave a page alone that is gone or has moved."""
    if target.version is not None:
        return min(REVISIT_GONE_AFTER, target.terms.max_interval)
    return _compute_dead_wait(target, first=REVISIT_GONE_AFTER)


def _compute_redirect_wait(target: Target) -> timedelta:
    """Return how long to leave a URL alone that never was a page and redirects for now.

    A seed is asked as often as ever. A URL that only redirects led to waits longer, the more of them there were.
    """
    if target.depth == 0:
        return min(REVISIT_REDIRECT_AFTER, target.terms.max_interval)
    if not target.redirects:
        return _compute_dead_wait(target, first=REVISIT_REDIRECT_AFTER)
    return _compute_dead_wait(target, first=REVISIT_GONE_AFTER * int(2 ** min(target.redirects - 1, 10)))


def _compute_dead_wait(target: Target, *, first: timedelta) -> timedelta:
    """Return how long to leave a URL alone that never was a page: `first`, then twice as long each time.

    Spread by the key of the URL, and never longer than the longest interval.
    """
    before = target.due_at - target.last_visit_at if target.due_at and target.last_visit_at else timedelta(0)
    return min(max(first * (1 + DEAD_URL_SPREAD * compute_phase(target.key)), 2 * before), target.terms.max_interval)


def count_redirects_to_new(visit: Visit) -> int:
    """Return how many redirects in a row lead to a page that this visit makes known; 0 where a page links to it.

    Where a URL that was a redirect before leads to a new page, it may do so for ever: that counts as too many.
    """
    target = visit.target
    if target.version is not None or visit.led_to is None:
        return 0
    return 1 + (target.redirects if target.state is State.UNFETCHED else max(target.redirects, MAX_REDIRECTS))


def compute_redirect_deferral(redirects: int) -> timedelta:
    """Return how long a new page is held back to which so many redirects led, one after another."""
    further = redirects - MAX_REDIRECTS
    return FIRST_DEFERRAL * int(2 ** min(further - 1, 9)) if further > 0 else timedelta(0)


def build_unreached_visit(target: Target, response: Unreached, *, now: datetime) -> Visit:
    if response.reason is FailureReason.ROBOTS:
        return build_excluded_visit(target, reason=response.reason.value, now=now)
    visit = build_failed_visit(target, response, now=now, reason=response.reason.value)
    return replace(visit, no_response=response.reason in NETWORK_FAILURES)


# What one page alone can ask for all others of its domain. Two pages that ask for more speak for the domain.
MAX_PAGE_RETRY_AFTER = timedelta(days=1)


def build_failed_visit(target: Target, response: Response, *, now: datetime, reason: str) -> Visit:
    """The Visit of a look without a good response: nothing that was learnt is touched, and the page is tried again."""
    visit = replace(build_unchanged_visit(target, response, now=now), reason=reason)
    if isinstance(response, Fetched) and response.status in OVERLOAD_STATUSES:
        requested_wait = parse_retry_after(response.retry_after, now=now, server_date=response.date)
        # The page has a back-off of its own beside the domain's: if it alone is busy, others must come first next time.
        wait = min(FIRST_BUSY_RETRY * int(2 ** min(target.failures, 20)), MAX_RETRY)
        if requested_wait is not None and requested_wait > MAX_PAGE_RETRY_AFTER:  # which does not hold for its domain
            wait = requested_wait
        visit = replace(
            visit, overloaded=True, retry_after=requested_wait, due_at=now + min(wait, target.terms.max_interval)
        )
    failures = target.failures + 1
    return replace(
        visit,
        failures=failures,
        due_at=visit.due_at
        if visit.overloaded
        else now + min(_compute_failed_wait(target, failures), target.terms.max_interval),
        recipients=() if failures >= FAILURES_UNTIL_LEAF else None,
    )


def compute_retry_wait(failures: int, *, longest: timedelta = MAX_RETRY) -> timedelta:
    """How long to wait after so many looks in a row without a good answer, 1 or more."""
    return min(FIRST_RETRY * int(2 ** min(failures - 1, 20)), longest)


def _compute_failed_wait(target: Target, failures: int) -> timedelta:
    """Return the wait after so many failures; beyond a week that of a URL that never was a page goes on doubling."""
    if target.version is not None:
        return compute_retry_wait(failures)
    spread = 1 + DEAD_URL_SPREAD * compute_phase(target.key) if failures > FAILURES_UNTIL_LEAF else 1
    return compute_retry_wait(failures, longest=target.terms.max_interval) * spread
