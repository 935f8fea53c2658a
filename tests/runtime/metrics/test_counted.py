"""Counts of crawling processes, summed over running and dead processes."""

import json
import logging
import multiprocessing
import os
import urllib.error
import urllib.request
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import AsyncMock
from uuid import uuid4

import pytest
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from crawler.core.change.change import Change
from crawler.core.domain import Suspension
from crawler.engine.stats import CrawlStats, LeaseResult
from crawler.errors import LeaseLost, StackFailed
from crawler.runtime.machine import Process, find_free_port, find_process
from crawler.runtime.metrics.counting import (
    MAX_REASONS,
    TOTAL,
    CountsWriter,
    CrawlCounts,
    ensure_metrics_folder,
    open_counts_writer,
    sum_counts,
    write_counts,
)
from crawler.runtime.metrics.endpoint import serve_metrics
from crawler.runtime.metrics.families import build_crawl_families, build_process_families


def stats(*, same: int = 0, requests: int = 0, failed: int = 0) -> CrawlStats:
    changes, reasons = Counter({Change.UNCHANGED: same, Change.UNKNOWN: failed}), Counter({"http_500": failed})
    return CrawlStats(changes=changes, reasons=reasons, failed=failed, requests=requests)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return ensure_metrics_folder(tmp_path)


def test_nothing_is_written_unless_metrics_are_served(tmp_path: Path) -> None:
    open_counts_writer(tmp_path).count_progress(uuid4(), stats(same=3))
    assert list(tmp_path.rglob("*")) == []


async def test_repeated_progress_of_a_lease_is_counted_once(tmp_path: Path, folder: Path) -> None:
    counted, one = open_counts_writer(tmp_path), uuid4()

    async def walk() -> LeaseResult:
        counted.count_progress(one, stats(same=3, requests=4))
        counted.count_progress(one, stats(same=5, requests=6, failed=1))
        return LeaseResult(stats(same=9, requests=10, failed=1), suspension=None)

    async def walk_held() -> LeaseResult:
        return LeaseResult(stats(same=1), Suspension(until=datetime.now(UTC), reason="error", rejections=0))

    await counted.crawl_lease(one, walk)
    await counted.crawl_lease(uuid4(), walk_held)
    found = sum_counts(folder)
    assert found.visits == {"unchanged": 10, "failed": 1}
    assert found.failures == {"http_500": 1}
    assert found.sums["requests"] == 10
    assert found.leases == {"done": 1, "held": 1}
    assert found.lease_seconds.total() == 2


async def test_failed_leases_are_counted_by_outcome(tmp_path: Path, folder: Path) -> None:
    counted = open_counts_writer(tmp_path)
    for error in (LeaseLost("taken"), ValueError("ours")):
        with pytest.raises(type(error)):
            await counted.crawl_lease(uuid4(), AsyncMock(side_effect=error))
    assert sum_counts(folder).leases == {"lost": 1, "broken": 1}


def one_process(home: Path, visits: int) -> None:
    """Count like a crawling process until it is killed."""
    counted, own = open_counts_writer(home), uuid4()
    for done in range(1, visits + 1):
        counted.count_progress(own, stats(same=done))
    os._exit(9)  # like kill -9, without cleanup


def test_killed_processes_are_counted_once(tmp_path: Path, folder: Path) -> None:
    context = multiprocessing.get_context("spawn")
    dead = [context.Process(target=one_process, args=(tmp_path, visits)) for visits in (7, 30)]
    for each in dead:
        each.start()
    for each in dead:
        each.join()
    open_counts_writer(tmp_path).count_progress(uuid4(), stats(same=100))

    assert [sum_counts(folder).visits["unchanged"] for _ in range(3)] == [137, 137, 137]
    assert len(list(folder.glob("*-*.json"))) == 1  # that of this process


def test_kill_between_merging_and_deleting_counts_nothing_twice(folder: Path) -> None:
    gone = Process(2**22 - 3, "another boot")
    file = folder / "1-dead.json"
    write_counts(file, gone, CrawlCounts(visits=Counter(unchanged=5)))
    saved = file.read_bytes()
    assert sum_counts(folder).visits["unchanged"] == 5
    file.write_bytes(saved)  # as if the merging process was killed before it deleted the file

    assert sum_counts(folder).visits["unchanged"] == 5
    assert not file.exists()


def test_unwritable_folder_is_logged_and_does_not_stop_the_crawl(tmp_path: Path, told: list[logging.LogRecord]) -> None:
    counted = CountsWriter(tmp_path / "nowhere" / "1-a.json")
    for done in (1, 2):
        counted.count_progress(uuid4(), stats(same=done))
    assert [each.getMessage() for each in told] == ["metrics.not_written"]


def test_number_of_reasons_is_limited() -> None:
    tally = CrawlCounts()
    for n in range(1000):
        tally.add(CrawlCounts(failures=Counter({f"reason_{n}": 1 + n % 3})))
    assert len(tally.failures) <= MAX_REASONS
    assert tally.failures.total() == sum(1 + n % 3 for n in range(1000))


def test_metrics_are_readable_by_the_parsers_of_prometheus(folder: Path, tmp_path: Path) -> None:
    me = find_process(os.getpid())
    assert me is not None
    tally = CrawlCounts(
        visits=Counter(unchanged=4, changed=1), failures=Counter({'od"d\nreason': 2}), sums=Counter(requests=7)
    )
    for seconds in (0.5, 2, 2, 3000):
        tally.count_lease("done", timedelta(seconds=seconds))
    write_counts(folder / "1-x.json", me, tally)
    port = find_free_port(str(tmp_path))
    alive = [True, False]

    def collected() -> list[Metric]:
        return [*build_crawl_families(sum_counts(folder)), *build_process_families(None)]

    with serve_metrics("127.0.0.1", port, collect=collected, is_alive=alive.pop):
        text = fetched(port, "/metrics")
        other = fetched(port, "/metrics", accept="application/openmetrics-text; version=1.0.0")
        assert list(open_metrics(other))  # type: ignore[no-untyped-call]
        with pytest.raises(urllib.error.HTTPError, match="503"):
            fetched(port, "/alive")
        assert fetched(port, "/alive") == "alive\n"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetched(port, "/")
        with (
            pytest.raises(StackFailed, match="RECRAWL_METRICS_PORT"),
            serve_metrics(
                "127.0.0.1",
                port,
                collect=collected,
                is_alive=alive.pop,
            ),
        ):
            pass

    samples = {(each.name, *each.labels.values()): each.value for each in samples_of(text)}
    assert samples["recrawl_visits_total", "unchanged"] == 4
    assert samples["recrawl_visits_total", "gone"] == 0
    assert samples["recrawl_failed_visits_total", 'od"d\nreason'] == 2
    assert samples["recrawl_requests_total",] == 7
    assert samples["recrawl_lease_seconds_bucket", "1.0"] == 1
    assert samples["recrawl_lease_seconds_bucket", "3.0"] == 3
    assert samples["recrawl_lease_seconds_bucket", "1800.0"] == 3
    assert samples["recrawl_lease_seconds_bucket", "+Inf"] == samples["recrawl_lease_seconds_count",] == 4
    assert samples["recrawl_processes", "self"] == 1
    assert samples["recrawl_memory_bytes", "self"] > 10e6


def samples_of(text: str) -> list[Sample]:
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def fetched(port: int, path: str, *, accept: str = "text/plain") -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"accept": accept})
    with urllib.request.urlopen(request, timeout=30) as response:
        return str(response.read().decode())


def test_total_of_an_earlier_version_is_read(folder: Path) -> None:
    (folder / TOTAL).write_text(json.dumps({"tally": {"visits": {"unchanged": 2}}, "taken": []}))
    assert sum_counts(folder).visits["unchanged"] == 2
