"""Looks that bring no page: redirects, pages that are missing, failures and refusals. None erases what was learnt."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from crawler.core.change import Change, Rung, Verdict
from crawler.core.http import Answer, Fetched, NotModified, Reason, Unreached, retry_after
from crawler.core.page import PageContent
from crawler.core.visit.links import led_to, link_of
from crawler.core.visit.visit import (
    FIRST_RETRY,
    NETWORK_FAILURES,
    OVERLOADED,
    PERMANENT,
    TEMPORARY,
    Known,
    Link,
    State,
    Target,
    Visit,
    unchanged_visit,
    with_answer,
)

LOOKS_BEFORE_A_FAILING_PAGE_PAYS = 3  # then it settles as a leaf, so that nothing holds cash for ever
CONFIRM_MISSING_AFTER = timedelta(hours=1)  # a second 404 sooner than this may be the same accident
LOOK_AGAIN_MISSING = timedelta(days=1)
CROWD = 5  # pages that move to one target within CROWD_TIME: an outage, or a site that hides what it took away
CROWD_TIME = timedelta(days=7)
BULK_REDIRECT, REDIRECT_TO_EXISTING = "bulk_redirect", "redirect_to_existing"  # why a move is not believed yet
CONFIRM_CROWD_AFTER = timedelta(days=3)  # between two looks; with the waits before it, a week after the first one
LOOK_AGAIN_REDIRECT = timedelta(days=7)
LOOK_AGAIN_GONE = timedelta(days=30)
LOOK_AGAIN_REFUSED = timedelta(days=7)  # costs no request while robots.txt or the scope still refuse
FIRST_BUSY_RETRY = timedelta(minutes=1)
LAST_RETRY = timedelta(days=7)


def refused_visit(target: Target, *, reason: str, now: datetime) -> Visit:
    """A page that we may not ask for any more: no request, no part in the economy, looked at again in a week.

    What is gone or has moved stays so: otherwise nobody would hear of it when it is back.
    """
    return replace(
        unchanged_visit(target, now=now),
        answer="unreached",
        state=target.state if target.state in {State.GONE, State.MOVED} else State.REFUSED,
        due_at=now + min(LOOK_AGAIN_REFUSED, target.terms.most),
        reason=reason,
        requests=0,
        conditional=False,
    )


def unfinished_visit(target: Target, *, now: datetime) -> Visit:
    """A look that was begun, and ended by the lease or the budget before it told anything: as due as it was."""
    return replace(unchanged_visit(target, now=now), due_at=now, reason=Reason.LEASE.value)


def unreadable_visit(target: Target, answer: Fetched, *, now: datetime) -> Visit:
    """A body that whoever should read it has choked on."""
    return failed_visit(target, answer, now=now, reason="unreadable")


def passed_on_visit(target: Target, answer: Fetched, reading: PageContent, *, now: datetime, known: Known) -> Visit:
    """A page that sends its reader on at once, by its markup, has moved as if its server had said so."""
    said = replace(answer, status=min(PERMANENT), location=reading.refresh)
    return replace(redirected_visit(target, said, now=now, known=known), status=answer.status)


def redirected_visit(target: Target, answer: Fetched, *, now: datetime, known: Known) -> Visit:
    assert answer.location is not None
    link = link_of(answer.location, target=target, known=known)
    if link is not None and link.key == target.key:
        return failed_visit(target, answer, now=now, reason="redirects_to_itself")
    if answer.status in TEMPORARY:
        return _elsewhere_today(target, answer, link, now=now)
    already = target.state is State.MOVED
    return replace(
        with_answer(unchanged_visit(target, now=now), answer=answer),
        verdict=Verdict(Change.SAME if already else Change.MOVED, Rung.STATUS),
        state=State.MOVED,
        due_at=now + min(LOOK_AGAIN_GONE, target.terms.most),
        reason="" if link else "moved_away",
        failures=0,
        moved_to=link,
        led_to=led_to(target, answer.location),
    )


def _elsewhere_today(target: Target, answer: Fetched, link: Link | None, *, now: datetime) -> Visit:
    """A page that stays what it is; where it points today is a link like any other.

    One that has a version keeps the links of that: it may be a wall, and the page unchanged behind it.
    """
    visit = replace(
        with_answer(unchanged_visit(target, now=now), answer=answer),
        reason=f"http_{answer.status}",
        links=(link,) if link else (),
    )
    if target.version is None:
        gives = (link.key,) if link else ()
        due_at = now + min(LOOK_AGAIN_REDIRECT, target.terms.most)
        return replace(visit, failures=0, due_at=due_at, recipients=gives, external_links=())
    failures = target.failures + 1
    wait = LOOK_AGAIN_REDIRECT if visit.state is not State.KNOWN else retry_after_failures(failures)
    due_at = now + min(wait, LOOK_AGAIN_REDIRECT, target.terms.most)
    return replace(visit, failures=failures, due_at=due_at, recipients=target.outlinks)


@dataclass(frozen=True, slots=True)
class MoveTarget:
    """What the domain knows of the place that a page says it moved to.

    others: pages with a version, beside this one, that began to redirect there within CROWD_TIME.
    read_since: since when it is known, if it was ever read.  is_circle: redirects lead from there back to the page.
    """

    others: int = 0
    read_since: datetime | None = None
    is_circle: bool = False

    def stood_beside(self, target: Target) -> bool:
        """Whether it was there while the page was still where it had been."""
        if self.read_since is None or target.last_good_at is None:
            return False
        return self.read_since < target.last_good_at


def confirm_move(visit: Visit, landing: MoveTarget) -> Visit:
    """A move as it stands, or as long as it may be an outage no move at all: then the page keeps its state and history.

    Where many pages move to one target, in the domain or out of it, each is asked again for a week or so, and is gone
    then rather than moved: their importance is not that one page's. Where a page moves onto one that stood there
    already, beside it, a second look must say the same, as for a 404. Who never had a version has nothing to lose, and
    moves at once.
    """
    target = visit.target
    if visit.change is not Change.MOVED:
        return visit
    if landing.is_circle:
        return _put_off(
            replace(visit, moved_to=None), "redirects_in_a_circle", wait=retry_after_failures(target.failures + 1)
        )
    if target.version is None:
        return visit
    waited = _moving_for(visit)
    wait = min(LOOK_AGAIN_MISSING * int(2 ** min(target.failures, 20)), LAST_RETRY)
    if landing.others + 1 >= CROWD:
        if target.state is State.GONE or waited >= CONFIRM_CROWD_AFTER:
            return _gone(replace(visit, moved_to=None), reason=BULK_REDIRECT)
        return _put_off(visit, BULK_REDIRECT, wait=wait)
    if landing.stood_beside(target) and waited < CONFIRM_MISSING_AFTER:
        return _put_off(visit, REDIRECT_TO_EXISTING, wait=wait)
    return visit


def _moving_for(visit: Visit) -> timedelta:
    """How long ago the last look was, if that found a move as well, by the same kind of answer."""
    target = visit.target
    is_again = target.status in PERMANENT if visit.status in PERMANENT else target.status == visit.status
    if not is_again or target.failures == 0 or target.last_look_at is None:
        return timedelta(0)
    return visit.at - target.last_look_at


def _put_off(visit: Visit, reason: str, *, wait: timedelta) -> Visit:
    """A look that is not believed yet, and counts as one without a good answer."""
    target = visit.target
    failures = target.failures + 1
    return replace(
        visit,
        verdict=Verdict(Change.UNKNOWN, Rung.STATUS),
        state=unchanged_visit(target, now=visit.at).state,
        reason=reason,
        failures=failures,
        due_at=visit.at + min(wait, target.terms.most),
        recipients=() if failures >= LOOKS_BEFORE_A_FAILING_PAGE_PAYS else None,
    )


def missing_visit(target: Target, answer: Fetched, *, now: datetime) -> Visit:
    """404 is believed when it is confirmed, 410 at once; a page that never was there needs no second opinion."""
    confirmed = (
        answer.status == 410
        or target.version is None
        or target.state is State.GONE
        or (
            target.status == 404
            and target.last_look_at is not None
            and now - target.last_look_at >= CONFIRM_MISSING_AFTER
        )
    )
    if not confirmed:
        return replace(
            failed_visit(target, answer, now=now, reason="http_404"),
            due_at=now + min(LOOK_AGAIN_MISSING, target.terms.most),
        )
    return _gone(with_answer(unchanged_visit(target, now=now), answer=answer), reason=f"http_{answer.status}")


def _gone(visit: Visit, *, reason: str) -> Visit:
    target = visit.target
    already = target.state is State.GONE
    return replace(
        visit,
        verdict=Verdict(Change.SAME if already else Change.GONE, Rung.STATUS),
        state=State.GONE,
        due_at=visit.at + min(LOOK_AGAIN_GONE, target.terms.most),
        reason=reason,
        failures=0,
    )


def unreached_visit(target: Target, answer: Unreached, *, now: datetime) -> Visit:
    if answer.reason is Reason.ROBOTS:
        return refused_visit(target, reason=answer.reason.value, now=now)
    return replace(
        failed_visit(target, answer, now=now, reason=answer.reason.value),
        answer="unreached",
        no_response=answer.reason in NETWORK_FAILURES,
        received_bytes=answer.received_bytes,
    )


def failed_visit(target: Target, answer: Answer, *, now: datetime, reason: str) -> Visit:
    """No good answer: nothing that was learnt is touched, and the page is tried again after a while."""
    before = unchanged_visit(target, now=now)
    visit = replace(
        with_answer(before, answer=answer) if isinstance(answer, Fetched) else replace(before, elapsed=answer.elapsed),
        reason=reason,
        answer="not_modified" if isinstance(answer, NotModified) else "fetched",
    )
    if isinstance(answer, Fetched) and answer.status in OVERLOADED:
        asked = retry_after(answer.retry_after, now=now, server_date=answer.date)
        # The page has its own back-off beside the domain's: if it alone is busy, others must come first next time.
        wait = min(FIRST_BUSY_RETRY * int(2 ** min(target.failures, 20)), LAST_RETRY)
        visit = replace(visit, overloaded=True, retry_after=asked, due_at=now + min(wait, target.terms.most))
    failures = target.failures + 1
    return replace(
        visit,
        failures=failures,
        due_at=visit.due_at if visit.overloaded else now + min(retry_after_failures(failures), target.terms.most),
        recipients=() if failures >= LOOKS_BEFORE_A_FAILING_PAGE_PAYS else None,
    )


def retry_after_failures(failures: int) -> timedelta:
    """How long to wait after so many looks in a row without a good answer, 1 or more."""
    return min(FIRST_RETRY * int(2 ** min(failures - 1, 20)), LAST_RETRY)
