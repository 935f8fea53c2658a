"""The store benchmarks run on few pages and count claimed and recorded pages."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.store.queue import Round, figure
from benchmarks.store.served import shown
from benchmarks.store.workers import Work, all_ready, at_once
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from tests.patience import SLOW


@pytest.mark.soak
def test_work_of_several_processes_comes_back_in_order() -> None:
    assert [work.pages for work in at_once(counted, [3, 1, 2])] == [3, 1, 2]


def counted(pages: int) -> Work:
    all_ready()
    return Work(pages, 1.0, 0.0)


@SLOW
def test_claims_and_records_are_counted_for_recrawl_and_crawlee(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("crawlee", reason="make setup-bench installs it")
    options = ["--sizes", "240", "600", "--processes", "2", "--visits", "30", "--batch", "20", "--repeats", "1"]

    assert main(["queue", *options, "--json", "--home", str(tmp_path / "home")]) == 0

    results = json.loads(capsys.readouterr().out)["rounds"]
    assert {(each["what"], each["size"], each["pages"]) for each in results} == {
        (what, size, pages)
        for what, pages in (("revisit", 60), ("first visit", 20), ("crawlee queue", 60))
        for size in (240, 600)
    }
    assert all(each["per_second"] > 0 and each["cpu_s"] > 0 for each in results)


@pytest.mark.soak
@SLOW
def test_growth_reports_a_month_and_claims_with_nothing_due(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--domains", "3", "9", "--claims", "5", "--pages", "90", "--days", "3", "--json"]

    assert main(["growth", *options, "--home", str(tmp_path / "home")]) == 0

    results = json.loads(capsys.readouterr().out)
    assert [each["domains"] for each in results["claims"]] == [3, 9]
    assert results["visits"] > 5
    left = {each["table"]: each for each in results["left"]}
    written = {name: each["after"]["written"] - each["before"]["written"] for name, each in left.items()}
    assert written["visit"] == results["visits"]
    assert written["page"] >= results["visits"]
    assert written["domain_state"] > 0
    assert all(each["vacuumed"]["size_bytes"] > 0 for each in left.values())


@pytest.mark.soak
def test_each_page_of_the_web_ui_is_measured(database_url: str, tmp_path: Path) -> None:
    since = datetime(2026, 3, 1, tzinfo=UTC)
    great = Domain(1, Authority("great.test"), "http", frozenset(), False, since, DomainSettings())

    measured = list(shown(database_url, tmp_path, great, "small.test", pages=2000))

    assert {each.status for each in measured} <= {200, 400}  # 400, since the domains are not registered
    assert all(each.resident > 0 for each in measured)


def test_the_figure_shows_each_kind_by_size() -> None:
    rounds = [
        Round(what, size, pages=10, per_second=1.0, cpu_s=0.01, postgres_cpu_s=size / 1e6)
        for what in ("revisit", "crawlee queue")
        for size in (1000, 10_000)
        for _ in range(3)
    ]

    lines = {line.label: line.points for line in figure(rounds).series}

    assert lines.keys() == {"revisit", "crawlee queue"}
    assert [y for _, y in lines["revisit"]] == pytest.approx([1.1, 2.0])
