"""Which pages share a schedule, and how often duplicates are checked."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from crawler.core.freshness.shared_schedule import (
    MIN_COPY_TEST_WAIT,
    TEST_GAP_FACTOR,
    DuplicateCandidate,
    compute_test_time,
    derive_stem,
    pair_duplicates,
)
from crawler.core.http.urls import PageKey, Url
from crawler.core.visit.state import NEVER

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def candidate(n: int, text: bytes, importance: float = 1.0, *, is_canonical: bool = False) -> DuplicateCandidate:
    return DuplicateCandidate(PageKey(n.to_bytes(16, "big")), text, importance, is_canonical)


def pairs(*candidates: DuplicateCandidate) -> list[tuple[int, int]]:
    return [
        (int.from_bytes(pair.canonical, "big"), int.from_bytes(pair.key, "big")) for pair in pair_duplicates(candidates)
    ]


def young(n: int, text: bytes, importance: float = 1.0, *, stem: str, is_settled: bool = False) -> DuplicateCandidate:
    """Return a page that was visited once."""
    return replace(candidate(n, text, importance), stem=stem, is_settled=is_settled)


def test_most_important_page_of_a_text_becomes_canonical() -> None:
    assert pairs(candidate(1, b"a"), candidate(2, b"a", 3.0), candidate(3, b"b"), candidate(4, b"a", 2.0)) == [
        (2, 1),
        (2, 4),
    ]


def test_canonical_page_stays_canonical() -> None:
    assert pairs(candidate(1, b"a", is_canonical=True), candidate(2, b"a", 3.0)) == [(1, 2)]
    assert pairs(candidate(1, b"a", is_canonical=True), candidate(2, b"a", 3.0, is_canonical=True)) == []


def test_duplicate_is_checked_after_some_of_its_own_gaps_within_the_longest_interval() -> None:
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
def test_urls_that_differ_in_query_extension_or_trailing_slash_have_the_same_stem(url: str) -> None:
    assert derive_stem(Url(url)) == derive_stem(Url("http://a.test/guide/intro"))


@pytest.mark.parametrize("url", ["http://a.test/guide/other", "http://a.test/guide", "http://a.test/guide/intro.1.2"])
def test_other_urls_have_different_stems(url: str) -> None:
    assert derive_stem(Url(url)) != derive_stem(Url("http://a.test/guide/intro"))


def test_pages_with_the_same_text_and_stem_share_after_one_visit_each() -> None:
    assert pairs(young(1, b"a", stem="x"), young(2, b"a", 3.0, stem="x"), young(3, b"a", stem="y")) == [(2, 1)]
    assert pairs(young(1, b"a", stem="x"), young(2, b"b", stem="x")) == []


def test_page_has_one_canonical_page_by_stem_and_text() -> None:
    settled = [young(1, b"a", 2.0, stem="x", is_settled=True), young(2, b"a", 9.0, stem="y", is_settled=True)]

    found = pairs(*settled, young(3, b"a", stem="x"), young(4, b"a", stem="z"), young(5, b"a", stem="z"))

    assert sorted(found) == [(2, 1), (2, 3), (5, 4)]


def test_copy_is_checked_monthly_at_most_and_half_as_often_after_each_check() -> None:
    def rest(days: int, most: int = 100, rested: int = 0) -> timedelta:
        due_at = NOON + days * DAY
        return compute_test_time(NOON, due_at=due_at, longest=most * DAY, is_copy=True, since_visit=rested * DAY) - NOON

    assert (rest(1), rest(10), rest(1, most=3)) == (MIN_COPY_TEST_WAIT, TEST_GAP_FACTOR * 10 * DAY, 3 * DAY)
    assert (rest(1, rested=30), rest(1, rested=60), rest(1, rested=2)) == (60 * DAY, 100 * DAY, MIN_COPY_TEST_WAIT)


def test_root_has_the_stem_of_its_index_page() -> None:
    assert derive_stem(Url("http://a.test/")) == derive_stem(Url("http://a.test/index.html")) == "http://a.test"
