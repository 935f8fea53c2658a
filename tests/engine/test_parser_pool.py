"""Parser processes give the same results as this process, and a failure there affects only its body."""

import asyncio
import logging
import os
import signal
import zlib
from contextlib import suppress
from datetime import timedelta
from typing import cast

import psutil
import pytest
from msgspec.structs import replace

from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.core.page.selectors import View
from crawler.core.page.snapshot import parse_body
from crawler.core.page_rules import PageRule, PageRules
from crawler.engine import machine_load
from crawler.engine.parsing import parser_pool
from crawler.engine.parsing.parser_handle import PARSER_SCRIPT
from crawler.engine.parsing.parser_pool import (
    FEW_BODIES,
    INLINE_BYTES,
    DomainParser,
    FairShares,
    ParserPool,
    ReadingLimits,
)
from crawler.engine.parsing.parser_process import STATM
from tests.core.printed import compressed, printed

MEGABYTE = 1_000_000
URL = Url("http://site.test/page")


def answer(body: bytes) -> Fetched:
    return Fetched(
        status=200, body=body, received_bytes=len(body), elapsed=timedelta(0), content_type="text/html; charset=utf-8"
    )


def domain(readers: ParserPool, *rules: PageRule) -> DomainParser:
    return DomainParser(readers, PageRules(rules))


def children() -> set[int]:
    found = set()
    for child in psutil.Process().children():
        with suppress(psutil.Error):  # it has just ended
            found |= {child.pid} if PARSER_SCRIPT in child.cmdline() else set()
    return found


async def started(readers: ParserPool) -> frozenset[int]:
    """Return the parser processes once there are any."""
    while not readers.pids:
        await domain(readers).parse(answer(b"<p>x"), URL)
        await asyncio.sleep(0)
    return readers.pids


async def test_another_process_reads_what_this_one_does() -> None:
    pages = [b"<title>t</title><p>one <a href=/a>a</a>", b"", b"\xff\xfe<p>", b"%PDF-1.4", b"<p>" * 5000]
    async with ParserPool(2, inline=False) as readers:
        await started(readers)
        found = await asyncio.gather(*(domain(readers).parse(answer(page), URL) for page in pages * 3))

    here = [parse_body(page, url=URL, content_type="text/html; charset=utf-8") for page in pages * 3]
    assert found == here
    assert children() == set()


@pytest.mark.parametrize("processes", [0, 1])
async def test_a_pdf_is_read_in_another_process_however_few_there_are(processes: int) -> None:
    async with ParserPool(processes) as readers:
        read = await domain(readers).parse(answer(printed([(50, 700, "words")])), URL)

        assert read is not None
        assert read.content.main == "words"
        assert len(children()) == 1
    assert children() == set()


@pytest.mark.parametrize("inline", [False, True])
async def test_pieces_alone_are_those_of_what_is_read_whole(*, inline: bool) -> None:
    rule = PageRule("/*", view=View(ignore=("nav",)))
    async with ParserPool(1, inline=inline) as readers:
        for body, kind in ((b"<nav>x</nav><p>words<a href=/y>there", "text/html"), (b"one\n\ntwo", "text/plain")):
            said = replace(answer(body), content_type=kind)
            read = await domain(readers, rule).parse(said, URL)

            assert read is not None
            assert read.blocks == await domain(readers, rule).parse_blocks(said, URL) != ()


@pytest.mark.skipif(not STATM.exists(), reason="only Linux bounds a process's memory")
async def test_a_body_that_takes_too_much_memory_costs_that_body(told: list[logging.LogRecord]) -> None:
    zeros = zlib.compressobj(9)
    start, more = (zeros.compress(bytes(MEGABYTE)) + zeros.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    twice = zlib.compress(start + more * 3000, 9)
    content = b"<</Filter[/FlateDecode/FlateDecode]/Length %d>>stream\n%s\nendstream" % (len(twice), twice)
    bomb = printed([]).replace(compressed(b"BT /F 10 Tf  ET"), content)
    assert len(bomb) < 10_000

    async with ParserPool(1) as readers:
        assert await domain(readers).parse(answer(bomb), URL) is None
        assert [record.getMessage() for record in told] == ["reader.lost"]
        assert await domain(readers).parse(answer(printed([(50, 700, "words")])), URL) is not None


@pytest.mark.skipif(not STATM.exists(), reason="only Linux bounds a process's memory")
async def test_a_body_that_takes_more_than_its_size_lets_expect_is_given_more() -> None:
    little = ReadingLimits(min_body_bytes=1 << 20, memory_per_byte=0)
    body = b"<p>a" * 60_000
    async with ParserPool(1, inline=False, limits=little) as readers:
        found = await domain(readers).parse(answer(body), URL)

    assert found is not None
    assert found.content.main == "\n".join("a" * 60_000)


async def test_a_body_is_given_up_by_its_processor_time_and_not_by_the_clock(
    told: list[logging.LogRecord],
) -> None:
    slow = b"words and words<p>" * 100_000
    async with ParserPool(1, inline=False, limits=ReadingLimits(cpu_seconds=0.05)) as readers:
        assert await domain(readers).parse(answer(slow), URL) is None
        (pid,) = readers.pids or {0}
        assert await domain(readers).parse(answer(b"<p>x"), URL) is not None
        assert pid not in readers.pids
    assert [vars(record)["error"] for record in told] == ["parsing takes too much CPU time"]


async def test_a_reader_that_stands_still_is_given_up_by_the_clock() -> None:
    async with ParserPool(1, inline=False, limits=ReadingLimits(timeout=timedelta(seconds=3))) as readers:
        (pid,) = await started(readers)
        os.kill(pid, signal.SIGSTOP)

        assert await domain(readers).parse(answer(b"<p>x"), URL) is None
        assert await domain(readers).parse(answer(b"<p>y"), URL) is not None
        assert pid not in children()


async def test_a_reader_with_an_answer_that_nobody_takes_freezes_nobody() -> None:
    """Its reply of many megabytes is larger than the pipe and our buffer."""
    large = b"<p>" + b"a word and " * 900_000
    limits = ReadingLimits(timeout=timedelta(seconds=0.01))
    async with ParserPool(1, inline=False, limits=limits) as readers:
        assert await domain(readers).parse(answer(large), URL) is None
        async with asyncio.timeout(30):
            while not await domain(readers).parse(answer(b"<p>y"), URL):
                await asyncio.sleep(0.1)
    assert children() == set()


async def test_a_domain_never_has_all_readers() -> None:
    greedy, other = object(), object()
    shares = FairShares(2, max_amount=10)
    order = []

    async def use(party: object, name: str, go_on: asyncio.Event) -> None:
        async with shares.share(party, 1):
            order.append(name)
            await go_on.wait()

    go_on = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for n in range(3):
            tasks.create_task(use(greedy, f"greedy {n}", go_on))
        await asyncio.sleep(0)
        tasks.create_task(use(other, "other", go_on))
        for _ in range(3):
            await asyncio.sleep(0)
        assert order == ["greedy 0", "other"]
        go_on.set()


async def test_calls_that_wait_too_long_get_another_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser_pool, "SLOT_SECONDS", 0)
    shares = FairShares(1, max_amount=10, max_slots=3)
    async with shares.share("a", 1), shares.share("a", 1):
        third = asyncio.create_task(shares.share("a", 1).__aenter__())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not third.done()  # the last slot is for other domains
        async with asyncio.timeout(5), shares.share("b", 1):
            third.cancel()
            with pytest.raises(asyncio.CancelledError):
                await third


async def test_readers_together_have_a_bound_on_their_memory_and_a_large_body_is_not_overtaken() -> None:
    shares = FairShares(4, max_amount=10)
    order = []

    async def use(amount: int, go_on: asyncio.Event) -> None:
        async with shares.share(amount, amount):
            order.append(amount)
            await go_on.wait()

    first, rest = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for amount, until in ((4, first), (8, rest), (2, rest)):
            tasks.create_task(use(amount, until))
        for _ in range(4):
            await asyncio.sleep(0)
        assert order == [4]
        first.set()
        for _ in range(4):
            await asyncio.sleep(0)
        assert order == [4, 8, 2]
        rest.set()


async def test_who_was_cancelled_and_has_not_left_yet_is_given_nothing() -> None:
    shares = FairShares(1, max_amount=1)
    async with shares.share("a", 1):
        waiting = asyncio.create_task(shares.share("b", 1).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()  # and the slot becomes free before it is notified
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(5), shares.share("c", 1):
        pass


async def test_after_a_reader_was_lost_another_one_reads() -> None:
    async with ParserPool(1, inline=False, limits=ReadingLimits(cpu_seconds=0.05)) as readers:
        await started(readers)
        assert await domain(readers).parse(answer(b"words and words<p>" * 100_000), URL) is None
        assert not readers.pids
        assert await domain(readers).parse(answer(b"<p>x"), URL) is not None
        assert len(readers.pids) == 1


async def test_who_is_cancelled_while_it_waits_leaves_no_share_behind() -> None:
    shares = FairShares(1, max_amount=1)
    async with shares.share("a", 1):
        waiting = asyncio.create_task(shares.share("b", 1).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with asyncio.timeout(5), shares.share("c", 1):
        pass


@pytest.mark.parametrize("inline", [False, True], ids=["in a process", "here"])
async def test_a_body_that_breaks_what_reads_it_costs_that_body(told: list[logging.LogRecord], *, inline: bool) -> None:
    breaking = cast("Url", 7)  # stands for a page that crashes the parser; none is known
    async with ParserPool(1, inline=inline) as readers:
        if not inline:
            await started(readers)
        assert await domain(readers).parse(answer(b"<p>x"), breaking) is None
        assert [record.getMessage() for record in told] == ["reader.lost"]
        assert await domain(readers).parse(answer(b"<p>x"), URL) is not None


@pytest.mark.parametrize(("processes", "share", "expected"), [(3, 0.0, 1), (3, 2.0, 0), (2, 0.0, 0)])
async def test_small_bodies_need_a_process_only_while_this_one_is_busy(
    monkeypatch: pytest.MonkeyPatch, processes: int, share: float, expected: int
) -> None:
    monkeypatch.setattr(machine_load, "BUSY_SHARE", share)
    monkeypatch.setattr(machine_load, "LOAD_INTERVAL", 0.0)
    async with ParserPool(processes) as readers:
        found = await asyncio.gather(*(domain(readers).parse(answer(b"<p>x"), URL) for _ in range(5)))

        assert len(readers.pids) == expected
        assert len({repr(each) for each in found}) == 1
        assert found[0] is not None
        large = answer(b"<p>x" * (INLINE_BYTES // 4 + 1))
        for _ in range(FEW_BODIES):
            await domain(readers).parse(large, URL)
        assert len(readers.pids) == expected
        await domain(readers).parse(large, URL)
        assert readers.pids


async def test_what_an_expression_is_applied_to_is_read_elsewhere() -> None:
    async with ParserPool(0) as readers:
        parser = domain(readers, PageRule("/*", view=View(ignore_text=("[0-9]+ ms",))))
        found = await parser.parse(answer(b"<p>built in 12 ms"), URL)

        assert len(readers.pids) == 1
        assert found is not None
        assert [place.text for place in found.blocks] == ["", "built in"]


async def test_another_takes_the_place_of_a_reader_that_dies() -> None:
    async with ParserPool(1, inline=False) as readers:
        (pid,) = await started(readers)
        os.kill(pid, signal.SIGSTOP)  # so that it has received the body and cannot finish
        reading = asyncio.create_task(domain(readers).parse(answer(b"<p>x"), URL))
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)

        assert await reading is not None
        assert pid not in children()
    assert children() == set()
