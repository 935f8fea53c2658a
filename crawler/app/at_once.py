"""Several questions to the database at once, for one page."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from crawler.errors import failure_in


@asynccontextmanager
async def at_once() -> AsyncIterator[asyncio.TaskGroup]:
    """Tasks that all have to succeed; where one fails, what a caller can do something about is raised, not a group."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        raise failure_in(group) from group
