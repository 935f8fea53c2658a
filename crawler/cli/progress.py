"""Progress bars on stderr. They are disabled outside a terminal."""

from uuid import UUID

from rich import progress

from crawler.app.crawl import Change, CrawlStats, Lease
from crawler.cli.output import get_stderr


class ProgressBar(progress.Progress):
    """A progress bar, shown inside its `with` block."""

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
            console=get_stderr(),
            transient=True,
            disable=not get_stderr().is_terminal,
        )
        self.task = self.add_task(title, total=total, found="")


class CrawlProgress(ProgressBar):
    """The progress of a crawl, counted in visits.

    pending: the pages that are due at the start; pages found during the crawl are added.  max_pages: the limit.
    """

    def __init__(self, *, pending: int, max_pages: int | None) -> None:
        super().__init__(title="crawling")
        self._pending, self._max_pages = pending, max_pages
        self._counts: dict[UUID, CrawlStats] = {}

    def record_batch(self, lease: Lease, stats: CrawlStats) -> None:
        """Show that a batch was recorded. stats: the totals of this lease so far."""
        self._counts[lease.token] = stats
        counts = self._counts.values()
        visits, new_pages = sum(each.visits for each in counts), sum(each.new_pages for each in counts)
        changed, failed = sum(each.changes[Change.CHANGED] for each in counts), sum(each.failed for each in counts)
        expected = max(self._pending + new_pages, visits)
        seconds = self.tasks[self.task].elapsed
        pace = f", {visits / seconds:.1f} a second" if seconds and seconds >= 1 else ""
        self.update(
            self.task,
            description=lease.domain.authority,
            completed=visits,
            total=expected if self._max_pages is None else min(expected, self._max_pages),
            found=f"{changed} changed, {failed} failed{pace}",
        )


class ExportProgress(ProgressBar):
    """The progress of an export, counted in pages."""

    def __init__(self) -> None:
        super().__init__(title="pages")

    def __call__(self, pages: int) -> None:
        """Show the number of pages written so far."""
        self.update(self.task, completed=pages)
