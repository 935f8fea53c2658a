from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.change.word_diff import (
    BlockDiff,
    BlockStatus,
    PageDiff,
    RunKind,
    WordRun,
    cut_around_change,
    cut_at_word,
    diff_pages,
    diff_texts,
    diff_words,
    shorten_runs,
)
from crawler.core.http.urls import Url
from crawler.core.page.block import Block, BlockKind
from crawler.core.page.outline import extract_blocks

MARKS = {RunKind.KEPT: "{}", RunKind.OLD: "[-{}-]", RunKind.NEW: "{{+{}+}}"}
WORDS = st.lists(st.sampled_from(["a", "be", "sea", "19.99", "日本", ",", " ", "  "]), max_size=12).map("".join)
LINES = st.lists(st.sampled_from(["one word", "two words here", "two words there", "three", "a b c d"]), max_size=12)


def marked(runs: Sequence[WordRun]) -> str:
    return "".join(MARKS[run.kind].format(run.text) for run in runs)


def list_changes(found: PageDiff) -> list[tuple[str, str]]:
    return [(block.status.value, marked(block.runs)) for block in found.changed_blocks]


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("Port 5432; set it.", "Port 5433 now; set it.", "Port [-5432-]{+5433 now+}; set it."),
        ("Price 19.99 or 5 now", "Price 24.99 or 6 now", "Price [-19.99-]{+24.99+} or [-5-]{+6+} now"),
        ("very good", "good", "[-very -]good"),
        ("good", "good enough", "good{+ enough+}"),
        ("今日は晴れ", "今日は雨", "今日は[-晴れ-]{+雨+}"),
        ("same", "same", "same"),
        ("", "all of it", "{+all of it+}"),
    ],
)
def test_only_differing_words_are_marked(before: str, after: str, shown: str) -> None:
    assert marked(diff_words(before, after)) == shown


def test_accidentally_equal_words_do_not_split_a_replaced_sentence() -> None:
    runs = diff_words("the red dog of a farmer sleeps", "a blue cat of the sailor runs")

    assert [run.kind for run in runs] == [RunKind.OLD, RunKind.NEW]


def test_each_path_segment_of_a_link_is_a_word() -> None:
    runs = diff_words("http://a.test/docs/14/x.html", "http://a.test/docs/15/x.html", kind=BlockKind.LINK)

    assert marked(runs) == "http://a.test/docs/[-14-]{+15+}/x.html"


@given(before=WORDS, after=WORDS)
def test_runs_reproduce_both_texts(before: str, after: str) -> None:
    runs = diff_words(before, after)

    assert "".join(run.text for run in runs if run.kind is not RunKind.NEW) == before
    assert "".join(run.text for run in runs if run.kind is not RunKind.OLD) == after
    assert all(run.text for run in runs)


@given(before=LINES, after=LINES, context=st.integers(0, 3))
def test_diff_contains_exactly_the_blocks_of_both_versions(before: list[str], after: list[str], context: int) -> None:
    found = diff_texts("\n".join(before), "\n".join(after), context=context)

    blocks = [block for hunk in found.hunks for block in hunk.blocks]
    was = {block.was_at: block.old_text for block in blocks if block.was_at is not None}
    now = {block.is_at: block.new_text for block in blocks if block.is_at is not None}
    assert all(before[n] == text for n, text in was.items())
    assert all(after[n] == text for n, text in now.items())
    skipped = sum(hunk.skipped for hunk in found.hunks) + found.skipped
    assert len(now) + skipped == len(after)
    assert len(was) + skipped == len(before)
    assert bool(found) == (before != after)
    assert sum(found.counts.values()) == len(blocks) + skipped


def test_moved_block_is_shown_once_at_its_new_position() -> None:
    found = diff_texts("alpha\nlong words here\nbeta\ngamma\ndelta", "alpha\nbeta\ngamma\ndelta\nlong words here")

    assert list_changes(found) == [("moved", "long words here")]
    (block,) = found.changed_blocks
    assert (block.was_at, block.is_at) == (1, 4)


def test_edited_row_is_shown_as_edited_after_an_inserted_row() -> None:
    rows = ["pears 3 each", "apples and figs 4 each", "plums 5 each"]
    after = ["new: cherries by the kilo", rows[0], "apples and figs 6 each", rows[2]]

    found = diff_texts("\n".join(rows), "\n".join(after))

    assert list_changes(found) == [
        ("added", "{+new: cherries by the kilo+}"),
        ("changed", "apples and figs [-4-]{+6+} each"),
    ]


def test_context_surrounds_changes_and_distant_blocks_are_counted() -> None:
    before = [f"line {chr(97 + n)}" for n in range(20)]
    after = [*before[:5], "other", *before[6:16], "further", *before[17:]]

    found = diff_texts("\n".join(before), "\n".join(after), context=1)

    assert [(hunk.skipped, len(hunk.blocks)) for hunk in found.hunks] == [(4, 3), (8, 3)]
    assert found.skipped == 2


def test_blocks_of_html_are_compared_by_kind() -> None:
    def blocks(body: str) -> tuple[Block, ...]:
        return extract_blocks(body.encode(), url=Url("http://a.test/"), content_type="text/html; charset=utf-8")

    before = blocks("<title>Old shop</title><p>Tea <b>4.50</b></p><a href=/one>go</a><img src=x.png alt=pot>")
    after = blocks("<title>New shop</title><p>Tea <b>4.90</b></p><a href=/two>go</a><img src=x.png alt=cup>")

    found = diff_pages(before, after)

    assert [(block.kind, marked(block.runs)) for block in found.changed_blocks] == [
        (BlockKind.TITLE, "[-Old-]{+New+} shop"),
        (BlockKind.TEXT, "Tea [-4.50-]{+4.90+}"),
        (BlockKind.LINK, "http://a.test/[-one-]{+two+}"),
        (BlockKind.IMAGE, "[-pot-]{+cup+} x.png"),
    ]


def test_noise_is_shown_and_marked() -> None:
    before = (Block(css_path=1, text="5 visitors now"), Block(css_path=2, text="Tea 4.50"))
    after = (Block(css_path=1, text="6 visitors now"), Block(css_path=2, text="Tea 4.90"))

    found = diff_pages(before, after, significant_blocks=[before[1], after[1]])

    assert [(block.new_text, block.is_news) for block in found.changed_blocks] == [
        ("6 visitors now", False),
        ("Tea 4.90", True),
    ]


def test_huge_page_that_changed_completely_is_aligned_in_bounded_time() -> None:
    before = tuple(Block(css_path=1, text=f"before {n} " + "word " * 20) for n in range(20_000))
    after = tuple(Block(css_path=1, text=f"after {n} " + "word " * 20) for n in range(20_000))

    found = diff_pages(before, after)

    assert found.counts == Counter({BlockStatus.CHANGED: 20_000})
    in_words = [any(run.kind is RunKind.KEPT for run in block.runs) for block in found.changed_blocks]
    assert in_words[0]
    assert not in_words[-1]
    assert [block.old_text for block in found.changed_blocks] == [block.text for block in before]


def test_huge_block_is_shown_as_replaced_in_full() -> None:
    before, after = "a " * 20_000, "a " * 20_000 + "b"

    assert [run.kind for run in diff_words(before, after)] == [RunKind.OLD, RunKind.NEW]


def test_excerpt_keeps_changes_and_cuts_no_word() -> None:
    long = "lorem ipsum dolor sit amet " * 20
    runs = diff_words(f"{long}old {long}five {long}", f"{long}new {long}six {long}")

    shown = marked(shorten_runs(runs, context_chars=25, max_chars=80))

    assert shown == (
        "…ipsum dolor sit amet [-old-]{+new+} lorem ipsum dolor sit…"
        " ipsum dolor sit amet [-five-]{+six+} lorem ipsum dolor sit…"
    )


def test_cut_text_ends_with_a_word_and_an_ellipsis() -> None:
    assert cut_at_word("some words to read", 100) == "some words to read"
    assert cut_at_word("some words to read", 12) == "some words…"
    assert cut_at_word("x" * 30, 12) == "x" * 12 + "…"


def test_long_texts_are_cut_around_the_first_difference() -> None:
    long = "lorem ipsum dolor sit amet " * 40
    before, after = cut_around_change(f"{long}old {long}", f"{long}new {long}", max_chars=60)

    assert before == "…lorem ipsum dolor sit amet old lorem ipsum dolor sit amet…"
    assert after == "…lorem ipsum dolor sit amet new lorem ipsum dolor sit amet…"
    assert cut_around_change("short", "other", max_chars=60) == ("short", "other")


@given(before=WORDS, after=WORDS, most=st.integers(4, 30))
def test_difference_survives_the_cut(before: str, after: str, most: int) -> None:
    one, other = cut_around_change(before, after, max_chars=most)

    assert (one != other) == (before != after)
    assert max(len(one), len(other)) <= max(most + 2, 0) or (one, other) == (before, after)


def test_added_block_has_no_old_text() -> None:
    block = BlockDiff(
        status=BlockStatus.ADDED,
        kind=BlockKind.TEXT,
        runs=(WordRun(RunKind.NEW, "words"),),
        was_at=None,
        is_at=3,
    )

    assert (block.old_text, block.new_text) == ("", "words")
