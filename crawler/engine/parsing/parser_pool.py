"""Parse bodies: small ones in this process while it has time, the others in parser processes.

Sending a small body to another process, and its content back, takes as long as parsing it. A large or malicious page
would delay all other requests, or crash the crawl: in a separate process, that affects only the page. Slots and memory
of the pool are shared fairly among the leases of the crawling process.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Self, TypeVar, cast

from msgspec import Struct

from crawler.core.change.boilerplate import Boilerplate, parse_page
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.core.page.block import BlockList
from crawler.core.page.lists.url_list import UrlList, read_url_list
from crawler.core.page.media_type import detect_kind
from crawler.core.page.outline import extract_blocks
from crawler.core.page.selectors import View
from crawler.core.page.shared_lines import NO_SHARED_LINES
from crawler.core.page.snapshot import HeaderFields, Parsed
from crawler.core.page_rules import PageRules
from crawler.engine.machine_load import LoadMeter, count_usable_cores
from crawler.engine.parsing.parser_handle import ParserHandle, ParserLost
from crawler.engine.parsing.parser_process import pack_message
from crawler.plugins import NO_PLUGINS, Plugins
from crawler.plugins.loading import PluginReader

SLOT_SECONDS = 0.1  # a process takes 0.25 s of CPU to start, which shorter waits do not justify


class _Waiter(Struct, eq=False):
    party: Hashable
    amount: int
    slot: "asyncio.Future[None]"
    timer: asyncio.TimerHandle | None = None


class FairShares:
    """A fair semaphore for calls, each of which needs a slot and an amount of a resource such as memory.

    slots: the number of simultaneous calls at first.  max_slots: up to which it grows, by one whenever the first
    waiting call has waited for SLOT_SECONDS and may_grow returns True; 0: it does not grow. One party (a domain) gets
    at most all slots but one, unless there is only one slot.
    max_amount: the limit for the amounts of all calls together; a single call must not need more.
    The party with the fewest slots comes first, then the one that has waited longest. No call overtakes one that only
    waits for its amount; otherwise a large call might wait forever.
    """

    def __init__(
        self, slots: int, *, max_amount: int, max_slots: int = 0, may_grow: Callable[[], bool] = lambda: True
    ) -> None:
        self._slots, self._max_slots, self._may_grow = slots, max_slots, may_grow
        self._free_slots, self._free_amount = slots, max_amount
        self._slots_by_party: dict[Hashable, int] = {}  # only of parties with at least one slot
        self._waiters: list[_Waiter] = []

    @asynccontextmanager
    async def share(self, party: Hashable, amount: int) -> AsyncIterator[None]:
        """Hold a slot and an amount while the block runs."""
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
        waiter.timer = asyncio.get_running_loop().call_later(SLOT_SECONDS, self._add_slot, waiter)
        try:
            await waiter.slot
        except asyncio.CancelledError:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            else:
                self._release(party, amount)  # it was granted at the moment of cancellation
            raise
        finally:
            waiter.timer.cancel()  # the last one that was started

    def _add_slot(self, waiter: _Waiter) -> None:
        """Add a slot if the waiter is the first and lacks one, and perhaps another one later."""
        if self._slots < self._max_slots:
            if waiter in self._waiters[:1] and not self._has_free_slot(waiter.party) and self._may_grow():
                self._slots, self._free_slots = self._slots + 1, self._free_slots + 1
                self._grant_slots()
            waiter.timer = asyncio.get_running_loop().call_later(SLOT_SECONDS, self._add_slot, waiter)

    def _has_free_slot(self, party: Hashable) -> bool:
        """Return whether there is a free slot that the party may take."""
        return self._free_slots > 0 and self._slots_by_party.get(party, 0) < max(self._slots - 1, 1)

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
            # A waiter that was just cancelled may still be in the list.
            eligible = (each for each in self._waiters if not each.slot.done() and self._has_free_slot(each.party))
            first = min(eligible, key=lambda each: self._slots_by_party.get(each.party, 0), default=None)
            if first is None or first.amount > self._free_amount:
                return
            self._waiters.remove(first)
            self._acquire(first.party, first.amount)
            first.slot.set_result(None)


T = TypeVar("T")

log = logging.getLogger("recrawl.readers")

INLINE_BYTES = 32 << 10  # size of the largest bodies parsed here; the slowest found of this size takes 0.13 s
LARGE_BYTES = 256 << 10  # a larger body is parsed here only if there are no parser processes
START_PAUSE = 300.0  # seconds after a failed start of a parser process in which none is started
FEW_BODIES = 8  # between these sizes that are parsed here before a parser process is started, which takes 0.3 s of CPU
MAX_PARSERS = 9  # parser processes, 50 MB each; one crawling process cannot keep more of them busy


class ReadingLimits(Struct, frozen=True):
    """Limits for parsing in parser processes. Memory is counted beyond what an idle one uses.

    cpu_seconds: CPU time for one body; ordinary ones take a millisecond.  list_cpu_seconds: CPU time for a URL list;
    one of fifty thousand URLs takes two seconds.  timeout: elapsed time, generous for a busy machine.
    memory_bytes: memory of all parser processes together.  max_body_bytes: maximum memory for parsing one body.
    memory_per_byte: the first estimate, per byte of the body, but at least min_body_bytes; if it is too low, and for
    PDFs, the body gets max_body_bytes.  max_resident_bytes: after a call, a larger parser process is replaced.
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
        """Return the memory limit for the first attempt to parse this response's body."""
        if detect_kind(response.body, response.content_type) == "pdf":  # the size says nothing about its content
            return self.max_body_bytes
        return min(max(self.memory_per_byte * len(response.body), self.min_body_bytes), self.max_body_bytes)


READING_LIMITS = ReadingLimits()


def choose_parser_count() -> int:
    """Return how many parser processes to use: one per core and one more, at most MAX_PARSERS.

    One domain can take all but one. It needs two: with one, parser and crawler would wait for each other in turn.
    """
    return min(count_usable_cores() + 1, MAX_PARSERS)


class ParserPool:
    """A pool of parser processes; a context manager.

    processes: how many; 0: parse in this process.  inline: whether small bodies are parsed here. While this process is
    busy, they are also parsed in all processes but two: one has this core, and one is kept for other bodies.
    Some bodies need a parser process in any case: PDFs, because native code parses untrusted input; bodies to which a
    user's regular expression or XPath is applied, which may never end; and bodies that a plugin reads.
    """

    def __init__(
        self,
        processes: int,
        *,
        inline: bool = True,
        limits: ReadingLimits = READING_LIMITS,
        plugins: Plugins = NO_PLUGINS,
    ) -> None:
        self._processes, self.limits, self._plugins = processes, limits, plugins
        self._inline_bytes, self._few_left = (INLINE_BYTES, FEW_BODIES) if inline else (-1, 0)
        names = {each.name for each in plugins.readers.values()}
        self._handles = [ParserHandle(plugins=sorted(names)) for _ in range(max(processes, 1))]
        self._idle = list(self._handles)
        self._shares = FairShares(
            1, max_amount=limits.memory_bytes, max_slots=len(self._handles), may_grow=self._is_started
        )
        self._load, self._no_start_until = LoadMeter(), 0.0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await asyncio.gather(*(handle.end() for handle in self._handles))

    @property
    def pids(self) -> frozenset[int]:
        """Return the ids of the processes that are ready."""
        return frozenset(handle.pid for handle in self._handles if handle.pid is not None)

    def find_plugin_reader(self, response: Fetched) -> PluginReader | None:
        """Return the plugin that reads the content type of this response, if any."""
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
        """Run a call that parses this response's body, here or in a parser process, and return its result.

        Return None if the body cannot be parsed within the limits, crashes its parser, or needs a process and none
        starts.  call: its keyword `url` is for the log.  party: the domain that the slot is counted for.
        needs_process: whether the body must not be parsed here.  cpu_seconds: None for the limit of a page.
        """
        is_pdf = detect_kind(response.body, response.content_type) == "pdf"
        needs_process = needs_process or is_pdf or call.keywords.get("reader") is not None
        if not (needs_process or self._should_use_process(len(response.body))):
            return _call_inline(call)
        if time.monotonic() < self._no_start_until and not self.pids:
            return self._call_without_process(call, response, needs_process=needs_process)
        initial_bytes, max_bytes = self.limits.estimate_memory(response), self.limits.max_body_bytes
        cpu_seconds = cpu_seconds or self.limits.cpu_seconds
        try:
            try:
                return await self._call_in_process(call, initial_bytes, party=party, cpu_seconds=cpu_seconds)
            except ParserLost as lost:
                if not lost.is_out_of_memory or initial_bytes == max_bytes:
                    raise
                return await self._call_in_process(call, max_bytes, party=party, cpu_seconds=cpu_seconds)
        except ParserLost as lost:
            log.warning("reader.lost", extra={"url": call.keywords.get("url"), "error": str(lost)})
        except OSError as error:
            log.warning("reader.not_started", extra={"error": str(error)})
            self._no_start_until = time.monotonic() + START_PAUSE
            return self._call_without_process(call, response, needs_process=needs_process)
        return None

    def _call_without_process(self, call: partial[T], response: Fetched, *, needs_process: bool) -> T | None:
        """Parse a body here although it belongs to a parser process; return None if it must not be parsed here."""
        return None if needs_process or len(response.body) > LARGE_BYTES else _call_inline(call)

    async def _call_in_process(self, call: partial[T], memory_bytes: int, *, party: Hashable, cpu_seconds: float) -> T:
        async with self._borrow_parser(party, memory_bytes) as handle:
            request = pack_message((call, cpu_seconds, memory_bytes))
            reply = await handle.call(request, max_duration=self.limits.timeout)
            result, problem, is_out_of_memory, resident = reply
            if resident > self.limits.max_resident_bytes:
                await handle.end()
        if problem:
            raise ParserLost(problem, is_out_of_memory=is_out_of_memory)
        return cast("T", result)

    def _should_use_process(self, body_bytes: int) -> bool:
        """Return whether to parse a body in a parser process, although it may be parsed here."""
        if body_bytes <= self._inline_bytes:
            return self._load.is_busy() and self._active_count < self._processes - 2
        if body_bytes <= LARGE_BYTES and self._few_left:
            self._few_left -= 1
            return False
        return self._processes > 0

    @property
    def _active_count(self) -> int:
        return len(self._handles) - len(self._idle)

    def _is_started(self) -> bool:
        """Return whether all processes that are in use have started: only then do waits mean that there are too few."""
        return len(self.pids) >= self._active_count

    @asynccontextmanager
    async def _borrow_parser(self, party: Hashable, memory_bytes: int) -> AsyncIterator[ParserHandle]:
        """Yield the idle parser process that was used last, so that a light load needs only one."""
        async with self._shares.share(party, memory_bytes):
            handle = self._idle.pop()
            try:
                yield handle
            finally:
                self._idle.append(handle)


def _call_inline(call: partial[T]) -> T | None:
    """Run a call in this process and return its result; None if the body crashes its parser."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001  an untrusted page may raise anything in a parser; only the page fails
        log.warning("reader.lost", extra={"url": call.keywords.get("url"), "error": repr(error)})
        return None


RELEARNED_GROWTH = 1.25  # of the visits that boilerplate was learned from, before shared lines are listed again


class DomainParser:
    """The parser of one domain: it applies the domain's page rules and uses its share of a pool.

    Parsing returns None, or no blocks, if the body cannot be parsed (see ParserPool.read).
    """

    def __init__(self, pool: ParserPool, rules: PageRules) -> None:
        self._pool, self._rules, self._shared_lines = pool, rules, NO_SHARED_LINES

    def learn_shared_lines(self, boilerplate: Boilerplate) -> None:
        """Take over the lines that the domain's pages share, if enough more pages are known since the last time."""
        if boilerplate.total_visits > RELEARNED_GROWTH * self._shared_lines.pages:
            self._shared_lines = boilerplate.list_shared_lines()

    async def parse(
        self, response: Fetched, url: Url, *, with_blocks: bool = True, with_forms: bool = False
    ) -> Parsed | None:
        """Parse a body. with_blocks: include its blocks.  with_forms: include their forms, and not the blocks."""
        view = self.build_view(url)
        call = partial(
            parse_page,
            response.body,
            url=url,
            content_type=response.content_type,
            header_fields=HeaderFields(response.robots_tag, response.refresh),
            with_blocks=with_blocks,
            with_forms=with_forms,
            view=view,
            reader=self._pool.find_plugin_reader(response),
            shared=self._shared_lines,
        )
        needs_process = (with_blocks or with_forms) and view.is_unbounded
        return await self._pool.read(call, response, party=self, needs_process=needs_process)

    async def parse_blocks(self, response: Fetched, url: Url, *, view: View | None = None) -> BlockList | None:
        """Parse only the blocks of a body, in half the time: enough to compare it with another body.

        view: used instead of the page rules, such as FULL_VIEW for the whole body.
        """
        view = self.build_view(url) if view is None else view
        content_type, reader = response.content_type, self._pool.find_plugin_reader(response)
        call = partial(extract_blocks, response.body, url=url, content_type=content_type, view=view, reader=reader)
        return await self._pool.read(call, response, party=self, needs_process=view.is_unbounded)

    async def parse_by_rule(self, response: Fetched, url: Url) -> dict[str, BlockList]:
        """Return the blocks that remain with each selector to ignore alone, and with the selectors to watch alone."""
        views = self.build_view(url).split().items()
        return {rule: await self.parse_blocks(response, url, view=view) or () for rule, view in views}

    async def parse_url_list(self, response: Fetched, url: Url) -> UrlList | None:
        """Parse a URL list."""
        call = partial(read_url_list, response.body, url=url, content_type=response.content_type)
        return await self._pool.read(call, response, party=self, cpu_seconds=self._pool.limits.list_cpu_seconds)

    def build_view(self, url: Url) -> View:
        return self._rules.merge_view(url)
