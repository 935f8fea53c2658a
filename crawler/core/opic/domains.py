"""Importance across domains: OPIC on the graph of domains instead of pages."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from crawler.core.opic.opic import VIRTUAL_PAGE_SHARE

TOLERANCE = 1e-9
MAX_ROUNDS = 500  # the error falls by the factor 1 - VIRTUAL_PAGE_SHARE in each


def compute_popularity(domains: Sequence[int], flows: Mapping[tuple[int, int], float]) -> dict[int, float]:
    """The importance of each domain by the links between domains (mean 1).

    domains: their ids, each once.  flows: from domain to domain, what its pages pass on along links to the other, in
    any unit, more than 0; a domain's cash leaves in these proportions. A flow from a domain to itself does not count.
    The graph is small enough to be at hand, so the result is the fixpoint that OPIC approaches step by step. A domain
    without links to others pays the virtual one, which pays all domains alike.
    Source: Abiteboul, Preda, Cobena, WWW 2003, sections 2 and 6 (links between sites say more than links within).
    """
    index_by_domain = {domain: n for n, domain in enumerate(domains)}
    links = [
        (index_by_domain[a], index_by_domain[b], flow)
        for (a, b), flow in flows.items()
        if a != b and a in index_by_domain and b in index_by_domain
    ]
    source = np.array([link[0] for link in links], dtype=np.intp)
    target = np.array([link[1] for link in links], dtype=np.intp)
    flow = np.array([link[2] for link in links], dtype=np.float64)
    count = len(domains)
    out = np.bincount(source, weights=flow, minlength=count)
    share = (1 - VIRTUAL_PAGE_SHARE) * flow / out[source]
    cash: npt.NDArray[np.float64] = np.ones(count)
    for _ in range(MAX_ROUNDS):
        along_links = np.bincount(target, weights=share * cash[source], minlength=count)
        next_cash = along_links + (count - along_links.sum()) / max(count, 1)
        if np.abs(next_cash - cash).sum() <= TOLERANCE * count:
            break
        cash = next_cash
    return {domain: float(cash[n]) for domain, n in index_by_domain.items()}
