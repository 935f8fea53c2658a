from hypothesis import given
from hypothesis import strategies as st

from crawler.core.change.mask import NO_MASK
from crawler.core.http.urls import Url, compute_page_key
from crawler.core.page.outline import Block, BlockKind
from crawler.core.soft_errors import (
    EMPTY_SKETCH,
    are_similar,
    measure_replacement,
    select_own_text,
    sketch_blocks,
    sketch_target,
    sketch_url,
)

WORDS = st.lists(st.text("abcdefgh", min_size=3, max_size=6), min_size=1, max_size=400)


def blocks(*texts: str) -> tuple[Block, ...]:
    return tuple(Block(n, text) for n, text in enumerate(texts))


@given(WORDS)
def test_a_text_is_like_itself_whatever_is_left_out(words: list[str]) -> None:
    one = sketch_blocks(blocks(" ".join(words)))
    assert are_similar(one, one)
    assert not are_similar(one, one, ignored=one)


@given(WORDS, WORDS)
def test_likeness_has_no_direction(one: list[str], other: list[str]) -> None:
    first, second = sketch_blocks(blocks(" ".join(one))), sketch_blocks(blocks(" ".join(other)))
    assert are_similar(first, second) == are_similar(second, first)


def test_what_says_nothing_is_like_nothing() -> None:
    assert not are_similar(EMPTY_SKETCH, EMPTY_SKETCH)
    assert not are_similar(EMPTY_SKETCH, sketch_blocks(blocks("something")))


def test_numbers_instants_and_the_address_that_was_asked_for_do_not_count() -> None:
    one = sketch_blocks(blocks("We could not find /guide/install here", "Incident 8c1f2 at 2026-03-01 12:00"))
    other = sketch_blocks(blocks("We could not find /0a93bf12 here", "Incident 77ab0 at 2026-04-02 13:30"))
    assert are_similar(one, other, ignored=sketch_url(Url("https://site.test/guide/install")))


def test_two_short_texts_are_not_alike_for_a_word_that_they_share() -> None:
    assert not are_similar(sketch_blocks(blocks("Log in")), sketch_blocks(blocks("Log out")))
    assert not are_similar(sketch_blocks(blocks("Sold out")), sketch_blocks(blocks("Prices on request")))


def test_long_texts_are_compared_by_a_part_of_their_words() -> None:
    long = [f"{a}{b}{c}" for a in "bcdfghjkl" for b in "aeiou" for c in "mnpqrstvwxz"]
    one, other = (
        sketch_blocks(blocks(" ".join(long))),
        sketch_blocks(blocks(" ".join([*long[:-10], "something", "else"]))),
    )
    assert len(one) < len(long)
    assert are_similar(one, other)
    assert not are_similar(one, sketch_blocks(blocks(" ".join(long[: len(long) // 2]))))


def test_redirects_are_alike_when_they_lead_to_one_place() -> None:
    one, other = (sketch_target(compute_page_key(Url(f"https://site.test/{path}"))) for path in ("login", "home"))
    assert are_similar(one, one)
    assert not are_similar(one, other)


def test_a_text_of_which_all_went_keeps_next_to_nothing() -> None:
    before = blocks("The first paragraph tells of one thing", "and the second one of another thing")

    assert measure_replacement(before, before).kept == 1
    assert measure_replacement(before, blocks("Sign in to go on")).is_complete
    assert not measure_replacement(before, before[:1]).is_complete
    assert not measure_replacement((), before).is_complete  # nothing was there that could be missed


def test_a_text_without_its_end_says_nothing_new() -> None:
    before = blocks("one two three four five six", "seven eight nine ten eleven twelve")
    replacement = measure_replacement(before, blocks("one two three four five six", "seven eight"))

    assert replacement.added == 0
    assert 0.6 < replacement.kept < 0.7
    assert (replacement.before, replacement.after) == (12, 8)


def test_what_no_reader_sees_is_no_text_of_the_page() -> None:
    outline = (Block(1, "A title", BlockKind.TITLE), Block(2, "text"), Block(2, "https://site.test/", BlockKind.LINK))
    assert select_own_text(outline, NO_MASK) == outline[1:2]
