"""Site activity: a change may have happened on any day since the last visit; pages age by these days."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.freshness.gamma import Floats
from crawler.core.freshness.site_activity import (
    EM_ROUNDS,
    EVEN_ACTIVITY,
    PRIOR_CHANGES,
    SiteActivity,
    VisitFindings,
    compute_activity_levels,
    compute_activity_limits,
    learn_site_activity,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def findings(*visits: tuple[float, float, bool], rate: float = 0.02, unsignaled_share: float = 1.0) -> VisitFindings:
    """Return findings. visits: the previous visit, this one, and whether it found a change."""
    since, at, changed = zip(*visits, strict=True)
    return VisitFindings(np.array(since), np.array(at), np.array(changed), np.full(len(visits), rate), unsignaled_share)


def in_turn(days: int, *, pages: int, burst: float) -> VisitFindings:
    """Return visits to pages every ten days, a tenth of them each day. All pages change at one instant only."""
    last = dict.fromkeys(range(pages), 0.0)
    found = []
    for day in range(1, days):
        for page in range(day % 10, pages, 10):
            found.append((last[page], float(day), last[page] < burst <= day))
            last[page] = float(day)
    return findings(*found)


def test_pages_age_by_the_day_of_a_burst_unless_visited_since() -> None:
    burst = in_turn(40, pages=100, burst=25.5)
    times = ((START + since * DAY, START + at * DAY) for since, at in zip(burst.since, burst.at, strict=True))
    visits = [(*each, bool(changed), 0.02) for each, changed in zip(times, burst.changed, strict=True)]
    found = learn_site_activity(visits, at=START + 40 * DAY)
    days = np.diff(found.ahead) + 1

    assert days.argmax() == 25
    assert days[25] > 8
    assert days[:20].max() < 1
    assert found.get_days_ahead(START + 25 * DAY) - found.get_days_ahead(START + 26 * DAY) > 7
    assert found.get_days_ahead(START + 30 * DAY) < 0


def test_late_found_change_is_distributed_over_its_possible_days() -> None:
    """If two pages changed within ten and four days, the change probably fell into the days in common."""
    levels = compute_activity_levels(findings((0, 10, True), (6, 10, True), (0, 6, False)), np.arange(11.0))

    assert levels[6:].min() > levels[:6].max()
    assert levels[6:] == pytest.approx(levels[6])


def test_activity_stays_near_one_if_pages_change_independently() -> None:
    rng = np.random.default_rng(5)
    rates, last, visits = rng.gamma(2.0, 0.02, 400), np.zeros(400), []
    for day in range(1, 120):
        for page in range(day % 10, 400, 10):
            visits.append((last[page], float(day), rng.random() > np.exp(-rates[page] * (day - last[page])), page))
            last[page] = day
    since, at, changed, of_page = (np.array(column) for column in zip(*visits, strict=True))

    levels = compute_activity_levels(VisitFindings(since, at, changed, rates[of_page]), np.arange(121.0))

    assert levels.std() < 0.35
    assert np.abs(np.cumsum(levels - 1)).max() < 4  # days


def test_signaled_changes_teach_nothing_about_activity() -> None:
    found = in_turn(40, pages=100, burst=25.5)

    signaled = VisitFindings(found.since, found.at, found.changed, found.rate, unsignaled_share=0.0)

    assert compute_activity_levels(signaled, np.arange(41.0)) == pytest.approx(np.ones(40))


def compute_directly(found: VisitFindings, days: int) -> Floats:
    """Run textbook expectation maximization, with one hazard per visit and day."""
    first = np.arange(days)
    overlap = np.minimum(found.at[:, None], first + 1) - np.maximum(found.since[:, None], first)
    overlap = np.clip(overlap, 0, None)
    exposure, level = found.rate[:, None] * overlap, np.ones(days)
    earlier = found.rate * np.maximum(-found.since, 0.0)
    for _ in range(EM_ROUNDS):
        hazard = exposure * level
        some = -np.expm1(-(hazard.sum(1) + earlier))[:, None]
        changes = np.where(found.changed[:, None], hazard / some, 0.0)
        level = (PRIOR_CHANGES + changes.sum(0)) / (PRIOR_CHANGES + exposure.sum(0))
    return np.asarray(level / level.mean())


VISIT = st.tuples(st.floats(-5, 19.9), st.floats(0.05, 12), st.booleans(), st.floats(0.001, 2))


@given(st.lists(VISIT, min_size=1, max_size=30))
def test_sums_over_days_agree_with_the_direct_computation(visits: list[tuple[float, float, bool, float]]) -> None:
    since, gap, changed, rate = (np.array(column) for column in zip(*visits, strict=True))
    found = VisitFindings(since, np.clip(since + gap, 1e-3, 20.0), changed, rate)

    levels = compute_activity_levels(found, np.arange(21.0))

    assert levels == pytest.approx(compute_directly(found, 20), rel=1e-6)
    assert levels.min() > 0
    assert levels.mean() == pytest.approx(1.0)


def test_activity_limits_are_midnights_and_now() -> None:
    limits = compute_activity_limits(START + timedelta(hours=7), START + timedelta(days=2, hours=5))
    recent = compute_activity_limits(START, START + 400 * DAY)

    assert limits == [START, START + DAY, START + 2 * DAY, START + timedelta(days=2, hours=5)]
    assert (recent[0], recent[-1], len(recent)) == (START + 280 * DAY, START + 400 * DAY, 121)


def test_site_without_visits_ages_by_the_calendar() -> None:
    assert learn_site_activity([], at=START).get_days_ahead(START - DAY) == 0.0
    assert EVEN_ACTIVITY.get_days_ahead(START) == 0.0


def test_activity_has_moved_if_the_age_of_some_page_differs_by_a_day() -> None:
    limits = tuple(START + n * DAY for n in range(3))

    assert not EVEN_ACTIVITY.has_moved(SiteActivity(limits, (0.0, 0.9, 0.0)))
    assert EVEN_ACTIVITY.has_moved(SiteActivity(limits, (0.0, 1.1, 0.0)))
    assert SiteActivity(limits, (0.0, -1.1, 0.0)).has_moved(EVEN_ACTIVITY)
