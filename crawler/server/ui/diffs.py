"""Differences as a page shows them: one text with what went and came marked, or the two versions side by side."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from crawler.app.changes import BlockChange, diff_words, shorten_runs
from crawler.app.pages import PageDiff, RunKind, WordRun
from crawler.format.values import sanitize_text

CONTEXT_CHARS = 120  # characters on each side of a change in a list
MAX_RUN_CHARS = 600  # characters of a run that went or came, there
EVENT_BLOCK_CHARS = 499  # an event keeps 500 characters of a block, without a blank at their end
TAGS = {RunKind.OLD: "del", RunKind.NEW: "ins"}


def marked(runs: Sequence[WordRun], *, without: str = "") -> Markup:
    """Runs of words with those that went and came marked. without: one side, `old` or `new`, which is left out."""
    return Markup("").join(_mark_run(run) for run in runs if run.kind.value != without)


def _mark_run(run: WordRun) -> Markup:
    if run.kind is RunKind.KEPT:
        return Markup("{}").format(sanitize_text(run.text))
    tag = Markup(TAGS[run.kind])  # noqa: S704  one of two words of ours
    return Markup("<{0}>{1}</{0}>").format(tag, sanitize_text(run.text))


def short_runs(edit: BlockChange) -> tuple[WordRun, ...]:
    """A changed block as a list shows it: without the words that are far from any change."""
    was, now = edit.before or "", edit.after or ""
    runs = list(diff_words(was, now, kind=edit.part))
    if min(len(was), len(now)) >= EVENT_BLOCK_CHARS:  # both end where they were cut, and not at one place
        while len(runs) > 2 and runs[-1].kind is not RunKind.KEPT:
            runs.pop()
    return shorten_runs(runs, context_chars=CONTEXT_CHARS, max_chars=MAX_RUN_CHARS)


def noise_in(diff: PageDiff) -> int:
    """How many blocks differ and are no news."""
    return sum(not block.is_news for block in diff.changed_blocks)


def statuses(diff: PageDiff) -> Iterator[str]:
    """How many blocks of each status there are, in words; the same ones aside."""
    for status, count in sorted(diff.counts.items()):
        if status.value != "unchanged" and count:
            yield f"{count} {status.value}"
