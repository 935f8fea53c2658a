"""All queries of the dashboard and the alerts, run against real metrics and a real database."""

import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import psycopg
import pytest
import yaml
from prometheus_client.core import Metric

from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.runtime.machine import find_free_port, find_process
from crawler.runtime.metrics.counting import CrawlCounts, ensure_metrics_folder, sum_counts, write_counts
from crawler.runtime.metrics.endpoint import StoredGauges, serve_metrics
from crawler.runtime.metrics.families import (
    MAX_DOMAINS,
    MAX_SUBSCRIPTIONS,
    build_crawl_families,
    build_domain_families,
    build_process_families,
    build_subscription_families,
)
from crawler.store import domains, report, subscriptions
from crawler.store.database import Database, open_database
from crawler.store.report import EventKind
from crawler.store.subscriptions import SubscriptionOptions
from tests.patience import until
from tests.store.report.test_sql_docs import looked_at

DEPLOYMENTS = Path(__file__).parents[2] / "deployments"
PANELS = json.loads((DEPLOYMENTS / "grafana" / "recrawl.json").read_text())["panels"]
TARGETS: list[tuple[str, dict[str, Any]]] = [(p["title"], t) for p in PANELS for t in p.get("targets", ())]
PROMQL = [(title, each["expr"]) for title, each in TARGETS if "expr" in each]
SQL = [(title, each["rawSql"], each["format"]) for title, each in TARGETS if "rawSql" in each]
ALERTS = [
    (rule["alert"], rule["expr"])
    for group in yaml.safe_load((DEPLOYMENTS / "prometheus" / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
NAME = re.compile(r"\brecrawl_[a-z0-9_]+")
QUIET = {"Failing pages"}  # queries without rows on a healthy system


def test_every_data_source_of_a_panel_is_provisioned() -> None:
    sources = yaml.safe_load((DEPLOYMENTS / "grafana" / "datasources.yaml").read_text())["datasources"]
    known = {(each["type"], each["uid"]) for each in sources}
    assert {(each["datasource"]["type"], each["datasource"]["uid"]) for _, each in TARGETS} == known
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    places = [panel["gridPos"] for panel in PANELS]
    taken = [(p["x"] + x, p["y"] + y) for p in places for x in range(p["w"]) for y in range(p["h"])]
    assert len(set(taken)) == len(taken), "two panels lie on each other"
    assert max(x for x, _ in taken) < 24


@pytest.fixture
async def lively(database_url: str) -> AsyncIterator[Database]:
    """Return a database with data of the last three days for all panels."""
    began = datetime.now(UTC) - timedelta(days=2)
    async with open_database(database_url) as db:
        how = DomainSettings(target_freshness=0.9)
        shop = await domains.register(db, Authority("shop.test"), scheme="http", domain_settings=how, at=began)
        await subscriptions.add_subscription(
            db, SubscriptionOptions("env:MAIL", frozenset({EventKind.CHANGED})), at=began
        )
        for day in range(3):
            await looked_at(db, shop, day, began=began)
        await report.append_to_feed(db, at=began + timedelta(days=3))
        async with db.transaction() as connection:
            for is_audit in (True, False):
                row = (shop.id, began.date(), is_audit, 200, 24, 27, 20)
                await connection.execute(b"INSERT INTO calibration VALUES (%s, %s, %s, %s, %s, %s, %s)", row)
        yield db


@pytest.mark.parametrize(("title", "query", "form"), SQL, ids=[title for title, _, _ in SQL])
async def test_each_sql_query_gives_rows_to_a_role_that_can_only_read_the_views(
    lively: Database, title: str, query: str, form: str
) -> None:
    name = f"grafana_{uuid4().hex[:12]}"
    role = await report.grant_reading(lively, name)
    try:
        with psycopg.connect(lively.url, user=name, password=role.password) as connection:
            found = connection.execute(query.encode())
            columns = [each.name for each in found.description or ()]
            rows = found.fetchall()
        if form == "time_series":
            assert columns == ["time", "metric", "value"]
            assert all(isinstance(row[0], datetime) and row[0].tzinfo for row in rows)
        assert rows or title in QUIET
    finally:
        await report.revoke_reading(lively, name)


async def test_domains_beyond_the_limit_are_summed_up(lively: Database) -> None:
    now = datetime.now(UTC)
    for n in range(4):
        how = DomainSettings(weight=0.1 * (n + 1))
        name = Authority(f"{'abcd'[n]}.test")
        await domains.register(lively, name, scheme="http", domain_settings=how, at=now)
    everything, calibration = await report.read_domain_gauges(lively, at=now, max_domains=MAX_DOMAINS)
    bounded, _ = await report.read_domain_gauges(lively, at=now, max_domains=3)

    assert len(everything) == 5
    (shop,) = (each for each in everything if each.domain == "shop.test")
    assert (shop.pages_fetched, shop.pages_gone, shop.domains) == (4, 1, 1)
    assert shop.freshness is not None
    assert shop.target_freshness == pytest.approx(0.9)
    assert shop.oldest_visit_s is not None
    assert [(each.audit, each.visits, each.found) for each in calibration] == [(False, 200, 27), (True, 200, 27)]
    assert len(bounded) == 3
    assert bounded[-1].domain == "(others)"
    assert bounded[-1].domains == 3
    assert sum(each.pages_fetched for each in bounded) == sum(each.pages_fetched for each in everything)


async def test_due_pages_are_counted(lively: Database) -> None:
    now = datetime.now(UTC)
    before, _ = await report.read_domain_gauges(lively, at=now, max_domains=MAX_DOMAINS)
    later, _ = await report.read_domain_gauges(lively, at=now + timedelta(days=400), max_domains=MAX_DOMAINS)
    assert before[0].due < later[0].due == 5


async def test_domain_waits_for_a_worker_only_if_it_can_be_leased(lively: Database) -> None:
    later = datetime.now(UTC) + timedelta(days=400)

    async def waiting() -> int:
        told, _ = await report.read_domain_gauges(lively, at=later, max_domains=MAX_DOMAINS)
        return told[0].waiting

    shop = await domains.find_domain(lively, Authority("shop.test"))
    assert shop is not None
    assert await waiting() == 1
    await domains.set_paused(lively, shop, paused=True)
    assert await waiting() == 0


async def test_frequent_scrapes_read_the_database_once(lively: Database) -> None:
    figures = StoredGauges(lively, now=lambda: datetime.now(UTC))
    first = await figures.read_families()
    assert await figures.read_families() is first


async def test_overdue_subscriptions_are_listed_the_longest_first(lively: Database) -> None:
    now = datetime.now(UTC) + timedelta(days=3)
    for _ in range(MAX_SUBSCRIPTIONS):  # they get no changes from before their creation
        await subscriptions.add_subscription(
            lively, SubscriptionOptions("env:MAIL", frozenset({EventKind.CHANGED})), at=now
        )
    (longest, *_) = states = await subscriptions.list_subscriptions(lively)
    families = {each.name: each.samples for each in build_subscription_families(states, at=now)}
    untold = {each.labels["subscription"]: each.value for each in families["recrawl_subscription_delay_seconds"]}
    assert longest.unread_since is not None
    assert len(untold) == MAX_SUBSCRIPTIONS
    assert untold[str(longest.id)] == (now - longest.unread_since).total_seconds() > 0
    assert {each.value for each in families["recrawl_subscription_dead_letters"]} == {0}

    await subscriptions.pause_subscription(lively, longest.id, at=now)
    (paused, *_) = await subscriptions.list_subscriptions(lively)
    assert paused.get_overdue_since(at=now + timedelta(days=1)) is None


@pytest.fixture
async def metrics(lively: Database, tmp_path: Path) -> AsyncIterator[tuple[int, set[str]]]:
    """Serve all metrics of workers and the web UI, and return the port and the metric names."""
    me, folder = find_process(os.getpid()), ensure_metrics_folder(tmp_path)
    assert me is not None
    tally = CrawlCounts(visits=Counter(same=40, changed=3), failures=Counter(http_500=2), sums=Counter(requests=50))
    tally.count_lease("done", timedelta(seconds=20))
    write_counts(folder / "1-x.json", me, tally)
    now = datetime.now(UTC)
    _, calibration = await report.read_domain_gauges(lively, at=now, max_domains=MAX_DOMAINS)
    when_all_are_due = now + timedelta(days=400)
    told, _ = await report.read_domain_gauges(lively, at=when_all_are_due, max_domains=MAX_DOMAINS)
    of_domains = list(build_domain_families(told, calibration))
    of_subscriptions = list(build_subscription_families(await subscriptions.list_subscriptions(lively), at=now))

    def collected() -> list[Metric]:
        tally.visits["unchanged"] += 30  # a crawl in progress
        write_counts(folder / "1-x.json", me, tally)
        return [
            *of_domains,
            *of_subscriptions,
            *build_crawl_families(sum_counts(folder)),
            *build_process_families(None),
        ]

    port = find_free_port(str(tmp_path))
    with serve_metrics("127.0.0.1", port, collect=collected, is_alive=lambda: True):
        yield port, {sample.name for family in collected() for sample in family.samples}


async def test_every_metric_of_a_query_exists(metrics: tuple[int, set[str]]) -> None:
    _, names = metrics
    for title, query in (*PROMQL, *ALERTS):
        assert set(NAME.findall(query)) <= names, title
        assert NAME.search(query) or query.startswith("absent(up"), title


async def test_prometheus_evaluates_each_query(metrics: tuple[int, set[str]], tmp_path: Path) -> None:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("there is no prometheus on this machine: apt-get install prometheus")
    with prometheus(program, tmp_path, scraped=metrics[0]) as own:
        until(lambda: rows_of(own, "count_over_time(recrawl_requests_total[1m]) > 3"))
        empty = [title for title, query in PROMQL if not rows_of(own, query)]
        for _, query in ALERTS:
            rows_of(own, query)  # an invalid query raises
    # The test has no workers and only this process.
    assert set(empty) <= {"Workers"}


@contextmanager
def prometheus(program: str, folder: Path, *, scraped: int) -> Iterator[str]:
    """Run a Prometheus that scrapes a port every second, and return the address of its API."""
    port = find_free_port(f"{folder} prometheus", excluded=(scraped,))
    job = {"job_name": "recrawl-worker", "static_configs": [{"targets": [f"127.0.0.1:{scraped}"]}]}
    configuration = {"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    words = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address=127.0.0.1:{port}"]
    with (folder / "prometheus.log").open("ab") as log:
        running = subprocess.Popen([program, *words], cwd=folder, stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait(60)


def rows_of(own: str, query: str) -> list[Any]:
    """Return the rows of a query; none while Prometheus starts."""
    # A query over minutes needs two samples, which are seconds apart here.
    asked = re.sub(r"\[\d+[mh]\]", "[1m]", query)
    try:
        with urllib.request.urlopen(f"{own}/api/v1/query?{urlencode({'query': asked})}", timeout=30) as response:
            answer = json.load(response)
    except urllib.error.HTTPError as error:
        if error.code == 503:
            return []
        raise AssertionError(f"{query}: {error.read().decode()}") from error
    except urllib.error.URLError:
        return []
    assert answer["status"] == "success"
    return list(answer["data"]["result"])
