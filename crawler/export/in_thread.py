"""An index in a thread of its own: it blocks while it reads and writes, and the event loop goes on meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

Opened = TypeVar("Opened", bound=AbstractContextManager[Any])
T = TypeVar("T")


@asynccontextmanager
async def in_thread(index: Opened) -> AsyncIterator[tuple[Opened, Executor]]:
    """An index, open until the block ends, and the thread in which alone it is to be called (`called`).

    The thread does one thing after the other: what a cancelled caller has begun is done before the index is closed.
    """
    thread = ThreadPoolExecutor(1, thread_name_prefix="index")
    try:
        await called(thread, index.__enter__)
        try:
            yield index, thread
        finally:
            await called(thread, index.__exit__, None, None, None)
    finally:
        thread.shutdown(wait=False)


async def called(thread: Executor | None, function: Callable[..., T], *given: Any, **named: Any) -> T:
    """What a function gives that is called in a thread; None for the caller's own."""
    if thread is None:
        return function(*given, **named)
    return await asyncio.get_running_loop().run_in_executor(thread, partial(function, *given, **named))
