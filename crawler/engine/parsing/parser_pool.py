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
from crawler.core.page.media_type import kind_of
from crawler.core.page.outline import BlockList, block_list
from crawler.core.page.selectors import View
from crawler.core.page.snapshot import Parsed, parse
from crawler.core.page_rules import PageRules
from crawler.engine.machine import usable_cores
from crawler.engine.parsing.parser_process import packed
from crawler.engine.parsing.reader import Reader, ReaderLost
from crawler.plugins import NO_PLUGINS, Plugins
from crawler.plugins.loaded import PluginReader


@dataclass(slots=True, eq=False)
class _Waiting:
    party: Hashable
    amount: int
    turn: "asyncio.Future[None]"


class FairShares:
    """Places for calls, each with an amount of something.

    places: calls at once. A party (a domain) has all but one of them at most, where there are several.  most: the
    amounts of all calls together; a call may want no more than that.
    Those with the fewest places come first, then who has waited longest. Nobody overtakes a call that only waits for
    its amount, or a large one would wait for ever.
    """

    def __init__(self, places: int, *, most: int) -> None:
        self._places, self._left = places, most
        self._per_party = max(places - 1, 1)
        self._had: dict[Hashable, int] = {}  # places of those who have any
        self._waiting: list[_Waiting] = []

    @asynccontextmanager
    async def share(self, party: Hashable, amount: int) -> AsyncIterator[None]:
        """A place and an amount, for as long as the block runs."""
        if not self._waiting and self._may_have(party) and amount <= self._left:
            self._take(party, amount)
        else:
            await self._turn_of(party, amount)
        try:
            yield
        finally:
            self._take_back(party, amount)

    async def _turn_of(self, party: Hashable, amount: int) -> None:
        mine = _Waiting(party, amount, asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        self._give_out()
        try:
            await mine.turn
        except asyncio.CancelledError:
            if mine in self._waiting:
                self._waiting.remove(mine)
            else:
                self._take_back(party, amount)  # it was given in the very moment
            raise

    def _may_have(self, party: Hashable) -> bool:
        """Whether there is a place, and the party may have one more."""
        return self._places > 0 and self._had.get(party, 0) < self._per_party

    def _take(self, party: Hashable, amount: int) -> None:
        self._places -= 1
        self._left -= amount
        self._had[party] = self._had.get(party, 0) + 1

    def _take_back(self, party: Hashable, amount: int) -> None:
        self._places += 1
        self._left += amount
        self._had[party] -= 1
        if not self._had[party]:
            del self._had[party]
        if self._waiting:
            self._give_out()

    def _give_out(self) -> None:
        while self._places:
            # Who was cancelled a moment ago has not left yet.
            may = (each for each in self._waiting if not each.turn.done() and self._may_have(each.party))
            first = min(may, key=lambda each: self._had.get(each.party, 0), default=None)
            if first is None or first.amount > self._left:
                return
            self._waiting.remove(first)
            self._take(first.party, first.amount)
            first.turn.set_result(None)


T = TypeVar("T")

log = logging.getLogger("recrawl.readers")

FEW = 16  # bodies that are read in this process before others are started, which takes a fifth of a second
LARGE_BYTES = 256 << 10  # such a body takes long enough to hold up all other requests if it is read here
MOST_READERS = 9  # of 50 MB each; what crawls has no work for more


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """Bounds of reading, beside what a process takes when it has nothing to do.

    cpu_seconds: of processor time for one body; ordinary ones take a millisecond.  list_cpu_seconds: for a URL list;
    one of fifty thousand takes two.  longest: by the clock, on a machine that does much else.
    memory_bytes: of all readers together.  body_bytes: at most for one body.
    usual_bytes, per_byte: what a body is thought to take, by its size; where that is too little it gets body_bytes.
    kept_bytes: a reader that is larger after a body is ended, and another takes its place.
    """

    cpu_seconds: float = 5.0
    list_cpu_seconds: float = 20.0
    longest: timedelta = timedelta(minutes=1)
    memory_bytes: int = 176 << 20
    body_bytes: int = 148 << 20
    usual_bytes: int = 16 << 20
    per_byte: int = 64
    kept_bytes: int = 80 << 20

    def share_of(self, answer: Fetched) -> int:
        """The memory that reading this answer's body is given first."""
        if kind_of(answer.body, answer.content_type) == "pdf":  # no word about what is in it
            return self.body_bytes
        return min(max(self.per_byte * len(answer.body), self.usual_bytes), self.body_bytes)


READING_LIMITS = ReadingLimits()


def readers_wanted() -> int:
    """How many processes should read: what can work beside the one that crawls, and one that no domain has alone.

    At least two for one domain. A reader that gets its next body only when its last answer was taken is idle half the
    time, and so is whoever waits for it.
    """
    return min(max(usable_cores(), 2) + 1, MOST_READERS)


class ParserPool:
    """A few processes that read bodies; a context manager.

    processes: how many; 0 reads everything in this process.  few: bodies read here before they are started.
    A PDF is never read here: what reads it is native code, and strangers wrote it. Nor is what a user's regular
    expression or XPath is applied to, which may take for ever, nor what a plugin reads.
    """

    def __init__(
        self, processes: int, *, few: int = FEW, limits: ReadingLimits = READING_LIMITS, plugins: Plugins = NO_PLUGINS
    ) -> None:
        self._processes, self._few, self.limits, self._plugins = processes, few, limits, plugins
        names = {each.name for each in plugins.readers.values()}
        self._readers = [Reader(plugins=sorted(names)) for _ in range(max(processes, 1))]
        self._idle = list(self._readers)
        self._shares = FairShares(len(self._readers), most=limits.memory_bytes)
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

    def reader_of(self, answer: Fetched) -> PluginReader | None:
        """The plugin that reads such a body, if any."""
        return self._plugins.reader_of(answer.content_type)

    async def read(
        self,
        call: partial[T],
        answer: Fetched,
        *,
        party: Hashable,
        is_wild: bool = False,
        cpu_seconds: float | None = None,
    ) -> T | None:
        """The result of a call that reads this answer's body, made here or in a process.

        None if the body cannot be read within the limits, or breaks its reader.
        party: for whom it is read; nobody has all readers.  is_wild: a user's expressions are applied to it.
        """
        is_strange = call.keywords.get("reader") is not None or kind_of(answer.body, answer.content_type) == "pdf"
        is_wild = is_wild or is_strange
        if not self._is_for_a_reader(is_wild=is_wild, large=len(answer.body) > LARGE_BYTES):
            return _made_here(call)
        first, most = self.limits.share_of(answer), self.limits.body_bytes
        cpu_seconds = cpu_seconds or self.limits.cpu_seconds
        try:
            try:
                return await self._made_elsewhere(call, first, party=party, cpu_seconds=cpu_seconds)
            except ReaderLost as lost:
                if not lost.by_memory or first == most:
                    raise
                return await self._made_elsewhere(call, most, party=party, cpu_seconds=cpu_seconds)
        except ReaderLost as lost:
            log.warning("reader.lost", extra={"url": call.keywords["url"], "error": str(lost)})
        except OSError as error:
            self._not_started(error)
            return None if is_wild else _made_here(call)
        return None

    async def _made_elsewhere(self, call: partial[T], memory_bytes: int, *, party: Hashable, cpu_seconds: float) -> T:
        async with self._shares.share(party, memory_bytes):
            reader = self._idle.pop()  # the last to be done: while there is little to read, one does it all
            try:
                request = packed((call, cpu_seconds, memory_bytes))
                value, why, by_memory, resident = await reader.ask(request, longest=self.limits.longest)
                if resident > self.limits.kept_bytes:
                    await reader.end()
            finally:
                self._idle.append(reader)
        if why:
            raise ReaderLost(why, by_memory=by_memory)
        return cast("T", value)

    def _is_for_a_reader(self, *, is_wild: bool, large: bool) -> bool:
        """Whether a process will read; the first is started after a few bodies, or for one that cannot be read here."""
        if is_wild or (large and self._processes):
            return True
        if self._processes == 0:
            return False
        if self._starting is None:
            self._few -= 1
            if self._few < 0:
                self._starting = asyncio.create_task(self._start(), name="start-reader")
        return self._starting is not None and self._starting.done()

    async def _start(self) -> None:
        async with self._shares.share(self, 0):
            reader = self._idle.pop()
            try:
                await reader.start()
            except OSError as error:
                self._not_started(error)
            finally:
                self._idle.append(reader)

    def _not_started(self, error: OSError) -> None:
        """Read a few bodies here before it is tried again."""
        log.warning("reader.not_started", extra={"error": str(error)})
        self._few, self._starting = FEW, None


def _made_here(call: partial[T]) -> T | None:
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

    async def parse(self, answer: Fetched, url: Url, *, outlined: bool = True, sampled: bool = False) -> Parsed | None:
        """The parsed body.

        outlined: with its blocks.  sampled: with the sample of its text that tells whether it brings anything new.
        """
        view = self.view(url)
        call = partial(
            parse_with_sample if sampled else parse,
            answer.body,
            url=url,
            content_type=answer.content_type,
            robots_tag=answer.robots_tag,
            refresh=answer.refresh,
            outlined=outlined,
            view=view,
            reader=self._pool.reader_of(answer),
        )
        return await self._pool.read(call, answer, party=self, is_wild=outlined and view.is_wild)

    async def blocks(self, answer: Fetched, url: Url, *, view: View | None = None) -> BlockList | None:
        """The blocks of a body alone, in half the time: enough for comparing it with another body.

        view: in place of what the rules leave, as WHOLE: the body with no rule applied.
        """
        view = self.view(url) if view is None else view
        reader = self._pool.reader_of(answer)
        call = partial(block_list, answer.body, url=url, content_type=answer.content_type, view=view, reader=reader)
        return await self._pool.read(call, answer, party=self, is_wild=view.is_wild)

    async def apart(self, answer: Fetched, url: Url) -> dict[str, BlockList]:
        """Blocks that each rule would leave if it were the only one, by the place that it names."""
        views = self.view(url).apart().items()
        return {rule: await self.blocks(answer, url, view=view) or () for rule, view in views}

    async def url_list(self, answer: Fetched, url: Url) -> UrlList | None:
        """The entries of a URL list."""
        call = partial(read_url_list, answer.body, url=url, content_type=answer.content_type)
        return await self._pool.read(call, answer, party=self, cpu_seconds=self._pool.limits.list_cpu_seconds)

    def view(self, url: Url) -> View:
        return self._rules.view(url)
