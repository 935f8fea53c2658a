"""What importance is in truth: by power iteration, with numpy and nothing of ours."""

from collections.abc import Collection, Hashable, Mapping
from typing import Any, TypeVar

import numpy as np

TO_ALL = 0.15  # of each page's importance goes to all pages alike: the small edge to the virtual page
STEPS = 200

Page = TypeVar("Page", bound=Hashable)


def power_iteration(graph: Mapping[Page, Collection[Page]]) -> dict[Page, float]:
    """The share of importance of each page; they add up to 1. Leaves give all of theirs to all pages alike."""
    number = {page: n for n, page in enumerate(graph)}
    score = np.full(len(graph), 1 / len(graph))
    outlinks = [np.array([number[to] for to in links], dtype=int) for links in graph.values()]
    for _ in range(STEPS):
        after = np.zeros(len(graph))
        for n, targets in enumerate(outlinks):
            if len(targets):
                after[targets] += (1 - TO_ALL) * score[n] / len(targets)
        score = after + (1 - after.sum()) / len(graph)
    return dict(zip(graph, score.tolist(), strict=True))


def spearman(one: Any, other: Any) -> float:
    """How alike two columns of figures rank their rows, -1 to 1."""
    ranks = [values.argsort().argsort() for values in (one, other)]
    return float(np.corrcoef(*ranks)[0, 1])
