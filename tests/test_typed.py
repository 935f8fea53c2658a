"""Spans and instants as people write them, in commands, settings and parameters of flows alike."""

from datetime import UTC, datetime, timedelta

import pytest

from crawler.times import parse_instant, parse_span


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("30s", timedelta(seconds=30)),
        ("1h30m", timedelta(minutes=90)),
        (" 2D ", timedelta(days=2)),
        ("1.5w", timedelta(days=10.5)),
        ("0.25", timedelta(milliseconds=250)),
        ("5", timedelta(seconds=5)),
        ("0", timedelta(0)),
    ],
)
def test_a_span_is_a_number_with_a_unit_or_seconds(text: str, length: timedelta) -> None:
    assert parse_span(text) == length


@pytest.mark.parametrize("text", ["", "soon", "-1", "-1s", "nan", "1h 30", "5x", "1e400x", "PT1M"])
def test_what_is_no_span_is_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"^'.*' is not a time span such as 30s, 12h or 7d$"):
        parse_span(text)


@pytest.mark.parametrize("text", ["36501d", "inf", "1e400", "9" * 400 + "w"])
def test_nothing_takes_longer_than_a_century(text: str) -> None:
    with pytest.raises(ValueError, match="is longer than a century"):
        parse_span(text)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        (" 2026-01-31T12:00 ", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00+02:00", datetime(2026, 1, 31, 10, tzinfo=UTC)),
    ],
)
def test_an_instant_is_utc_unless_it_says_otherwise(text: str, at: datetime) -> None:
    found = parse_instant(text)

    assert found == at
    assert found.tzinfo is UTC


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "12:00"])
def test_what_is_no_instant_is_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"^'.*' is not an ISO 8601 instant such as "):
        parse_instant(text)


@pytest.mark.parametrize("text", ["0001-01-01", "1969-12-31", "2200-01-01", "9999-12-31T23:59-12:00"])
def test_an_instant_that_nothing_can_be_reckoned_with_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not in the years 1970 to 2199"):
        parse_instant(text)
