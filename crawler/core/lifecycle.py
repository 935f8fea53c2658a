"""Looks that bring no page: redirects, pages that are missing, failures and refusals. None erases what was learnt."""

from dataclasses import replace
from datetime import datetime, timedelta

from crawler.core.answer import Answer, Fetched, NotModified, Reason, Unreached
from crawler.core.change import Change, Rung, Verdict
from crawler.core.outlinks import link_of
from crawler.core.politeness import retry_after
from crawler.core.visit import BUSY, FIRST_RETRY, SILENCE, TEMPORARY, Known, State, Target, Visit, fetched, kept

LOOKS_BEFORE_A_FAILING_PAGE_PAYS = 3  # then it settles as a leaf, so that nothing holds cash for ever
CONFIRM_MISSING_AFTER = timedelta(hours=1)  # a second 404 sooner than this may be the same accident
LOOK_AGAIN_MISSING = timedelta(days=1)
LOOK_AGAIN_REDIRECT = timedelta(days=7)
LOOK_AGAIN_GONE = timedelta(days=30)
LOOK_AGAIN_REFUSED = timedelta(days=7)  # costs no request while robots.txt or the scope still refuse
FIRST_BUSY_RETRY = timedelta(minutes=1)
LAST_RETRY = timedelta(days=7)


def refuse(target: Target, *, reason: str, now: datetime) -> Visit:
    """A page that we may not ask for any more: no request, no part in the economy, looked at again in a week."""
    return Visit(
        target=target,
        at=now,
        verdict=Verdict(Change.UNKNOWN, Rung.STATUS),
        answer="unreached",
        state=State.REFUSED,
        belief=target.belief,
        due_at=now + LOOK_AGAIN_REFUSED,
        status=None,
        reason=reason,
        failures=target.failures,
        requests=0,
    )


def unreadable(target: Target, answer: Fetched, *, now: datetime) -> Visit:
    """A body that whoever should read it has choked on."""
    return failed(target, answer, now=now, reason="unreadable")


def redirected(target: Target, answer: Fetched, *, now: datetime, known: Known) -> Visit:
    assert answer.location is not None
    link = link_of(answer.location, target=target, known=known)
    if link is not None and link.key == target.key:
        return failed(target, answer, now=now, reason="redirects_to_itself")
    if answer.status in TEMPORARY:
        # The page stays what it is; where it points today is a link like any other.
        return replace(
            fetched(kept(target, now=now), answer=answer),
            reason=f"http_{answer.status}",
            failures=0,
            due_at=now + LOOK_AGAIN_REDIRECT,
            links=(link,) if link else (),
            gives=(link.key,) if link else (),
            elsewhere=(),
        )
    already = target.state is State.MOVED
    return replace(
        fetched(kept(target, now=now), answer=answer),
        verdict=Verdict(Change.SAME if already else Change.MOVED, Rung.STATUS),
        state=State.MOVED,
        due_at=now + LOOK_AGAIN_GONE,
        reason="" if link else "moved_away",
        failures=0,
        moved_to=link,
    )


def missing(target: Target, answer: Fetched, *, now: datetime) -> Visit:
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
        return replace(failed(target, answer, now=now, reason="http_404"), due_at=now + LOOK_AGAIN_MISSING)
    already = target.state is State.GONE
    return replace(
        fetched(kept(target, now=now), answer=answer),
        verdict=Verdict(Change.SAME if already else Change.GONE, Rung.STATUS),
        state=State.GONE,
        due_at=now + min(LOOK_AGAIN_GONE, target.terms.most),
        reason=f"http_{answer.status}",
        failures=0,
    )


def unreached(target: Target, answer: Unreached, *, now: datetime) -> Visit:
    if answer.reason is Reason.ROBOTS:
        return refuse(target, reason=answer.reason.value, now=now)
    return replace(
        failed(target, answer, now=now, reason=answer.reason.value),
        answer="unreached",
        silent=answer.reason in SILENCE,
        received_bytes=answer.received_bytes,
        due_at=now + min(_retry(target.failures + 1), target.terms.most),
    )


def failed(target: Target, answer: Answer, *, now: datetime, reason: str) -> Visit:
    """No good answer: nothing that was learnt is touched, and the page is tried again after a while."""
    before = kept(target, now=now)
    visit = replace(
        fetched(before, answer=answer) if isinstance(answer, Fetched) else replace(before, elapsed=answer.elapsed),
        reason=reason,
        answer="not_modified" if isinstance(answer, NotModified) else "fetched",
    )
    if isinstance(answer, Fetched) and answer.status in BUSY:
        asked = retry_after(answer.retry_after, now=now, server_date=answer.date)
        # The page has its own back-off beside the domain's: if it alone is busy, others must come first next time.
        wait = min(FIRST_BUSY_RETRY * int(2 ** min(target.failures, 20)), LAST_RETRY)
        visit = replace(visit, busy=True, retry_after=asked, due_at=now + wait)
    failures = target.failures + 1
    return replace(
        visit,
        failures=failures,
        due_at=visit.due_at if visit.busy else now + _retry(failures),
        gives=() if failures >= LOOKS_BEFORE_A_FAILING_PAGE_PAYS else None,
    )


def _retry(failures: int) -> timedelta:
    return min(FIRST_RETRY * int(2 ** min(failures - 1, 20)), LAST_RETRY)
