"""Which pages share a schedule, and how much more seldom those are tested that ride along."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from crawler.core.freshness.shared_schedule import (
    MIN_COPY_TEST_WAIT,
    TEST_GAP_FACTOR,
    DuplicateCandidate,
    compute_test_time,
    derive_stem,
    pair_duplicates,
)
from crawler.core.http.urls import PageKey, Url
from crawler.core.visit.visit import NEVER

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def twin(n: int, text: bytes, importance: float = 1.0, *, leads: bool = False) -> DuplicateCandidate:
    return DuplicateCandidate(PageKey(n.to_bytes(16, "big")), text, importance, leads)


def pairs(*twins: DuplicateCandidate) -> list[tuple[int, int]]:
    return [(int.from_bytes(pair.canonical, "big"), int.from_bytes(pair.key, "big")) for pair in pair_duplicates(twins)]


def young(n: int, text: bytes, importance: float = 1.0, *, stem: str, is_settled: bool = False) -> DuplicateCandidate:
    """Return a page that was visited once."""
    return replace(twin(n, text, importance), stem=stem, is_settled=is_settled)


def test_the_most_important_page_of_a_text_leads_the_others() -> None:
    assert pairs(twin(1, b"a"), twin(2, b"a", 3.0), twin(3, b"b"), twin(4, b"a", 2.0)) == [(2, 1), (2, 4)]


def test_who_leads_already_goes_on_leading_and_follows_nobody() -> None:
    assert pairs(twin(1, b"a", leads=True), twin(2, b"a", 3.0)) == [(1, 2)]
    assert pairs(twin(1, b"a", leads=True), twin(2, b"a", 3.0, leads=True)) == []


def test_who_rides_along_is_tested_after_some_of_its_own_gaps_and_by_its_longest_interval() -> None:
    assert compute_test_time(NOON, due_at=NOON + DAY, longest=100 * DAY) == NOON + TEST_GAP_FACTOR * DAY
    assert compute_test_time(NOON, due_at=NOON + 50 * DAY, longest=100 * DAY) == NOON + 100 * DAY
    assert compute_test_time(NOON, due_at=NOON + 120 * DAY, longest=100 * DAY) == NOON + 120 * DAY
    assert compute_test_time(NOON, due_at=NEVER, longest=100 * DAY) == NEVER


@pytest.mark.parametrize(
    "url",
    [
        "http://a.test/guide/intro.html",
        "http://a.test/guide/intro/",
        "http://a.test/guide/intro?print=1",
        "http://a.test/guide/intro/index.html",
        "http://a.test/guide/intro.php?id=4&lang=en",
    ],
)
def test_urls_that_differ_in_query_extension_or_trailing_slash_have_one_stem(url: str) -> None:
    assert derive_stem(Url(url)) == derive_stem(Url("http://a.test/guide/intro"))


@pytest.mark.parametrize("url", ["http://a.test/guide/other", "http://a.test/guide", "http://a.test/guide/intro.1.2"])
def test_other_urls_have_stems_of_their_own(url: str) -> None:
    assert derive_stem(Url(url)) != derive_stem(Url("http://a.test/guide/intro"))


def test_pages_with_one_text_and_one_stem_share_after_one_visit_of_each_and_no_others_do() -> None:
    assert pairs(young(1, b"a", stem="x"), young(2, b"a", 3.0, stem="x"), young(3, b"a", stem="y")) == [(2, 1)]
    assert pairs(young(1, b"a", stem="x"), young(2, b"b", stem="x")) == []


def test_a_page_has_one_leader_where_its_stem_and_its_text_are_those_of_others() -> None:
    settled = [young(1, b"a", 2.0, stem="x", is_settled=True), young(2, b"a", 9.0, stem="y", is_settled=True)]

    found = pairs(*settled, young(3, b"a", stem="x"), young(4, b"a", stem="z"), young(5, b"a", stem="z"))

    assert sorted(found) == [(2, 1), (2, 3), (5, 4)]


def test_a_copy_is_tested_once_a_month_at_most_and_half_as_often_after_each_test() -> None:
    def rest(days: int, most: int = 100, rested: int = 0) -> timedelta:
        due_at = NOON + days * DAY
        return compute_test_time(NOON, due_at=due_at, longest=most * DAY, is_copy=True, since_visit=rested * DAY) - NOON

    assert (rest(1), rest(10), rest(1, most=3)) == (MIN_COPY_TEST_WAIT, TEST_GAP_FACTOR * 10 * DAY, 3 * DAY)
    assert (rest(1, rested=30), rest(1, rested=60), rest(1, rested=2)) == (60 * DAY, 100 * DAY, MIN_COPY_TEST_WAIT)


def test_the_root_of_a_site_has_the_stem_of_its_index_and_keeps_its_name() -> None:
    assert derive_stem(Url("http://a.test/")) == derive_stem(Url("http://a.test/index.html")) == "http://a.test"
