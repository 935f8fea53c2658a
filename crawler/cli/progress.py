"""Bars on stderr while something goes on; nothing where that is no terminal."""

from types import TracebackType
from typing import Self
from uuid import UUID

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from crawler.app.crawl import Change, CrawlStats, Lease
from crawler.cli.output import err


class ProgressBar:
    """A bar that is there while the block runs."""

    def __init__(self, *, title: str, total: int | None) -> None:
        self.bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[found]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=err(),
            transient=True,
            disable=not err().is_terminal,
        )
        self.task = self.bar.add_task(title, total=total, found="")

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()


class CrawlProgress(ProgressBar):
    """Looks of a crawl.

    pending: looks that were due at the start; those at pages found on the way come on top.  most: looks, or None.
    """

    def __init__(self, *, pending: int, most: int | None) -> None:
        super().__init__(title="asking", total=None)
        self._pending, self._most = pending, most
        self._tallies: dict[UUID, CrawlStats] = {}

    def advance(self, lease: Lease, stats: CrawlStats) -> None:
        """A batch of the lease is recorded; the tally is the lease's so far."""
        self._tallies[lease.token] = stats
        looks = sum(each.looks for each in self._tallies.values())
        found = sum(each.new for each in self._tallies.values())
        expected = max(self._pending + found, looks)
        changed = sum(each.changes[Change.CHANGED] for each in self._tallies.values())
        failed = sum(each.failed for each in self._tallies.values())
        self.bar.update(
            self.task,
            description=lease.domain.authority,
            completed=looks,
            total=expected if self._most is None else min(expected, self._most),
            found=f"{changed} changed, {failed} failed{self._pace(looks)}",
        )

    def _pace(self, looks: int) -> str:
        seconds = self.bar.tasks[self.task].elapsed
        return f", {looks / seconds:.1f} a second" if seconds and seconds >= 1 else ""


class PagesWritten(ProgressBar):
    """Pages that are exported."""

    def __init__(self) -> None:
        super().__init__(title="pages", total=None)

    def __call__(self, pages: int) -> None:
        """Show that so many are written."""
        self.bar.update(self.task, completed=pages)
