from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.page import Place
from crawler.core.soft_errors import (
    NO_WALLS,
    NOTHING,
    Face,
    Sketch,
    Wall,
    Walls,
    after_good,
    asked,
    is_due,
    is_shared,
    noted,
    recognise,
    sketch,
    told,
    turn_of,
)
from crawler.core.soft_errors.recognise import FIRST_WAIT, LONGEST_WAIT, MOST_SIGHTINGS, TOGETHER

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
STORY = "The harbour was quiet when the boats came home, and nobody on the pier spoke of the storm that kept them away."
ANOTHER = (
    "Bread needs flour, water, salt and time; of these four only the last one cannot be bought in any of our shops."
)
MAINTENANCE = "We work on it, come later"


def said(*texts: str) -> Sketch:
    return sketch(Place(1, text) for text in texts)


def face(after: str, *, before: str = STORY, page: bytes = b"page", **more: object) -> Face:
    """A page that said one thing and says another."""
    turn = turn_of((Place(1, before),), (Place(1, after),) if after else ())
    return replace(Face(said(after), turn=turn, before=page), **more)  # type: ignore[arg-type]


def fresh(text: str) -> Face:
    """A page that nobody has looked at before."""
    return Face(said(text))


def after_many(text: str, *, pages: int = 3, apart: timedelta = HOUR) -> Walls:
    walls = NO_WALLS
    for n in range(pages):
        walls = noted(walls, face(text, page=bytes([n])), now=NOW - apart * (pages - 1 - n))
    return walls


def where_nothing_is(text: str, *, good: int = 3) -> Walls:
    walls = told(asked(NO_WALLS, now=NOW - DAY), said(text))
    for _ in range(good):
        walls = after_good(walls, None)
    return walls


def test_a_page_that_says_what_it_said_is_behind_no_wall() -> None:
    assert recognise(face(STORY), after_many(STORY), now=NOW) is None
    assert recognise(face(STORY + " One word more.", is_cut=True), NO_WALLS, now=NOW) is None


def test_a_page_that_is_rewritten_by_half_is_behind_no_wall() -> None:
    half = STORY[: len(STORY) // 2]
    assert recognise(face(half + ANOTHER), NO_WALLS, now=NOW) is None
    assert recognise(face(half), NO_WALLS, now=NOW) is None


def test_what_the_domain_says_for_a_path_that_cannot_exist_is_a_soft_404() -> None:
    walls = where_nothing_is("Sorry, there is no page of this name")

    for each in (face("Sorry, there is no page of this name"), fresh("Sorry, there is no page of this name")):
        assert recognise(each, walls, now=NOW) is Wall.SOFT_404
    assert recognise(fresh(STORY), walls, now=NOW) is None


def test_a_new_page_of_a_word_or_two_is_told_by_nothing() -> None:
    assert recognise(fresh("All is well"), where_nothing_is("All is well"), now=NOW) is None


def test_a_page_that_its_user_named_is_never_told_absent() -> None:
    walls = where_nothing_is(MAINTENANCE)

    assert recognise(face(MAINTENANCE, is_seed=True), walls, now=NOW) is Wall.MANY_ALIKE
    assert recognise(replace(fresh(MAINTENANCE), is_seed=True), walls, now=NOW) is None


def test_a_site_that_answers_everything_with_its_front_page_tells_nothing_of_new_pages() -> None:
    walls = after_good(where_nothing_is(ANOTHER), replace(fresh(ANOTHER), is_seed=True))

    assert recognise(fresh(ANOTHER), walls, now=NOW) is None
    assert recognise(face(ANOTHER), walls, now=NOW) is Wall.SOFT_404  # but of one that said something of its own


def test_a_page_that_asks_for_a_password_in_place_of_its_text_wants_a_login() -> None:
    assert recognise(face("Your name, your secret", asks_password=True), NO_WALLS, now=NOW) is Wall.LOGIN
    assert recognise(face(STORY + " Sign in", asks_password=True), NO_WALLS, now=NOW) is None  # a form beside the text


def test_many_pages_with_one_text_are_no_versions_of_any() -> None:
    assert recognise(face(MAINTENANCE, is_lively=True), after_many(MAINTENANCE, pages=1), now=NOW) is Wall.SHRUNK
    assert recognise(face(MAINTENANCE, is_lively=True), after_many(MAINTENANCE, pages=2), now=NOW) is Wall.MANY_ALIKE
    assert recognise(fresh(MAINTENANCE), after_many(MAINTENANCE), now=NOW) is Wall.MANY_ALIKE


def test_duplicates_that_change_together_are_one_page_and_not_many() -> None:
    walls = NO_WALLS
    for _ in range(9):
        walls = noted(walls, face(ANOTHER, page=b"the same"), now=NOW)
    assert not is_shared(face(ANOTHER, page=b"the same"), walls, now=NOW)


def test_pages_that_come_to_one_text_long_after_each_other_are_no_wall() -> None:
    walls = after_many(ANOTHER, pages=2, apart=2 * TOGETHER)
    assert not is_shared(face(ANOTHER), walls, now=NOW)
    assert not is_shared(face(ANOTHER), after_many(ANOTHER, pages=2), now=NOW + 2 * TOGETHER)


def test_a_wall_that_was_met_on_many_pages_is_known_again_weeks_later() -> None:
    assert is_shared(face(MAINTENANCE), after_many(MAINTENANCE), now=NOW + timedelta(days=20))
    assert not is_shared(face(MAINTENANCE), after_many(MAINTENANCE), now=NOW + timedelta(days=40))


def test_a_page_of_which_little_is_left_is_looked_at_twice() -> None:
    assert recognise(face("Moved to the cellar"), NO_WALLS, now=NOW) is Wall.SHRUNK
    assert recognise(face("Moved", before="Nearly nothing"), NO_WALLS, now=NOW) is None  # it never had much


def test_a_page_that_is_replaced_as_a_whole_is_looked_at_twice_unless_it_often_is() -> None:
    assert recognise(face(ANOTHER), NO_WALLS, now=NOW) is Wall.REPLACED
    assert recognise(face(ANOTHER, is_lively=True), NO_WALLS, now=NOW) is None


def test_a_page_without_its_end_is_cut_and_one_that_says_something_new_is_not() -> None:
    start = STORY[: len(STORY) // 2]
    assert recognise(face(start, is_cut=True), NO_WALLS, now=NOW) is Wall.CUT
    assert recognise(face(start + ANOTHER, is_cut=True), NO_WALLS, now=NOW) is None


def test_a_page_without_any_text_where_there_was_some_is_empty() -> None:
    assert recognise(Face(NOTHING, is_blank=True, is_empty=True), NO_WALLS, now=NOW) is Wall.EMPTY
    assert recognise(Face(NOTHING, is_blank=True), NO_WALLS, now=NOW) is Wall.BLANK
    assert recognise(face(""), NO_WALLS, now=NOW) is Wall.BLANK


@given(st.lists(st.text("abc ", max_size=12), max_size=60))
def test_what_a_domain_remembers_is_bounded(texts: list[str]) -> None:
    walls = NO_WALLS
    for n, text in enumerate(texts):
        walls = noted(walls, face(text, page=bytes([n])), now=NOW)
    assert len(walls.sightings) <= MOST_SIGHTINGS
    assert all(len(seen.befores) <= 3 for seen in walls.sightings)


def test_what_is_said_of_absent_pages_is_asked_once_and_ever_more_rarely() -> None:
    at, walls, times = NOW, NO_WALLS, 0
    while at < NOW + timedelta(days=365):
        if is_due(walls, now=at):
            walls, times = told(asked(walls, now=at), said("no such page")), times + 1
        at += HOUR
    assert 10 < times < 25
    assert walls.wait == LONGEST_WAIT


def test_it_is_asked_again_soon_when_it_has_become_another() -> None:
    walls = NO_WALLS
    for _ in range(5):
        walls = told(asked(walls, now=NOW), said("no such page"))
    assert walls.wait > FIRST_WAIT
    assert told(walls, said(MAINTENANCE)).wait == FIRST_WAIT


@pytest.mark.parametrize("good", range(3))
def test_an_absent_page_is_not_told_from_a_wall_around_all_until_others_were_well(good: int) -> None:
    assert not where_nothing_is(MAINTENANCE, good=good).is_proven
    assert where_nothing_is(MAINTENANCE).is_proven
    assert not told(asked(where_nothing_is(MAINTENANCE), now=NOW), said(MAINTENANCE)).is_proven


def test_what_was_well_between_two_looks_at_one_absent_page_still_counts_when_the_domain_answers_as_before() -> None:
    again = asked(where_nothing_is(MAINTENANCE), now=NOW)

    assert told(again, said(MAINTENANCE), is_later=True).is_proven
    assert not told(again, said("Something else is said today, and it is no shorter"), is_later=True).is_proven
