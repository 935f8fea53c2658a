"""A form shows a setting's value as a text from which the same value is read."""

from datetime import timedelta
from typing import Any

import pytest

from crawler.app.settings import BY_NAME, format_field
from crawler.server.ui.fields import parse_value

CASES = [
    ("budget_per_day", 120, "120"),
    ("latency_factor", 0.1 + 0.2, "0.3"),
    ("weight", 123_456.75, "123456.75"),
    ("target_freshness", 0.9995, "99.95%"),
    ("target_freshness", 1e-7, "1e-05%"),
    ("bytes_per_day", 1500, "1500"),
    ("bytes_per_day", 0, "0"),
    ("bytes_per_day", 500_000_000, "500MB"),
    ("quota", 2_000, "2kB"),
    ("delay", timedelta(seconds=1.5), "1.5s"),
    ("delay", timedelta(0), "0s"),
    ("max_age", timedelta(hours=36), "36h"),
    ("keep_daily", timedelta(days=90), "90d"),
    ("keep_weekly", timedelta(seconds=61), "61s"),
    ("exclude", ("/a/", "*.pdf$"), "/a/\n*.pdf$"),
    ("cookies", True, "yes"),
    ("hours", "22:00-06:00", "22:00-06:00"),
]


@pytest.mark.parametrize(("name", "value", "text"), CASES)
def test_value_is_read_from_its_text(name: str, value: Any, text: str) -> None:
    assert format_field(BY_NAME[name], value) == text
    assert parse_value(BY_NAME[name], text) == pytest.approx(value)


def test_missing_value_is_an_empty_text() -> None:
    assert format_field(BY_NAME["budget_per_day"], None) == ""
    assert format_field(BY_NAME["hours"], "") == ""
