"""Differences between versions as HTML: inline with deletions and insertions marked, or side by side."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from crawler.app.changes import BlockChange, diff_words, shorten_runs
from crawler.app.pages import PageDiff, RunKind, WordRun
from crawler.format.values import sanitize_text

# The minimum length of a truncated block: an event stores its first 500 characters, without a trailing space.
EVENT_BLOCK_CHARS = 499
HTML = {RunKind.KEPT: Markup("{}"), RunKind.OLD: Markup("<del>{}</del>"), RunKind.NEW: Markup("<ins>{}</ins>")}


def marked(runs: Sequence[WordRun], *, without: str = "") -> Markup:
    """Return runs of words as HTML with deletions and insertions marked. without: the side to omit, `old` or `new`."""
    shown = [run for run in runs if run.kind.value != without]
    return Markup("").join(HTML[run.kind].format(sanitize_text(run.text)) for run in shown)


def short_runs(edit: BlockChange, *, context_chars: int = 120, max_chars: int = 600) -> tuple[WordRun, ...]:
    """Return a changed block for a list, without the words that are far from any change."""
    was, now = edit.before or "", edit.after or ""
    runs = list(diff_words(was, now, kind=edit.part))
    if min(len(was), len(now)) >= EVENT_BLOCK_CHARS:  # both were truncated, and not at the same word
        while len(runs) > 2 and runs[-1].kind is not RunKind.KEPT:
            runs.pop()
    return shorten_runs(runs, context_chars=context_chars, max_chars=max_chars)


def count_ignored(diff: PageDiff) -> int:
    """Return the number of blocks whose differences do not count as a change."""
    return sum(not block.is_news for block in diff.changed_blocks)


def count_statuses(diff: PageDiff) -> Iterator[str]:
    """Yield the number of blocks of each status, such as "2 changed", without unchanged blocks."""
    for status, count in sorted(diff.counts.items()):
        if status.value != "unchanged" and count:
            yield f"{count} {status.value}"
