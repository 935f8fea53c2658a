"""Bars on stderr while the laboratory works."""

from crawler.cli.progress import ProgressBar


class Days(ProgressBar):
    """Days that pass in the demo."""

    def __init__(self, days: int) -> None:
        super().__init__(title="days", total=days)

    def count(self, day: int, days: int) -> None:
        self.update(self.task, completed=day, total=days)


class Visits(ProgressBar):
    """Visits of the lab."""

    def __init__(self, visits: int) -> None:
        super().__init__(title="visits", total=visits)

    def count(self, visits: int) -> None:
        """So many more are made."""
        self.update(self.task, advance=visits)


class Runs(ProgressBar):
    """Runs of the laboratory."""

    def __init__(self, runs: int) -> None:
        super().__init__(title="runs", total=runs)

    def count(self, done: int, runs: int, last: str) -> None:
        """So many of all runs are done; `last` was the latest."""
        self.update(self.task, completed=done, total=runs, found=last)
