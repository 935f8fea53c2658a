"""One command's time with the database: found or started, of the right schema, left as it was; and its exit code."""

import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from crawler.cli.output import remark

if TYPE_CHECKING:  # --help needs none of them
    import asyncio

    from crawler.app.database import AppDatabase
    from crawler.settings import Settings

T = TypeVar("T")
# What the exit code of a command means. A command that returns nothing is done.
DONE = 0
PROBLEM = 1  # a problem was found, or something that the user can mend failed
USAGE = 2  # it cannot be asked for like this
INTERRUPTED = 130  # as shells have it: 128 + SIGINT
TOO_OLD = 3  # a cursor of the change feed is older than what is kept

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """The first Ctrl-C (or SIGTERM) asks the work to finish, the second ends it.

    Work that cannot finish early is ended by the first.
    """

    def __init__(self, *, patient: bool) -> None:
        import asyncio

        self.stop = asyncio.Event()
        self.signal_number: int | None = None
        self._patient = patient
        self._work: asyncio.Task[object] | None = None

    @property
    def exit_code(self) -> int:
        """Return 128 + the signal that asked to stop, as shells have it; 0 where nobody did."""
        return 0 if self.signal_number is None else 128 + self.signal_number

    def watch_task(self, task: "asyncio.Task[object] | None") -> None:
        import asyncio

        self._work = task
        for number in SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._interrupt, number)

    async def run_until_stop(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What some work gives; None where the user asked to stop before it ended: then it is cancelled."""
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
            remark("Stopping: what is under way is still recorded (once more to stop at once)")
        elif self._work is not None:
            self._work.cancel()


def settings() -> "Settings":
    """Return the settings of this process."""
    from crawler.settings import get_settings

    return get_settings()


def run_on_database(
    work: "Callable[[AppDatabase, Interrupts], Awaitable[T]]", *, connections: int = 2, patient: bool = False
) -> T:
    """Run asynchronous work on the crawl's database, and leave everything running that ran before, nothing else.

    patient: the work looks at `Interrupts.stop` and ends early by itself.
    Raises SystemExit, 128 + the signal, where it was ended by one.
    """
    import asyncio

    from crawler.app.database import run_with_database

    terminate = signal.getsignal(signal.SIGTERM)
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
            signal.signal(signal.SIGTERM, terminate)  # the event loop has put the system's default in its place

    return run_with_database(
        lambda db: work(db, interrupts), settings(), connections=connections, run=run_until_interrupt
    )
