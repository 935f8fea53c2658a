"""Progress bars on stderr for labs."""

from crawler.cli.progress import ProgressBar


class Days(ProgressBar):
    """The virtual days of the demo."""

    def __init__(self, days: int) -> None:
        super().__init__(title="days", total=days)

    def count(self, day: int, days: int) -> None:
        self.update(self.task, completed=day, total=days)


class Visits(ProgressBar):
    """The visits of an experiment."""

    def __init__(self, visits: int) -> None:
        super().__init__(title="visits", total=visits)

    def count(self, visits: int) -> None:
        """Add finished visits."""
        self.update(self.task, advance=visits)


class Runs(ProgressBar):
    """The runs of an experiment."""

    def __init__(self, runs: int) -> None:
        super().__init__(title="runs", total=runs)

    def count(self, done: int, runs: int, last: str) -> None:
        """Set the number of finished runs. last: the run that finished last."""
        self.update(self.task, completed=done, total=runs, found=last)
