"""Running a command's work on the database, interrupts, and exit codes."""

import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from crawler.cli.output import remark

if TYPE_CHECKING:  # keep --help fast
    import asyncio

    from crawler.app.database import AppDatabase
    from crawler.settings import Settings

T = TypeVar("T")
# Exit codes. A command that returns None was successful.
DONE = 0
PROBLEM = 1  # a problem was found, or something failed that the user can fix
USAGE = 2  # invalid usage
INTERRUPTED = 130  # 128 + SIGINT, as in shells
TOO_OLD = 3  # a cursor of the change feed is older than the changes that are kept


class Interrupts:
    """A handler of Ctrl-C and SIGTERM.

    patient: the first signal sets `stop`, so that the work can finish, and the second cancels it. Otherwise, the first
    signal cancels the work.
    """

    def __init__(self, *, patient: bool) -> None:
        import asyncio

        self.stop = asyncio.Event()
        self.signal_number: int | None = None
        self._patient = patient
        self._work: asyncio.Task[object] | None = None

    @property
    def exit_code(self) -> int:
        """Return 128 + the signal number, as in shells; 0 if there was no signal."""
        return 0 if self.signal_number is None else 128 + self.signal_number

    def watch_task(self, task: "asyncio.Task[object] | None") -> None:
        import asyncio

        self._work = task
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._interrupt, number)

    async def run_until_stop(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Return the result of the work, or cancel it and return None if a signal arrives first."""
        import asyncio

        task, stop = asyncio.create_task(work), asyncio.create_task(self.stop.wait())
        try:
            await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            for each in (task, stop):
                each.cancel()
            await asyncio.gather(task, stop, return_exceptions=True)

    def _interrupt(self, signal_number: int) -> None:
        first, self.signal_number = self.signal_number is None, signal_number
        if first and self._patient:
            self.stop.set()
            remark("Stopping: requests in progress are finished and recorded. Press Ctrl-C again to stop immediately")
        elif self._work is not None:
            self._work.cancel()


def settings() -> "Settings":
    """Return the settings of this process."""
    from crawler.settings import get_settings

    return get_settings()


def run_on_database(
    work: "Callable[[AppDatabase, Interrupts], Awaitable[T]]", *, connections: int = 2, patient: bool = False
) -> T:
    """Run asynchronous work on the database. An embedded Postgres is started if needed.

    connections: the maximum number of database connections.  patient: the work checks `Interrupts.stop` and ends early
    when it is set.
    Raises SystemExit with 128 + the signal number if a signal cancels the work.
    """
    import asyncio

    from crawler.app.database import run_with_database

    sigterm_handler = signal.getsignal(signal.SIGTERM)
    interrupts = Interrupts(patient=patient)

    def run_until_interrupt(opened: Coroutine[Any, Any, T]) -> T:
        async def run_watched() -> T:
            interrupts.watch_task(asyncio.current_task())
            return await opened

        try:
            return asyncio.run(run_watched())
        except asyncio.CancelledError as error:
            raise SystemExit(128 + (interrupts.signal_number or signal.SIGINT)) from error
        finally:
            signal.signal(signal.SIGTERM, sigterm_handler)  # the event loop leaves the default handler

    chosen = settings()
    return run_with_database(lambda db: work(db, interrupts), chosen, connections=connections, run=run_until_interrupt)
