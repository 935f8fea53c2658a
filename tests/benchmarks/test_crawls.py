"""Benchmarks of crawls run, on small sites, and count what the server gave."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.crawling import orchestration, revisit
from benchmarks.crawling.crawlers import Crawler
from benchmarks.crawling.crawls import Run, corpus_in, crawled_afresh
from benchmarks.crawling.first import costs
from benchmarks.harness.command import CommandFailed
from benchmarks.harness.nginx import NginxError, answers, find_nginx, folder_site, on_a_leash, serving
from benchmarks.harness.repeats import alternating, middle
from benchmarks.harness.virtual_site import pages_of, virtual_site
from crawler.runtime.postgres.cluster import Cluster, borrow_postgres
from tests.patience import SLOW, until

WALK = """
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for path in ("", "a.html", "none.html", "picture.png", "a.html"):
    try:
        opener.open(sys.argv[1] + path).read()
    except urllib.error.HTTPError:
        pass
"""
WORDS = ("apple", "birch", "cedar", "damson", "elder", "fir")


@pytest.fixture(scope="module", autouse=True)
def nginx() -> None:
    try:
        find_nginx()
    except NginxError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Six pages, each with words of its own, all linked from the first, and a picture."""
    folder = tmp_path / "a site"
    folder.mkdir()
    links = "".join(f'<a href="{word}.html">{word}</a> ' for word in WORDS)
    for word in ("index", *WORDS):
        text = f"<title>{word}</title><p>Of the {word} it is told at length that {word} leaves fall.</p>{links}"
        (folder / f"{word}.html").write_text(f"<!DOCTYPE html>{text}", encoding="utf-8")
    (folder / "picture.png").write_bytes(b"")
    return folder


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with borrow_postgres(tmp_path_factory.mktemp("home")) as cluster:
        yield cluster


def asked(url: str, **headers: str) -> int:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, headers=headers)) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def read(url: str) -> str:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url) as answer:
        return str(answer.read(), "utf-8")


def test_the_server_tells_what_it_was_asked(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(site)
    with serving(folder_site(Path()), folder_site(site.parent)) as server:
        first, second = server.urls
        assert [asked(first), asked(second + "a%20site/apple.html"), asked(first + "none")] == [200, 200, 404]
        told = list(server.requests())
        server.clear()
        assert asked(first, **{"If-None-Match": '"x"'}) == 200
        (later,) = server.requests()

    assert [(each.path, each.status) for each in told] == [("/", 200), ("/a%20site/apple.html", 200), ("/none", 404)]
    assert told[0].port != told[1].port
    assert all(each.began <= each.ended and each.sent_bytes > 100 and not each.is_conditional for each in told)
    assert later.is_conditional
    assert later.ended >= told[0].began
    with pytest.raises(urllib.error.URLError):
        asked(first)


@pytest.mark.skipif(not on_a_leash(), reason="there is no setpriv")
def test_the_server_ends_with_whoever_started_it(site: Path) -> None:
    words = "from benchmarks.harness.nginx import folder_site, serving\nfrom pathlib import Path\nimport sys, time\n"
    words += "with serving(folder_site(Path(sys.argv[1]))) as server:\n    print(server.url, flush=True)\n"
    words += "    time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", words, str(site)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rstrip("/\n").rpartition(":")[2])
        assert answers(port)
        process.kill()

    until(lambda: not answers(port))


def test_pages_are_those_that_the_server_gave_and_links_lead_to(site: Path, cluster: Cluster) -> None:
    walk = Crawler("walk", lambda url, _: [sys.executable, "-c", WALK, url])
    (site / "apple.html").rename(site / "a.html")
    (site / "index.html").write_text('<a href="a.html">a</a><a href="birch.html">b</a>', encoding="utf-8")

    run = crawled_afresh(walk, corpus_in(site), cluster, parallelism=1)

    assert (run.crawler, run.pages, run.unchanged) == ("walk", 2, 0)
    assert 0 < run.seconds < run.command_s


def test_a_crawler_that_fails_fails_the_benchmark(site: Path, cluster: Cluster) -> None:
    broken = Crawler("broken", lambda _url, _parallelism: ["sh", "-c", "exit 3"])

    with pytest.raises(CommandFailed, match="ended with 3"):
        crawled_afresh(broken, corpus_in(site), cluster, parallelism=1)


def test_what_a_single_page_costs_is_no_cost_of_a_page() -> None:
    idle = Run("x", 1, 0, 100, 1.0, 2.0, cpu_s=1.0, postgres_cpu_s=0.1, peak_bytes=0)
    run = Run("x", 101, 0, 100, 10.0, 11.0, cpu_s=1.5, postgres_cpu_s=0.2, peak_bytes=5 * 10**6)

    cost = costs(run, idle)

    assert (cost.per_second, cost.peak_mb) == (10.1, 5.0)
    assert cost.cpu_ms == pytest.approx(5)
    assert cost.all_cpu_ms == pytest.approx(6)


def test_repeats_go_to_and_fro_and_the_middle_is_taken_of_each_column() -> None:
    assert "".join(alternating("abc", 3)) == "abccbaabc"
    assert middle([(1, 30), (5, 10), (3, 20)]) == [3, 20]


@SLOW
@pytest.mark.parametrize("names", [("recrawl", "scrapy", "scrapy-postgres", "crawlee")])
def test_all_crawlers_find_every_page(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], names: tuple[str, ...]
) -> None:
    pytest.importorskip("scrapy", reason="make setup-bench installs it")
    options = ["--site", str(site), "--repeats", "1", "--json", "--home", str(tmp_path / "home")]

    assert main(["crawl", *options, "--only", *names]) == 0

    told = json.loads(capsys.readouterr().out)
    assert told["expected"] == 7
    runs = {run["crawler"]: run for run in told["runs"]}
    assert runs.keys() == set(names)
    assert all(run["pages"] == 7 for run in runs.values())
    assert runs["recrawl"]["peak_bytes"] > 0


@SLOW
def test_a_second_crawl_asks_for_all_and_gets_what_changed(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("scrapy", reason="make setup-bench installs it")
    monkeypatch.setattr(revisit, "SHARES", (0.0, 0.5))

    code = main(["revisit", "--site", str(site), "--repeats", "1", "--json", "--home", str(tmp_path / "home")])

    told = json.loads(capsys.readouterr().out)["crawls"]
    assert code == 0
    unchanged = {(each["crawler"], each["no"]): each["unchanged"] for each in told}
    assert [unchanged["scrapy-cache", no] for no in range(3)] == [0, 7, 3]
    assert unchanged["recrawl", 0] == 0
    assert 3 <= unchanged["recrawl", 1] <= 7  # a few are asked for in full, to test the validators
    assert 1 <= unchanged["recrawl", 2] <= 3


@pytest.mark.soak
@SLOW
def test_several_processes_crawl_each_domain_once(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--site", str(site), "--processes", "1", "2", "--domains", "3", "--repeats", "1", "--json"]

    assert main(["processes", *options, "--home", str(tmp_path / "home")]) == 0

    told = json.loads(capsys.readouterr().out)
    assert [(each["processes"], each["pages"]) for each in told] == [(1, 21), (2, 21)]
    assert all(each["cpu_s"] > 0 and each["postgres_cpu_s"] > 0 for each in told)


def test_a_virtual_site_is_a_tree_of_pages_that_say_different_things() -> None:
    with serving(virtual_site(depth=2)) as server:
        root, one, leaf = (read(server.url + path) for path in ("", "p1", "p12"))
        assert [asked(server.url + path) for path in ("p123", "q", "p1/")] == [404, 404, 404]

    assert [f'href="/p{n}"' in root for n in range(10)] == [True] * 10
    assert [f'href="/p1{n}"' in one for n in range(10)] == [True] * 10
    assert "href" not in leaf
    assert "$" not in root + one + leaf
    said = [set(page.split("<p>")[1].split(".")[0].split()) for page in (one, leaf)]
    assert len(said[0] & said[1]) < len(said[1]) / 2
    assert pages_of(2) == 111


@pytest.mark.soak
@SLOW
def test_memory_is_told_by_the_number_of_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "--pages", "60", "--json", "--home", str(tmp_path / "home")]) == 0

    told = json.loads(capsys.readouterr().out)
    assert told["visits"] == 60
    pages = [step[0] for step in told["steps"]]
    assert pages == sorted(pages)
    assert all(most >= last > 20e6 for _, most, last in told["steps"])


@pytest.mark.soak
@pytest.mark.xdist_group("stack")
@SLOW
def test_a_lease_costs_something_with_prefect_and_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orchestration, "SETTLE_S", 0.1)
    before = dict(os.environ)

    assert main(["orchestration", "--leases", "2", "--repeats", "1", "--json", "--home", str(tmp_path / "home")]) == 0

    told = json.loads(capsys.readouterr().out)
    assert {(each["by"], each["domains"]) for each in told} == {(by, n) for by in ("command", "flow") for n in (1, 3)}
    assert all(each["cpu_s"] > 0 and each["server_cpu_s"] >= 0 for each in told)
    assert dict(os.environ) == before
