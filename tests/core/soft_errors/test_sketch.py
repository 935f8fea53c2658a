from hypothesis import given
from hypothesis import strategies as st

from crawler.core.change.mask import NO_MASK
from crawler.core.http.urls import Url, compute_page_key
from crawler.core.page.block import Block, BlockKind
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
def test_text_is_similar_to_itself(words: list[str]) -> None:
    one = sketch_blocks(blocks(" ".join(words)))
    assert are_similar(one, one)
    assert not are_similar(one, one, ignored=one)


@given(WORDS, WORDS)
def test_similarity_is_symmetric(one: list[str], other: list[str]) -> None:
    first, second = sketch_blocks(blocks(" ".join(one))), sketch_blocks(blocks(" ".join(other)))
    assert are_similar(first, second) == are_similar(second, first)


def test_empty_text_is_similar_to_nothing() -> None:
    assert not are_similar(EMPTY_SKETCH, EMPTY_SKETCH)
    assert not are_similar(EMPTY_SKETCH, sketch_blocks(blocks("something")))


def test_numbers_times_and_the_requested_url_do_not_count() -> None:
    one = sketch_blocks(blocks("We could not find /guide/install here", "Incident 8c1f2 at 2026-03-01 12:00"))
    other = sketch_blocks(blocks("We could not find /0a93bf12 here", "Incident 77ab0 at 2026-04-02 13:30"))
    assert are_similar(one, other, ignored=sketch_url(Url("https://site.test/guide/install")))


def test_short_texts_with_one_common_word_are_not_similar() -> None:
    assert not are_similar(sketch_blocks(blocks("Log in")), sketch_blocks(blocks("Log out")))
    assert not are_similar(sketch_blocks(blocks("Sold out")), sketch_blocks(blocks("Prices on request")))


def test_long_texts_are_compared_by_a_sample_of_their_words() -> None:
    long = [f"{a}{b}{c}" for a in "bcdfghjkl" for b in "aeiou" for c in "mnpqrstvwxz"]
    one, other = (
        sketch_blocks(blocks(" ".join(long))),
        sketch_blocks(blocks(" ".join([*long[:-10], "something", "else"]))),
    )
    assert len(one) < len(long)
    assert are_similar(one, other)
    assert not are_similar(one, sketch_blocks(blocks(" ".join(long[: len(long) // 2]))))


def test_redirects_to_the_same_target_are_similar() -> None:
    one, other = (sketch_target(compute_page_key(Url(f"https://site.test/{path}"))) for path in ("login", "home"))
    assert are_similar(one, one)
    assert not are_similar(one, other)


def test_completely_replaced_text_keeps_almost_nothing() -> None:
    before = blocks("The first paragraph tells of one thing", "and the second one of another thing")

    assert measure_replacement(before, before).kept == 1
    assert measure_replacement(before, blocks("Sign in to go on")).is_complete
    assert not measure_replacement(before, before[:1]).is_complete
    assert not measure_replacement((), before).is_complete  # there was no text that could be missing


def test_truncated_text_adds_nothing() -> None:
    before = blocks("one two three four five six", "seven eight nine ten eleven twelve")
    replacement = measure_replacement(before, blocks("one two three four five six", "seven eight"))

    assert replacement.added == 0
    assert 0.6 < replacement.kept < 0.7
    assert (replacement.before, replacement.after) == (12, 8)


def test_invisible_text_is_not_the_pages_own() -> None:
    outline = (Block(1, "A title", BlockKind.TITLE), Block(2, "text"), Block(2, "https://site.test/", BlockKind.LINK))
    assert select_own_text(outline, NO_MASK) == outline[1:2]
