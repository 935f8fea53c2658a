"""Differences in a list: the words that differ are marked, and where an event's text was cut nothing is made up."""

from crawler.core.change.word_diff import diff_texts
from crawler.core.page.outline import BlockKind
from crawler.server.ui.diffs import marked, noise_in, short_runs, statuses
from crawler.store.report import BlockChange

LONG = " ".join(f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz" * 4)


def text_edit(was: str | None, now: str | None) -> BlockChange:
    return BlockChange(part=BlockKind.TEXT, before=was, after=now)


def test_words_that_went_and_came_are_marked_and_escaped() -> None:
    runs = short_runs(text_edit("Cut in <b>July</b>", "Cut in <b>August</b>"))
    assert marked(runs) == "Cut in &lt;b&gt;<del>July</del><ins>August</ins>&lt;/b&gt;"
    assert (marked(runs, without="new"), marked(runs, without="old")) == (
        "Cut in &lt;b&gt;<del>July</del>&lt;/b&gt;",
        "Cut in &lt;b&gt;<ins>August</ins>&lt;/b&gt;",
    )


def test_a_block_that_came_or_went_is_marked_as_a_whole() -> None:
    assert marked(short_runs(text_edit(None, "new"))) == "<ins>new</ins>"
    assert marked(short_runs(text_edit("old", None))) == "<del>old</del>"


def test_an_end_that_was_cut_is_no_difference() -> None:
    was, now = f"Nine. {LONG}"[:500], f"Fifteen. {LONG}"[:500]
    shown = marked(short_runs(text_edit(was, now)))
    assert shown.startswith("<del>Nine</del><ins>Fifteen</ins>")
    assert shown.count("<del>") == shown.count("<ins>") == 1


def test_a_difference_is_counted_in_words() -> None:
    diff = diff_texts("one\ntwo\nthree", "one\ntwo and a half\nfour")
    assert sorted(statuses(diff))
    assert noise_in(diff) == 0
