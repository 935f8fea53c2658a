from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.core.http.response import SoftError
from crawler.core.page.block import Block
from crawler.core.soft_errors import (
    EMPTY_SKETCH,
    MAX_PROBE_WAIT,
    MAX_SHARED_TEXTS,
    MIN_PROBE_WAIT,
    NO_SOFT_ERRORS,
    SHARED_WITHIN,
    SoftErrorMemory,
    SoftErrorSignals,
    TextSketch,
    is_probe_due,
    is_shared,
    measure_replacement,
    recognize_soft_error,
    record_good_visit,
    record_probe_response,
    record_probe_sent,
    remember_shared_text,
    sketch_blocks,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
STORY = "The harbour was quiet when the boats came home, and nobody on the pier spoke of the storm that kept them away."
ANOTHER = (
    "Bread needs flour, water, salt and time; of these four only the last one cannot be bought in any of our shops."
)
MAINTENANCE = "We work on it, come later"


def said(*texts: str) -> TextSketch:
    return sketch_blocks(Block(1, text) for text in texts)


def signals(after: str, *, before: str = STORY, page: bytes = b"page", **more: object) -> SoftErrorSignals:
    """Return the signals of a page whose text changed."""
    replacement = measure_replacement((Block(1, before),), (Block(1, after),) if after else ())
    return replace(SoftErrorSignals(said(after), replacement=replacement, snapshot_digest=page), **more)


def first_visit(text: str) -> SoftErrorSignals:
    """Return the signals of a page without a Snapshot."""
    return SoftErrorSignals(said(text))


def after_many(text: str, *, pages: int = 3, apart: timedelta = HOUR) -> SoftErrorMemory:
    soft_errors = NO_SOFT_ERRORS
    for n in range(pages):
        soft_errors = remember_shared_text(
            soft_errors, signals(text, page=bytes([n])), now=NOW - apart * (pages - 1 - n)
        )
    return soft_errors


def after_probe(text: str, *, good: int = 3) -> SoftErrorMemory:
    soft_errors = record_probe_response(record_probe_sent(NO_SOFT_ERRORS, now=NOW - DAY), said(text))
    for _ in range(good):
        soft_errors = record_good_visit(soft_errors, None)
    return soft_errors


def test_unchanged_page_is_no_soft_error() -> None:
    assert recognize_soft_error(signals(STORY), after_many(STORY), now=NOW) is None
    assert recognize_soft_error(signals(STORY + " One word more.", is_cut=True), NO_SOFT_ERRORS, now=NOW) is None


def test_half_rewritten_page_is_no_soft_error() -> None:
    half = STORY[: len(STORY) // 2]
    assert recognize_soft_error(signals(half + ANOTHER), NO_SOFT_ERRORS, now=NOW) is None
    assert recognize_soft_error(signals(half), NO_SOFT_ERRORS, now=NOW) is None


def test_not_found_text_is_a_soft_404() -> None:
    soft_errors = after_probe("Sorry, there is no page of this name")

    for each in (signals("Sorry, there is no page of this name"), first_visit("Sorry, there is no page of this name")):
        assert recognize_soft_error(each, soft_errors, now=NOW) is SoftError.SOFT_404
    assert recognize_soft_error(first_visit(STORY), soft_errors, now=NOW) is None


def test_new_page_with_few_words_is_no_soft_error() -> None:
    assert recognize_soft_error(first_visit("All is well"), after_probe("All is well"), now=NOW) is None


def test_seed_is_never_a_soft_404() -> None:
    soft_errors = after_probe(MAINTENANCE)

    assert recognize_soft_error(signals(MAINTENANCE, is_seed=True), soft_errors, now=NOW) is SoftError.SHARED_TEXT
    assert recognize_soft_error(replace(first_visit(MAINTENANCE), is_seed=True), soft_errors, now=NOW) is None


def test_site_that_returns_its_front_page_reports_no_soft_404_for_new_pages() -> None:
    soft_errors = record_good_visit(after_probe(ANOTHER), replace(first_visit(ANOTHER), is_seed=True))

    assert recognize_soft_error(first_visit(ANOTHER), soft_errors, now=NOW) is None
    # but for a page that had its own text
    assert recognize_soft_error(signals(ANOTHER), soft_errors, now=NOW) is SoftError.SOFT_404


def test_password_field_in_place_of_the_text_is_a_login() -> None:
    assert (
        recognize_soft_error(signals("Your name, your secret", has_password_field=True), NO_SOFT_ERRORS, now=NOW)
        is SoftError.LOGIN
    )
    # a form next to the text
    assert recognize_soft_error(signals(STORY + " Sign in", has_password_field=True), NO_SOFT_ERRORS, now=NOW) is None


def test_same_new_text_on_many_pages_is_a_shared_text() -> None:
    assert (
        recognize_soft_error(signals(MAINTENANCE, changes_often=True), after_many(MAINTENANCE, pages=1), now=NOW)
        is SoftError.SHRUNK
    )
    assert (
        recognize_soft_error(signals(MAINTENANCE, changes_often=True), after_many(MAINTENANCE, pages=2), now=NOW)
        is SoftError.SHARED_TEXT
    )
    assert recognize_soft_error(first_visit(MAINTENANCE), after_many(MAINTENANCE), now=NOW) is SoftError.SHARED_TEXT


def test_duplicates_that_change_together_count_as_one_page() -> None:
    soft_errors = NO_SOFT_ERRORS
    for _ in range(9):
        soft_errors = remember_shared_text(soft_errors, signals(ANOTHER, page=b"the same"), now=NOW)
    assert not is_shared(signals(ANOTHER, page=b"the same"), soft_errors, now=NOW)


def test_pages_that_turn_into_one_text_far_apart_are_no_shared_text() -> None:
    soft_errors = after_many(ANOTHER, pages=2, apart=2 * SHARED_WITHIN)
    assert not is_shared(signals(ANOTHER), soft_errors, now=NOW)
    assert not is_shared(signals(ANOTHER), after_many(ANOTHER, pages=2), now=NOW + 2 * SHARED_WITHIN)


def test_confirmed_shared_text_is_recognized_weeks_later() -> None:
    assert is_shared(signals(MAINTENANCE), after_many(MAINTENANCE), now=NOW + timedelta(days=20))
    assert not is_shared(signals(MAINTENANCE), after_many(MAINTENANCE), now=NOW + timedelta(days=40))


def test_page_with_little_text_left_is_shrunk() -> None:
    assert recognize_soft_error(signals("Moved to the cellar"), NO_SOFT_ERRORS, now=NOW) is SoftError.SHRUNK
    # it never had much text
    assert recognize_soft_error(signals("Moved", before="Nearly nothing"), NO_SOFT_ERRORS, now=NOW) is None


def test_completely_replaced_page_is_a_soft_error_unless_it_changes_often() -> None:
    assert recognize_soft_error(signals(ANOTHER), NO_SOFT_ERRORS, now=NOW) is SoftError.REPLACED
    assert recognize_soft_error(signals(ANOTHER, changes_often=True), NO_SOFT_ERRORS, now=NOW) is None


def test_page_without_its_end_is_truncated_unless_it_has_new_text() -> None:
    start = STORY[: len(STORY) // 2]
    assert recognize_soft_error(signals(start, is_cut=True), NO_SOFT_ERRORS, now=NOW) is SoftError.TRUNCATED
    assert recognize_soft_error(signals(start + ANOTHER, is_cut=True), NO_SOFT_ERRORS, now=NOW) is None


def test_page_that_lost_all_text_is_blank() -> None:
    assert (
        recognize_soft_error(SoftErrorSignals(EMPTY_SKETCH, is_blank=True, is_empty=True), NO_SOFT_ERRORS, now=NOW)
        is SoftError.EMPTY
    )
    assert (
        recognize_soft_error(SoftErrorSignals(EMPTY_SKETCH, is_blank=True), NO_SOFT_ERRORS, now=NOW) is SoftError.BLANK
    )
    assert recognize_soft_error(signals(""), NO_SOFT_ERRORS, now=NOW) is SoftError.BLANK


@given(st.lists(st.text("abc ", max_size=12), max_size=60))
def test_soft_error_memory_is_bounded(texts: list[str]) -> None:
    soft_errors = NO_SOFT_ERRORS
    for n, text in enumerate(texts):
        soft_errors = remember_shared_text(soft_errors, signals(text, page=bytes([n])), now=NOW)
    assert len(soft_errors.shared_texts) <= MAX_SHARED_TEXTS
    assert all(len(seen.previous_digests) <= 3 for seen in soft_errors.shared_texts)


def test_not_found_probes_become_less_frequent() -> None:
    at, soft_errors, times = NOW, NO_SOFT_ERRORS, 0
    while at < NOW + timedelta(days=365):
        if is_probe_due(soft_errors, now=at):
            soft_errors, times = (
                record_probe_response(record_probe_sent(soft_errors, now=at), said("no such page")),
                times + 1,
            )
        at += HOUR
    assert 10 < times < 25
    assert soft_errors.probe_wait == MAX_PROBE_WAIT


def test_probe_interval_is_reset_when_the_response_changes() -> None:
    soft_errors = NO_SOFT_ERRORS
    for _ in range(5):
        soft_errors = record_probe_response(record_probe_sent(soft_errors, now=NOW), said("no such page"))
    assert soft_errors.probe_wait > MIN_PROBE_WAIT
    assert record_probe_response(soft_errors, said(MAINTENANCE)).probe_wait == MIN_PROBE_WAIT


@pytest.mark.parametrize("good", range(3))
def test_missing_page_is_confirmed_only_after_other_pages_were_intact(good: int) -> None:
    assert not after_probe(MAINTENANCE, good=good).is_proven
    assert after_probe(MAINTENANCE).is_proven
    assert not record_probe_response(record_probe_sent(after_probe(MAINTENANCE), now=NOW), said(MAINTENANCE)).is_proven


def test_good_visits_between_two_probes_of_a_missing_page_count() -> None:
    again = record_probe_sent(after_probe(MAINTENANCE), now=NOW)

    assert record_probe_response(again, said(MAINTENANCE), keep_good_count=True).is_proven
    assert not record_probe_response(
        again, said("Something else is said today, and it is no shorter"), keep_good_count=True
    ).is_proven
