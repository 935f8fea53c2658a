"""Graphs of links for experiments: made up, read from a folder of HTML, or taken from a domain."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from crawler.core.http.urls import Url, normalize_url
from crawler.core.page.content import extract_content

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

POWER = 2.1  # P(k) ~ k^-2.1 for k in-links; Abiteboul, Preda, Cobena, WWW 2003, section 6
ORIGIN = "http://directory.invalid"
HTML = frozenset({".html", ".htm", ".xhtml"})


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Pages 0 to n - 1 and the distinct links between them, without links of a page to itself.

    targets[starts[i]:starts[i + 1]]: where the links of page i lead.  urls: one for each page, or none at all.
    """

    starts: Ints
    targets: Ints
    urls: tuple[Url, ...] = ()

    @property
    def pages(self) -> int:
        return len(self.starts) - 1

    @property
    def links(self) -> int:
        return len(self.targets)

    @property
    def out_degrees(self) -> Ints:
        return np.diff(self.starts)

    @property
    def in_degrees(self) -> Ints:
        return np.bincount(self.targets, minlength=self.pages)

    @property
    def sources(self) -> Ints:
        """Return the source page of each link."""
        return np.repeat(np.arange(self.pages), self.out_degrees)

    def of(self, page: int) -> Ints:
        """Return where the links of one page lead."""
        return self.targets[self.starts[page] : self.starts[page + 1]]


def from_links(sources: Ints, targets: Ints, *, pages: int, urls: tuple[Url, ...] = ()) -> Graph:
    """Return the graph of these links, in order, without duplicates and links of a page to itself."""
    other = sources != targets
    pairs = sources[other].astype(np.int64) * pages + targets[other]
    distinct, firsts = np.unique(pairs, return_index=True)
    ordered = distinct[np.lexsort((firsts, distinct // pages))]
    starts = np.zeros(pages + 1, dtype=np.int64)
    np.cumsum(np.bincount(distinct // pages, minlength=pages), out=starts[1:])
    return Graph(starts=starts, targets=ordered % pages, urls=urls)


def from_rows(outlinks: Sequence[Sequence[int]], *, urls: tuple[Url, ...] = ()) -> Graph:
    """Return the graph in which page n links to the pages of row n."""
    sources = np.repeat(np.arange(len(outlinks)), [len(row) for row in outlinks])
    targets = np.fromiter((target for row in outlinks for target in row), dtype=np.int64, count=len(sources))
    return from_links(sources, targets, pages=len(outlinks), urls=urls)


def power_law(pages: int, *, seed: int) -> Graph:
    """Make up a web: in-links follow the power law and come from random pages.

    pages: 2 to some 100,000.  There are about four links per page; one page in seventy has none.
    """
    chance = np.random.default_rng(seed)
    degrees = np.arange(1, pages)
    weights = degrees.astype(np.float64) ** -POWER
    incoming = chance.choice(degrees, size=pages, p=weights / weights.sum())
    targets = np.repeat(np.arange(pages), incoming)
    sources = chance.integers(pages - 1, size=len(targets))
    return from_links(sources + (sources >= targets), targets, pages=pages)


def from_directory(folder: Path) -> Graph:
    """Read the graph of a folder's HTML files as the crawler does; page 0 is its index.html, if it has one.

    A link to a folder leads to the index.html in it.
    """
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in HTML and path.is_file())
    files.sort(key=lambda path: path != folder / "index.html")
    urls = [_url(folder, path) for path in files]
    numbers = _numbers(urls)
    outlinks = [
        [numbers[link] for link in _links(path, url) if link in numbers] for path, url in zip(files, urls, strict=True)
    ]
    return from_rows(outlinks, urls=tuple(urls))


def _url(folder: Path, path: Path) -> Url:
    url = normalize_url(f"{ORIGIN}/{quote(path.relative_to(folder).as_posix())}")
    assert url is not None  # a file's name is shorter than a URL may be
    return url


def _numbers(urls: Sequence[Url]) -> Mapping[Url, int]:
    """Return the number of each file by every URL that links may use; a folder's URL means its index.html."""
    numbers = {url: n for n, url in enumerate(urls)}
    folders = {Url(url.removesuffix("index.html")): n for url, n in numbers.items() if url.endswith("/index.html")}
    return folders | numbers


def _links(path: Path, url: Url) -> tuple[Url, ...]:
    page = extract_content(path.read_bytes(), url=url, content_type="text/html")
    return () if page.nofollow else page.links


def relinked(graph: Graph, share: float, *, seed: int) -> Graph:
    """Return the graph with this share of its links, 0 to 1, redirected to random pages."""
    chance = np.random.default_rng(seed)
    targets = graph.targets.copy()
    moved = chance.choice(graph.links, size=round(share * graph.links), replace=False)
    targets[moved] = chance.integers(graph.pages, size=len(moved))
    return from_links(graph.sources, targets, pages=graph.pages, urls=graph.urls)


def reweighed(graph: Graph, share: float, *, seed: int) -> Graph:
    """Return the graph in which this share of the pages, 0 to 1, has twice or half as many in-links, with equal chance.

    Added links come from random pages, and removed links are chosen at random. As in the paper's figure 4.
    """
    chance = np.random.default_rng(seed)
    touched = chance.choice(graph.pages, size=round(share * graph.pages), replace=False)
    doubled, halved = np.array_split(touched, 2)
    kept = ~(np.isin(graph.targets, halved) & (chance.random(graph.links) < 0.5))
    more = np.repeat(doubled, graph.in_degrees[doubled])
    return from_links(
        np.concatenate([graph.sources[kept], chance.integers(graph.pages, size=len(more))]),
        np.concatenate([graph.targets[kept], more]),
        pages=graph.pages,
        urls=graph.urls,
    )


def rows(graph: Graph) -> Iterator[list[int]]:
    """Yield where the links of each page lead, page by page."""
    targets, starts = graph.targets.tolist(), graph.starts.tolist()
    for n in range(graph.pages):
        yield targets[starts[n] : starts[n + 1]]
