"""What a run is called, and how it ends before its time.

Told to end, it does so in good order: what is in flight is recorded, and its domains are given back. What its user can
mend, it says in one line.
"""

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from prefect import State
from prefect.client.orchestration import get_client
from prefect.exceptions import Abort, TerminationSignal
from prefect.runtime import flow_run
from prefect.states import Failed

from crawler.errors import CrawlerError

Params = ParamSpec("Params")
Result = TypeVar("Result")


@contextmanager
def stop_on_sigterm() -> Iterator[asyncio.Event]:
    """An event that a SIGTERM sets, which is how Prefect and the system end a run.

    Prefect's own handler raises an exception wherever the program happens to be. In one of ten cancellations that is
    inside a callback of asyncio, which swallows it: the run goes on, and is killed half a minute later.
    """
    stop = asyncio.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # signals go to the main thread, so nobody can tell this one
        return
    loop = asyncio.get_running_loop()
    prefect_handler = signal.getsignal(signal.SIGTERM)
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    try:
        yield stop
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, prefect_handler)


async def end_early() -> None:
    """Leave the run's last state to whoever told it to end: the worker that cancels it, else Prefect's crash handling.

    Always raises.
    """
    async with get_client() as client:
        run = await client.read_flow_run(flow_run.id)
    if run.state is not None and run.state.is_cancelling():
        raise Abort("cancelled")  # says nothing to the server; the worker calls the run cancelled when this has ended
    raise TerminationSignal(signal.SIGTERM)


def report_errors(work: Callable[Params, Awaitable[Result]]) -> Callable[Params, Awaitable[Result | State[Any]]]:
    """A run that fails by what its user gave, or by a database that is away, says so in a line, and shows no code."""

    @wraps(work)
    async def wrapper(*args: Params.args, **kwargs: Params.kwargs) -> Result | State[Any]:
        try:
            return await work(*args, **kwargs)
        except CrawlerError as error:
            return Failed(message=str(error))

    return wrapper


def build_run_name(work: str, *, without: str = "") -> Callable[[], str]:
    """Return what names the runs of a flow by their domain. without: the name of one that is given none."""

    def format_name() -> str:
        domain = flow_run.parameters.get("domain")
        return f"{work} {domain}" if domain else without or work

    return format_name
