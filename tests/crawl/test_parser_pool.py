"""Bodies are read in other processes as they are here, and what breaks there breaks nothing else."""

import asyncio
import os
import signal
import subprocess
import sys
import zlib
from dataclasses import replace
from datetime import timedelta
from functools import partial

import psutil
import pytest

from crawler.core.http import Fetched, Url
from crawler.core.page import View, block_list, parse
from crawler.crawl import ParserPool
from crawler.crawl.parser_pool import PARSER
from crawler.crawl.parser_process import STATM, pack
from tests.core.printed import compressed, printed

MEGABYTE = 1_000_000
URL = Url("http://site.test/page")


def answer(body: bytes) -> Fetched:
    return Fetched(
        status=200, body=body, received_bytes=len(body), elapsed=timedelta(0), content_type="text/html; charset=utf-8"
    )


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children() if set(PARSER) <= set(child.cmdline())}


async def started(readers: ParserPool) -> frozenset[int]:
    """The reading processes, once there are any."""
    while not readers.pids:
        await readers.parse(answer(b"<p>x"), URL)
        await asyncio.sleep(0)
    return readers.pids


async def test_another_process_reads_what_this_one_does() -> None:
    pages = [b"<title>t</title><p>one <a href=/a>a</a>", b"", b"\xff\xfe<p>", b"%PDF-1.4", b"<p>" * 5000]
    async with ParserPool(2, few=0) as readers:
        await started(readers)
        found = await asyncio.gather(*(readers.parse(answer(page), URL) for page in pages * 3))

    here = [parse(page, url=URL, content_type="text/html; charset=utf-8", robots_tag=None) for page in pages * 3]
    assert found == here
    assert children() == set()


@pytest.mark.parametrize("processes", [0, 1])
async def test_a_pdf_is_read_in_another_process_however_few_there_are(processes: int) -> None:
    async with ParserPool(processes) as readers:
        read = await readers.parse(answer(printed([(50, 700, "words")])), URL)

        assert read is not None
        assert read.content.main == "words"
        assert len(children()) == 1
    assert children() == set()


@pytest.mark.parametrize("few", [0, 9])
async def test_pieces_alone_are_those_of_what_is_read_whole(few: int) -> None:
    view = View(ignore=("nav",))
    async with ParserPool(1, few=few) as readers:
        for body, kind in ((b"<nav>x</nav><p>words<a href=/y>there", "text/html"), (b"one\n\ntwo", "text/plain")):
            said = replace(answer(body), content_type=kind)
            read = await readers.parse(said, URL, view=view)

            assert read is not None
            assert read.blocks == await readers.blocks(said, URL, view=view) != ()


@pytest.mark.skipif(not STATM.exists(), reason="only Linux bounds a process's memory")
def test_a_body_that_takes_too_much_memory_ends_its_reader() -> None:
    zeros = zlib.compressobj(9)
    start, more = (zeros.compress(bytes(MEGABYTE)) + zeros.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    twice = zlib.compress(start + more * 3000, 9)
    content = b"<</Filter[/FlateDecode/FlateDecode]/Length %d>>stream\n%s\nendstream" % (len(twice), twice)
    bomb = printed([]).replace(compressed(b"BT /F 10 Tf  ET"), content)

    request = pack(partial(block_list, bomb, url=URL, content_type="application/pdf"))
    ended = subprocess.run([sys.executable, *PARSER], input=request, capture_output=True, check=False)

    assert len(bomb) < 10_000
    assert ended.returncode == -signal.SIGABRT
    assert ended.stdout == b""


async def test_few_bodies_start_no_process() -> None:
    async with ParserPool(1, few=5) as readers:
        for _ in range(5):
            await readers.parse(answer(b"<p>x"), URL)
        await asyncio.sleep(0)

        assert children() == set()


async def test_what_an_expression_is_applied_to_is_read_elsewhere() -> None:
    async with ParserPool(0) as readers:
        found = await readers.parse(answer(b"<p>built in 12 ms"), URL, view=View(ignore_text=("[0-9]+ ms",)))

        assert len(readers.pids) == 1
        assert found is not None
        assert [place.text for place in found.blocks] == ["", "built in"]


async def test_a_reader_that_dies_costs_one_body_and_another_takes_its_place() -> None:
    async with ParserPool(1, few=0) as readers:
        (pid,) = await started(readers)
        os.kill(pid, signal.SIGSTOP)  # so that it has the body, and cannot be done with it
        reading = asyncio.create_task(readers.parse(answer(b"<p>x"), URL))
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)

        assert await reading is None
        assert await readers.parse(answer(b"<p>y"), URL) is not None
        assert pid not in children()
    assert children() == set()
