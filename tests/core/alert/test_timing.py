"""When notifications are sent: digests and quiet hours in local time."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.alert.timing import (
    IMMEDIATE_DELIVERY,
    MAX_MESSAGE_AGE,
    MAX_TRIES,
    DeliveryTimes,
    compute_next_try,
    parse_digest,
    parse_quiet_hours,
    should_give_up,
)

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)
VIENNA = "Europe/Vienna"


def timing(digest: str = "", quiet: str = "", zone: str = "UTC") -> DeliveryTimes:
    return DeliveryTimes(zone, parse_digest(digest) if digest else None, parse_quiet_hours(quiet) if quiet else None)


def at(text: str, zone: str = "UTC") -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


def test_default_delivery_is_immediate_and_ungrouped() -> None:
    release = IMMEDIATE_DELIVERY.compute_release(NOON)

    assert (release.at, release.is_grouped) == (NOON, False)


@pytest.mark.parametrize(
    ("digest", "zone", "found", "expected"),
    [
        ("1h", "UTC", "2026-03-03T12:20", "2026-03-03T13:00"),
        ("1h", "UTC", "2026-03-03T12:00", "2026-03-03T12:00"),
        ("1h", "Asia/Kolkata", "2026-03-03T12:20", "2026-03-03T13:00"),  # an offset of half an hour
        ("7h", "UTC", "2026-03-03T22:00", "2026-03-04T00:00"),  # periods restart every day
        ("90m", "UTC", "2026-03-03T00:01", "2026-03-03T01:30"),
        ("daily", VIENNA, "2026-03-03T08:01", "2026-03-04T08:00"),
        ("daily", VIENNA, "2026-03-28T09:00", "2026-03-29T08:00"),  # across the start of daylight saving time
        ("daily@23:30", VIENNA, "2026-03-03T08:01", "2026-03-03T23:30"),
        ("weekly", VIENNA, "2026-03-03T08:01", "2026-03-09T08:00"),  # a Tuesday, and the next Monday
        ("weekly", VIENNA, "2026-03-02T08:00", "2026-03-02T08:00"),
        ("weekly", VIENNA, "2026-03-02T08:01", "2026-03-09T08:00"),
        ("weekly@sun", VIENNA, "2026-03-23T12:00", "2026-03-29T08:00"),  # the day on which daylight saving time starts
        ("Weekly@fri-17:30", "Asia/Kolkata", "2026-03-03T12:20", "2026-03-06T17:30"),
    ],
)
def test_digest_is_sent_at_the_next_boundary(digest: str, zone: str, found: str, expected: str) -> None:
    release = timing(digest, zone=zone).compute_release(at(found, zone))

    assert (release.at, release.is_grouped) == (at(expected, zone), True)


@pytest.mark.parametrize(
    ("quiet", "found", "expected"),
    [
        ("22-07", "2026-03-03T21:59", "2026-03-03T21:59"),
        ("22-07", "2026-03-03T22:00", "2026-03-04T07:00"),
        ("22-07", "2026-03-04T06:59", "2026-03-04T07:00"),
        ("22-07", "2026-03-04T07:00", "2026-03-04T07:00"),
        ("12-13:30", "2026-03-03T12:00", "2026-03-03T13:30"),
        ("22-07", "2026-03-28T23:00", "2026-03-29T07:00"),
        ("02-03", "2026-10-25T02:30", "2026-10-25T03:00"),  # an hour that occurs twice is quiet both times
    ],
)
def test_quiet_hours_delay_and_group_notifications(quiet: str, found: str, expected: str) -> None:
    release = timing(quiet=quiet, zone=VIENNA).compute_release(at(found, VIENNA))

    assert (release.at, release.is_grouped) == (at(expected, VIENNA), found != expected)


def test_digest_in_quiet_hours_waits_for_their_end() -> None:
    assert timing("1h", "22-07").compute_release(at("2026-03-03T23:10")).at == at("2026-03-04T07:00")


@given(
    minutes=st.integers(0, 400 * 1440),
    digest=st.sampled_from(["", "1m", "1h", "5h", "24h", "daily", "daily@02:30", "weekly", "weekly@sun-02:30"]),
    quiet=st.sampled_from(["", "22-07", "00-23:59", "2-3"]),
    zone=st.sampled_from(["UTC", VIENNA, "America/Havana", "Australia/Lord_Howe", "Pacific/Apia"]),
)
def test_release_is_at_a_digest_boundary_outside_of_quiet_hours(
    minutes: int, digest: str, quiet: str, zone: str
) -> None:
    found = NOON + timedelta(minutes=minutes)
    delivery = timing(digest, quiet, zone)

    expected = delivery.compute_release(found).at

    assert found <= expected <= found + timedelta(days=9 if "weekly" in digest else 3)
    assert delivery.quiet is None or delivery.quiet.find_end(expected, zone=ZoneInfo(zone)) == expected


@pytest.mark.parametrize(
    "text",
    ["", "hourly", "0h", "30s", "25h", "2d", "1h@8", "daily@25", "daily@8:75", "weekly@", "weekly@x", "weekly@fri-"],
)
def test_invalid_digest_raises_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"digest|time of day"):
        parse_digest(text)


@pytest.mark.parametrize("text", ["", "22", "22-", "22-22", "25-7", "8:60-9", "x-y"])
def test_invalid_quiet_hours_raise_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"quiet|time of day|begin and end"):
        parse_quiet_hours(text)


def test_unknown_time_zone_raises_value_error() -> None:
    with pytest.raises(ValueError, match="not a time zone"):
        DeliveryTimes("Europe/Atlantis")


def test_waits_between_tries_grow_and_are_bounded() -> None:
    waits = [compute_next_try(n, retry_after=None, now=NOON) - NOON for n in range(1, 12)]

    assert waits[0] == timedelta(seconds=30)
    assert waits == sorted(waits)
    assert waits[-1] == timedelta(hours=1)
    assert compute_next_try(1, retry_after=timedelta(hours=2), now=NOON) == NOON + timedelta(hours=2)
    assert compute_next_try(1, retry_after=timedelta(days=400), now=NOON) == NOON + timedelta(days=1)


def test_message_is_given_up_by_tries_or_age() -> None:
    assert not should_give_up(MAX_TRIES - 1, waiting_since=NOON - MAX_MESSAGE_AGE, now=NOON)
    assert should_give_up(MAX_TRIES, waiting_since=NOON, now=NOON)
    assert should_give_up(1, waiting_since=NOON - MAX_MESSAGE_AGE - timedelta(seconds=1), now=NOON)
