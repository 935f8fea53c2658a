"""What a process counts of the leases that it, or a helper of its, crawls."""

import logging
import os
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from crawler.engine import CrawlStats, LeaseResult
from crawler.errors import LeaseLost
from crawler.runtime.machine import process
from crawler.runtime.metrics.folder import metrics_folder, write_counts
from crawler.runtime.metrics.tally import Tally, tally_of

log = logging.getLogger("recrawl.metrics")

DONE, HELD, LOST, BROKEN, GIVEN_BACK = "done", "held", "lost", "broken", "given_back"


class Counted:
    """Counts into a file; one that cannot be written is told of once, and the crawl goes on. file: None counts nothing.

    A lease whose numbers are told several times is counted by what has come since.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._process = process(os.getpid())
        self._tally = Tally()
        self._seen: dict[UUID, Tally] = {}

    def progress(self, token: UUID, stats: CrawlStats) -> None:
        """Count what the lease of a token has recorded until now."""
        if self._file is not None:
            self._take(token, stats)
            self._write()

    @asynccontextmanager
    async def lease(self, token: UUID) -> AsyncIterator["LeaseCount"]:
        """Count the lease of a token by how the block ends; `result` of what is given says how it went."""
        count, began, how = LeaseCount(), time.monotonic(), BROKEN
        try:
            yield count
            how = HELD if count.result is not None and count.result.hold is not None else DONE
        except LeaseLost:
            how = LOST
            raise
        except Exception:
            raise
        except BaseException:  # cancelled: somebody wants this process to end
            how = GIVEN_BACK
            raise
        finally:
            if self._file is not None:
                if count.result is not None:
                    self._take(token, count.result.stats)
                self._seen.pop(token, None)
                self._tally.end_lease(how, timedelta(seconds=time.monotonic() - began))
                self._write()

    def _take(self, token: UUID, stats: CrawlStats) -> None:
        now = tally_of(stats)
        self._tally.add(now.since(self._seen.get(token, Tally())))
        self._seen[token] = now

    def _write(self) -> None:
        assert self._file is not None
        if self._process is None:
            return
        try:
            write_counts(self._file, self._process, self._tally)
        except OSError as error:
            log.warning("metrics.not_written", extra={"file": str(self._file), "error": repr(error)})
            self._file = None


class LeaseCount:
    """How a lease went. result: None until it is known."""

    def __init__(self) -> None:
        self.result: LeaseResult | None = None


def counted_into(home: Path) -> Counted:
    """What this process counts, for whoever serves the metrics of a home; for nobody where none is served."""
    folder = metrics_folder(home)
    return Counted(folder / f"{os.getpid()}-{secrets.token_hex(4)}.json" if folder.is_dir() else None)
