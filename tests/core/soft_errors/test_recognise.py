from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.page.outline import Block
from crawler.core.soft_errors import (
    EMPTY_SKETCH,
    MAX_PROBE_WAIT,
    MAX_SHARED_TEXTS,
    MIN_PROBE_WAIT,
    NO_SOFT_ERRORS,
    SHARED_WITHIN,
    SoftError,
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
    """A page that said one thing and says another."""
    replacement = measure_replacement((Block(1, before),), (Block(1, after),) if after else ())
    return replace(SoftErrorSignals(said(after), replacement=replacement, snapshot_digest=page), **more)  # type: ignore[arg-type]


def fresh(text: str) -> SoftErrorSignals:
    """A page that nobody has looked at before."""
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


def test_a_page_that_says_what_it_said_shows_no_soft_error() -> None:
    assert recognize_soft_error(signals(STORY), after_many(STORY), now=NOW) is None
    assert recognize_soft_error(signals(STORY + " One word more.", is_cut=True), NO_SOFT_ERRORS, now=NOW) is None


def test_a_page_that_is_rewritten_by_half_shows_no_soft_error() -> None:
    half = STORY[: len(STORY) // 2]
    assert recognize_soft_error(signals(half + ANOTHER), NO_SOFT_ERRORS, now=NOW) is None
    assert recognize_soft_error(signals(half), NO_SOFT_ERRORS, now=NOW) is None


def test_what_the_domain_says_for_a_path_that_cannot_exist_is_a_soft_404() -> None:
    soft_errors = after_probe("Sorry, there is no page of this name")

    for each in (signals("Sorry, there is no page of this name"), fresh("Sorry, there is no page of this name")):
        assert recognize_soft_error(each, soft_errors, now=NOW) is SoftError.SOFT_404
    assert recognize_soft_error(fresh(STORY), soft_errors, now=NOW) is None


def test_a_new_page_of_a_word_or_two_is_recognised_by_nothing() -> None:
    assert recognize_soft_error(fresh("All is well"), after_probe("All is well"), now=NOW) is None


def test_a_page_that_its_user_named_is_never_a_soft_404() -> None:
    soft_errors = after_probe(MAINTENANCE)

    assert recognize_soft_error(signals(MAINTENANCE, is_seed=True), soft_errors, now=NOW) is SoftError.SHARED_TEXT
    assert recognize_soft_error(replace(fresh(MAINTENANCE), is_seed=True), soft_errors, now=NOW) is None


def test_a_site_that_answers_everything_with_its_front_page_tells_nothing_of_new_pages() -> None:
    soft_errors = record_good_visit(after_probe(ANOTHER), replace(fresh(ANOTHER), is_seed=True))

    assert recognize_soft_error(fresh(ANOTHER), soft_errors, now=NOW) is None
    # but of one that said something of its own
    assert recognize_soft_error(signals(ANOTHER), soft_errors, now=NOW) is SoftError.SOFT_404


def test_a_page_that_asks_for_a_password_in_place_of_its_text_wants_a_login() -> None:
    assert (
        recognize_soft_error(signals("Your name, your secret", has_password_field=True), NO_SOFT_ERRORS, now=NOW)
        is SoftError.LOGIN
    )
    # a form beside the text
    assert recognize_soft_error(signals(STORY + " Sign in", has_password_field=True), NO_SOFT_ERRORS, now=NOW) is None


def test_many_pages_with_one_text_are_no_versions_of_any() -> None:
    assert (
        recognize_soft_error(signals(MAINTENANCE, changes_often=True), after_many(MAINTENANCE, pages=1), now=NOW)
        is SoftError.SHRUNK
    )
    assert (
        recognize_soft_error(signals(MAINTENANCE, changes_often=True), after_many(MAINTENANCE, pages=2), now=NOW)
        is SoftError.SHARED_TEXT
    )
    assert recognize_soft_error(fresh(MAINTENANCE), after_many(MAINTENANCE), now=NOW) is SoftError.SHARED_TEXT


def test_duplicates_that_change_together_are_one_page_and_not_many() -> None:
    soft_errors = NO_SOFT_ERRORS
    for _ in range(9):
        soft_errors = remember_shared_text(soft_errors, signals(ANOTHER, page=b"the same"), now=NOW)
    assert not is_shared(signals(ANOTHER, page=b"the same"), soft_errors, now=NOW)


def test_pages_that_come_to_one_text_long_after_each_other_are_no_shared_text() -> None:
    soft_errors = after_many(ANOTHER, pages=2, apart=2 * SHARED_WITHIN)
    assert not is_shared(signals(ANOTHER), soft_errors, now=NOW)
    assert not is_shared(signals(ANOTHER), after_many(ANOTHER, pages=2), now=NOW + 2 * SHARED_WITHIN)


def test_a_text_that_was_met_on_many_pages_is_known_again_weeks_later() -> None:
    assert is_shared(signals(MAINTENANCE), after_many(MAINTENANCE), now=NOW + timedelta(days=20))
    assert not is_shared(signals(MAINTENANCE), after_many(MAINTENANCE), now=NOW + timedelta(days=40))


def test_a_page_of_which_little_is_left_is_looked_at_twice() -> None:
    assert recognize_soft_error(signals("Moved to the cellar"), NO_SOFT_ERRORS, now=NOW) is SoftError.SHRUNK
    # it never had much
    assert recognize_soft_error(signals("Moved", before="Nearly nothing"), NO_SOFT_ERRORS, now=NOW) is None


def test_a_page_that_is_replaced_as_a_whole_is_looked_at_twice_unless_it_often_is() -> None:
    assert recognize_soft_error(signals(ANOTHER), NO_SOFT_ERRORS, now=NOW) is SoftError.REPLACED
    assert recognize_soft_error(signals(ANOTHER, changes_often=True), NO_SOFT_ERRORS, now=NOW) is None


def test_a_page_without_its_end_is_cut_and_one_that_says_something_new_is_not() -> None:
    start = STORY[: len(STORY) // 2]
    assert recognize_soft_error(signals(start, is_cut=True), NO_SOFT_ERRORS, now=NOW) is SoftError.TRUNCATED
    assert recognize_soft_error(signals(start + ANOTHER, is_cut=True), NO_SOFT_ERRORS, now=NOW) is None


def test_a_page_without_any_text_where_there_was_some_is_empty() -> None:
    assert (
        recognize_soft_error(SoftErrorSignals(EMPTY_SKETCH, is_blank=True, is_empty=True), NO_SOFT_ERRORS, now=NOW)
        is SoftError.EMPTY
    )
    assert (
        recognize_soft_error(SoftErrorSignals(EMPTY_SKETCH, is_blank=True), NO_SOFT_ERRORS, now=NOW) is SoftError.BLANK
    )
    assert recognize_soft_error(signals(""), NO_SOFT_ERRORS, now=NOW) is SoftError.BLANK


@given(st.lists(st.text("abc ", max_size=12), max_size=60))
def test_what_a_domain_remembers_is_bounded(texts: list[str]) -> None:
    soft_errors = NO_SOFT_ERRORS
    for n, text in enumerate(texts):
        soft_errors = remember_shared_text(soft_errors, signals(text, page=bytes([n])), now=NOW)
    assert len(soft_errors.shared_texts) <= MAX_SHARED_TEXTS
    assert all(len(seen.previous_digests) <= 3 for seen in soft_errors.shared_texts)


def test_what_is_said_of_absent_pages_is_asked_once_and_ever_more_rarely() -> None:
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


def test_it_is_asked_again_soon_when_it_has_become_another() -> None:
    soft_errors = NO_SOFT_ERRORS
    for _ in range(5):
        soft_errors = record_probe_response(record_probe_sent(soft_errors, now=NOW), said("no such page"))
    assert soft_errors.probe_wait > MIN_PROBE_WAIT
    assert record_probe_response(soft_errors, said(MAINTENANCE)).probe_wait == MIN_PROBE_WAIT


@pytest.mark.parametrize("good", range(3))
def test_an_absent_page_is_not_told_from_a_block_of_all_pages_until_others_were_well(good: int) -> None:
    assert not after_probe(MAINTENANCE, good=good).is_proven
    assert after_probe(MAINTENANCE).is_proven
    assert not record_probe_response(record_probe_sent(after_probe(MAINTENANCE), now=NOW), said(MAINTENANCE)).is_proven


def test_what_was_well_between_two_looks_at_one_absent_page_still_counts_when_the_domain_answers_as_before() -> None:
    again = record_probe_sent(after_probe(MAINTENANCE), now=NOW)

    assert record_probe_response(again, said(MAINTENANCE), keep_good_count=True).is_proven
    assert not record_probe_response(
        again, said("Something else is said today, and it is no shorter"), keep_good_count=True
    ).is_proven
