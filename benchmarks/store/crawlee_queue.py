"""Crawlee's request queue in the same Postgres (SqlStorageClient), of any size, and processes that use it.

SQL fills the queue with rows as Crawlee writes them. A process fetches requests and marks them as handled, several at a
time, as Crawlee's crawlers do. The queue stores no content, schedules nothing, and keeps the order of arrival.
"""

import asyncio
import logging
import time
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from crawlee import Request, service_locator
from crawlee.storage_clients import SqlStorageClient
from crawlee.storages import RequestQueue

from benchmarks.store.workers import Work, all_ready
from crawler.store.database import open_database

NAME = "bench"
TASKS = 10  # concurrent tasks per process, the initial number of Crawlee's crawlers
URL = "http://site.test/s1/p"
# Crawlee's request ID is the first 15 hexadecimal digits of the SHA-256 of the URL.
FILL = """
    INSERT INTO request_queue_records (request_id, request_queue_id, data, sequence_number, is_handled)
    SELECT ('x' || substr(encode(sha256(x.url::bytea), 'hex'), 1, 15))::bit(60)::bigint, q.request_queue_id,
           replace(%(data)s, %(like)s, x.url), n + 1, false
      FROM request_queues q, generate_series(1, %(pages)s) n, LATERAL (SELECT %(root)s || n AS url) x
     WHERE q.name = %(name)s
"""
COUNT = """
    UPDATE request_queues SET pending_request_count = %(pages)s + 1, total_request_count = %(pages)s + 1
     WHERE name = %(name)s
"""


@dataclass(frozen=True, slots=True)
class Part:
    """The work of one process."""

    url: str
    pages: int


@asynccontextmanager
async def queue_in(url: str) -> AsyncIterator[RequestQueue]:
    """Open the queue of a database; create it if it does not exist."""
    logging.getLogger("crawlee").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the storage is experimental
        client = SqlStorageClient(connection_string=url.replace("postgresql://", "postgresql+asyncpg://", 1))
    async with client:
        service_locator.storage_instance_manager.clear_cache()
        yield await RequestQueue.open(name=NAME, storage_client=client)


async def fill(url: str, pages: int) -> None:
    """Create a queue with `pages` requests in an empty database, plus one that Crawlee itself adds."""
    async with queue_in(url) as queue:
        like = f"{URL}0"
        request = Request.from_url(like)
        _ = await queue.add_request(request)
    values = {"data": request.model_dump_json(), "like": like, "pages": pages, "root": URL, "name": NAME}
    async with open_database(url, max_connections=1) as db:
        for statement in (FILL, COUNT):
            async with db.transaction() as connection:
                await connection.execute(statement.encode(), values)
        async with db.pool.connection() as connection:
            await connection.set_autocommit(True)  # VACUUM cannot run in a transaction
            await connection.execute("VACUUM (ANALYZE) request_queue_records")
            await connection.set_autocommit(False)


def handle(part: Part) -> Work:
    """Fetch requests and mark them as handled."""
    return asyncio.run(_handle(part))


async def _handle(part: Part) -> Work:
    async with queue_in(part.url) as queue:
        left = part.pages

        async def task() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                request = await queue.fetch_next_request()
                assert request is not None
                _ = await queue.mark_request_as_handled(request)

        all_ready()
        began, began_cpu = time.perf_counter(), time.process_time()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(TASKS):
                tasks.create_task(task())
        return Work(part.pages, time.perf_counter() - began, time.process_time() - began_cpu)
