"""Reading bodies: here while there are few, in other processes when there are many.

Reading is most of a crawl's work, and a page can be made to break a parser: in a process of its own it costs that page.
What all leases of a process use together, places and memory, is given out in turn, to nobody all of it.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Self, TypeVar, cast

from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.core.novelty import parse_with_sample
from crawler.core.page.lists.url_list import UrlList, read_url_list
from crawler.core.page.media_type import detect_kind
from crawler.core.page.outline import BlockList, extract_blocks
from crawler.core.page.selectors import View
from crawler.core.page.snapshot import Parsed, parse_body
from crawler.core.page_rules import PageRules
from crawler.engine.machine import count_usable_cores
from crawler.engine.parsing.parser_process import pack_message
from crawler.engine.parsing.reader import Reader, ReaderLost
from crawler.plugins import NO_PLUGINS, Plugins
from crawler.plugins.loading import PluginReader


@dataclass(slots=True, eq=False)
class _Waiter:
    party: Hashable
    amount: int
    slot: "asyncio.Future[None]"


class FairShares:
    """Places for calls, each with an amount of something.

    slots: calls at once. A party (a domain) has all but one of them at most, where there are several.  max_amount: the
    amounts of all calls together; a call may want no more than that.
    Those with the fewest places come first, then who has waited longest. Nobody overtakes a call that only waits for
    its amount, or a large one would wait for ever.
    """

    def __init__(self, slots: int, *, max_amount: int) -> None:
        self._free_slots, self._free_amount = slots, max_amount
        self._max_per_party = max(slots - 1, 1)
        self._slots_by_party: dict[Hashable, int] = {}  # places of those who have any
        self._waiters: list[_Waiter] = []

    @asynccontextmanager
    async def share(self, party: Hashable, amount: int) -> AsyncIterator[None]:
        """A place and an amount, for as long as the block runs."""
        if not self._waiters and self._has_free_slot(party) and amount <= self._free_amount:
            self._acquire(party, amount)
        else:
            await self._wait_for_slot(party, amount)
        try:
            yield
        finally:
            self._release(party, amount)

    async def _wait_for_slot(self, party: Hashable, amount: int) -> None:
        waiter = _Waiter(party, amount, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        self._grant_slots()
        try:
            await waiter.slot
        except asyncio.CancelledError:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            else:
                self._release(party, amount)  # it was given in the very moment
            raise

    def _has_free_slot(self, party: Hashable) -> bool:
        """Whether there is a place, and the party may have one more."""
        return self._free_slots > 0 and self._slots_by_party.get(party, 0) < self._max_per_party

    def _acquire(self, party: Hashable, amount: int) -> None:
        self._free_slots -= 1
        self._free_amount -= amount
        self._slots_by_party[party] = self._slots_by_party.get(party, 0) + 1

    def _release(self, party: Hashable, amount: int) -> None:
        self._free_slots += 1
        self._free_amount += amount
        self._slots_by_party[party] -= 1
        if not self._slots_by_party[party]:
            del self._slots_by_party[party]
        if self._waiters:
            self._grant_slots()

    def _grant_slots(self) -> None:
        while self._free_slots:
            # Who was cancelled a moment ago has not left yet.
            eligible = (each for each in self._waiters if not each.slot.done() and self._has_free_slot(each.party))
            first = min(eligible, key=lambda each: self._slots_by_party.get(each.party, 0), default=None)
            if first is None or first.amount > self._free_amount:
                return
            self._waiters.remove(first)
            self._acquire(first.party, first.amount)
            first.slot.set_result(None)


T = TypeVar("T")

log = logging.getLogger("recrawl.readers")

INLINE_BODIES = 16  # bodies that are read in this process before others are started, which takes a fifth of a second
LARGE_BYTES = 256 << 10  # such a body takes long enough to hold up all other requests if it is read here
MAX_READERS = 9  # of 50 MB each; what crawls has no work for more


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """Bounds of reading, beside what a process takes when it has nothing to do.

    cpu_seconds: of processor time for one body; ordinary ones take a millisecond.  list_cpu_seconds: for a URL list;
    one of fifty thousand takes two.  timeout: by the clock, on a machine that does much else.
    memory_bytes: of all readers together.  max_body_bytes: at most for one body.
    min_body_bytes, memory_per_byte: what a body is thought to take, by its size; where that is too little it gets
    body_bytes.  max_resident_bytes: a reader that is larger after a body is ended, and another takes its place.
    """

    cpu_seconds: float = 5.0
    list_cpu_seconds: float = 20.0
    timeout: timedelta = timedelta(minutes=1)
    memory_bytes: int = 176 << 20
    max_body_bytes: int = 148 << 20
    min_body_bytes: int = 16 << 20
    memory_per_byte: int = 64
    max_resident_bytes: int = 80 << 20

    def estimate_memory(self, response: Fetched) -> int:
        """The memory that reading this answer's body is given first."""
        if detect_kind(response.body, response.content_type) == "pdf":  # no word about what is in it
            return self.max_body_bytes
        return min(max(self.memory_per_byte * len(response.body), self.min_body_bytes), self.max_body_bytes)


READING_LIMITS = ReadingLimits()


def choose_reader_count() -> int:
    """How many processes should read: what can work beside the one that crawls, and one that no domain has alone.

    At least two for one domain. A reader that gets its next body only when its last answer was taken is idle half the
    time, and so is whoever waits for it.
    """
    return min(max(count_usable_cores(), 2) + 1, MAX_READERS)


class ParserPool:
    """A few processes that read bodies; a context manager.

    processes: how many; 0 reads everything in this process.  inline_bodies: bodies read here before they are started.
    A PDF is never read here: what reads it is native code, and strangers wrote it. Nor is what a user's regular
    expression or XPath is applied to, which may take for ever, nor what a plugin reads.
    """

    def __init__(
        self,
        processes: int,
        *,
        inline_bodies: int = INLINE_BODIES,
        limits: ReadingLimits = READING_LIMITS,
        plugins: Plugins = NO_PLUGINS,
    ) -> None:
        self._processes, self._inline_left, self.limits, self._plugins = processes, inline_bodies, limits, plugins
        names = {each.name for each in plugins.readers.values()}
        self._readers = [Reader(plugins=sorted(names)) for _ in range(max(processes, 1))]
        self._idle = list(self._readers)
        self._shares = FairShares(len(self._readers), max_amount=limits.memory_bytes)
        self._starting: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._starting is not None:
            self._starting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._starting
        await asyncio.gather(*(reader.end() for reader in self._readers))

    @property
    def pids(self) -> frozenset[int]:
        """The processes that are ready."""
        return frozenset(reader.pid for reader in self._readers if reader.pid is not None)

    def find_plugin_reader(self, response: Fetched) -> PluginReader | None:
        """The plugin that reads such a body, if any."""
        return self._plugins.find_reader(response.content_type)

    async def read(
        self,
        call: partial[T],
        response: Fetched,
        *,
        party: Hashable,
        needs_process: bool = False,
        cpu_seconds: float | None = None,
    ) -> T | None:
        """The result of a call that reads this answer's body, made here or in a process.

        None if the body cannot be read within the limits, or breaks its reader.
        party: for whom it is read; nobody has all readers.  needs_process: a user's expressions are applied to it.
        """
        has_risky_reader = (
            call.keywords.get("reader") is not None or detect_kind(response.body, response.content_type) == "pdf"
        )
        needs_process = needs_process or has_risky_reader
        if not self._should_use_process(needs_process=needs_process, is_large=len(response.body) > LARGE_BYTES):
            return _call_inline(call)
        initial_bytes, max_bytes = self.limits.estimate_memory(response), self.limits.max_body_bytes
        cpu_seconds = cpu_seconds or self.limits.cpu_seconds
        try:
            try:
                return await self._call_in_process(call, initial_bytes, party=party, cpu_seconds=cpu_seconds)
            except ReaderLost as lost:
                if not lost.is_out_of_memory or initial_bytes == max_bytes:
                    raise
                return await self._call_in_process(call, max_bytes, party=party, cpu_seconds=cpu_seconds)
        except ReaderLost as lost:
            log.warning("reader.lost", extra={"url": call.keywords["url"], "error": str(lost)})
        except OSError as error:
            self._note_failed_start(error)
            return None if needs_process else _call_inline(call)
        return None

    async def _call_in_process(self, call: partial[T], memory_bytes: int, *, party: Hashable, cpu_seconds: float) -> T:
        async with self._shares.share(party, memory_bytes):
            reader = self._idle.pop()  # the last to be done: while there is little to read, one does it all
            try:
                request = pack_message((call, cpu_seconds, memory_bytes))
                reply = await reader.call(request, max_duration=self.limits.timeout)
                result, problem, is_out_of_memory, resident = reply
                if resident > self.limits.max_resident_bytes:
                    await reader.end()
            finally:
                self._idle.append(reader)
        if problem:
            raise ReaderLost(problem, is_out_of_memory=is_out_of_memory)
        return cast("T", result)

    def _should_use_process(self, *, needs_process: bool, is_large: bool) -> bool:
        """Whether a process will read; the first is started after a few bodies, or for one that cannot be read here."""
        if needs_process or (is_large and self._processes):
            return True
        if self._processes == 0:
            return False
        if self._starting is None:
            self._inline_left -= 1
            if self._inline_left < 0:
                self._starting = asyncio.create_task(self._start_reader(), name="start-reader")
        return self._starting is not None and self._starting.done()

    async def _start_reader(self) -> None:
        async with self._shares.share(self, 0):
            reader = self._idle.pop()
            try:
                await reader.start()
            except OSError as error:
                self._note_failed_start(error)
            finally:
                self._idle.append(reader)

    def _note_failed_start(self, error: OSError) -> None:
        """Read a few bodies here before it is tried again."""
        log.warning("reader.not_started", extra={"error": str(error)})
        self._inline_left, self._starting = INLINE_BODIES, None


def _call_inline(call: partial[T]) -> T | None:
    """The result of a call, made in this process; None where the body breaks what reads it, as in a process."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001  whatever a stranger's page does to a parser costs that page
        log.warning("reader.lost", extra={"url": call.keywords["url"], "error": repr(error)})
        return None


class DomainParser:
    """Reads bodies under the rules of one domain's user, with that domain's share of a pool.

    All give None for a body that cannot be read within the limits, or breaks its reader.
    """

    def __init__(self, pool: ParserPool, rules: PageRules) -> None:
        self._pool, self._rules = pool, rules

    async def parse(
        self, response: Fetched, url: Url, *, with_blocks: bool = True, with_sample: bool = False
    ) -> Parsed | None:
        """The parsed body.

        with_blocks: with its blocks.  with_sample: with the sample of its text that tells whether it brings anything
        new.
        """
        view = self.build_view(url)
        call = partial(
            parse_with_sample if with_sample else parse_body,
            response.body,
            url=url,
            content_type=response.content_type,
            robots_tag=response.robots_tag,
            refresh=response.refresh,
            with_blocks=with_blocks,
            view=view,
            reader=self._pool.find_plugin_reader(response),
        )
        return await self._pool.read(call, response, party=self, needs_process=with_blocks and view.is_unbounded)

    async def parse_blocks(self, response: Fetched, url: Url, *, view: View | None = None) -> BlockList | None:
        """The blocks of a body alone, in half the time: enough for comparing it with another body.

        view: in place of what the rules leave, as WHOLE: the body with no rule applied.
        """
        view = self.build_view(url) if view is None else view
        reader = self._pool.find_plugin_reader(response)
        call = partial(
            extract_blocks, response.body, url=url, content_type=response.content_type, view=view, reader=reader
        )
        return await self._pool.read(call, response, party=self, needs_process=view.is_unbounded)

    async def parse_by_rule(self, response: Fetched, url: Url) -> dict[str, BlockList]:
        """Blocks that each rule would leave if it were the only one, by the place that it names."""
        views = self.build_view(url).split().items()
        return {rule: await self.parse_blocks(response, url, view=view) or () for rule, view in views}

    async def parse_url_list(self, response: Fetched, url: Url) -> UrlList | None:
        """The entries of a URL list."""
        call = partial(read_url_list, response.body, url=url, content_type=response.content_type)
        return await self._pool.read(call, response, party=self, cpu_seconds=self._pool.limits.list_cpu_seconds)

    def build_view(self, url: Url) -> View:
        return self._rules.merge_view(url)
