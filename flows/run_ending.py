"""Names of runs, their cancellation, and their error messages.

A canceled run finishes and records its requests in progress, and releases its domains. Errors that the user can fix are
reported in one line.
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
    """Yield an event that is set by SIGTERM, the signal with which Prefect and the system end a run.

    Prefect's own handler raises an exception at whatever point the program is. In one of ten cancellations, that point
    is inside a callback of asyncio, which ignores the exception: the run then continues until it is killed half a
    minute later.
    """
    stop = asyncio.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread can handle signals
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
    """End a run after a SIGTERM: as canceled if Prefect is canceling it, else as crashed. Always raises."""
    async with get_client() as client:
        run = await client.read_flow_run(flow_run.id)
    if run.state is not None and run.state.is_cancelling():
        raise Abort("cancelled")  # the worker sets the final state when this process has ended
    raise TerminationSignal(signal.SIGTERM)


def report_errors(work: Callable[Params, Awaitable[Result]]) -> Callable[Params, Awaitable[Result | State[Any]]]:
    """Return a failed state with a one-line message for a CrawlerError, such as bad input, instead of a traceback."""

    @wraps(work)
    async def wrapper(*args: Params.args, **kwargs: Params.kwargs) -> Result | State[Any]:
        try:
            return await work(*args, **kwargs)
        except CrawlerError as error:
            return Failed(message=str(error))

    return wrapper


def build_run_name(work: str, *, without: str = "") -> Callable[[], str]:
    """Return a function that names runs by their domain. without: the name of runs without a domain."""

    def format_name() -> str:
        domain = flow_run.parameters.get("domain")
        return f"{work} {domain}" if domain else without or work

    return format_name
