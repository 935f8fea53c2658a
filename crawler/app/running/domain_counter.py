"""Large domains whose figures are not of late are counted while pages are shown: one after the other, each once."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

from crawler.core.domain import Domain
from crawler.errors import CrawlerError
from crawler.store import report
from crawler.store.database import Database
from crawler.store.report import Counting

log = logging.getLogger("recrawl.pages")


class DomainCounter:
    """Counts domains that it is told of, for as long as `run` does. now: knowledge time."""

    def __init__(self, db: Database, *, now: Callable[[], datetime]) -> None:
        self._db, self._now = db, now
        self._waiting: asyncio.Queue[Domain] = asyncio.Queue()
        self._known: set[int] = set()

    def want(self, domain: Domain) -> None:
        """Have a domain counted; does nothing if it waits or is being counted."""
        if domain.id not in self._known:
            self._known.add(domain.id)
            self._waiting.put_nowait(domain)

    async def has_figures(self, domain: Domain) -> bool:
        """Return whether a domain was ever counted. One that was not of late is counted from now on."""
        counting = await report.counting_of(self._db, domain, at=self._now())
        if counting is not Counting.DONE:
            self.want(domain)
        return counting is not Counting.NEVER

    async def run(self) -> None:
        """Count one after the other, and wait for more. What fails is logged, and tried again by who looks next."""
        while True:
            domain = await self._waiting.get()
            try:
                await report.keep_figures(self._db, domain, at=self._now())
            except CrawlerError as error:
                log.warning("figures.not_counted", extra={"figures": {"domain": domain.authority, "error": str(error)}})
            finally:
                self._known.discard(domain.id)
                self._waiting.task_done()

    async def done(self) -> None:
        """Wait until nothing is left to count."""
        await self._waiting.join()
