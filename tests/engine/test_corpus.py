"""The independent walk finds what a reader can click on, and real documentation is available."""

from pathlib import Path

import pytest

from tests.engine.corpus import corpus, link_graph, linked_pages

PAGES = {
    "index.html": '<a href="a.html">a</a> <a href="/sub/">s</a> <a href="https://elsewhere.invalid/x.html">x</a>',
    "a.html": '<a href="#top"><a href="./a.html?print=1#end">p</a> <A HREF=" sub/b.html ">b</A> <a href="gone.html">',
    "sub/index.html": '<a href="../index.html">home</a> <a href="mailto:a@b.invalid">m</a> <a name="x">n</a>',
    "sub/b.html": '<base href="/sub/deep/"><a href="c%20d.html">c</a> <area href="picture.png"> <link href="/lonely.html">',  # noqa: E501
    "sub/deep/c d.html": "<!-- <a href='/lonely.html'> --> <a href=javascript:void(0)>j</a>",
    "lonely.html": "nobody links here",
    "sub/deep/picture.png": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in PAGES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_walk_finds_every_linked_page_and_no_other(root: Path) -> None:
    assert linked_pages(root) == {
        "/",
        "/index.html",
        "/a.html",
        "/a.html?print=1",
        "/sub/",
        "/sub/b.html",
        "/sub/deep/c%20d.html",
    }


def test_the_graph_has_each_link_once(root: Path) -> None:
    graph = link_graph(root, "/sub/")

    assert graph["/sub/"] == {"/index.html"}
    assert graph["/index.html"] == {"/a.html", "/sub/"}
    assert graph["/a.html"] == {"/a.html", "/a.html?print=1", "/sub/b.html"}
    assert graph["/sub/deep/c%20d.html"] == frozenset()
    assert "/" not in graph


@pytest.mark.soak
@pytest.mark.corpus
def test_real_documentation_can_be_had_and_walked() -> None:
    root = corpus("postgresql-doc-15")
    graph = link_graph(root)

    assert 1_100 < len(graph) < 1_300
    assert {"/", "/index.html", "/sql-select.html"} <= graph.keys()
    assert sum(map(len, graph.values())) > 5 * len(graph)
    assert corpus("postgresql-doc-15") == root
