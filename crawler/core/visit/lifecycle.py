"""Looks that bring no page: redirects, pages that are missing, failures and refusals. None erases what was learnt."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from crawler.core.change.change import Change, Rung, Verdict
from crawler.core.freshness.terms import Wanted
from crawler.core.freshness.value import phase_of
from crawler.core.http.backoff import retry_after
from crawler.core.http.response import Answer, Fetched, Reason, Unreached
from crawler.core.page.content import PageContent
from crawler.core.rendering.outcome import RenderFailure
from crawler.core.visit.links import led_to, link_of
from crawler.core.visit.visit import (
    FIRST_RETRY,
    NETWORK_FAILURES,
    OVERLOADED,
    PERMANENT,
    TEMPORARY,
    UNKNOWN,
    Known,
    Link,
    State,
    Target,
    Visit,
    unchanged_visit,
)

LOOKS_BEFORE_A_FAILING_PAGE_PAYS = 3  # then it settles as a leaf, so that nothing holds cash for ever
CONFIRM_404_AFTER = timedelta(minutes=30)  # the second fetch of a page that answers 404
CONFIRM_404_AT_LEAST = timedelta(minutes=10)  # after the first 404; a second one sooner may be the same accident
# Across failures of other kinds: a 404 before and one after an outage are two firsts.
FIRST_404_COUNTS = timedelta(days=1)
CONFIRM_MISSING_AFTER = timedelta(hours=1)  # a soft error, or a move onto a page that existed, is confirmed no sooner
LOOK_AGAIN_MISSING = timedelta(days=1)
CROWD = 5  # pages that move to one target within CROWD_TIME: an outage, or a site that hides what it took away
CROWD_TIME = timedelta(days=7)
BULK_REDIRECT = "bulk_redirect"  # reason: many pages redirect to one target (a bulk redirect)
# Reason: the target existed beside the page, so that a second look must confirm.
REDIRECT_TO_EXISTING = "redirect_to_existing"
CONFIRM_CROWD_AFTER = timedelta(days=3)  # between two looks; with the waits before it, a week after the first one
LOOK_AGAIN_REDIRECT = timedelta(days=7)
LOOK_AGAIN_GONE = timedelta(days=30)
# Of the wait of a URL that never was a page, by its key, so that many found at once do not come back so.
DEAD_SPREAD = 0.5
MOST_REDIRECTS = 5  # one after another, before the page that the next one leads to is held back
FIRST_HOLD = timedelta(days=1)  # of such a page; twice as long after each further redirect
LOOK_AGAIN_REFUSED = timedelta(days=7)  # costs no request while robots.txt or the scope still refuse
FIRST_BUSY_RETRY = timedelta(minutes=1)
LAST_RETRY = timedelta(days=7)


def refused_visit(target: Target, *, reason: str, now: datetime) -> Visit:
    """The Visit of a page that may not be fetched any more: no request, no cash, looked at again in a week.

    A page that is gone or has moved stays so: otherwise its return would not be reported.
    """
    return replace(
        unchanged_visit(target, now=now),
        answer="unreached",
        state=target.state if target.state in {State.GONE, State.MOVED} else State.REFUSED,
        due_at=now + min(LOOK_AGAIN_REFUSED, target.terms.most),
        reason=reason,
        withheld_since=None,  # nothing is fetched that could be accepted
        requests=0,
        conditional=False,
    )


def unfinished_visit(target: Target, *, now: datetime) -> Visit:
    """The Visit of a look that the end of the lease or the budget cut off: the page stays as due as it was."""
    return replace(unchanged_visit(target, now=now), due_at=now, reason=Reason.LEASE.value)


def unrendered_visit(target: Target, answer: Fetched, failure: RenderFailure, *, now: datetime) -> Visit:
    """The Visit of a page that is kept as a browser shows it, and that none has shown this time."""
    if failure is RenderFailure.ENDING:
        return unfinished_visit(target, now=now)
    return failed_visit(target, answer, now=now, reason=f"render_{failure.value}")


def passed_on_visit(target: Target, answer: Fetched, content: PageContent, *, now: datetime, known: Known) -> Visit:
    """The Visit of a page whose markup redirects at once (meta refresh): as if its server had answered 301."""
    as_redirect = replace(answer, status=min(PERMANENT), location=content.refresh)
    return replace(redirected_visit(target, as_redirect, now=now, known=known), status=answer.status)


def redirected_visit(target: Target, answer: Fetched, *, now: datetime, known: Known) -> Visit:
    assert answer.location is not None
    link = link_of(answer.location, depth=target.depth + 1, known=known)
    if link is not None and link.key == target.key:
        return failed_visit(target, answer, now=now, reason="redirects_to_itself")
    if answer.status in TEMPORARY:
        return _temporary_redirect_visit(target, answer, link, now=now)
    was_so = target.state is State.MOVED
    return replace(
        unchanged_visit(target, answer, now=now),
        verdict=Verdict(Change.SAME if was_so else Change.MOVED, Rung.STATUS),
        state=State.MOVED,
        due_at=now + _wait_of_away(target),
        reason="" if link else "moved_away",
        failures=0,
        moved_to=link,
        led_to=led_to(target, answer.location),
    )


def _temporary_redirect_visit(target: Target, answer: Fetched, link: Link | None, *, now: datetime) -> Visit:
    """The Visit of a page that redirects for now: the page stays, and the target is a link like any other.

    A page that has a version keeps that version's links: the redirect may be a soft error.
    """
    visit = replace(
        unchanged_visit(target, answer, now=now),
        reason=f"http_{answer.status}",
        links=(link,) if link else (),
        led_to=link.key if link else None,
        withheld_since=None,  # a redirect has no content
    )
    if target.version is None:
        recipients = (link.key,) if link else ()
        due_at = now + _wait_of_redirect(target)
        return replace(visit, failures=0, due_at=due_at, recipients=recipients, external_links=())
    failures = target.failures + 1
    wait = LOOK_AGAIN_REDIRECT if visit.state is not State.KNOWN else retry_after_failures(failures)
    due_at = now + min(wait, LOOK_AGAIN_REDIRECT, target.terms.most)
    return replace(visit, failures=failures, due_at=due_at, recipients=target.outlinks)


@dataclass(frozen=True, slots=True)
class MoveTarget:
    """Knowledge about the target of a page's redirect.

    others: pages with a version, beside this one, that began to redirect there within CROWD_TIME.
    read_since: when the target was first read, None if never.  is_circle: redirects lead from there back to the page.
    """

    others: int = 0
    read_since: datetime | None = None
    is_circle: bool = False

    def stood_beside(self, target: Target) -> bool:
        """Whether the target existed already while the page was still a page of its own."""
        if self.read_since is None or target.last_good_at is None:
            return False
        return self.read_since < target.last_good_at


def confirm_move(visit: Visit, move_target: MoveTarget) -> Visit:
    """Confirm a redirect, or put it off as long as it may be an outage; the page keeps its state until then.

    Where CROWD pages redirect to one target, in the domain or out of it, each is looked at again for about a week. Then
    it is gone rather than moved: the importance of all of them does not belong to one page. Where a page moves onto one
    that existed beside it, a second look must confirm, as for a 404. A page that never had a version moves at once.
    """
    target = visit.target
    if move_target.is_circle and (visit.change is Change.MOVED or visit.led_to is not None):
        # After some looks, a page that never was is hardly asked for.
        is_hopeless = target.version is None and target.failures + 1 >= LOOKS_BEFORE_A_FAILING_PAGE_PAYS
        wait = LOOK_AGAIN_GONE if is_hopeless else retry_after_failures(target.failures + 1)
        return _put_off(replace(visit, moved_to=None), "redirects_in_a_circle", wait=wait)
    if visit.change is not Change.MOVED or target.version is None:
        return visit
    moving_for = _moving_for(visit)
    wait = min(LOOK_AGAIN_MISSING * int(2 ** min(target.failures, 20)), LAST_RETRY)
    if move_target.others + 1 >= CROWD:
        if target.state is State.GONE or moving_for >= CONFIRM_CROWD_AFTER:
            return _gone(replace(visit, moved_to=None), reason=BULK_REDIRECT)
        return _put_off(visit, BULK_REDIRECT, wait=wait)
    if move_target.stood_beside(target) and moving_for < CONFIRM_MISSING_AFTER:
        return _put_off(visit, REDIRECT_TO_EXISTING, wait=wait)
    return visit


def _moving_for(visit: Visit) -> timedelta:
    """Time since the last look, if that one found a redirect of the same kind, too; else zero."""
    target = visit.target
    is_repeated = target.status in PERMANENT if visit.status in PERMANENT else target.status == visit.status
    if not is_repeated or target.failures == 0 or target.last_look_at is None:
        return timedelta(0)
    return visit.at - target.last_look_at


def _put_off(visit: Visit, reason: str, *, wait: timedelta) -> Visit:
    """The Visit of a redirect that is not believed yet: it counts as a look without a good answer."""
    target = visit.target
    failures = target.failures + 1
    return replace(
        visit,
        verdict=UNKNOWN,
        state=unchanged_visit(target, now=visit.at).state,
        reason=reason,
        failures=failures,
        due_at=visit.at + min(wait, target.terms.most),
        recipients=() if failures >= LOOKS_BEFORE_A_FAILING_PAGE_PAYS else None,
    )


def missing_visit(target: Target, answer: Fetched, *, now: datetime) -> Visit:
    """Return the Visit of a 404 or 410.

    A 410 is believed at once, as is the 404 of a page without any version. The first 404 of a page with a version
    schedules a second fetch, and a second 404 at least CONFIRM_404_AT_LEAST after the first decides, however many
    visits lie between them. It comes sooner where a user asked for the page.
    """
    first = target.missing_since
    if first is None or (target.status != 404 and now - first > FIRST_404_COUNTS):
        first = now  # of those that count together with this one
    is_known_to_be_away = target.version is None or target.state is State.GONE
    if answer.status == 410 or is_known_to_be_away or now - first >= CONFIRM_404_AT_LEAST:
        return _gone(unchanged_visit(target, answer, now=now), reason=f"http_{answer.status}")
    is_requested = target.wanted in {Wanted.BY_USER, Wanted.BY_NAME}
    second = first + (CONFIRM_404_AT_LEAST if is_requested else CONFIRM_404_AFTER)
    return replace(
        failed_visit(target, answer, now=now, reason="http_404"),
        missing_since=first,
        due_at=max(min(second, now + target.terms.most), first + CONFIRM_404_AT_LEAST),
    )


def _gone(visit: Visit, *, reason: str) -> Visit:
    target = visit.target
    was_so = target.state is State.GONE
    return replace(
        visit,
        verdict=Verdict(Change.SAME if was_so else Change.GONE, Rung.STATUS),
        state=State.GONE,
        due_at=visit.at + _wait_of_away(target),
        reason=reason,
        failures=0,
    )


def _wait_of_away(target: Target) -> timedelta:
    """Return how long to leave a page alone that is gone or has moved."""
    if target.version is not None:
        return min(LOOK_AGAIN_GONE, target.terms.most)
    return _wait_of_dead(target, first=LOOK_AGAIN_GONE)


def _wait_of_redirect(target: Target) -> timedelta:
    """Return how long to leave a URL alone that never was a page and redirects for now.

    A seed is asked as often as ever. A URL that only redirects led to waits longer, the more of them there were.
    """
    if target.depth == 0:
        return min(LOOK_AGAIN_REDIRECT, target.terms.most)
    if not target.redirects:
        return _wait_of_dead(target, first=LOOK_AGAIN_REDIRECT)
    return _wait_of_dead(target, first=LOOK_AGAIN_GONE * int(2 ** min(target.redirects - 1, 10)))


def _wait_of_dead(target: Target, *, first: timedelta) -> timedelta:
    """Return how long to leave a URL alone that never was a page: `first`, then twice as long each time.

    Spread by the key of the URL, and never longer than the longest interval.
    """
    before = target.due_at - target.last_look_at if target.due_at and target.last_look_at else timedelta(0)
    return min(max(first * (1 + DEAD_SPREAD * phase_of(target.key)), 2 * before), target.terms.most)


def redirects_to_found(visit: Visit) -> int:
    """Return how many redirects in a row lead to a page that this visit makes known; 0 where a page links to it.

    Where a URL that was a redirect before leads to a new page, it may do so for ever: that counts as too many.
    """
    target = visit.target
    if target.version is not None or visit.led_to is None:
        return 0
    return 1 + (target.redirects if target.state is State.NEW else max(target.redirects, MOST_REDIRECTS))


def hold_after_redirects(redirects: int) -> timedelta:
    """Return how long a new page is held back to which so many redirects led, one after another."""
    further = redirects - MOST_REDIRECTS
    return FIRST_HOLD * int(2 ** min(further - 1, 9)) if further > 0 else timedelta(0)


def unreached_visit(target: Target, answer: Unreached, *, now: datetime) -> Visit:
    if answer.reason is Reason.ROBOTS:
        return refused_visit(target, reason=answer.reason.value, now=now)
    visit = failed_visit(target, answer, now=now, reason=answer.reason.value)
    return replace(visit, no_response=answer.reason in NETWORK_FAILURES)


# What one page alone can ask for all others of its domain. Two pages that ask for more speak for the domain.
MOST_OF_ONE_PAGE = timedelta(days=1)


def failed_visit(target: Target, answer: Answer, *, now: datetime, reason: str) -> Visit:
    """The Visit of a look without a good answer: nothing that was learnt is touched, and the page is tried again."""
    visit = replace(unchanged_visit(target, answer, now=now), reason=reason)
    if isinstance(answer, Fetched) and answer.status in OVERLOADED:
        wait_asked = retry_after(answer.retry_after, now=now, server_date=answer.date)
        # The page has a back-off of its own beside the domain's: if it alone is busy, others must come first next time.
        wait = min(FIRST_BUSY_RETRY * int(2 ** min(target.failures, 20)), LAST_RETRY)
        if wait_asked is not None and wait_asked > MOST_OF_ONE_PAGE:  # which does not hold for its domain
            wait = wait_asked
        visit = replace(visit, overloaded=True, retry_after=wait_asked, due_at=now + min(wait, target.terms.most))
    failures = target.failures + 1
    return replace(
        visit,
        failures=failures,
        due_at=visit.due_at if visit.overloaded else now + min(_wait_of_failed(target, failures), target.terms.most),
        recipients=() if failures >= LOOKS_BEFORE_A_FAILING_PAGE_PAYS else None,
    )


def retry_after_failures(failures: int, *, longest: timedelta = LAST_RETRY) -> timedelta:
    """How long to wait after so many looks in a row without a good answer, 1 or more."""
    return min(FIRST_RETRY * int(2 ** min(failures - 1, 20)), longest)


def _wait_of_failed(target: Target, failures: int) -> timedelta:
    """Return the wait after so many failures; beyond a week that of a URL that never was a page goes on doubling."""
    if target.version is not None:
        return retry_after_failures(failures)
    spread = 1 + DEAD_SPREAD * phase_of(target.key) if failures > LOOKS_BEFORE_A_FAILING_PAGE_PAYS else 1
    return retry_after_failures(failures, longest=target.terms.most) * spread
