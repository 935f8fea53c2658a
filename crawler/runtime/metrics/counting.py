"""The counts of crawling processes: one file per process in a folder of RECRAWL_HOME, and their sum.

This module does not need prometheus_client.
"""

import json
import logging
import os
import secrets
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from crawler.core.change.change import Change
from crawler.engine.stats import CrawlStats, LeaseResult
from crawler.errors import LeaseLost
from crawler.json_lines import get_field_values
from crawler.runtime.machine import Process, ensure_private_folder, find_process, hold_lock, write_private

log = logging.getLogger("recrawl.metrics")

# The outcomes of a lease. SUSPENDED: the domain was suspended.  LOST: another worker took it over.  BROKEN: an
# unexpected error.  GIVEN_BACK: this process was shutting down.
DONE, SUSPENDED, LOST, BROKEN, GIVEN_BACK = "done", "held", "lost", "broken", "given_back"
FAILED_VISIT = "failed"  # the outcome of a failed visit
DEAD_LINK = "dead_link"  # the outcome of a visit to a page that never existed
# Upper bounds in seconds, from a lease without due pages to a whole crawl run.
LEASE_BUCKETS = (1, 3, 10, 30, 60, 180, 600, 1800)
MAX_REASONS = 60  # each is a time series; if there are more, the rarest are counted as "other"
# The fields of CrawlStats that are summed up.
SUMMED = (
    *("requests", "received_bytes", "saved_bytes"),
    *("not_modified", "new_pages", "parsed_bodies", "rendered", "excluded"),
)
TOTAL = "total.json"


@dataclass(slots=True)
class CrawlCounts:
    """Counts of the crawls of one or more processes.

    visits: by outcome.  failures: failed visits by reason.  leases: by outcome.  sums: SUMMED and lease_milliseconds.
    lease_seconds: ended leases by index in LEASE_BUCKETS; longer ones have the index after the last.
    """

    visits: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    leases: Counter[str] = field(default_factory=Counter)
    sums: Counter[str] = field(default_factory=Counter)
    lease_seconds: Counter[str] = field(default_factory=Counter)

    def add(self, other: "CrawlCounts") -> None:
        """Add other counts."""
        for each in fields(self):
            getattr(self, each.name).update(getattr(other, each.name))
        if len(self.failures) > MAX_REASONS:
            most_common = Counter(dict(self.failures.most_common(MAX_REASONS - 1)))
            rest = self.failures.total() - most_common.total()
            self.failures = most_common + Counter({"other": rest})

    def subtract(self, before: "CrawlCounts") -> "CrawlCounts":
        """Return what was counted since `before`, an earlier state of these counts."""
        names = [each.name for each in fields(self)]
        return CrawlCounts(**{name: getattr(self, name) - getattr(before, name) for name in names})

    def count_lease(self, outcome: str, duration: timedelta) -> None:
        """Count a lease that has ended."""
        self.leases[outcome] += 1
        self.lease_seconds[str(bisect_left(LEASE_BUCKETS, duration.total_seconds()))] += 1
        self.sums["lease_milliseconds"] += round(duration.total_seconds() * 1000)

    @classmethod
    def from_json(cls, document: Mapping[str, Mapping[str, int]]) -> "CrawlCounts":
        """Return the counts in a document, without fields of later versions."""
        return cls(**{each.name: Counter(document.get(each.name, {})) for each in fields(cls)})


def build_counts(stats: CrawlStats) -> CrawlCounts:
    """Return the counts of a lease so far."""
    visits = Counter({change.value: many for change, many in stats.changes.items() if change is not Change.UNKNOWN})
    visits[FAILED_VISIT] = stats.changes[Change.UNKNOWN]
    visits[DEAD_LINK] = stats.dead_links
    sums = Counter({name: getattr(stats, name) for name in SUMMED})
    return CrawlCounts(visits=+visits, failures=Counter(stats.reasons), sums=+sums)


class CountsWriter:
    """A writer of the counts of this process. file: None to write nothing.

    After a write error, which is logged, it writes nothing more; the crawl continues.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._process = find_process(os.getpid())
        self._counts = CrawlCounts()
        self._counted: dict[UUID, CrawlCounts] = {}

    def count_progress(self, token: UUID, stats: CrawlStats) -> None:
        """Count what a lease has recorded since the last call. stats: the totals of the lease so far."""
        self._add_stats(token, stats)
        self._write()

    async def crawl_lease(self, token: UUID, crawl: Callable[[], Awaitable[LeaseResult]]) -> LeaseResult:
        """Run the crawl of a lease, and count the lease by its outcome."""
        began, outcome = time.monotonic(), BROKEN
        try:
            result = await crawl()
            outcome = SUSPENDED if result.suspension is not None else DONE
            self._add_stats(token, result.stats)
            return result
        except LeaseLost:
            outcome = LOST
            raise
        except Exception:
            raise
        except BaseException:  # canceled because the process is shutting down
            outcome = GIVEN_BACK
            raise
        finally:
            self._counted.pop(token, None)
            self._counts.count_lease(outcome, timedelta(seconds=time.monotonic() - began))
            self._write()

    def _add_stats(self, token: UUID, stats: CrawlStats) -> None:
        current = build_counts(stats)
        self._counts.add(current.subtract(self._counted.get(token, CrawlCounts())))
        self._counted[token] = current

    def _write(self) -> None:
        if self._file is None or self._process is None:
            return
        try:
            write_counts(self._file, self._process, self._counts)
        except OSError as error:
            log.warning("metrics.not_written", extra={"file": str(self._file), "error": repr(error)})
            self._file = None


def open_counts_writer(home: Path) -> CountsWriter:
    """Return the writer of this process; it writes nothing if the metrics of `home` were never served."""
    folder = get_metrics_folder(home)
    return CountsWriter(folder / f"{os.getpid()}-{secrets.token_hex(4)}.json" if folder.is_dir() else None)


def get_metrics_folder(home: Path) -> Path:
    """Return the folder of the counts, which the first process that serves the metrics creates."""
    return home / "run" / "metrics"


def ensure_metrics_folder(home: Path) -> Path:
    """Return the folder of the counts, and create it if it is missing."""
    ensure_private_folder(home, "run")
    folder = get_metrics_folder(home)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def write_counts(file: Path, counting_process: Process, counts: CrawlCounts) -> None:
    """Write the counts of a process. The folder must exist."""
    document = {"pid": counting_process.pid, "start_id": counting_process.start_id, "tally": get_field_values(counts)}
    write_private(file, json.dumps(document))


def sum_counts(folder: Path) -> CrawlCounts:
    """Return the sum of the counts of running and ended processes.

    The files of ended processes are merged into TOTAL, so the folder stays small. TOTAL lists the merged files before
    they are deleted, so each is counted once even if this process is killed.
    """
    with hold_lock(folder / "lock"):
        stored = _read_document(folder / TOTAL) or {}
        total, taken = CrawlCounts.from_json(stored.get("tally", {})), set(stored.get("taken", ()))
        living, ended = CrawlCounts(), []
        for file in sorted(folder.glob("*-*.json")):
            document = _read_document(file)
            if file.name in taken or document is None:  # files are written atomically, so None is a damaged file
                ended.append(file)
            elif Process(document["pid"], document["start_id"]).is_running():
                living.add(CrawlCounts.from_json(document["tally"]))
            else:
                total.add(CrawlCounts.from_json(document["tally"]))
                ended.append(file)
        if ended:
            document = {"tally": get_field_values(total), "taken": [file.name for file in ended]}
            write_private(folder / TOTAL, json.dumps(document))
            for file in ended:
                file.unlink(missing_ok=True)
    living.add(total)
    return living


def _read_document(file: Path) -> dict[str, Any] | None:
    try:
        document: dict[str, Any] = json.loads(file.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return document
