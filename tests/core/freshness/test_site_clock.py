"""The site's clock: pages that change together age together, and where they do not it is the calendar."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import exp, log2
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.freshness import (
    NEVER_HEARD,
    NEW_CLOCK,
    Belief,
    LookFinding,
    SiteClock,
    clock_after,
    record_after,
    weighed_now,
)
from crawler.core.freshness.site_clock import EVENNESS, SPANS_OF_A_LENGTH
from crawler.core.freshness.value import first_values, values, values_heard

START = datetime(2026, 1, 1, tzinfo=UTC)
PAGE = Belief(a=2.0, b=200.0)  # a change in a hundred days


def day(number: float) -> datetime:
    return START + timedelta(days=number)


def finding(at: float, *, before: float, changed: bool, untold: float = 1.0, page: Belief = PAGE) -> LookFinding:
    return LookFinding(at=day(at), before=day(before), believed=page, changed=changed, untold=untold)


def uneven(at: float = 0.0) -> SiteClock:
    """The clock of a site on which every tenth day all changed and in between nothing, looked at on each day."""
    clock = NEW_CLOCK
    for number in range(100):
        looks = [finding(at + number + 1, before=at + number, changed=number % 10 == 9) for _ in range(10)]
        clock = clock_after(clock, looks)
    return clock


def even(pages: int = 300, *, days: int = 200, rate: float = 0.05) -> SiteClock:
    """The clock of a site whose pages change each for itself, a tenth of which are looked at on each day."""
    rng, clock, belief = Random(5), NEW_CLOCK, Belief(a=50.0, b=50.0 / rate)
    last = dict.fromkeys(range(pages), 0.0)
    for at in range(1, days):
        due = range(at % 10, pages, 10)
        looks = [
            finding(at, before=last[page], changed=_changed(rng, rate, at - last[page]), page=belief) for page in due
        ]
        clock = clock_after(clock, looks)
        last |= dict.fromkeys(due, float(at))
    return clock


def _changed(rng: Random, rate: float, days: float) -> bool:
    return rng.random() > exp(-rate * days)


def test_a_clock_without_looks_is_the_calendar() -> None:
    assert NEW_CLOCK.ahead_since(day(3)) == 0.0
    assert clock_after(NEW_CLOCK, []) == NEW_CLOCK


def test_a_few_pages_found_changed_make_all_others_of_an_uneven_site_older_within_the_hour() -> None:
    clock = uneven()
    found = [finding(100.5 + n / 1000, before=100, changed=True) for n in range(3)]

    before, after = clock.ahead_since(day(100)), clock_after(clock, found).ahead_since(day(100))

    assert clock.evenness < 0.3
    assert before == 0.0
    assert after > 20  # days, in half a day
    assert clock_after(clock, found).has_leapt
    assert not weighed_now(clock_after(clock, found)).has_leapt


def test_pages_found_as_they_were_make_the_day_of_an_uneven_site_shorter() -> None:
    found = [finding(101, before=100, changed=False) for _ in range(10)]

    assert clock_after(uneven(), found).ahead_since(day(100)) < -0.5


def test_where_pages_change_each_for_itself_the_clock_stays_the_calendar() -> None:
    clock = even()
    usual = Belief(a=50.0, b=1000.0)
    some = [finding(200 + n / 1000, before=190, changed=n % 3 > 0, page=usual) for n in range(1, 31)]

    assert clock.evenness > 300
    assert max(abs(each) for each in clock.ahead) < 0.05 * 200
    assert clock_after(clock, some).ahead_since(day(190)) < 1.5


def test_days_of_a_silent_source_count_as_far_as_it_would_have_missed_a_change() -> None:
    """A source that tells nine changes of ten: its silence explains why nothing changed, the clock need not."""
    looks = [(replace(PAGE, a=20.0, b=20.0), number) for number in range(40)]
    heard, deaf = (
        clock_after(
            uneven(),
            [finding(101 + n / 1e4, before=100, changed=False, untold=untold, page=page) for page, n in looks],
        )
        for untold in (0.1, 1.0)
    )

    assert deaf.ahead_since(day(100)) < heard.ahead_since(day(100)) <= 0


def test_a_clock_keeps_few_spans_however_long_it_runs() -> None:
    clock = NEW_CLOCK
    for hour in range(1, 5000):
        clock = clock_after(clock, [finding(hour / 24, before=(hour - 1) / 24, changed=False)])
    levels = log2(5000)

    assert len(clock.changes) <= (levels + 1) * (SPANS_OF_A_LENGTH + 1)
    assert clock.at[0] == START
    assert clock.at[-1] == day(4999 / 24)


@given(
    st.lists(
        st.tuples(st.floats(0, 100), st.floats(1e-4, 50), st.floats(0.01, 1), st.floats(0.01, 50), st.booleans()),
        min_size=1,
        max_size=40,
    )
)
def test_a_clock_never_goes_back_whatever_is_found(looks: list[tuple[float, float, float, float, bool]]) -> None:
    clock = NEW_CLOCK
    for at, gap, untold, rate, changed in sorted(looks):
        page = Belief(a=1.0, b=1 / rate)
        clock = clock_after(clock, [finding(at, before=at - gap, changed=changed, untold=untold, page=page)])
        gone = [(later - earlier).total_seconds() / 86_400 for earlier, later in pairwise(clock.at)]
        moved = [later - earlier for earlier, later in pairwise(clock.ahead)]

        assert list(clock.at) == sorted(clock.at)
        assert len(clock.at) == len(clock.ahead) == len(clock.changes) + 1 == len(clock.rates) + 1
        assert all(days + ahead >= -1e-6 for days, ahead in zip(gone, moved, strict=True))
        assert len(clock.scores) == len(EVENNESS)
        assert max(clock.scores) == 0.0


@pytest.mark.parametrize("ahead", [0.0, 1.0, 30.0, 1000.0])
def test_no_signal_makes_a_look_worth_less_than_it_is_without(ahead: float) -> None:
    a, b, unseen, most = 0.8, 2.0, 20.0, 60.0  # a page that may well change too often

    with_it = values_heard(a, b, 1.0, unseen + ahead, ahead=ahead, most=most)

    assert with_it >= values(a, b, 1.0, unseen)
    assert with_it <= max(values(a, b, 1.0, unseen), first_values(a + 1, b, 1.0, most)) + (ahead == 0) * 1e9


def test_a_source_that_misses_nothing_is_taken_for_one_in_the_end() -> None:
    """What is usual of sources is forgotten like old looks: it would keep the report too modest for good."""
    record = NEVER_HEARD
    for n in range(1500):
        changed = n % 4 == 0
        record = record_after(record, believed=Belief(5.0, 100.0), gap_days=5.0, signals=int(changed), changed=changed)

    assert record.estimate.recall > 0.95
