"""Importance of domains: OPIC on the graph of domains instead of pages."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from crawler.core.opic.opic import VIRTUAL_PAGE_SHARE

TOLERANCE = 1e-9
MAX_ROUNDS = 500  # each multiplies the error by at most 1 - VIRTUAL_PAGE_SHARE


def compute_popularity(domains: Sequence[int], flows: Mapping[tuple[int, int], float]) -> dict[int, float]:
    """Return the importance of each domain from links between domains (mean 1).

    domains: distinct ids.  flows: by source and target domain, the importance that pages of the source pass to pages of
    the target, above 0, in any unit; a domain's cash is distributed in these proportions. Flows within a domain or with
    an unlisted one are ignored. The graph fits into memory, so the result is the fixpoint that OPIC approximates. The
    cash of a domain without links to others goes to all domains equally (the virtual page).
    Source: Abiteboul, Preda, Cobena, WWW 2003, sections 2 and 6 (links between sites mean more than links within one).
    """
    index_by_domain = {domain: n for n, domain in enumerate(domains)}
    links = {(a, b): flow for (a, b), flow in flows.items() if a != b and {a, b} <= index_by_domain.keys()}
    source, target = (np.array([index_by_domain[pair[n]] for pair in links], dtype=np.intp) for n in (0, 1))
    flow = np.array([*links.values()], dtype=np.float64)
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
