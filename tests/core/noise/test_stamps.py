"""Build stamps are recognized if they are the only difference, visit after visit."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.change.difference import compute_difference, select_significant
from crawler.core.change.mask import NO_MASK, NoiseMask
from crawler.core.change.mask_learning import Observation, update_mask
from crawler.core.http.urls import Url, compute_page_key
from crawler.core.noise import day_names
from crawler.core.noise.dates import is_stamp_change, learn_stamps
from crawler.core.noise.day_names import parse_months
from crawler.core.noise.noise import NO_VOLATILE_CONTENT
from crawler.core.page.selectors import FULL_VIEW, View
from tests.core.pages import DAY, NOON, blocks, paragraph

HOUR = timedelta(hours=1)
WEEK = 7 * DAY
LATE = timedelta(hours=3, minutes=7)
DAYS_AGO = 3 * DAY  # only stamps match such a date, as it is not that of the visit
STAMP = "Generated at %Y-%m-%d %H:%M UTC"
PAGE = "<main><h1>About stones</h1><p>{more}Much is to be said of them.</p></main><footer><p>{stamp}</p></footer>"


def find_changes(
    stamps: Sequence[str], *, gap: timedelta = DAY, path: str = "a", mask: NoiseMask = NO_MASK, view: View = FULL_VIEW
) -> tuple[list[bool], NoiseMask]:
    """Visit one page at intervals of `gap`, each time with an equal second fetch. Return which visits find a change."""
    url = Url(f"https://example.com/{path}")
    seen = [blocks(PAGE.format(more="", stamp=stamp), url=url, view=view) for stamp in stamps]
    found = []
    mask = update_mask(mask, Observation(compute_page_key(url), seen[0], NOON))
    for n in range(1, len(seen)):
        then, now = NOON + (n - 1) * gap, NOON + n * gap
        mask = update_mask(mask, Observation(compute_page_key(url), seen[n], now, seen[n - 1], then, (seen[n],)))
        left = select_significant(compute_difference(seen[n - 1], seen[n], mask.volatile), mask, then=then, now=now)
        found.append(bool(left))
    return found, mask


def written(
    form: str, *, gap: timedelta, many: int = 6, late: timedelta = 3 * HOUR + timedelta(minutes=7)
) -> list[str]:
    """Return the stamps of a page that is built `late` before each visit."""
    return [(NOON + n * gap - late).strftime(form) for n in range(many)]


FORMS = [
    STAMP,
    "Generated on %d.%m.%Y, %H:%M:%S",
    "Last build: %Y-%m-%dT%H:%M:%SZ",
    "Page updated %B %d, %Y at %I:%M %p",
    "Updated %d %b %Y",
    "Stand: %d/%m/%Y %H:%M",
    "build %Y%m%d%H%M",
    "%Y年%m月%d日",
    "Last change: %d. %m. %Y",
    "rev %s",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("gap", [DAY, 7 * DAY])
def test_build_date_is_not_a_change_from_the_third_visit_on(form: str, gap: timedelta) -> None:
    found, _ = find_changes(written(form, gap=gap), gap=gap)

    assert found[1:] == [False] * 4


def test_hourly_build_is_recognized_by_hourly_visits() -> None:
    found, _ = find_changes(written("Updated hourly: %Y-%m-%d %H:00", gap=HOUR, late=timedelta(minutes=10)), gap=HOUR)

    assert found[1:] == [False] * 4


def test_time_of_day_alone_takes_one_more_visit() -> None:
    found, _ = find_changes(["Built at " + time for time in ("08:12", "09:47", "07:31", "11:05", "10:22")])

    assert found == [True, True, False, False]


def test_stamp_learned_on_one_page_applies_to_others() -> None:
    stamps = written(STAMP, gap=WEEK, late=DAYS_AGO)
    _, mask = find_changes(stamps[:3], gap=WEEK, path="a")

    assert find_changes(stamps[:2], gap=WEEK, path="b", mask=mask)[0] == [False]


NEVER = {
    "a price": ["Price 19.90", "Price 20.90", "Price 21.90", "Price 22.90", "Price 23.90"],
    "a large price": [f"Now {n:,} EUR" for n in (12000, 12500, 13000, 13500, 14000, 14500, 15000, 15500, 16000)],
    "a price with a sign": [f"€ {n:,}" for n in (12000, 12500, 13000, 13500, 14000, 14500, 15000, 15500, 16000)],
    "a version": ["Version 2.11.3", "Version 2.11.4", "Version 2.12.0", "Version 3.0.0", "Version 3.0.1"],
    "a dotted version like a date": [f"Release {d}.11.26" for d in (1, 2, 3, 4, 5)],
    "a date to come": [(NOON + (n * 8 + 20) * DAY).strftime("Next concert: %d %B %Y") for n in range(5)],
    "a date long past": [(NOON - (100 - n) * DAY).strftime("Founded on %d %B %Y") for n in range(5)],
    "a price in words": [f"It now costs {10_000 + 137 * n} crowns" for n in range(9)],
    "a stock": ["In stock: 14", "In stock: 13", "In stock: 11", "In stock: 9", "In stock: 8"],
    "a number that falls, too": [f"Index {n}" for n in (17432, 17450, 17301, 17350, 17420, 17333, 17400, 17420, 17211)],
    "words": ["In stock", "Sold out", "On its way", "In stock again", "Gone"],
}


@pytest.mark.parametrize("stamps", NEVER.values(), ids=NEVER)
def test_other_values_are_always_changes(stamps: Sequence[str]) -> None:
    found, _ = find_changes(stamps)

    assert all(found)


def test_mismatched_date_takes_many_more_visits() -> None:
    stamps = written(STAMP, gap=WEEK, late=DAYS_AGO, many=9)
    stamps[3] = "Generated at 2027-01-01 00:00 UTC"
    found, _ = find_changes(stamps, gap=WEEK)

    assert found == [True, False, *[True] * 6]  # two mismatches: when it appeared and when it disappeared


def test_stamp_beside_other_changes_proves_and_hides_nothing() -> None:
    url = Url("https://example.com/a")
    mask, stamps = NO_MASK, written(STAMP, gap=WEEK, late=DAYS_AGO)
    pages = [blocks(PAGE.format(more=f"{'x' * n} was found. ", stamp=stamp), url=url) for n, stamp in enumerate(stamps)]
    for n in range(1, len(pages)):
        then, now = NOON + (n - 1) * WEEK, NOON + n * WEEK
        mask = update_mask(mask, Observation(compute_page_key(url), pages[n], now, pages[n - 1], then, (pages[n],)))
        left = select_significant(compute_difference(pages[n - 1], pages[n], mask.volatile), mask, then=then, now=now)
        assert len(left.replaced) == 2

    assert not mask.volatile.stamps


def test_watched_stamp_is_always_a_change() -> None:
    found, _ = find_changes(written(STAMP, gap=WEEK, late=DAYS_AGO), gap=WEEK, view=View(watch=("footer",)))

    assert all(found)


def test_date_beside_a_day_counter_is_recognized() -> None:
    stamps = [
        f"By Anne, {200 + 7 * n} days on the net, built {stamp}"
        for n, stamp in enumerate(written("%d %B %Y", gap=WEEK))
    ]
    found, _ = find_changes(stamps, gap=WEEK)

    assert found[1:] == [False] * 4


def test_price_beside_a_matching_date_is_always_a_change() -> None:
    stamps = [f"Now {20 + 3 * n} EUR, as of {stamp}" for n, stamp in enumerate(written("%d %B %Y", gap=WEEK))]
    found, _ = find_changes(stamps, gap=WEEK)

    assert all(found)


@pytest.mark.parametrize(
    ("said", "months"),
    [("Okt.", {10}), ("févr", {2}), ("jui", {6, 7}), ("марта", {3}), ("Mai", {5}), ("stone", set()), ("in", set())],
)
def test_months_are_parsed_in_many_languages_and_abbreviated(said: str, months: set[int]) -> None:
    assert parse_months(said) == months


def test_date_in_another_language_without_a_year_is_recognized() -> None:
    days = ["samedi 28 février", "samedi 7 mars", "samedi 14 mars", "samedi 21 mars", "samedi 28 mars"]
    found, _ = find_changes([f"Un article du {day}" for day in days], gap=WEEK)

    assert found == [True, False, False, False]


def test_every_language_has_twelve_months() -> None:
    assert all(len(line.split()) == 12 for line in day_names._MONTHS.strip().split("\n"))


# Including non-ASCII digits, which Python reads as numbers.
ODD = (
    "9" * 5000,
    "20\uff12\uff16",
    "\u0663",
    "\u00b2",
    "2026-13-45",
    "0000-01-01",
    "99:99",
    "1999999999999",
    "am",
    "2026",
    "7",
)


@given(st.lists(st.tuples(st.sampled_from(ODD), st.sampled_from(ODD)), min_size=1, max_size=6))
def test_any_words_are_read_without_an_error(pairs: list[tuple[str, str]]) -> None:
    before, after = (paragraph(" ".join(words)) for words in zip(*pairs, strict=True))
    known = learn_stamps(NO_VOLATILE_CONTENT, [(before, after)], then=NOON, now=NOON + DAY)

    assert not is_stamp_change(known, before, after, then=NOON, now=NOON + DAY)  # one visit proves nothing
