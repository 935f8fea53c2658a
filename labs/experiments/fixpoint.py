"""True importance: the fixpoint of the link matrix, and the error of an estimate."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from crawler.core.opic.opic import VIRTUAL_PAGE_SHARE
from labs.experiments.graph import Floats, Graph

TOP_SHARE = 0.1  # the most important tenth, as in the paper's figure 3
CLOSE = 1e-12  # of the mean page's importance: the tolerance of the iteration


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors of an estimate.

    every, top: mean of |estimate - truth| / truth, of all pages and of the most important tenth.
    spearman: the rank correlation, -1 to 1.
    """

    every: float
    top: float
    spearman: float


def offline(graph: Graph, *, virtual_page_share: float = VIRTUAL_PAGE_SHARE) -> Iterator[Floats]:
    """Yield the off-line iteration's estimate after each pass over the whole graph, without end; the mean page's is 1.

    Every page distributes its cash over the pages it links to, less the share of the virtual page. A page without links
    gives all of it to the virtual page, which distributes it equally over all pages.
    """
    pages, out = graph.pages, graph.out_degrees
    sources, has_links = graph.sources, out > 0
    cash = np.ones(pages)
    while True:
        given = np.where(has_links, (1 - virtual_page_share) * cash, 0.0)
        each = given / np.maximum(out, 1)
        cash = np.bincount(graph.targets, weights=each[sources], minlength=pages) + (cash - given).sum() / pages
        yield cash


def fixpoint(graph: Graph, *, virtual_page_share: float = VIRTUAL_PAGE_SHARE) -> Floats:
    """Return each page's importance by power iteration, relative to the mean page's."""
    passes = offline(graph, virtual_page_share=virtual_page_share)
    before = next(passes)
    for cash in passes:
        if np.abs(cash - before).max() < CLOSE:
            return cash
        before = cash
    raise AssertionError("the iteration never ends")


def offline_errors(graph: Graph, *, passes: int, virtual_page_share: float = VIRTUAL_PAGE_SHARE) -> list[Errors]:
    """Return the errors of the off-line iteration after each of its first passes."""
    truth = fixpoint(graph, virtual_page_share=virtual_page_share)
    return [
        errors(estimate, truth) for estimate in islice(offline(graph, virtual_page_share=virtual_page_share), passes)
    ]


def errors(estimate: Floats, truth: Floats) -> Errors:
    """Compare an estimate with the truth, both relative to the mean page."""
    relative = np.abs(estimate - truth) / truth
    top = np.argsort(-truth, kind="stable")[: max(round(len(truth) * TOP_SHARE), 1)]
    return Errors(every=float(relative.mean()), top=float(relative[top].mean()), spearman=spearman(estimate, truth))


def spearman(one: Floats, other: Floats) -> float:
    """Return the rank correlation of two estimates; equal values share the mean of their ranks."""
    first, second = _places(one), _places(other)
    if first.std() == 0 or second.std() == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _places(values: Floats) -> Floats:
    """Return ranks; values that differ by less than the iteration's tolerance are equal."""
    rounded = np.round(values, 9)
    _, inverse, counts = np.unique(rounded, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middle: Floats = ends - (counts - 1) / 2.0
    return middle[inverse]
