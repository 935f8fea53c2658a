"""One process that reads bodies, from the outside: started when needed, given up at a bound, and never waited for.

Its socket is ours: asyncio's own pipes keep a process that was killed from being reaped for as long as there is
anything in them that nobody reads.
"""

import asyncio
import contextlib
import pickle
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from crawler.engine.machine import READER_ENVIRONMENT, start_child
from crawler.engine.parsing.parser_process import LENGTH, MAX_REPLY_BYTES, Reply

PARSER_SCRIPT = str(Path(__file__).with_name("parser_process.py"))
START_TIMEOUT = timedelta(minutes=1)  # half a second on a machine that has nothing else to do
END_TIMEOUT = timedelta(seconds=5)  # after SIGKILL
CHUNK_BYTES = 1 << 18


class ReaderLost(Exception):
    """A reader gave no answer. is_out_of_memory: with more memory it might."""

    def __init__(self, problem: str, *, is_out_of_memory: bool = False) -> None:
        super().__init__(problem)
        self.is_out_of_memory = is_out_of_memory


@dataclass(frozen=True, slots=True)
class _RunningProcess:
    process: Process
    replies: asyncio.StreamReader
    requests: asyncio.StreamWriter


class Reader:
    """A process that makes one call at a time. It is started by whoever asks it first, and again after it was lost.

    plugins: names of those that read bodies there.
    """

    def __init__(self, *, plugins: Sequence[str] = ()) -> None:
        self._plugins = plugins
        self._running: _RunningProcess | None = None
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int | None:
        """The process, if it is ready."""
        return None if self._running is None else self._running.process.pid

    async def start(self) -> None:
        """See to it that the process runs. OSError if it cannot."""
        if self._running is not None and self._running.process.returncode is None:
            return
        await self.end()
        # What libraries say of strangers' files goes nowhere; what matters is in the answer.
        running = _RunningProcess(
            *await start_child(PARSER_SCRIPT, *self._plugins, extra=READER_ENVIRONMENT, stderr=DEVNULL)
        )
        try:
            async with asyncio.timeout(START_TIMEOUT.total_seconds()):
                await self._read_reply(running)
        except BaseException as error:
            self._kill(running)
            if isinstance(error, TimeoutError | EOFError | ReaderLost):
                raise OSError(f"a reader does not start: {error!r}") from error
            raise
        self._running = running

    async def call(self, request: bytes, *, max_duration: timedelta) -> Reply:
        """The answer to a request. ReaderLost if the process ends, or takes longer; OSError if it cannot be started."""
        await self.start()
        running = self._running
        assert running is not None
        try:
            async with asyncio.timeout(max_duration.total_seconds()):
                running.requests.write(LENGTH.pack(len(request)))
                for start in range(0, len(request), CHUNK_BYTES):  # what the socket does not take at once is copied
                    running.requests.write(request[start : start + CHUNK_BYTES])
                    await running.requests.drain()
                return await self._read_reply(running)
        except (EOFError, ConnectionError) as error:
            self._running = None
            loss = await _explain_loss(running.process)  # before it is killed: that would hide how it ended
            self._kill(running)
            raise loss from error
        except BaseException as error:
            self._running = None
            self._kill(running)  # it is in the middle of an answer that nobody waits for any more
            if isinstance(error, TimeoutError):
                raise ReaderLost(f"it takes longer than {max_duration.total_seconds():g} s") from error
            raise

    async def end(self) -> None:
        """End the process, and wait a little until it is gone."""
        running, self._running = self._running, None
        if running is not None:
            self._kill(running)
        await asyncio.gather(*self._ending)

    def _kill(self, running: _RunningProcess) -> None:
        """Kill a process, which has nothing to lose, without waiting for its end."""
        with contextlib.suppress(ProcessLookupError):
            running.process.kill()
        running.requests.transport.abort()
        ending = asyncio.create_task(_wait_for_end(running.process), name="end-reader")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _read_reply(self, running: _RunningProcess) -> Reply:
        (length,) = LENGTH.unpack(await running.replies.readexactly(LENGTH.size))
        if length > MAX_REPLY_BYTES:
            raise ReaderLost(f"it says {length:,} bytes")
        reply: Reply = pickle.loads(await running.replies.readexactly(length))  # noqa: S301  from our own process
        return reply


async def _wait_for_end(process: Process) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_TIMEOUT.total_seconds()):
            await process.wait()


async def _explain_loss(process: Process) -> ReaderLost:
    """Why a process is gone. A library in C that gets no memory ends it, in one way or another."""
    await _wait_for_end(process)
    if process.returncode == -signal.SIGPROF:
        return ReaderLost("it takes too much processor time")
    return ReaderLost(f"its reader ended ({process.returncode})", is_out_of_memory=True)
