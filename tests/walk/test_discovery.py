"""What a crawl has that may only look at a tenth of a real site: by the order in which it takes new pages."""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from statistics import mean
from urllib.parse import urljoin

import pytest

from crawler.core.order import Order
from crawler.store.database import open_database
from tests.exact import power_iteration
from tests.walk.corpus import ORIGIN, Links, corpus, file_of, link_graph, on_site
from tests.walk.crawls import coins_missing, command
from tests.walk.static import StaticServer

pytestmark = [pytest.mark.corpus, pytest.mark.timeout(300), pytest.mark.xdist_group("documentation")]
TRIES = range(50)
BATCH = "1"  # page recorded at once, as published; what it links to is heard of only then

Place = Callable[[int], int]


@pytest.mark.parametrize(("package", "deep"), [("postgresql-doc-15", False), ("python3.11-doc", True)])
async def test_by_cash_a_tenth_of_a_real_site_holds_more_of_its_importance(
    package: str, deep: bool, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Than at random; and than breadth-first, but for a site whose first page links to all important ones.

    Source of the experiment: Baeza-Yates and others, "Crawling a country", WWW 2005.
    """
    root = corpus(package)
    graph = {page: links_in_order(root, page, among=links) for page, links in link_graph(root).items()}
    importance, tenth = power_iteration(graph), len(graph) // 10

    def held(pages: Sequence[str]) -> float:
        assert len(set(pages)) == tenth
        return sum(importance.get(page, 0.0) for page in pages)  # what is linked and not there has none

    def by(order: Order) -> float:
        return held(crawled(root, order, most=tenth, database_url=database_url, home=tmp_path))

    opic, breadth, queue = by(Order.OPIC), by(Order.BREADTH), held(walked(graph, tenth, place=first))
    chance = mean(held(walked(graph, tenth, place=anywhere(n))) for n in TRIES)
    best = sum(sorted(importance.values())[-tenth:])
    async with open_database(database_url) as db:
        assert await coins_missing(db) == 0
    with capsys.disabled():
        told = f"opic {opic:.3f}, breadth {breadth:.3f}, a queue {queue:.3f}, chance {chance:.3f}, the best {best:.3f}"
        print(f"\n{package}, {tenth} of {len(graph)} pages: {told}")  # noqa: T201  the figures are wanted

    assert min(opic, breadth) > 1.3 * chance
    if deep:
        assert opic > queue


def crawled(root: Path, order: Order, *, most: int, database_url: str, home: Path) -> list[str]:
    """The first pages that the real command fetches, on a server of their own."""

    def recrawl(*arguments: str) -> None:
        done = command(*arguments, database_url=database_url, home=home, RECRAWL_BATCH_VISITS=BATCH)
        assert done.returncode == 0, done.stderr

    with StaticServer(root) as server:
        recrawl("domains", "add", server.url, "--offline", "--allow-private", "--parallelism", "1", "--order", order)
        recrawl("crawl", server.url, "--pages", str(most))
        return [entry.path for entry in server.entries if entry.path != "/robots.txt"]


def links_in_order(root: Path, page: str, *, among: Collection[str]) -> list[str]:
    """The distinct pages that a page links to, itself left out, as a reader meets them."""
    links = Links()
    links.feed(file_of(root, page).read_text(encoding="utf-8", errors="replace"))
    paths = (on_site(urljoin(urljoin(ORIGIN + page, links.base), href.strip())) for href in links.hrefs)
    return list(dict.fromkeys(path for path in paths if path and path in among and path != page))


def first(waiting: int) -> int:
    """The page that was found first."""
    return 0


def anywhere(seed: int) -> Place:
    return random.Random(seed).randrange


def walked(graph: Mapping[str, Sequence[str]], most: int, *, place: Place) -> list[str]:
    """The first pages of a walk from the root that knows nothing of cash. place: which of so many comes next."""
    waiting, found = ["/"], {"/"}
    fetched: list[str] = []
    while len(fetched) < most:
        page = waiting.pop(place(len(waiting)))
        fetched.append(page)
        new = [link for link in graph[page] if link not in found]
        found.update(new)
        waiting += new
    return fetched
