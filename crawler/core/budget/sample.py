"""A random sample of a domain's pages, to which its priors are fitted and on which its price is solved."""

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawler.core.budget.cost import Costs, RequestKind
from crawler.core.budget.page_arrays import NOBODY, Flags, Groups, PageArrays, page_arrays, subset
from crawler.core.budget.shadow_price import Work
from crawler.core.freshness.estimates import DAY, PRIOR, Belief, amount_factor, expected_amount, refit_amounts
from crawler.core.freshness.gamma import Floats
from crawler.core.freshness.policies import BY_PRICE, PricePolicy, RevisitPolicy
from crawler.core.freshness.prior import (
    ALL_KINDS,
    NO_KIND,
    KindPrior,
    Moments,
    in_kind,
    moments,
    pooled,
    prior_of_kind,
    refit,
    with_prior,
)
from crawler.core.freshness.signals import NO_SOURCE, SourceWorth, signals_per_day
from crawler.core.freshness.value import weights_of

ROUNDS = 5  # of expectation maximization at a time, so that priors follow the first visits of a site within a day
REQUEST_KINDS = tuple(RequestKind)  # by the number in column `asked`
NO_RULE = float("nan")  # as least or most: no rule gives one


@dataclass(frozen=True, slots=True)
class PageSample:
    """A random sample of one domain's pages; columns of equal length, one entry a page.

    is_new: never asked for; the others are known and have a version.  evidence_a, evidence_b: see freshness/prior.
    group: the number of the page's prior; 0 is that of the whole domain.  importance: the domain's mean page has 1.
    asked: how the page is asked for, as index into REQUEST_KINDS.  least, most: bounds of its interval by rules, in
    days; NO_RULE where they say nothing.  follows: the page shares another one's schedule (freshness/shared_schedule).
    amount_total, amount_changes: of the changes found on it.  silent_days: since its last good look, by the site's
    clock, if no source has said anything of it since; else 0.  weight: as visits are scheduled by, its importance mixed
    with an equal share.
    share: of the domain's pages that are in the sample, above 0 and at most 1.  priors: so far, by number.
    source: the domain's source of signals that tells most, or NO_SOURCE.
    """

    is_new: Flags
    evidence_a: Floats
    evidence_b: Floats
    group: Groups
    importance: Floats
    asked: Groups
    least: Floats
    most: Floats
    follows: Flags
    amount_total: Floats
    amount_changes: Floats
    silent_days: Floats
    weight: Floats
    share: float = 1.0
    priors: tuple[Belief, ...] = (PRIOR,)
    costs: Costs = field(default_factory=Costs)
    source: SourceWorth = NO_SOURCE

    def counted_alike(self) -> "PageSample":
        """The sample with equal importance of all pages, which does not change what they weigh."""
        return replace(self, importance=np.ones_like(self.importance))

    def weighed_alike(self) -> "PageSample":
        """The sample with equal importance and weight of all pages."""
        return replace(self.counted_alike(), weight=np.ones_like(self.weight))

    @property
    def known(self) -> float:
        """Number of known pages of the domain, estimated from the sample."""
        return float((~self.is_new).sum()) / self.share

    @property
    def new(self) -> float:
        """Number of pages of the domain that were never asked for, estimated from the sample."""
        return float(self.is_new.sum()) / self.share

    @property
    def looked_at(self) -> float:
        """Number of known pages of the domain that were looked at again, estimated from the sample."""
        return float((~self.is_new & ((self.evidence_a > 0) | (self.evidence_b > 0))).sum()) / self.share

    @property
    def by_group(self) -> list[int]:
        """Number of pages of the domain with each prior, by the prior's number."""
        return [round(count / self.share) for count in np.bincount(self.group, minlength=len(self.priors))]


# The columns of the table, in the order of a row, and what they hold beside numbers.
COLUMNS = tuple(each.name for each in fields(PageSample) if each.default is MISSING and each.default_factory is MISSING)
KINDS = {"is_new": np.bool_, "group": np.intp, "asked": np.intp, "follows": np.bool_}


def sample_of(
    rows: Sequence[Sequence[float]],
    *,
    share: float,
    priors: Sequence[Belief],
    costs: Costs,
    source: SourceWorth = NO_SOURCE,
) -> PageSample:
    """The sample with these rows, each with a number for each of COLUMNS."""
    table = np.array(rows, dtype=np.float64).reshape(len(rows), len(COLUMNS)).T
    columns: dict[str, NDArray[Any]] = {
        name: column.astype(KINDS.get(name, np.float64)) for name, column in zip(COLUMNS, table, strict=True)
    }
    columns["group"] = np.minimum(columns["group"], len(priors) - 1)
    return PageSample(**columns, share=share, priors=tuple(priors), costs=costs, source=source)


def beliefs_in(sample: PageSample, priors: Sequence[Belief]) -> tuple[Floats, Floats]:
    """Today's belief (a, b) of each page, on these priors."""
    a0 = np.array([prior.a for prior in priors])[sample.group]
    b0 = np.array([prior.b for prior in priors])[sample.group]
    return with_prior(sample.evidence_a, sample.evidence_b, a0, b0)


def moments_in(sample: PageSample) -> Moments:
    """The moments of the known pages' beliefs by group, with pages counted as the whole domain has them.

    Pages without evidence count with their prior, as in expectation maximisation. Without them, the first pages that
    were looked at twice, which change most, would speak for all. So would those of which a source of signals told a
    change, which brings about a look, if it did not count that it was silent about the others.
    """
    is_known = ~sample.is_new
    a, b = beliefs_in(sample, sample.priors)
    b = b + sample.source.silence * sample.silent_days
    found = moments(a[is_known], b[is_known], sample.group[is_known], groups=len(sample.priors))
    return Moments(found.pages / sample.share, found.rate, found.log_rate)


def amounts_in(sample: PageSample) -> tuple[list[float], float]:
    """What each group makes expect of a change, by its number, and the mean over the known pages."""
    known = ~sample.is_new
    by_group, mean = refit_amounts(
        sample.amount_total[known], sample.amount_changes[known], sample.group[known], groups=len(sample.priors)
    )
    return by_group.tolist(), mean


def _amount_factors(sample: PageSample) -> Floats:
    """The factors on the pages' importance, by how much their changes change; 1 for those never fetched."""
    by_group, mean = amounts_in(sample)
    expected = expected_amount(sample.amount_total, sample.amount_changes, np.array(by_group)[sample.group])
    return np.where(sample.is_new, 1.0, amount_factor(expected, mean))


def work_in(
    sample: PageSample,
    priors: Sequence[Belief],
    *,
    least_days: float,
    most_days: float,
    by_amount: bool = True,
    revisit: RevisitPolicy = BY_PRICE,
) -> Work:
    """The pages of a domain that could be fetched, known and new, with what a look at each costs.

    least_days, most_days: bounds of an interval where no rule gives any.  by_amount: a change counts by how much it
    changes.  revisit: when pages are looked at again; where that is not the price, their gaps are bound to it.
    Pages that share a schedule count once, as the page that leads it. Looks that test the others are rare, and left to
    `price_correction`.
    """
    a, b = beliefs_in(sample, priors)
    most = np.where(np.isnan(sample.most), np.fmax(most_days, sample.least), sample.most)
    least = np.minimum(np.where(np.isnan(sample.least), least_days, sample.least), most)
    is_bound = ~sample.is_new & (not isinstance(revisit, PricePolicy))
    if is_bound.any():
        gap = np.clip(b / a if revisit.standing is None else revisit.standing / DAY, least, most)
        least, most = np.where(is_bound, gap, least), np.where(is_bound, gap, most)
    costs = [sample.costs.of(kind) for kind in REQUEST_KINDS]
    factors = _amount_factors(sample) if by_amount else 1.0
    source = NO_SOURCE if is_bound.any() else sample.source
    pages = page_arrays(
        a=a,
        b=b,
        weight=weights_of(sample.weight * factors),
        importance=weights_of(sample.importance),
        requests=np.array([cost.requests for cost in costs])[sample.asked],
        received_bytes=np.array([cost.received_bytes for cost in costs])[sample.asked],
        least=least,
        most=most,
        domain=0,
        stands_for=1 / sample.share,
        is_ruled=~np.isnan(sample.most) | is_bound,
        recall=source.silence,
        ratio=source.recall / source.noise if source.noise else 0.0,
        signals_per_day=signals_per_day(source, a / b),
    )
    return Work(known=subset(pages, ~sample.is_new & ~sample.follows), new=subset(pages, sample.is_new))


def joined(works: Sequence[Work], importances: Sequence[float]) -> Work:
    """The work of many domains as one; the nth domain's pages weigh importances[n] times as much."""
    return Work(
        known=_joined([work.known for work in works], importances),
        new=_joined([work.new for work in works], importances),
        domains=len(works),
    )


def _joined(parts: Sequence[PageArrays], importances: Sequence[float]) -> PageArrays:
    if not parts:
        return NOBODY
    weighed = [
        replace(
            pages,
            weight=pages.weight * importance,
            importance=pages.importance * importance,
            domain=np.full(pages.a.shape, n, dtype=np.intp),
        )
        for n, (pages, importance) in enumerate(zip(parts, importances, strict=True))
    ]
    return PageArrays(
        **{each.name: np.concatenate([getattr(pages, each.name) for pages in weighed]) for each in fields(PageArrays)}
    )


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
    as_one = [pooled(templates) for templates in by_domain]
    domains = Moments(*np.array([(each.pages, each.rate, each.log_rate) for each in as_one]).reshape(-1, 3).T)
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


def _of(domains: Moments, chosen: Floats) -> Moments:
    return Moments(domains.pages[chosen], domains.rate[chosen], domains.log_rate[chosen])


def _refitted(templates: Moments, everywhere: Moments, kind: Moments | None) -> tuple[Belief, ...]:
    a0, b0, domain = refit(templates, everywhere=everywhere, kind=kind)
    return domain, *(Belief(float(a), float(b)) for a, b in zip(a0[1:], b0[1:], strict=True))
