"""Detection of dates and clocks that match their visits."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.noise.dates import differs_only_in_date, find_clock_words
from crawler.core.noise.words import split_words
from tests.core.pages import NOON, paragraph

LATER = timedelta(days=5)  # from Wednesday, 4 March 2026 to Monday the 9th


def is_date_change(before: str, after: str, *, later: timedelta = LATER) -> bool:
    return differs_only_in_date(
        split_words(paragraph(before)), split_words(paragraph(after)), then=NOON, now=NOON + later
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Wednesday, March 4, 2026", "Monday, March 9, 2026"),
        ("Today: 2026-03-04", "Today: 2026-03-09"),
        ("4.3.2026", "9.3.2026"),
        ("04/3/2026", "09/3/2026"),
        ("3/04/2026", "3/09/2026"),
        ("4-03-2026", "9-03-2026"),
        ("Wed 04 Mar 2026", "Mon 09 Mar 2026"),
        ("It is the 4th of March", "It is the 9th of March"),
    ],
)
def test_masthead_with_the_date_is_a_date_change(before: str, after: str) -> None:
    assert is_date_change(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("4 seats left", "9 seats left"),  # the day's numbers, but no month or year
        ("Moved to March 14, 2026", "Moved to March 19, 2026"),  # another day
        ("Last changed on 2026-03-01", "Last changed on 2026-03-02"),
        ("March 4, 2026: open", "March 9, 2026: closed"),  # the date, and another word
        ("March 4", "March 9, 2026"),  # one more word
    ],
)
def test_other_numbers_and_dates_are_no_date_change(before: str, after: str) -> None:
    assert not is_date_change(before, after)


def test_server_in_another_zone_may_be_one_day_ahead_but_not_two() -> None:
    assert is_date_change("2026-03-05", "2026-03-10")
    assert not is_date_change("2026-03-06", "2026-03-11")


@given(words=st.lists(st.text(max_size=9), max_size=8).map(tuple), other=st.lists(st.text(max_size=9)).map(tuple))
def test_equal_words_are_a_date_change_and_any_words_are_accepted(
    words: tuple[str, ...], other: tuple[str, ...]
) -> None:
    assert differs_only_in_date(words, words, then=NOON, now=NOON + LATER)
    assert isinstance(differs_only_in_date(words, other, then=NOON, now=NOON + LATER), bool)


def clock(before: str, after: str, *, later: timedelta) -> frozenset[int]:
    """Find the clocks of a visit at noon and one `later`."""
    return find_clock_words(split_words(paragraph(before)), split_words(paragraph(after)), then=NOON, now=NOON + later)


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        ("It is 12:00:41", "It is 13:25:03", {2}),
        ("now 12 h 00 min 41", "now 13 h 25 min 03", {1, 3, 5}),
        ("\u73fe\u5728 12\u664200\u520641\u79d2", "\u73fe\u5728 13\u664225\u520603\u79d2", {2, 4, 6}),
        ("5:30 in Delhi", "6:55 in Delhi", {0}),
    ],
)
def test_clock_matches_the_time_of_the_visit_in_any_zone(before: str, after: str, where: set[int]) -> None:
    assert clock(before, after, later=timedelta(hours=1, minutes=25)) == where


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("It is 12:00", "It is 13:40"),  # a quarter of an hour too late
        ("opens 9:00", "opens 9:30"),
        ("12.0 of 25", "13.25 of 25"),  # not two digits
        ("12 apples, and later in the year 00", "13 apples, and later in the year 25"),
    ],
)
def test_other_numbers_are_not_clocks(before: str, after: str) -> None:
    assert not clock(before, after, later=timedelta(hours=1, minutes=25))
