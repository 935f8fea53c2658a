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

from crawler.engine.machine import FOR_READERS, start_child
from crawler.engine.parsing.parser_process import ANSWER_BYTES, LENGTH, Answer

PARSER = str(Path(__file__).with_name("parser_process.py"))
START = timedelta(minutes=1)  # half a second on a machine that has nothing else to do
END = timedelta(seconds=5)  # after SIGKILL
PART_BYTES = 1 << 18


class ReaderLost(Exception):
    """A reader gave no answer. by_memory: with more memory it might."""

    def __init__(self, why: str, *, by_memory: bool = False) -> None:
        super().__init__(why)
        self.by_memory = by_memory


@dataclass(frozen=True, slots=True)
class _Running:
    process: Process
    answers: asyncio.StreamReader
    requests: asyncio.StreamWriter


class Reader:
    """A process that makes one call at a time. It is started by whoever asks it first, and again after it was lost.

    plugins: names of those that read bodies there.
    """

    def __init__(self, *, plugins: Sequence[str] = ()) -> None:
        self._plugins = plugins
        self._running: _Running | None = None
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
        running = _Running(*await start_child(PARSER, *self._plugins, more=FOR_READERS, stderr=DEVNULL))
        try:
            async with asyncio.timeout(START.total_seconds()):
                await self._answer(running)
        except BaseException as error:
            self._give_up(running)
            if isinstance(error, TimeoutError | EOFError | ReaderLost):
                raise OSError(f"a reader does not start: {error!r}") from error
            raise
        self._running = running

    async def ask(self, request: bytes, *, longest: timedelta) -> Answer:
        """The answer to a request. ReaderLost if the process ends, or takes longer; OSError if it cannot be started."""
        await self.start()
        running = self._running
        assert running is not None
        try:
            async with asyncio.timeout(longest.total_seconds()):
                running.requests.write(LENGTH.pack(len(request)))
                for start in range(0, len(request), PART_BYTES):  # what the socket does not take at once is copied
                    running.requests.write(request[start : start + PART_BYTES])
                    await running.requests.drain()
                return await self._answer(running)
        except (EOFError, ConnectionError) as error:
            self._running = None
            why = await _lost(running.process)  # before it is killed: that would hide how it ended
            self._give_up(running)
            raise why from error
        except BaseException as error:
            self._running = None
            self._give_up(running)  # it is in the middle of an answer that nobody waits for any more
            if isinstance(error, TimeoutError):
                raise ReaderLost(f"it takes longer than {longest.total_seconds():g} s") from error
            raise

    async def end(self) -> None:
        """End the process, and wait a little until it is gone."""
        running, self._running = self._running, None
        if running is not None:
            self._give_up(running)
        await asyncio.gather(*self._ending)

    def _give_up(self, running: _Running) -> None:
        """Kill a process, which has nothing to lose, without waiting for its end."""
        with contextlib.suppress(ProcessLookupError):
            running.process.kill()
        running.requests.transport.abort()
        ending = asyncio.create_task(_ended(running.process), name="end-reader")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _answer(self, running: _Running) -> Answer:
        (length,) = LENGTH.unpack(await running.answers.readexactly(LENGTH.size))
        if length > ANSWER_BYTES:
            raise ReaderLost(f"it says {length:,} bytes")
        answer: Answer = pickle.loads(await running.answers.readexactly(length))  # noqa: S301  from our own process
        return answer


async def _ended(process: Process) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END.total_seconds()):
            await process.wait()


async def _lost(process: Process) -> ReaderLost:
    """Why a process is gone. A library in C that gets no memory ends it, in one way or another."""
    await _ended(process)
    if process.returncode == -signal.SIGPROF:
        return ReaderLost("it takes too much processor time")
    return ReaderLost(f"its reader ended ({process.returncode})", by_memory=True)
