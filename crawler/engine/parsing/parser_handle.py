"""The parent's handle of one parser process: start it when needed, and kill it when a limit is exceeded.

Messages go through a socket. With asyncio's pipes, a killed process would not be reaped while a pipe has unread data.
"""

import asyncio
import contextlib
import pickle
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from msgspec import Struct

from crawler.engine.machine_load import PARSER_ENVIRONMENT, start_child
from crawler.engine.parsing.parser_process import LENGTH, MAX_REPLY_BYTES, Reply

PARSER_SCRIPT = str(Path(__file__).with_name("parser_process.py"))
START_TIMEOUT = timedelta(minutes=1)  # a start takes half a second on an idle machine
END_TIMEOUT = timedelta(seconds=5)  # after SIGKILL
CHUNK_BYTES = 1 << 18


class ParserLost(Exception):
    """A parser process gave no result. is_out_of_memory: whether it might give one with more memory."""

    def __init__(self, problem: str, *, is_out_of_memory: bool = False) -> None:
        super().__init__(problem)
        self.is_out_of_memory = is_out_of_memory


class _RunningProcess(Struct, frozen=True):
    process: Process
    replies: asyncio.StreamReader
    requests: asyncio.StreamWriter


class ParserHandle:
    """The handle of a parser process that runs one call at a time. A call starts the process if it is not running.

    plugins: names of the reader plugins to load.
    """

    def __init__(self, *, plugins: Sequence[str] = ()) -> None:
        self._plugins = plugins
        self._running: _RunningProcess | None = None
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int | None:
        """Return the id of the process; None if it is not ready."""
        return None if self._running is None else self._running.process.pid

    async def start(self) -> None:
        """Start the process unless it runs. Raise OSError if it does not start."""
        if self._running is not None and self._running.process.returncode is None:
            return
        await self.end()
        # Warnings that libraries print about malformed files are discarded; problems are in the reply.
        streams = await start_child(PARSER_SCRIPT, *self._plugins, extra=PARSER_ENVIRONMENT, stderr=DEVNULL)
        running = _RunningProcess(*streams)
        try:
            async with asyncio.timeout(START_TIMEOUT.total_seconds()):
                await self._read_reply(running)
        except BaseException as error:
            self._kill(running)
            if isinstance(error, TimeoutError | EOFError | ParserLost):
                raise OSError(f"a parser process does not start: {error!r}") from error
            raise
        self._running = running

    async def call(self, request: bytes, *, max_duration: timedelta) -> Reply:
        """Run a request and return the reply.

        Raise ParserLost if the process ends, takes longer or returns too much, and OSError if it does not start.
        """
        await self.start()
        running = self._running
        assert running is not None
        try:
            async with asyncio.timeout(max_duration.total_seconds()):
                # Length and request together, since each write wakes the process.
                request = LENGTH.pack(len(request)) + request
                for start in range(0, len(request), CHUNK_BYTES):  # in chunks: asyncio copies what it cannot send yet
                    running.requests.write(request[start : start + CHUNK_BYTES])
                    await running.requests.drain()
                return await self._read_reply(running)
        except (EOFError, ConnectionError) as error:
            self._running = None
            loss = await _explain_loss(running.process)  # before the kill, which would hide the exit code
            self._kill(running)
            raise loss from error
        except BaseException as error:
            self._running = None
            self._kill(running)  # its reply is no longer awaited
            if isinstance(error, TimeoutError):
                raise ParserLost(f"parsing takes longer than {max_duration.total_seconds():g} s") from error
            raise

    async def end(self) -> None:
        """End the process and wait for its end."""
        running, self._running = self._running, None
        if running is not None:
            self._kill(running)
        await asyncio.gather(*self._ending)

    def _kill(self, running: _RunningProcess) -> None:
        """Kill the process, without waiting for its end."""
        with contextlib.suppress(ProcessLookupError):
            running.process.kill()
        running.requests.transport.abort()
        ending = asyncio.create_task(_wait_for_end(running.process), name="end-reader")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _read_reply(self, running: _RunningProcess) -> Reply:
        (length,) = LENGTH.unpack(await running.replies.readexactly(LENGTH.size))
        if length > MAX_REPLY_BYTES:
            raise ParserLost(f"its result is too large ({length:,} bytes)")
        reply: Reply = pickle.loads(await running.replies.readexactly(length))  # noqa: S301  from our own process
        return reply


async def _wait_for_end(process: Process) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_TIMEOUT.total_seconds()):
            await process.wait()


async def _explain_loss(process: Process) -> ParserLost:
    """Explain why a process ended. Memory may be the cause of any end but SIGPROF: C libraries use various codes."""
    await _wait_for_end(process)
    if process.returncode == -signal.SIGPROF:
        return ParserLost("parsing takes too much CPU time")
    return ParserLost(f"the parser process ended with exit code {process.returncode}", is_out_of_memory=True)
