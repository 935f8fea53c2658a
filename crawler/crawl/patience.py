"""Asking the store until it answers: while Postgres restarts or fails over, a lease pauses."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from crawler.core.domain import Lease
from crawler.errors import StoreUnavailable

log = logging.getLogger("recrawl.crawl")
T = TypeVar("T")

STORE_RETRY = timedelta(seconds=1)
STORE_PATIENCE = timedelta(minutes=10)  # a restart or a failover of Postgres is shorter


async def until_available(lease: Lease, ask: Callable[[bool], Awaitable[T]]) -> T:
    """What the store says, once it does. `ask` is told if it asked before. Raises StoreUnavailable in the end."""
    give_up_at = time.monotonic() + STORE_PATIENCE.total_seconds()
    again = False
    while True:
        try:
            return await ask(again)
        except StoreUnavailable as error:
            if time.monotonic() > give_up_at:
                raise
            log.warning("store.silent", extra={"domain": lease.domain.authority, "error": str(error)})
            again = True
            await asyncio.sleep(STORE_RETRY.total_seconds())
