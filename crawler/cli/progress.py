"""Bars on stderr while something goes on; nothing where that is no terminal."""

from uuid import UUID

from rich import progress

from crawler.app.crawl import Change, CrawlStats, Lease
from crawler.cli.output import err


class ProgressBar(progress.Progress):
    """A bar that is there while the block runs."""

    def __init__(self, *, title: str, total: int | None = None) -> None:
        super().__init__(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}"),
            progress.BarColumn(bar_width=None),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[found]}"),
            progress.TimeElapsedColumn(),
            progress.TextColumn("left"),
            progress.TimeRemainingColumn(),
            console=err(),
            transient=True,
            disable=not err().is_terminal,
        )
        self.task = self.add_task(title, total=total, found="")


class CrawlProgress(ProgressBar):
    """Looks of a crawl.

    pending: looks that were due at the start; those at pages found on the way come on top.  most: looks, or None.
    """

    def __init__(self, *, pending: int, most: int | None) -> None:
        super().__init__(title="asking")
        self._pending, self._most = pending, most
        self._tallies: dict[UUID, CrawlStats] = {}

    def count(self, lease: Lease, stats: CrawlStats) -> None:
        """A batch of the lease is recorded; the tally is the lease's so far."""
        self._tallies[lease.token] = stats
        tallies = self._tallies.values()
        looks, found = sum(each.looks for each in tallies), sum(each.new for each in tallies)
        changed, failed = sum(each.changes[Change.CHANGED] for each in tallies), sum(each.failed for each in tallies)
        expected = max(self._pending + found, looks)
        seconds = self.tasks[self.task].elapsed
        pace = f", {looks / seconds:.1f} a second" if seconds and seconds >= 1 else ""
        self.update(
            self.task,
            description=lease.domain.authority,
            completed=looks,
            total=expected if self._most is None else min(expected, self._most),
            found=f"{changed} changed, {failed} failed{pace}",
        )


class PagesWritten(ProgressBar):
    """Pages that are exported."""

    def __init__(self) -> None:
        super().__init__(title="pages")

    def __call__(self, pages: int) -> None:
        """Show that so many are written."""
        self.update(self.task, completed=pages)
