"""The priors of all domains, of their kinds and of all together, refitted from samples of the domains' pages."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crawler.core.budget.sample import PageSample, moments_in
from crawler.core.freshness.belief import Belief
from crawler.core.freshness.gamma import Floats
from crawler.core.freshness.prior import ALL_KINDS, NO_KIND, KindPrior, Moments, in_kind, pooled, prior_of_kind, refit

ROUNDS = 5  # of expectation maximization at a time, so that priors follow the first visits of a site within a day


@dataclass(frozen=True, slots=True)
class Refitted:
    """Priors after another look at all domains.

    domains: of each one, by number; 0 is that of the whole domain.  kinds: of each kind of site, and of ALL_KINDS.
    """

    domains: list[tuple[Belief, ...]]
    kinds: tuple[KindPrior, ...]


def refitted(samples: Sequence[PageSample], kinds: Sequence[str]) -> Refitted:
    """The priors of each domain and kind: templates lean on their domain, domains on their kind, kinds on all.

    kinds: of each domain. Those of NO_KIND lean on all.
    """
    found = _refitted_once(samples, kinds)
    for _ in range(ROUNDS - 1):
        samples = [replace(sample, priors=priors) for sample, priors in zip(samples, found.domains, strict=True)]
        found = _refitted_once(samples, kinds)
    return found


def _refitted_once(samples: Sequence[PageSample], kinds: Sequence[str]) -> Refitted:
    by_domain = [moments_in(sample) for sample in samples]
    domains = _stacked([pooled(templates) for templates in by_domain])
    looked_at = np.array([sample.looked_at for sample in samples])
    everywhere = pooled(domains)
    members = {kind: np.array([each == kind for each in kinds]) for kind in sorted(set(kinds) - {NO_KIND})}
    by_kind = {kind: in_kind(_of(domains, chosen), looked_at[chosen]) for kind, chosen in members.items()}
    members[ALL_KINDS] = np.ones(len(samples), np.bool_)
    return Refitted(
        domains=[
            _refitted(templates, everywhere, by_kind.get(kind))
            for templates, kind in zip(by_domain, kinds, strict=True)
        ],
        kinds=tuple(
            KindPrior(
                kind,
                prior_of_kind(by_kind.get(kind), everywhere=everywhere),
                pages=float(looked_at[chosen].sum()),
                domains=int((looked_at[chosen] > 0).sum()),
            )
            for kind, chosen in members.items()
        ),
    )


def _stacked(domains: Sequence[Moments]) -> Moments:
    return Moments(*np.array([(each.pages, each.rate, each.log_rate) for each in domains]).reshape(-1, 3).T)


def _of(domains: Moments, chosen: Floats) -> Moments:
    return Moments(domains.pages[chosen], domains.rate[chosen], domains.log_rate[chosen])


def _refitted(templates: Moments, everywhere: Moments, kind: Moments | None) -> tuple[Belief, ...]:
    a0, b0, domain = refit(templates, everywhere=everywhere, kind=kind)
    return domain, *(Belief(float(a), float(b)) for a, b in zip(a0[1:], b0[1:], strict=True))
