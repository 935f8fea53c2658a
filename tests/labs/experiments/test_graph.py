from pathlib import Path

import numpy as np
import pytest

from crawler.core.http.urls import Url
from labs.experiments.graph import Graph, from_directory, from_links, from_rows, power_law, relinked, reweighed, rows


def pairs(graph: Graph) -> set[tuple[int, int]]:
    return set(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))


def test_links_keep_their_order_and_count_once_and_never_lead_to_their_own_page() -> None:
    graph = from_rows([[2, 1, 2, 0], [], [2, 0]])

    assert list(rows(graph)) == [[2, 1], [], [0]]
    assert (graph.pages, graph.links) == (3, 3)
    assert graph.out_degrees.tolist() == [2, 0, 1]
    assert graph.in_degrees.tolist() == [1, 1, 1]
    assert graph.of(0).tolist() == [2, 1]


def test_a_graph_may_be_without_links() -> None:
    graph = from_links(np.array([], dtype=np.int64), np.array([], dtype=np.int64), pages=3)

    assert list(rows(graph)) == [[], [], []]


def test_incoming_links_follow_the_power_law() -> None:
    degrees = power_law(20_000, seed=1).in_degrees

    # 1/zeta(2.1) = 0.641 of the pages have one link, and twice as many links are 2^2.1 = 4.3 times as rare.
    assert abs((degrees == 1).mean() - 0.641) < 0.02
    assert abs((degrees == 1).sum() / (degrees == 2).sum() - 2**2.1) < 0.3
    assert degrees.max() > 500


def test_a_made_up_graph_is_the_same_for_the_same_seed() -> None:
    assert pairs(power_law(500, seed=7)) == pairs(power_law(500, seed=7)) != pairs(power_law(500, seed=8))


def page(folder: Path, path: str, *hrefs: str, head: str = "") -> None:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    anchors = "".join(f'<a href="{href}">x</a>' for href in hrefs)
    file.write_text(f"<html><head><title>t</title>{head}</head><body>{anchors}</body></html>", encoding="utf-8")


def test_a_folder_of_html_is_read_as_the_crawler_reads_it(tmp_path: Path) -> None:
    page(tmp_path, "about.html", "index.html#top", "missing.html", "https://elsewhere.test/")
    page(tmp_path, "index.html", "./about.html", "guide/", "a%20b.htm?", "about.html#again")
    page(tmp_path, "guide/index.html", "../", "../about.html")
    page(tmp_path, "a b.htm", "index.html", head='<meta name="robots" content="nofollow">')
    (tmp_path / "notes.txt").write_text('<a href="index.html">no page</a>', encoding="utf-8")

    graph = from_directory(tmp_path)

    names = [url.removeprefix("http://directory.invalid/") for url in graph.urls]
    assert names[0] == "index.html"
    links = {(names[a], names[b]) for a, b in pairs(graph)}
    assert links == {
        ("index.html", "about.html"),
        ("index.html", "guide/index.html"),
        ("index.html", "a%20b.htm"),
        ("about.html", "index.html"),
        ("guide/index.html", "index.html"),
        ("guide/index.html", "about.html"),
    }


def test_a_folder_without_html_is_a_graph_without_pages(tmp_path: Path) -> None:
    assert from_directory(tmp_path).pages == 0


def test_relinking_moves_about_that_share_of_the_links_and_keeps_what_the_pages_are() -> None:
    before = from_rows(list(rows(power_law(3000, seed=1))), urls=(Url("http://a.test/"),) * 3000)

    after = relinked(before, 0.1, seed=2)

    assert abs(len(pairs(before) & pairs(after)) / before.links - 0.9) < 0.01
    assert after.links > 0.99 * before.links
    assert after.urls == before.urls


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_reweighing_doubles_or_halves_the_links_to_that_share_of_the_pages(share: float) -> None:
    before = power_law(5000, seed=1)

    after = reweighed(before, share, seed=2)

    was, now = before.in_degrees, after.in_degrees
    popular = was >= 8
    changed = abs(now[popular] / was[popular] - 1) > 0.1
    assert abs(changed.mean() - share) < 0.05
    grown = now[popular & (now > was)]
    assert share == 0.0 or abs(grown.sum() / was[popular & (now > was)].sum() - 2) < 0.1
