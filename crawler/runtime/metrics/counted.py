"""What crawling processes count: each into a file of its own, in a folder of the home where they are added up.

Who counts needs no prometheus_client.
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
from crawler.json_lines import values_of
from crawler.runtime.machine import Process, held, private_folder, process, write_private

log = logging.getLogger("recrawl.metrics")

DONE, HELD, LOST, BROKEN, GIVEN_BACK = "done", "held", "lost", "broken", "given_back"
FAILED = "failed"  # the outcome of a look that told nothing
DEAD_LINK = "dead_link"  # of a look at a page that is not there and never was
# Upper bounds, in seconds: from a lease that found nothing due to one of a whole shift.
LEASE_BUCKETS = (1, 3, 10, 30, 60, 180, 600, 1800)
MOST_REASONS = 60  # each is a time series; further ones are counted together
OTHER_REASONS = "other"
SUMMED = ("requests", "received_bytes", "saved_bytes", "not_modified", "new", "read", "rendered", "refused")
TOTAL = "total.json"


@dataclass(slots=True)
class Tally:
    """Counts since the beginning.

    looks: by outcome.  failures: failed looks by reason.  leases: by how they ended.  sums: requests, bytes and pages
    by name.  lease_seconds: ended leases by place in LEASE_BUCKETS, the last place for those beyond all bounds.
    """

    looks: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    leases: Counter[str] = field(default_factory=Counter)
    sums: Counter[str] = field(default_factory=Counter)
    lease_seconds: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        """Add another tally's counts."""
        for each in fields(self):
            getattr(self, each.name).update(getattr(other, each.name))
        self._bound_reasons()

    def since(self, before: "Tally") -> "Tally":
        """What was counted after `before`, an earlier state of the same tally."""
        return Tally(**{each.name: getattr(self, each.name) - getattr(before, each.name) for each in fields(self)})

    def end_lease(self, how: str, lasted: timedelta) -> None:
        """Count a lease that has ended."""
        self.leases[how] += 1
        self.lease_seconds[str(bisect_left(LEASE_BUCKETS, lasted.total_seconds()))] += 1
        self.sums["lease_milliseconds"] += round(lasted.total_seconds() * 1000)

    @classmethod
    def of_json(cls, document: Mapping[str, Mapping[str, int]]) -> "Tally":
        """Return the tally that a document holds; what a later version counts beside is left out."""
        return cls(**{each.name: Counter(document.get(each.name, {})) for each in fields(cls)})

    def _bound_reasons(self) -> None:
        if len(self.failures) > MOST_REASONS:
            kept = dict(self.failures.most_common(MOST_REASONS - 1))
            rest = self.failures.total() - sum(kept.values())
            self.failures = Counter(kept)
            self.failures[OTHER_REASONS] += rest


def tally_of(stats: CrawlStats) -> Tally:
    """What a lease has counted so far."""
    looks = Counter({change.value: many for change, many in stats.changes.items() if change is not Change.UNKNOWN})
    looks[FAILED] = stats.changes[Change.UNKNOWN]
    looks[DEAD_LINK] = stats.dead_links
    sums = Counter({name: getattr(stats, name) for name in SUMMED})
    return Tally(looks=+looks, failures=Counter(stats.reasons), sums=+sums)


class Counted:
    """Counts into a file; one that cannot be written is told of once, and the crawl goes on. file: None writes nothing.

    A lease whose numbers are told several times is counted by what has come since.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._process = process(os.getpid())
        self._tally = Tally()
        self._seen: dict[UUID, Tally] = {}

    def progress(self, token: UUID, stats: CrawlStats) -> None:
        """Count what the lease of a token has recorded until now."""
        self._take(token, stats)
        self._write()

    async def lease(self, token: UUID, walk: Callable[[], Awaitable[LeaseResult]]) -> LeaseResult:
        """Walk the lease of a token, and count it by how that ends."""
        began, how = time.monotonic(), BROKEN
        try:
            result = await walk()
            how = HELD if result.hold is not None else DONE
            self._take(token, result.stats)
            return result
        except LeaseLost:
            how = LOST
            raise
        except Exception:
            raise
        except BaseException:  # cancelled: somebody wants this process to end
            how = GIVEN_BACK
            raise
        finally:
            self._seen.pop(token, None)
            self._tally.end_lease(how, timedelta(seconds=time.monotonic() - began))
            self._write()

    def _take(self, token: UUID, stats: CrawlStats) -> None:
        now = tally_of(stats)
        self._tally.add(now.since(self._seen.get(token, Tally())))
        self._seen[token] = now

    def _write(self) -> None:
        if self._file is None or self._process is None:
            return
        try:
            write_counts(self._file, self._process, self._tally)
        except OSError as error:
            log.warning("metrics.not_written", extra={"file": str(self._file), "error": repr(error)})
            self._file = None


def counted_into(home: Path) -> Counted:
    """What this process counts, for whoever serves the metrics of a home; for nobody where none is served."""
    folder = metrics_folder(home)
    return Counted(folder / f"{os.getpid()}-{secrets.token_hex(4)}.json" if folder.is_dir() else None)


def metrics_folder(home: Path) -> Path:
    """The folder of a home; counted is only where it is there, which whoever serves metrics sees to."""
    return home / "run" / "metrics"


def ensure_metrics_folder(home: Path) -> Path:
    """The folder, made where it is not there."""
    private_folder(home, "run")
    folder = metrics_folder(home)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def write_counts(file: Path, counting: Process, tally: Tally) -> None:
    """Leave what a process has counted; the folder is there."""
    document = {"pid": counting.pid, "birth": counting.birth, "tally": values_of(tally)}
    write_private(file, json.dumps(document))


def totals(folder: Path) -> Tally:
    """What all processes have counted, those that live and those that have ended.

    Files of ended processes are taken into one, so that the folder stays small. Whatever kills this in between, each is
    counted once: the one file says which it holds, before these are removed.
    """
    with held(folder / "lock"):
        kept = _read(folder / TOTAL) or {}
        total, taken = Tally.of_json(kept.get("tally", {})), set(kept.get("taken", ()))
        living, ended = Tally(), []
        for file in sorted(folder.glob("*-*.json")):
            document = _read(file)
            if file.name in taken or document is None:  # a killed process leaves none that is half written
                ended.append(file)
            elif Process(document["pid"], document["birth"]).is_running():
                living.add(Tally.of_json(document["tally"]))
            else:
                total.add(Tally.of_json(document["tally"]))
                ended.append(file)
        if ended:
            document = {"tally": values_of(total), "taken": [file.name for file in ended]}
            write_private(folder / TOTAL, json.dumps(document))
            for file in ended:
                file.unlink(missing_ok=True)
    living.add(total)
    return living


def _read(file: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(file.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return found
