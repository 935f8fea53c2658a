"""Bodies are read in other processes as they are here, and what breaks there breaks nothing else."""

import asyncio
import os
import signal
from datetime import timedelta

import psutil

from crawler.core.answer import Fetched
from crawler.core.change import understand
from crawler.core.urls import Url
from crawler.readers import Readers

URL = Url("http://site.test/page")


def answer(body: bytes) -> Fetched:
    return Fetched(
        status=200, body=body, received_bytes=len(body), elapsed=timedelta(0), content_type="text/html; charset=utf-8"
    )


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children() if "crawler.reader" in child.cmdline()}


async def started(readers: Readers) -> frozenset[int]:
    """The reading processes, once there are any."""
    while not readers.pids:
        await readers.read(answer(b"<p>x"), URL)
        await asyncio.sleep(0)
    return readers.pids


async def test_another_process_reads_what_this_one_does() -> None:
    pages = [b"<title>t</title><p>one <a href=/a>a</a>", b"", b"\xff\xfe<p>", b"%PDF-1.4", b"<p>" * 5000]
    async with Readers(2, few=0) as readers:
        await started(readers)
        found = await asyncio.gather(*(readers.read(answer(page), URL) for page in pages * 3))

    here = [understand(page, url=URL, content_type="text/html; charset=utf-8", robots_tag=None) for page in pages * 3]
    assert found == here
    assert children() == set()


async def test_few_bodies_start_no_process() -> None:
    async with Readers(1, few=5) as readers:
        for _ in range(5):
            await readers.read(answer(b"<p>x"), URL)
        await asyncio.sleep(0)

        assert children() == set()


async def test_a_reader_that_dies_costs_one_body_and_another_takes_its_place() -> None:
    async with Readers(1, few=0) as readers:
        (pid,) = await started(readers)
        os.kill(pid, signal.SIGSTOP)  # so that it has the body, and cannot be done with it
        reading = asyncio.create_task(readers.read(answer(b"<p>x"), URL))
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)

        assert await reading is None
        assert await readers.read(answer(b"<p>y"), URL) is not None
        assert pid not in children()
    assert children() == set()
