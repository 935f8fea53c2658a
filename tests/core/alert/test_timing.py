"""When something is told: digests and quiet hours by the clock on the wall."""

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


def test_without_a_wish_it_is_told_at_once_and_alone() -> None:
    release = IMMEDIATE_DELIVERY.compute_release(NOON)

    assert (release.at, release.is_grouped) == (NOON, False)


@pytest.mark.parametrize(
    ("digest", "zone", "found", "told"),
    [
        ("1h", "UTC", "2026-03-03T12:20", "2026-03-03T13:00"),
        ("1h", "UTC", "2026-03-03T12:00", "2026-03-03T12:00"),
        ("1h", "Asia/Kolkata", "2026-03-03T12:20", "2026-03-03T13:00"),  # half an hour off UTC
        ("7h", "UTC", "2026-03-03T22:00", "2026-03-04T00:00"),  # every day begins anew
        ("90m", "UTC", "2026-03-03T00:01", "2026-03-03T01:30"),
        ("daily", VIENNA, "2026-03-03T08:01", "2026-03-04T08:00"),
        ("daily", VIENNA, "2026-03-28T09:00", "2026-03-29T08:00"),  # over the night in which clocks are changed
        ("daily@23:30", VIENNA, "2026-03-03T08:01", "2026-03-03T23:30"),
        ("weekly", VIENNA, "2026-03-03T08:01", "2026-03-09T08:00"),  # a Tuesday, and the next Monday
        ("weekly", VIENNA, "2026-03-02T08:00", "2026-03-02T08:00"),
        ("weekly", VIENNA, "2026-03-02T08:01", "2026-03-09T08:00"),
        ("weekly@sun", VIENNA, "2026-03-23T12:00", "2026-03-29T08:00"),  # the day on which clocks are changed
        ("Weekly@fri-17:30", "Asia/Kolkata", "2026-03-03T12:20", "2026-03-06T17:30"),
    ],
)
def test_a_digest_is_told_at_the_next_round_time(digest: str, zone: str, found: str, told: str) -> None:
    release = timing(digest, zone=zone).compute_release(at(found, zone))

    assert (release.at, release.is_grouped) == (at(told, zone), True)


@pytest.mark.parametrize(
    ("quiet", "found", "told"),
    [
        ("22-07", "2026-03-03T21:59", "2026-03-03T21:59"),
        ("22-07", "2026-03-03T22:00", "2026-03-04T07:00"),
        ("22-07", "2026-03-04T06:59", "2026-03-04T07:00"),
        ("22-07", "2026-03-04T07:00", "2026-03-04T07:00"),
        ("12-13:30", "2026-03-03T12:00", "2026-03-03T13:30"),
        ("22-07", "2026-03-28T23:00", "2026-03-29T07:00"),
        ("02-03", "2026-10-25T02:30", "2026-10-25T03:00"),  # an hour that comes twice is quiet both times
    ],
)
def test_in_quiet_hours_nothing_is_told_and_afterwards_all_of_it_together(quiet: str, found: str, told: str) -> None:
    release = timing(quiet=quiet, zone=VIENNA).compute_release(at(found, VIENNA))

    assert (release.at, release.is_grouped) == (at(told, VIENNA), found != told)


def test_a_digest_of_the_night_waits_for_the_morning() -> None:
    assert timing("1h", "22-07").compute_release(at("2026-03-03T23:10")).at == at("2026-03-04T07:00")


@given(
    minutes=st.integers(0, 400 * 1440),
    digest=st.sampled_from(["", "1m", "1h", "5h", "24h", "daily", "daily@02:30", "weekly", "weekly@sun-02:30"]),
    quiet=st.sampled_from(["", "22-07", "00-23:59", "2-3"]),
    zone=st.sampled_from(["UTC", VIENNA, "America/Havana", "Australia/Lord_Howe", "Pacific/Apia"]),
)
def test_it_is_told_later_and_when_the_next_digest_is_and_never_in_quiet_hours(
    minutes: int, digest: str, quiet: str, zone: str
) -> None:
    found = NOON + timedelta(minutes=minutes)
    wish = timing(digest, quiet, zone)

    told = wish.compute_release(found).at

    assert found <= told <= found + timedelta(days=9 if "weekly" in digest else 3)
    assert wish.quiet is None or wish.quiet.find_end(told, zone=ZoneInfo(zone)) == told


@pytest.mark.parametrize(
    "text",
    ["", "hourly", "0h", "30s", "25h", "2d", "1h@8", "daily@25", "daily@8:75", "weekly@", "weekly@x", "weekly@fri-"],
)
def test_what_is_no_digest_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"digest|time of a day"):
        parse_digest(text)


@pytest.mark.parametrize("text", ["", "22", "22-", "22-22", "25-7", "8:60-9", "x-y"])
def test_what_are_no_quiet_hours_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"quiet|time of a day|begin when"):
        parse_quiet_hours(text)


def test_a_zone_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="not a time zone"):
        DeliveryTimes("Europe/Atlantis")


def test_tries_are_ever_further_apart_and_bounded() -> None:
    waits = [compute_next_try(n, retry_after=None, now=NOON) - NOON for n in range(1, 12)]

    assert waits[0] == timedelta(seconds=30)
    assert waits == sorted(waits)
    assert waits[-1] == timedelta(hours=1)
    assert compute_next_try(1, retry_after=timedelta(hours=2), now=NOON) == NOON + timedelta(hours=2)
    assert compute_next_try(1, retry_after=timedelta(days=400), now=NOON) == NOON + timedelta(days=1)


def test_a_message_is_given_up_by_tries_or_by_age() -> None:
    assert not should_give_up(MAX_TRIES - 1, waiting_since=NOON - MAX_MESSAGE_AGE, now=NOON)
    assert should_give_up(MAX_TRIES, waiting_since=NOON, now=NOON)
    assert should_give_up(1, waiting_since=NOON - MAX_MESSAGE_AGE - timedelta(seconds=1), now=NOON)
