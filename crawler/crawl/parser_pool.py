"""Reading bodies: here while there are few, in other processes when there are many.

Reading is most of a crawl's work, and a page can be made to break a parser: in a process of its own it costs that page.
"""

import asyncio
import contextlib
import logging
import os
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from crawler.core.http import Fetched, Url
from crawler.core.page import WHOLE, BlockList, Parsed, View, block_list, kind_of, parse
from crawler.core.page_rules import PageRules
from crawler.crawl.parser_process import LENGTH, pack

T = TypeVar("T")

log = logging.getLogger("recrawl.readers")

FEW = 64  # bodies that are read in this process before others are started, which takes half a second
LONGEST = timedelta(seconds=10)  # for one body; ordinary ones take a millisecond
LARGE_BYTES = 256 << 10  # such a body takes long enough to hold up all other requests if it is read here
PIPE_BYTES = 4 << 20
PARSER = ("-P", str(Path(__file__).with_name("parser_process.py")))  # to be run by this very Python


def spare_cores() -> int:
    """How many processes can read beside the one that crawls."""
    return max((os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count() or 1) - 1, 1)


class ParserPool:
    """A few processes that read bodies; a context manager.

    processes: how many; 0 reads everything in this process.  few: bodies read here before they are started.
    A PDF is never read here: what reads it is native code, and strangers wrote it. Nor is what a user's regular
    expression or XPath is applied to, which may take for ever.
    """

    def __init__(self, processes: int, *, few: int = FEW) -> None:
        self._processes = processes
        self._few = few
        self._idle: asyncio.LifoQueue[Process | None] = asyncio.LifoQueue()
        self._all: set[Process] = set()
        self._starting: asyncio.Task[None] | None = None
        self._replacing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in (*self._replacing, *([self._starting] if self._starting else [])):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for process in list(self._all):
            await self._end(process)

    @property
    def pids(self) -> frozenset[int]:
        """The processes that are ready."""
        return frozenset(process.pid for process in self._all)

    async def parse(self, answer: Fetched, url: Url, *, outlined: bool = True, view: View = WHOLE) -> Parsed | None:
        """The parsed body; None if it cannot be read in bounded time, or breaks its reader.

        outlined: with its blocks.  view: which of them.
        """
        call = partial(
            parse,
            answer.body,
            url=url,
            content_type=answer.content_type,
            robots_tag=answer.robots_tag,
            refresh=answer.refresh,
            outlined=outlined,
            view=view,
        )
        return await self._made(call, answer, is_wild=outlined and view.is_wild)

    async def blocks(self, answer: Fetched, url: Url, *, view: View = WHOLE) -> BlockList | None:
        """The blocks of a body alone, in half the time: enough for comparing it with another body."""
        call = partial(block_list, answer.body, url=url, content_type=answer.content_type, view=view)
        return await self._made(call, answer, is_wild=view.is_wild)

    async def _made(self, call: partial[T], answer: Fetched, *, is_wild: bool) -> T | None:
        """The result of a call that reads this answer's body, made here or in a process."""
        is_wild = is_wild or kind_of(answer.body, answer.content_type) == "pdf"
        if not await self._are_there(is_wild=is_wild, large=len(answer.body) > LARGE_BYTES):
            return call()
        process = await self._idle.get()
        if process is None:  # none could be started
            self._idle.put_nowait(None)
            return None if is_wild else call()
        try:
            async with asyncio.timeout(LONGEST.total_seconds()):
                given: T = await _ask(process, pack(call))
        except (TimeoutError, EOFError, OSError, asyncio.IncompleteReadError) as error:
            log.warning("reader.lost", extra={"url": call.keywords["url"], "error": repr(error)})
            self._replace(process)
            return None
        except asyncio.CancelledError:
            self._replace(process)  # it is in the middle of an answer that nobody waits for any more
            raise
        self._idle.put_nowait(process)
        return given

    async def _are_there(self, *, is_wild: bool, large: bool) -> bool:
        """Whether a process will read; they are started after a few bodies, or for one that cannot be read here."""
        if self._processes == 0 and not is_wild:
            return False
        has_to_wait = is_wild or large
        if self._starting is None:
            self._few -= 1
            if self._few >= 0 and not has_to_wait:
                return False
            self._starting = asyncio.create_task(self._start_all(), name="start-readers")
        return has_to_wait or bool(self._all)

    def _replace(self, process: Process) -> None:
        """End a process and start another, which need not go to whoever had the first."""
        self._all.discard(process)
        replacing = asyncio.create_task(self._end_and_start(process), name="replace-reader")
        self._replacing.add(replacing)
        replacing.add_done_callback(self._replacing.discard)

    async def _end_and_start(self, process: Process) -> None:
        await self._end(process)
        await self._start()

    async def _start_all(self) -> None:
        for _ in range(max(self._processes, 1)):
            await self._start()

    async def _start(self) -> None:
        try:
            process = await self._open()
        except OSError as error:
            log.warning("reader.not_started", extra={"error": repr(error)})
            self._idle.put_nowait(None)
            return
        self._all.add(process)
        self._idle.put_nowait(process)

    async def _open(self) -> Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *PARSER,
            stdin=PIPE,
            stdout=PIPE,
            limit=PIPE_BYTES,
            start_new_session=True,  # Ctrl-C is for the crawl, which still wants to record what it has
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},  # this very package, installed or not
        )

    async def _end(self, process: Process) -> None:
        self._all.discard(process)
        with contextlib.suppress(ProcessLookupError):
            process.kill()  # it has nothing to lose
        await process.wait()


class DomainParser:
    """A ParserPool that applies the rules of one domain's user."""

    def __init__(self, readers: ParserPool, rules: PageRules) -> None:
        self._pool, self._rules = readers, rules

    async def parse(self, answer: Fetched, url: Url, *, outlined: bool = True) -> Parsed | None:
        """The parsed body under the domain's rules; see ParserPool.parse."""
        return await self._pool.parse(answer, url, outlined=outlined, view=self.view(url))

    async def blocks(self, answer: Fetched, url: Url) -> BlockList | None:
        """Blocks of the body under the domain's rules."""
        return await self._pool.blocks(answer, url, view=self.view(url))

    async def whole_blocks(self, answer: Fetched, url: Url) -> BlockList | None:
        """Blocks of the whole body, rules not applied."""
        return await self._pool.blocks(answer, url)

    async def apart(self, answer: Fetched, url: Url) -> dict[str, BlockList]:
        """Blocks that each rule would leave if it were the only one, by the place that it names."""
        found = {}
        for rule, view in self.view(url).apart().items():
            found[rule] = await self._pool.blocks(answer, url, view=view) or ()
        return found

    def view(self, url: Url) -> View:
        return self._rules.view(url)


async def _ask(process: Process, request: bytes) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(request)
    await process.stdin.drain()
    (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
    return pickle.loads(await process.stdout.readexactly(length))  # noqa: S301  from our own process
