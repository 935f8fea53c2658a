from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.budget.hours import (
    ALWAYS,
    CLOSING_MARGIN,
    EXAMPLE,
    Hours,
    WeekSpan,
    compute_day_share,
    find_closing,
    find_opening,
    get_speed,
    list_open_spans,
    list_week_spans,
    parse_hours,
)
from crawler.core.budget.ledger import Ledger, count_grantable_requests, debit_ledger

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NIGHTS = parse_hours("Mon-Fri 22:00-06:00 Europe/Vienna; Sat-Sun")
BY_NIGHT_TWICE = parse_hours("22-06 x2; 06-22 x0.5 Europe/Vienna")
SPRING, AUTUMN = date(2026, 3, 29), date(2026, 10, 25)  # the clocks of Vienna go forward, and back
MINUTES = st.integers(0, 365 * 24 * 60 - 1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def open_time(hours: Hours, day: date) -> timedelta:
    return sum((span.length for span in list_open_spans(hours, day)), timedelta(0))


def test_what_is_not_named_is_closed_and_the_later_entry_holds() -> None:
    assert parse_hours("") == ALWAYS
    assert parse_hours("00-24") == ALWAYS
    assert parse_hours("Mon 9-17; 12:30-13 x0") == Hours("UTC", (WeekSpan(540, 750, 1.0), WeekSpan(780, 1020, 1.0)))
    assert parse_hours("sun 23-01 x2").windows == (WeekSpan(0, 60, 2.0), WeekSpan(6 * 1440 + 1380, 7 * 1440, 2.0))
    assert parse_hours("Sat-Mon,Wed; Europe/Vienna").windows == (
        *(WeekSpan(0, 1440, 1.0), WeekSpan(2 * 1440, 3 * 1440, 1.0)),
        WeekSpan(5 * 1440, 7 * 1440, 1.0),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nights", "'nights' is no time zone"),
        ("22:00-25:00", "are no times of a day"),
        ("22:60-23:00", "are no times of a day"),
        ("24-06", "are no times of a day"),
        ("06-06", "begin when they end"),
        ("22-06 x1000", "x1000"),
        ("22-06 x999", "between x0.01 and x100"),
        ("22-06 x0", "never open"),
        ("Mon Tue 22-06", "name days twice"),
        ("22-06 Europe/Vienna; 10-12 Asia/Tokyo", "one time zone"),
        ("22-06 Europe/Atlantis", "no time zone that this machine knows"),
        ("22-06 Europe", "no time zone that this machine knows"),
        ("22-06 ../../etc/passwd", "neither days, times"),
        ("22 bis 06", "neither days, times"),
        ("Mon-Fri 22-06;" * 40, "longer than"),
    ],
)
def test_hours_that_cannot_be_read_are_refused_in_one_line_with_an_example(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        parse_hours(text)

    assert said in str(refused.value)
    assert str(refused.value).endswith(EXAMPLE)
    assert "\n" not in str(refused.value)


@given(minute=MINUTES, text=st.sampled_from(["Mon-Fri 22:00-06:00", "Sun 02:15-02:45", "00-03 x2; 03-09 x0.5", "1-2"]))
def test_hours_are_open_just_when_the_wall_clock_says_so(minute: int, text: str) -> None:
    zone = ZoneInfo("Europe/Vienna")
    hours = parse_hours(f"{text} Europe/Vienna")
    at = utc("2026-01-01") + minute * MINUTE
    shown = at.astimezone(zone)
    of_week = (shown.weekday() * 24 + shown.hour) * 60 + shown.minute
    speed = sum(window.speed for window in hours.windows if window.begin <= of_week < window.end)

    assert get_speed(hours, at) == speed


def test_a_day_has_the_open_hours_that_its_clocks_leave_it() -> None:
    every_night = parse_hours("00-06 Europe/Vienna")
    nights = {}
    for day in (date(2026, 3, 28), SPRING, AUTUMN):
        opens_at = find_opening(every_night, datetime(day.year, day.month, day.day, tzinfo=UTC) - 6 * HOUR)
        closes_at = find_closing(every_night, opens_at)
        assert closes_at is not None
        nights[day] = closes_at + CLOSING_MARGIN - opens_at

    assert nights == {date(2026, 3, 28): 6 * HOUR, SPRING: 5 * HOUR, AUTUMN: 7 * HOUR}
    assert open_time(parse_hours("02:10-02:50 Europe/Vienna"), SPRING) == timedelta(0)
    assert open_time(parse_hours("02:10-02:50 Europe/Vienna"), AUTUMN) == 2 * (40 * MINUTE - CLOSING_MARGIN)


def test_no_request_begins_so_late_that_its_answer_could_come_after_the_closing() -> None:
    friday = utc("2026-01-09T05:00")  # 06:00 in Vienna

    assert get_speed(NIGHTS, friday - CLOSING_MARGIN - timedelta(seconds=1)) == 1
    assert get_speed(NIGHTS, friday - CLOSING_MARGIN) == 0
    assert find_closing(NIGHTS, friday - HOUR) == friday - CLOSING_MARGIN
    assert find_opening(NIGHTS, friday - CLOSING_MARGIN) == utc("2026-01-09T21:00")
    assert get_speed(BY_NIGHT_TWICE, friday - MINUTE) == 2  # nothing closes here
    assert get_speed(BY_NIGHT_TWICE, friday) == 0.5


def test_an_opening_and_a_closing_lie_days_away_where_they_do() -> None:
    weekend = parse_hours("Sat-Sun Europe/Vienna")
    midnight = utc("2026-03-29T22:00")  # of Sunday to Monday, by summer time

    assert find_opening(weekend, utc("2026-03-23T12:00")) == utc("2026-03-27T23:00")
    assert find_closing(weekend, utc("2026-03-28T12:00")) == midnight - CLOSING_MARGIN
    assert find_closing(weekend, utc("2026-03-23T12:00")) is None
    assert find_closing(ALWAYS, midnight) is None
    assert find_closing(BY_NIGHT_TWICE, midnight) is None
    only_in_the_gap = parse_hours("Sun 02:10-02:50 Europe/Vienna")
    assert find_opening(only_in_the_gap, utc("2026-03-23T12:00")) == utc("2026-04-05T00:10")


@given(minute=MINUTES)
def test_an_opening_is_open_and_nothing_before_it_is(minute: int) -> None:
    at = utc("2026-01-01") + minute * MINUTE
    opens_at = find_opening(NIGHTS, at)

    assert opens_at >= at
    assert get_speed(NIGHTS, opens_at) > 0
    assert opens_at == at or get_speed(NIGHTS, opens_at - timedelta(microseconds=1)) == 0


@given(day=st.integers(0, 364), budget=st.integers(0, 5000), hours=st.sampled_from([NIGHTS, BY_NIGHT_TWICE, ALWAYS]))
def test_whoever_asks_every_ten_minutes_uses_a_days_budget_within_its_hours(
    day: int, budget: int, hours: Hours
) -> None:
    today = date(2026, 1, 1) + timedelta(days=day)
    ledger = Ledger(today)
    asked_when_closed = 0
    for n in range(24 * 6):
        now = datetime.combine(today, datetime.min.time(), tzinfo=UTC) + n * 10 * MINUTE
        granted = count_grantable_requests(ledger, budget, now=now, hours=hours)
        asked_when_closed += granted if not get_speed(hours, now) else 0
        ledger = debit_ledger(ledger, granted)

    assert asked_when_closed == 0
    assert min(0.99 * budget, max(budget - 2, 0)) <= ledger.requests <= budget


def test_a_budget_is_spread_over_the_open_hours_by_their_speed() -> None:
    day = date(2026, 1, 7)  # a Wednesday: open until 05:00 and from 21:00 UTC
    granted = [
        count_grantable_requests(Ledger(day), 800, now=utc(f"2026-01-07T{at}"), hours=NIGHTS)
        for at in ("02:15", "12:00")
    ]
    shares = [
        compute_day_share(BY_NIGHT_TWICE, utc(f"2026-01-07T{at}"), lead=timedelta(0)).elapsed
        for at in ("05:00", "21:00")
    ]

    assert granted == [250, 0]  # of eight hours two and a half with the lead, and a minute less to use them in
    assert shares == [pytest.approx(10 / 24), pytest.approx(18 / 24)]


def test_a_week_has_seven_days_of_which_some_are_closed() -> None:
    on_workdays = parse_hours("Mon-Fri")

    assert [len(day) for day in list_week_spans(on_workdays, utc("2026-01-07T12:00"))] == [1, 1, 1, 0, 0, 1, 1]
