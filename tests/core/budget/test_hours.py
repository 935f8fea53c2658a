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
SPRING, AUTUMN = date(2026, 3, 29), date(2026, 10, 25)  # daylight saving time in Vienna begins and ends
MINUTES = st.integers(0, 365 * 24 * 60 - 1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def open_time(hours: Hours, day: date) -> timedelta:
    return sum((span.length for span in list_open_spans(hours, day)), timedelta(0))


def test_unnamed_times_are_closed_and_later_entries_override() -> None:
    assert parse_hours("") == ALWAYS
    assert parse_hours("00-24") == ALWAYS
    assert parse_hours("Mon 9-17; 12:30-13 x0") == Hours("UTC", (WeekSpan(540, 750, 1.0), WeekSpan(780, 1020, 1.0)))
    assert parse_hours("sun 23-01 x2").windows == (WeekSpan(0, 60, 2.0), WeekSpan(6 * 1440 + 1380, 7 * 1440, 2.0))
    assert parse_hours("Sat-Mon,Wed; Europe/Vienna").windows == (
        *(WeekSpan(0, 1440, 1.0), WeekSpan(2 * 1440, 3 * 1440, 1.0)),
        WeekSpan(5 * 1440, 7 * 1440, 1.0),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nights", "'nights' is not a time zone"),
        ("22:00-25:00", "are not valid times of day"),
        ("22:60-23:00", "are not valid times of day"),
        ("24-06", "are not valid times of day"),
        ("06-06", "begin and end at the same time"),
        ("22-06 x1000", "x1000"),
        ("22-06 x999", "between x0.01 and x100"),
        ("22-06 x0", "never open"),
        ("Mon Tue 22-06", "name days twice"),
        ("22-06 Europe/Vienna; 10-12 Asia/Tokyo", "more than one time zone"),
        ("22-06 Europe/Atlantis", "not a time zone of this machine"),
        ("22-06 Europe", "not a time zone of this machine"),
        ("22-06 ../../etc/passwd", "neither days, times"),
        ("22 bis 06", "neither days, times"),
        ("Mon-Fri 22-06;" * 40, "longer than"),
    ],
)
def test_invalid_hours_raise_a_one_line_error_with_an_example(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        parse_hours(text)

    assert message in str(error.value)
    assert str(error.value).endswith(EXAMPLE)
    assert "\n" not in str(error.value)


@given(minute=MINUTES, text=st.sampled_from(["Mon-Fri 22:00-06:00", "Sun 02:15-02:45", "00-03 x2; 03-09 x0.5", "1-2"]))
def test_hours_are_open_exactly_at_the_named_local_times(minute: int, text: str) -> None:
    zone = ZoneInfo("Europe/Vienna")
    hours = parse_hours(f"{text} Europe/Vienna")
    at = utc("2026-01-01") + minute * MINUTE
    shown = at.astimezone(zone)
    of_week = (shown.weekday() * 24 + shown.hour) * 60 + shown.minute
    speed = sum(window.speed for window in hours.windows if window.begin <= of_week < window.end)

    assert get_speed(hours, at) == speed


def test_open_time_of_a_day_follows_daylight_saving_time() -> None:
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


def test_no_request_starts_within_the_margin_before_closing() -> None:
    friday = utc("2026-01-09T05:00")  # 06:00 in Vienna

    assert get_speed(NIGHTS, friday - CLOSING_MARGIN - timedelta(seconds=1)) == 1
    assert get_speed(NIGHTS, friday - CLOSING_MARGIN) == 0
    assert find_closing(NIGHTS, friday - HOUR) == friday - CLOSING_MARGIN
    assert find_opening(NIGHTS, friday - CLOSING_MARGIN) == utc("2026-01-09T21:00")
    assert get_speed(BY_NIGHT_TWICE, friday - MINUTE) == 2  # the next window follows at once
    assert get_speed(BY_NIGHT_TWICE, friday) == 0.5


def test_opening_and_closing_can_be_days_away() -> None:
    weekend = parse_hours("Sat-Sun Europe/Vienna")
    midnight = utc("2026-03-29T22:00")  # between Sunday and Monday, daylight saving time

    assert find_opening(weekend, utc("2026-03-23T12:00")) == utc("2026-03-27T23:00")
    assert find_closing(weekend, utc("2026-03-28T12:00")) == midnight - CLOSING_MARGIN
    assert find_closing(weekend, utc("2026-03-23T12:00")) is None
    assert find_closing(ALWAYS, midnight) is None
    assert find_closing(BY_NIGHT_TWICE, midnight) is None
    only_in_the_gap = parse_hours("Sun 02:10-02:50 Europe/Vienna")
    assert find_opening(only_in_the_gap, utc("2026-03-23T12:00")) == utc("2026-04-05T00:10")


@given(minute=MINUTES)
def test_opening_is_the_first_open_instant(minute: int) -> None:
    at = utc("2026-01-01") + minute * MINUTE
    opens_at = find_opening(NIGHTS, at)

    assert opens_at >= at
    assert get_speed(NIGHTS, opens_at) > 0
    assert opens_at == at or get_speed(NIGHTS, opens_at - timedelta(microseconds=1)) == 0


@given(day=st.integers(0, 364), budget=st.integers(0, 5000), hours=st.sampled_from([NIGHTS, BY_NIGHT_TWICE, ALWAYS]))
def test_claims_every_ten_minutes_use_the_budget_of_a_day_within_its_hours(day: int, budget: int, hours: Hours) -> None:
    today = date(2026, 1, 1) + timedelta(days=day)
    ledger = Ledger(today)
    granted_while_closed = 0
    for n in range(24 * 6):
        now = datetime.combine(today, datetime.min.time(), tzinfo=UTC) + n * 10 * MINUTE
        granted = count_grantable_requests(ledger, budget, now=now, hours=hours)
        granted_while_closed += granted if not get_speed(hours, now) else 0
        ledger = debit_ledger(ledger, granted)

    assert granted_while_closed == 0
    assert min(0.99 * budget, max(budget - 2, 0)) <= ledger.requests <= budget


def test_budget_is_spread_over_the_open_hours_by_speed() -> None:
    day = date(2026, 1, 7)  # a Wednesday: open until 05:00 and from 21:00 UTC
    granted = [
        count_grantable_requests(Ledger(day), 800, now=utc(f"2026-01-07T{at}"), hours=NIGHTS)
        for at in ("02:15", "12:00")
    ]
    shares = [
        compute_day_share(BY_NIGHT_TWICE, utc(f"2026-01-07T{at}"), lead=timedelta(0)).elapsed
        for at in ("05:00", "21:00")
    ]

    assert granted == [250, 0]  # 2.5 of 8 hours including the lead, both less the closing margins
    assert shares == [pytest.approx(10 / 24), pytest.approx(18 / 24)]


def test_week_spans_have_an_entry_for_each_of_seven_days() -> None:
    on_workdays = parse_hours("Mon-Fri")

    assert [len(day) for day in list_week_spans(on_workdays, utc("2026-01-07T12:00"))] == [1, 1, 1, 0, 0, 1, 1]
