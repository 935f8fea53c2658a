"""The crawl benchmarks run on small sites and count what the server sent."""

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
from benchmarks.crawling.sites import ELSEWHERE, list_pages, resize_site
from benchmarks.harness.command import CommandFailed
from benchmarks.harness.nginx import NginxError, find_nginx, folder_site, is_listening, serving, stop_with_parent
from benchmarks.harness.repeats import alternating, middle
from benchmarks.harness.virtual_site import pages_of, virtual_site
from crawler.runtime.postgres.cluster import Cluster, borrow_postgres
from tests.engine.corpus import linked_pages
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
    """Create six pages with different words, all linked from the first, and an image."""
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


def test_server_logs_its_requests(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(site)
    with serving(folder_site(Path()), folder_site(site.parent)) as server:
        first, second = server.urls
        assert [asked(first), asked(second + "a%20site/apple.html"), asked(first + "none")] == [200, 200, 404]
        results = list(server.requests())
        server.clear()
        assert asked(first, **{"If-None-Match": '"x"'}) == 200
        (later,) = server.requests()

    assert [(each.path, each.status) for each in results] == [("/", 200), ("/a%20site/apple.html", 200), ("/none", 404)]
    assert results[0].port != results[1].port
    assert all(each.began <= each.ended and each.sent_bytes > 100 and not each.is_conditional for each in results)
    assert later.is_conditional
    assert later.ended >= results[0].began
    with pytest.raises(urllib.error.URLError):
        asked(first)


@pytest.mark.skipif(not stop_with_parent(), reason="there is no setpriv")
def test_server_stops_with_its_parent_process(site: Path) -> None:
    words = "from benchmarks.harness.nginx import folder_site, serving\nfrom pathlib import Path\nimport sys, time\n"
    words += "with serving(folder_site(Path(sys.argv[1]))) as server:\n    print(server.url, flush=True)\n"
    words += "    time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", words, str(site)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rstrip("/\n").rpartition(":")[2])
        assert is_listening(port)
        process.kill()

    until(lambda: not is_listening(port))


@pytest.mark.soak
def test_counted_pages_are_linked_and_sent_by_the_server(site: Path, cluster: Cluster) -> None:
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


def test_cost_of_a_page_excludes_start_up() -> None:
    idle = Run("x", 1, 0, 100, 1.0, 2.0, cpu_s=1.0, postgres_cpu_s=0.1, peak_bytes=0)
    run = Run("x", 101, 0, 100, 10.0, 11.0, cpu_s=1.5, postgres_cpu_s=0.2, peak_bytes=5 * 10**6)

    cost = costs(run, idle)

    assert (cost.per_second, cost.peak_mb) == (10.1, 5.0)
    assert cost.cpu_ms == pytest.approx(5)
    assert cost.all_cpu_ms == pytest.approx(6)


def test_repeats_alternate_and_medians_are_per_column() -> None:
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

    results = json.loads(capsys.readouterr().out)
    assert results["expected"] == 7
    runs = {run["crawler"]: run for run in results["runs"]}
    assert runs.keys() == set(names)
    assert all(run["pages"] == 7 for run in runs.values())
    assert runs["recrawl"]["peak_bytes"] > 0


@SLOW
def test_second_crawl_requests_all_pages_and_receives_changed_ones(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("scrapy", reason="make setup-bench installs it")
    monkeypatch.setattr(revisit, "SHARES", (0.0, 0.5))

    code = main(["revisit", "--site", str(site), "--repeats", "1", "--json", "--home", str(tmp_path / "home")])

    results = json.loads(capsys.readouterr().out)["crawls"]
    assert code == 0
    unchanged = {(each["crawler"], each["no"]): each["unchanged"] for each in results}
    assert [unchanged["scrapy-cache", no] for no in range(3)] == [0, 7, 3]
    assert unchanged["recrawl", 0] == 0
    assert 3 <= unchanged["recrawl", 1] <= 7  # some pages are requested in full, as validator checks
    assert 1 <= unchanged["recrawl", 2] <= 3


@pytest.mark.soak
@SLOW
def test_several_processes_crawl_each_domain_once(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--site", str(site), "--processes", "1", "2", "--domains", "3", "--repeats", "1", "--json"]

    assert main(["processes", *options, "--home", str(tmp_path / "home")]) == 0

    results = json.loads(capsys.readouterr().out)
    assert [(each["processes"], each["pages"]) for each in results] == [(1, 21), (2, 21)]
    assert all(each["cpu_s"] > 0 and each["postgres_cpu_s"] > 0 for each in results)


def test_virtual_site_is_a_tree_of_different_pages() -> None:
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
def test_memory_is_reported_by_number_of_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "--pages", "60", "--json", "--home", str(tmp_path / "home")]) == 0

    results = json.loads(capsys.readouterr().out)
    assert results["visits"] == 60
    pages = [step[0] for step in results["steps"]]
    assert pages == sorted(pages)
    assert all(most >= last > 20e6 for _, most, last in results["steps"])


@pytest.mark.soak
@pytest.mark.xdist_group("stack")
@SLOW
def test_cost_of_a_lease_is_measured_with_and_without_prefect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orchestration, "SETTLE_S", 0.1)
    before = dict(os.environ)

    assert main(["orchestration", "--leases", "2", "--repeats", "1", "--json", "--home", str(tmp_path / "home")]) == 0

    results = json.loads(capsys.readouterr().out)
    assert {(each["by"], each["domains"]) for each in results} == {
        (by, n) for by in ("command", "flow") for n in (1, 3)
    }
    assert all(each["cpu_s"] > 0 and each["server_cpu_s"] >= 0 for each in results)
    assert dict(os.environ) == before


def test_a_site_is_cut_or_copied_to_a_size_without_dead_links(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    (whole / "index.html").write_text('<body><a href="a.html">a</a> <a href="b.html#x">b</a></body>', encoding="utf-8")
    for name in "ab":
        (whole / f"{name}.html").write_text('<body><a href="/">home</a><a href="b.html">b</a></body>', encoding="utf-8")

    cut = resize_site(whole, 2, tmp_path / "cut")
    assert len(cut.linked) == 2
    assert linked_pages(cut.root) == cut.linked
    assert ELSEWHERE in (cut.root / "index.html").read_text(encoding="utf-8")
    copied = resize_site(whole, 6, tmp_path / "copied")
    assert {"/", "/0/", "/0/a.html", "/1/b.html"} <= copied.linked
    listed = list_pages(sorted(whole.glob("*.html"))[:2], tmp_path / "listed")
    assert linked_pages(listed.root) == listed.linked == {"/", "/a.html", "/b.html"}
