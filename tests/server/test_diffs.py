"""Lists mark the words that differ, and a truncated block is not shown as a difference."""

from crawler.core.change.word_diff import diff_texts
from crawler.core.page.block import BlockKind
from crawler.server.ui.diffs import count_ignored, count_statuses, marked, short_runs
from crawler.store.report import BlockChange

LONG = " ".join(f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz" * 4)


def text_edit(was: str | None, now: str | None) -> BlockChange:
    return BlockChange(part=BlockKind.TEXT, before=was, after=now)


def test_deleted_and_inserted_words_are_marked_and_escaped() -> None:
    runs = short_runs(text_edit("Cut in <b>July</b>", "Cut in <b>August</b>"))
    assert marked(runs) == "Cut in &lt;b&gt;<del>July</del><ins>August</ins>&lt;/b&gt;"
    assert (marked(runs, without="new"), marked(runs, without="old")) == (
        "Cut in &lt;b&gt;<del>July</del>&lt;/b&gt;",
        "Cut in &lt;b&gt;<ins>August</ins>&lt;/b&gt;",
    )


def test_added_or_removed_block_is_marked_as_a_whole() -> None:
    assert marked(short_runs(text_edit(None, "new"))) == "<ins>new</ins>"
    assert marked(short_runs(text_edit("old", None))) == "<del>old</del>"


def test_truncated_end_is_not_a_difference() -> None:
    was, now = f"Nine. {LONG}"[:500], f"Fifteen. {LONG}"[:500]
    shown = marked(short_runs(text_edit(was, now)))
    assert shown.startswith("<del>Nine</del><ins>Fifteen</ins>")
    assert shown.count("<del>") == shown.count("<ins>") == 1


def test_differences_are_counted_by_status() -> None:
    diff = diff_texts("one\ntwo\nthree", "one\ntwo and a half\nfour")
    assert sorted(count_statuses(diff))
    assert count_ignored(diff) == 0
