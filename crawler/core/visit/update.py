"""Update a page after a successful visit: its change-rate estimate, next due time, and trust in Last-Modified."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from crawler.core.change.change import Change
from crawler.core.change.verdict import Verdict
from crawler.core.freshness.estimates import (
    DAY,
    ChangeMagnitudes,
    ExpectedMagnitude,
    RateEstimate,
    add_change,
    compute_change_chance,
    compute_expected_magnitude,
    compute_magnitude_factor,
    fade_estimate,
    is_credible_age,
    measure_magnitude,
    update_changed,
    update_changed_at,
    update_unchanged,
)
from crawler.core.freshness.policies import VisitResult
from crawler.core.freshness.signals import (
    combine_page_signals,
    compute_page_aged_days,
    find_max_recall,
    update_changed_with_signals,
)
from crawler.core.freshness.visit_terms import RequestReason
from crawler.core.freshness.visit_value import compute_phase
from crawler.core.http.backoff import parse_http_date
from crawler.core.http.response import Fetched, NotModified
from crawler.core.visit.state import AWAY, NEVER, State
from crawler.core.visit.visit import Target, Visit, build_unchanged_visit

INFORMATIVE_CHANGES = frozenset({Change.UNCHANGED, Change.COSMETIC, Change.CHANGED})  # used to learn the change rate
CLOCK_SLACK = timedelta(minutes=1)  # tolerated difference of clocks and caches
DATE_RESOLUTION = timedelta(seconds=1)  # of HTTP dates (RFC 9110, section 5.6.7)


def get_modified_at(response: Fetched, *, now: datetime) -> datetime | None:
    """Return Last-Modified on the local clock: `now` minus its distance to the server's Date."""
    modified = parse_http_date(response.validators.last_modified)
    return None if modified is None else now - ((parse_http_date(response.date) or now) - modified)


def is_honest(
    target: Target, modified: datetime | None, change: Change, *, now: datetime, is_dated: bool
) -> bool | None:
    """Return whether Last-Modified agrees with the change since the last successful visit; None without evidence.

    It agrees if it is after that visit and before the response. There is no evidence if it is the time of the response
    (servers that use the current time are detected when a body is unchanged), if it is within a minute of the last
    visit (a cache may have delivered an older body), or if the visit found no change.
    modified: Last-Modified on the local clock.
    is_dated: whether the response has a Date (RFC 9110, section 6.6.1); then the age is measured by the server's clock.
    """
    if modified is None or target.last_good_at is None or change is not Change.CHANGED:
        return None
    age, gap = now - modified, now - target.last_good_at
    resolution = DATE_RESOLUTION if is_dated else CLOCK_SLACK
    if abs(age) < resolution or abs(age - gap) < CLOCK_SLACK:
        return None
    return timedelta(0) < age < gap


def compute_change_age(target: Target, modified: datetime | None, *, now: datetime) -> timedelta | None:
    """Return how long ago the page changed by a trusted and plausible Last-Modified, or None."""
    if modified is None or target.last_good_at is None or not target.trusts_modified:
        return None
    is_plausible = is_credible_age((now - modified) / DAY, (now - target.last_good_at) / DAY)
    return now - modified if is_plausible else None


def build_learned_visit(
    target: Target,
    verdict: Verdict,
    response: Fetched | NotModified | None = None,
    *,
    now: datetime,
    age: timedelta | None = None,
) -> Visit:
    """Build the Visit of a successful visit: update the estimate and compute the next due time.

    A page that was gone or moved is restored, even if a 304 is the only evidence.
    response: if Fetched, its validators become those of the page; otherwise the page keeps its own.
    age: how long ago the page changed according to a trusted Last-Modified.
    """
    if target.state in AWAY and verdict.change is Change.UNCHANGED:
        verdict = replace(verdict, change=Change.RESTORED)
    estimate, expected = _update_estimate(target, verdict.change, now=now, age=age)
    is_changed = verdict.change is Change.CHANGED
    magnitude = measure_magnitude(verdict.distance_bits, verdict.changed_share) if is_changed else None
    magnitudes = add_change(target.magnitudes, magnitude)
    return replace(
        build_unchanged_visit(target, response, now=now),
        verdict=verdict,
        state=State.FETCHED,
        rate_estimate=estimate,
        magnitude=magnitude,
        magnitudes=magnitudes,
        expected_change=expected,
        due_at=_compute_due_at(target, estimate, magnitudes, verdict, now=now),
        failures=0,
        validators=response.validators if isinstance(response, Fetched) else None,
        body_bytes=response.received_bytes if isinstance(response, Fetched) else None,
    )


def _compute_due_at(
    target: Target, estimate: RateEstimate, magnitudes: ChangeMagnitudes, verdict: Verdict, *, now: datetime
) -> datetime:
    """Return when a page is due after a successful visit.

    After the first visit, part of the wait is skipped, so that pages added together are not due together.
    """
    terms = target.terms
    if terms.once:
        return NEVER
    last_good_at = target.last_good_at if verdict.change in INFORMATIVE_CHANGES else None
    usual_magnitude = terms.magnitude or ExpectedMagnitude()
    visit_facts = VisitResult(
        url=target.url,
        at=now,
        waited=now - last_good_at if last_good_at is not None else timedelta(0),
        planned=_compute_planned_wait(target),
        changed=verdict.change is Change.CHANGED,
        distance_bits=verdict.distance_bits if verdict.change is Change.CHANGED else None,
        usual_magnitude=float(compute_expected_magnitude(magnitudes.total, magnitudes.changes, usual_magnitude.group)),
        visits=target.visits + 1,
        rate_estimate=estimate,
        importance=target.importance * compute_magnitude_factor(magnitudes, terms.magnitude),
        shadow_price=terms.shadow_price,
        min_interval=terms.min_interval,
        max_interval=terms.max_interval,
        recall=find_max_recall(terms.sources),
    )
    wait = min(max(terms.revisit.choose_interval(visit_facts), terms.min_interval), terms.max_interval)
    return now + (max(wait * compute_phase(target.key), terms.min_interval) if verdict.change is Change.ADDED else wait)


def _compute_planned_wait(target: Target) -> timedelta | None:
    """Return the wait that was planned after the last successful visit; None if this visit had another reason."""
    is_by_plan = target.requested is RequestReason.NONE and target.state is State.FETCHED and not target.failures
    if not is_by_plan or target.due_at is None or target.last_good_at is None or target.due_at <= target.last_good_at:
        return None
    return target.due_at - target.last_good_at


def _update_estimate(
    target: Target, change: Change, *, now: datetime, age: timedelta | None
) -> tuple[RateEstimate, float | None]:
    """Return the estimate after this visit, and the predicted probability of a change before it."""
    if target.last_good_at is None or target.version is None or change not in INFORMATIVE_CHANGES:
        return target.rate_estimate, None
    gap, activity_time = now - target.last_good_at, compute_activity_gap(target, now=now)
    aged_days = compute_page_aged_days(target.rate_estimate, activity_time / DAY, target.signals, target.terms.sources)
    expected = compute_change_chance(target.rate_estimate, aged_days)
    faded = fade_estimate(target.rate_estimate, prior=target.terms.prior, gap=gap)
    if age is not None and gap:
        age *= activity_time / gap
    return _apply_change(faded, target, change, gap=activity_time, age=age), expected


def compute_activity_gap(target: Target, *, now: datetime) -> timedelta:
    """Return the time since the last successful visit in days of site activity; 0 without one."""
    if target.last_good_at is None:
        return timedelta(0)
    return max(now - target.last_good_at + timedelta(days=target.activity_ahead), timedelta(0))


def _apply_change(
    estimate: RateEstimate, target: Target, change: Change, *, gap: timedelta, age: timedelta | None
) -> RateEstimate:
    """Return the estimate after a visit. gap, age: in days of site activity.

    age: by Last-Modified; ignored if there were signals, which are stronger evidence.
    """
    if change is not Change.CHANGED:
        return update_unchanged(estimate, gap=gap)
    if age is not None and not any(target.signals):  # the time before the change, too, was without signals
        return update_changed_at(estimate, age=age + find_max_recall(target.terms.sources) * (gap - age))
    if target.terms.sources:
        signals = combine_page_signals(estimate, target.signals, target.terms.sources)
        return update_changed_with_signals(estimate, gap=gap, signals=signals)
    return update_changed(estimate, gap=gap)
