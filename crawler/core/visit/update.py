"""Update what is known of a page by a good look: its belief, its next due time, and trust in its Last-Modified."""

from dataclasses import replace
from datetime import datetime, timedelta

from crawler.core.change.change import Change, Verdict
from crawler.core.freshness.estimates import (
    DAY,
    Amounts,
    Belief,
    UsualAmount,
    amount_of,
    chance_changed_of_one,
    changed,
    changed_at,
    expected_amount,
    factor_of,
    fade,
    is_believable,
    same,
    with_change,
)
from crawler.core.freshness.policies import Looked
from crawler.core.freshness.signals import changed_heard, heard_about, heard_days_of_one, recall_of
from crawler.core.freshness.terms import Wanted
from crawler.core.freshness.value import phase_of
from crawler.core.http.backoff import http_date
from crawler.core.http.response import Fetched, NotModified
from crawler.core.visit.visit import AWAY, NEVER, State, Target, Visit, unchanged_visit

TEACHES = frozenset({Change.SAME, Change.COSMETIC, Change.CHANGED})  # of how often a page changes
CLOCK_SLACK = timedelta(minutes=1)  # by which clocks and caches differ
DATE_RESOLUTION = timedelta(seconds=1)  # of dates in HTTP (RFC 9110, section 5.6.7)


def modified_of(answer: Fetched, *, now: datetime) -> datetime | None:
    """Last-Modified on our clock: counted back from now by its distance to the server's own Date."""
    modified = http_date(answer.validators.last_modified)
    return None if modified is None else now - ((http_date(answer.date) or now) - modified)


def is_honest(
    target: Target, modified: datetime | None, change: Change, *, now: datetime, is_dated: bool
) -> bool | None:
    """Whether Last-Modified agrees with what became of the body since the last good look; None: nothing to compare.

    A body that changed was modified since then, and before it was sent. In the very second in which it was sent says
    nothing: so does a server that stamps every answer, and is found out where a body is the same; nor does a minute
    about the last look, when caches may have had the body before. One whose main text is the same tells nothing:
    something else in it may have changed.
    is_dated: the answer has a Date (RFC 9110, section 6.6.1), so that its age is that of the server's own clock.
    """
    if modified is None or target.last_good_at is None or change is not Change.CHANGED:
        return None
    age, gap = now - modified, now - target.last_good_at
    resolution = DATE_RESOLUTION if is_dated else CLOCK_SLACK
    if abs(age) < resolution or abs(age - gap) < CLOCK_SLACK:
        return None
    return timedelta(0) < age < gap


def change_age(target: Target, modified: datetime | None, *, now: datetime) -> timedelta | None:
    """How long ago the page changed by a Last-Modified that can be true of it and is trusted; None: nobody says."""
    if modified is None or target.last_good_at is None or not target.trusts_modified:
        return None
    is_one = is_believable((now - modified) / DAY, (now - target.last_good_at) / DAY)
    return now - modified if is_one else None


def learnt_visit(
    target: Target,
    verdict: Verdict,
    answer: Fetched | NotModified | None = None,
    *,
    now: datetime,
    age: timedelta | None = None,
) -> Visit:
    """The Visit of a good look: the belief learns, and the next look is due when it will be worth its price.

    answer: whose validators, if it has any, are those of the page from now on.
    age: how long ago an honest Last-Modified says that the page changed.
    A page that was gone or had moved is back, also where a 304 is all that tells.
    """
    if target.state in AWAY and verdict.change is Change.SAME:
        verdict = replace(verdict, change=Change.BACK)
    belief, expected = _learnt(target, verdict.change, now=now, age=age)
    amount = amount_of(verdict.distance_bits, verdict.changed_share) if verdict.change is Change.CHANGED else None
    amounts = with_change(target.amounts, amount)
    return replace(
        unchanged_visit(target, answer, now=now),
        verdict=verdict,
        state=State.KNOWN,
        belief=belief,
        amount=amount,
        amounts=amounts,
        expected_change=expected,
        due_at=_due_after(target, belief, amounts, verdict, now=now),
        failures=0,
        validators=answer.validators if isinstance(answer, Fetched) else None,
        body_bytes=answer.received_bytes if isinstance(answer, Fetched) else None,
    )


def _due_after(target: Target, belief: Belief, amounts: Amounts, verdict: Verdict, *, now: datetime) -> datetime:
    """When a page is due that was well looked at now. The first gap of pages that came in together is spread."""
    terms = target.terms
    if terms.once:
        return NEVER
    last = target.last_good_at if verdict.change in TEACHES else None
    usual = terms.amount or UsualAmount()
    look = Looked(
        url=target.url,
        at=now,
        waited=now - last if last is not None else timedelta(0),
        planned=_planned(target),
        changed=verdict.change is Change.CHANGED,
        distance_bits=verdict.distance_bits if verdict.change is Change.CHANGED else None,
        usual_amount=float(expected_amount(amounts.total, amounts.changes, usual.group)),
        looks=target.looks + 1,
        belief=belief,
        importance=target.importance * factor_of(amounts, terms.amount),
        price=terms.price,
        least=terms.least,
        most=terms.most,
        recall=recall_of(terms.sources),
    )
    wait = min(max(terms.revisit.after(look), terms.least), terms.most)
    return now + (max(wait * phase_of(target.key), terms.least) if verdict.change is Change.FIRST else wait)


def _planned(target: Target) -> timedelta | None:
    """The wait that was meant after the last good look; None where the due time says something else."""
    is_by_plan = target.wanted is Wanted.NO and target.state is State.KNOWN and not target.failures
    if not is_by_plan or target.due_at is None or target.last_good_at is None or target.due_at <= target.last_good_at:
        return None
    return target.due_at - target.last_good_at


def _learnt(target: Target, change: Change, *, now: datetime, age: timedelta | None) -> tuple[Belief, float | None]:
    """The belief after this look, and the chance that was given for "changed" before it."""
    if target.last_good_at is None or target.version is None or change not in TEACHES:
        return target.belief, None
    gap = now - target.last_good_at
    by_site = activity_gap(target, now=now)
    aged_days = heard_days_of_one(target.belief, by_site / DAY, target.signals, target.terms.sources)
    expected = chance_changed_of_one(target.belief, aged_days)
    believed = fade(target.belief, prior=target.terms.prior, gap=gap)
    if age is not None and gap:
        age *= by_site / gap
    return _after(believed, target, change, gap=by_site, age=age), expected


def activity_gap(target: Target, *, now: datetime) -> timedelta:
    """The time since the last good look in days of the site's activity; 0 without one."""
    if target.last_good_at is None:
        return timedelta(0)
    return max(now - target.last_good_at + timedelta(days=target.activity_ahead), timedelta(0))


def _after(belief: Belief, target: Target, change: Change, *, gap: timedelta, age: timedelta | None) -> Belief:
    """The belief after a look. gap, age: in days of the site's activity.

    age: by Last-Modified; where a signal came, that there was one tells more.
    """
    if change is not Change.CHANGED:
        return same(belief, gap=gap)
    if age is not None and not any(target.signals):  # before that change, too, none was told
        return changed_at(belief, age=age + recall_of(target.terms.sources) * (gap - age))
    if target.terms.sources:
        return changed_heard(belief, gap=gap, heard=heard_about(belief, target.signals, target.terms.sources))
    return changed(belief, gap=gap)
