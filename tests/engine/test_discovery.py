"""What a crawl gets that may fetch only a tenth of a real site, by the order in which it fetches unfetched pages."""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from urllib.parse import urljoin

import pytest

from crawler.core.opic.order import Order
from crawler.store.database import open_database
from tests.engine.corpus import ORIGIN, Links, corpus, file_of, is_page, on_site
from tests.engine.crawls import coins_missing, command
from tests.engine.static import StaticServer
from tests.exact import power_iteration
from tests.patience import SLOW

pytestmark = [pytest.mark.corpus, SLOW, pytest.mark.xdist_group("documentation")]
TRIES = range(50)
NO_PAGE = re.compile(r"/robots\.txt|.*/0[0-9a-f]{32}")  # requested for the domain: its rules, and not-found probes
BATCH = "1"  # page recorded at once, as in the published experiment; its links are known only then

Place = Callable[[int], int]


@pytest.mark.soak
@pytest.mark.parametrize("package", ["postgresql-doc-15", pytest.param("python3.11-doc", marks=pytest.mark.soak)])
async def test_by_cash_a_tenth_of_a_real_site_holds_more_of_its_importance(
    package: str, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """More than in random order; and more than breadth-first, if that tenth is more than what the first page links to.

    Source of the experiment: Baeza-Yates and others, "Crawling a country", WWW 2005.
    """
    root = corpus(package)
    graph = pages_of(root)
    importance, tenth = power_iteration(graph), len(graph) // 10

    def held(pages: Sequence[str]) -> float:
        assert len(set(pages)) == tenth
        return sum(importance.get(page, 0.0) for page in pages)  # missing pages have no importance

    opic = held(crawled(root, Order.OPIC, most=tenth, database_url=database_url, home=tmp_path))
    queue = held(walked(graph, tenth, place=first))
    chance = mean(held(walked(graph, tenth, place=anywhere(n))) for n in TRIES)
    best = sum(sorted(importance.values())[-tenth:])
    async with open_database(database_url) as db:
        assert await coins_missing(db) == 0
    with capsys.disabled():
        told = f"opic {opic:.4f}, a queue {queue:.4f}, chance {chance:.4f}, the best {best:.4f}"
        print(f"\n{package}, {tenth} of {len(graph)} pages: {told}")  # noqa: T201  print the figures

    assert opic > 1.3 * chance
    if len(graph["/"]) > 0.9 * tenth:
        assert opic > 0.98 * queue, "the first tenth is little more than the root's links, in either order"
    else:
        assert opic > queue


def crawled(root: Path, order: Order, *, most: int, database_url: str, home: Path) -> list[str]:
    """Return the first pages that the real command fetches from a separate server."""

    def recrawl(*arguments: str) -> None:
        done = command(*arguments, database_url=database_url, home=home, RECRAWL_MAX_BATCH_SIZE=BATCH)
        assert done.returncode == 0, done.stderr

    with StaticServer(root) as server:
        alone = ("--parallelism", "1", "--render", "never")  # so that the log contains only pages
        recrawl("domains", "add", server.url, "--offline", "--allow-private", *alone, "--order", order)
        recrawl("crawl", server.url, "--pages", str(most))
        return [entry.path for entry in server.entries if not NO_PAGE.fullmatch(entry.path)]


def pages_of(root: Path) -> dict[str, list[str]]:
    """Return every page that links lead to from the root, with the other pages that it links to."""
    found: dict[str, list[str]] = {}
    waiting = ["/"]
    while waiting:
        page = waiting.pop()
        if page not in found:
            found[page] = links_in_order(root, page)
            waiting += found[page]
    return found


def links_in_order(root: Path, page: str) -> list[str]:
    """Return the distinct pages that a page links to, except itself, in reading order."""
    links = Links()
    links.feed(file_of(root, page).read_text(encoding="utf-8", errors="replace"))
    paths = (on_site(urljoin(urljoin(ORIGIN + page, links.base), href.strip())) for href in links.hrefs)
    return [path for path in dict.fromkeys(paths) if path and path != page and is_page(root, path)]


def first(waiting: int) -> int:
    """Choose the page that was found first."""
    return 0


def anywhere(seed: int) -> Place:
    return random.Random(seed).randrange


def walked(graph: Mapping[str, Sequence[str]], most: int, *, place: Place) -> list[str]:
    """Return the first pages of a walk from the root without cash. place: chooses the next of the waiting pages."""
    waiting, found = ["/"], {"/"}
    fetched: list[str] = []
    while len(fetched) < most:
        page = waiting.pop(place(len(waiting)))
        fetched.append(page)
        new = [link for link in graph[page] if link not in found]
        found.update(new)
        waiting += new
    return fetched
