"""A random sample of a domain's pages. Priors are fitted to it, and the shadow price is solved on it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from crawler.core.budget.cost import Costs, RequestKind
from crawler.core.budget.page_arrays import NO_PAGES, Flags, Groups, PageArrays, build_page_arrays, select_subset
from crawler.core.budget.shadow_price import Workload
from crawler.core.freshness.estimates import (
    DAY,
    PRIOR,
    RateEstimate,
    compute_clipped_factor,
    compute_expected_magnitude,
    refit_magnitudes,
)
from crawler.core.freshness.gamma import Floats
from crawler.core.freshness.policies import VALUE_POLICY, RevisitPolicy, ValuePolicy
from crawler.core.freshness.prior import (
    ALL_KINDS,
    NO_KIND,
    KindPrior,
    Moments,
    add_prior,
    compute_moments,
    fit_kind_prior,
    pool_kind,
    pool_moments,
    refit_priors,
)
from crawler.core.freshness.signals import NO_SOURCE, SourceQuality, estimate_signals_per_day
from crawler.core.freshness.visit_value import compute_weights

EM_ROUNDS = 5  # rounds of expectation maximization per plan; enough to follow a new site's visits within a day
REQUEST_KINDS = tuple(RequestKind)  # indexed by column `request_kind`
NO_RULE = float("nan")  # in min_interval and max_interval: not set by a rule


class PageSample(Struct, frozen=True):
    """A random sample of one domain's pages: columns of equal length, one entry per page.

    is_new: unfetched; the other pages are fetched and have a version.  rate_a, rate_b: the evidence of the page's own
    visits (core/freshness/prior.py).  group: the index of the page's prior; 0 is the prior of the whole domain.
    importance: the domain's mean page has 1.  request_kind: how the page is fetched, as an index into REQUEST_KINDS.
    min_interval, max_interval: bounds set by rules, in days, or NO_RULE.  follows: the page is a duplicate that follows
    another page's schedule (core/freshness/shared_schedule.py).  magnitude_total, magnitude_changes: the sum of its
    change magnitudes, and their number.
    silent_days: days of site activity since its last successful visit if no source has signaled a change since, else 0.
    weight: the weight for scheduling: importance mixed with an equal share.  share: the sampled share of the domain's
    pages, above 0 and at most 1.  priors: the current priors, by group.  costs: the cost of a visit, by request kind.
    source: the domain's best source of change signals.
    """

    is_new: Flags
    rate_a: Floats
    rate_b: Floats
    group: Groups
    importance: Floats
    request_kind: Groups
    min_interval: Floats
    max_interval: Floats
    follows: Flags
    magnitude_total: Floats
    magnitude_changes: Floats
    silent_days: Floats
    weight: Floats
    share: float = 1.0
    priors: tuple[RateEstimate, ...] = (PRIOR,)
    costs: Costs = field(default_factory=Costs)
    source: SourceQuality = NO_SOURCE

    def with_equal_importance(self) -> "PageSample":
        """Return the sample with equal importance and unchanged weights of all pages."""
        return replace(self, importance=np.ones_like(self.importance))

    def with_equal_weights(self) -> "PageSample":
        """Return the sample with equal importance and weight of all pages."""
        return replace(self.with_equal_importance(), weight=np.ones_like(self.weight))

    @property
    def fetched_pages(self) -> float:
        """Return the estimated number of fetched pages of the domain."""
        return float((~self.is_new).sum()) / self.share

    @property
    def unfetched_pages(self) -> float:
        """Return the estimated number of unfetched pages of the domain."""
        return float(self.is_new.sum()) / self.share

    @property
    def revisited_pages(self) -> float:
        """Return the estimated number of pages of the domain that were revisited."""
        return float((~self.is_new & ((self.rate_a > 0) | (self.rate_b > 0))).sum()) / self.share

    @property
    def pages_by_group(self) -> list[int]:
        """Return the estimated number of pages with each prior, in the order of `priors`."""
        return [round(count / self.share) for count in np.bincount(self.group, minlength=len(self.priors))]


# The columns in the order of a row, and the types of those that are not floats.
SAMPLE_COLUMNS = PageSample.__struct_fields__[: -len(PageSample.__struct_defaults__)]
COLUMN_TYPES = {"is_new": np.bool_, "group": np.intp, "request_kind": np.intp, "follows": np.bool_}


def build_sample(
    rows: Sequence[Sequence[float]],
    *,
    share: float,
    priors: Sequence[RateEstimate],
    costs: Costs,
    source: SourceQuality = NO_SOURCE,
) -> PageSample:
    """Build a sample from rows of numbers in the order of SAMPLE_COLUMNS."""
    table = np.array(rows, dtype=np.float64).reshape(len(rows), len(SAMPLE_COLUMNS)).T
    columns: dict[str, NDArray[Any]] = {
        name: column.astype(COLUMN_TYPES.get(name, np.float64))
        for name, column in zip(SAMPLE_COLUMNS, table, strict=True)
    }
    columns["group"] = np.minimum(columns["group"], len(priors) - 1)
    return PageSample(**columns, share=share, priors=tuple(priors), costs=costs, source=source)


def compute_estimates(sample: PageSample, priors: Sequence[RateEstimate]) -> tuple[Floats, Floats]:
    """Return the change-rate estimate (a, b) of each page with these priors."""
    a0 = np.array([prior.a for prior in priors])[sample.group]
    b0 = np.array([prior.b for prior in priors])[sample.group]
    return add_prior(sample.rate_a, sample.rate_b, a0, b0)


def compute_sample_moments(sample: PageSample) -> Moments:
    """Compute the moments of the fetched pages' change-rate estimates by group, scaled to the whole domain.

    Pages without evidence count with their prior, as in expectation maximization. Days without a signal count as days
    without a change, by the recall of the source. Otherwise the pages that are revisited first, because they change
    most or have a signal, would represent all pages.
    """
    is_fetched = ~sample.is_new
    a, b = compute_estimates(sample, sample.priors)
    b = b + sample.source.effective_recall * sample.silent_days
    groups = sample.group[is_fetched]
    moments = compute_moments(a[is_fetched], b[is_fetched], groups, group_count=len(sample.priors))
    return replace(moments, pages=moments.pages / sample.share)


def refit_sample_magnitudes(sample: PageSample) -> tuple[list[float], float]:
    """Return the expected change magnitude of each group, and the mean over fetched pages."""
    is_fetched = ~sample.is_new
    total, changes = sample.magnitude_total[is_fetched], sample.magnitude_changes[is_fetched]
    by_group, mean = refit_magnitudes(total, changes, sample.group[is_fetched], groups=len(sample.priors))
    return by_group.tolist(), mean


def _compute_magnitude_factors(sample: PageSample) -> Floats:
    """Return the factors on importance by expected change magnitude; 1 for unfetched pages."""
    by_group, mean = refit_sample_magnitudes(sample)
    group_mean = np.array(by_group)[sample.group]
    expected = compute_expected_magnitude(sample.magnitude_total, sample.magnitude_changes, group_mean)
    return np.where(sample.is_new, 1.0, compute_clipped_factor(expected, mean))


def build_workload(
    sample: PageSample,
    priors: Sequence[RateEstimate],
    *,
    min_interval_days: float,
    max_interval_days: float,
    by_magnitude: bool = True,
    revisit: RevisitPolicy = VALUE_POLICY,
) -> Workload:
    """Build the workload of a domain: all pages that can be fetched, and the cost of a visit to each.

    min_interval_days, max_interval_days: the bounds for pages whose rules set none.  by_magnitude: weigh changes by
    their magnitude.  revisit: the revisit policy; unless it is a ValuePolicy, it fixes the gaps of fetched pages.
    Pages with a shared schedule count once, as the canonical page. Visits that check duplicates are not counted.
    """
    a, b = compute_estimates(sample, priors)
    longest, shortest = sample.max_interval, sample.min_interval
    longest = np.where(np.isnan(longest), np.fmax(max_interval_days, shortest), longest)
    shortest = np.minimum(np.where(np.isnan(shortest), min_interval_days, shortest), longest)
    has_fixed_gap = ~sample.is_new & (not isinstance(revisit, ValuePolicy))
    if has_fixed_gap.any():
        gap = np.clip(b / a if revisit.fixed_interval is None else revisit.fixed_interval / DAY, shortest, longest)
        shortest, longest = np.where(has_fixed_gap, gap, shortest), np.where(has_fixed_gap, gap, longest)
    costs = [sample.costs.get_cost(kind) for kind in REQUEST_KINDS]
    factors = _compute_magnitude_factors(sample) if by_magnitude else 1.0
    source = NO_SOURCE if has_fixed_gap.any() else sample.source
    pages = build_page_arrays(
        a=a,
        b=b,
        weight=compute_weights(sample.weight * factors),
        importance=compute_weights(sample.importance),
        requests=np.array([cost.requests for cost in costs])[sample.request_kind],
        received_bytes=np.array([cost.received_bytes for cost in costs])[sample.request_kind],
        min_interval=shortest,
        max_interval=longest,
        domain=0,
        stands_for=1 / sample.share,
        is_ruled=~np.isnan(sample.max_interval) | has_fixed_gap,
        recall=source.effective_recall,
        ratio=source.recall / source.noise if source.noise else 0.0,
        signals_per_day=estimate_signals_per_day(source, a / b),
    )
    fetched = select_subset(pages, ~sample.is_new & ~sample.follows)
    return Workload(fetched, select_subset(pages, sample.is_new))


def join_workloads(workloads: Sequence[Workload], importances: Sequence[float]) -> Workload:
    """Join the workloads of many domains. importances: a factor on weight and importance of each domain's pages."""
    return Workload(
        fetched=_join_arrays([work.fetched for work in workloads], importances),
        unfetched=_join_arrays([work.unfetched for work in workloads], importances),
        domain_count=len(workloads),
    )


def _join_arrays(parts: Sequence[PageArrays], importances: Sequence[float]) -> PageArrays:
    if not parts:
        return NO_PAGES
    weighted: list[PageArrays] = []
    for n, (pages, factor) in enumerate(zip(parts, importances, strict=True)):
        domain = np.full(pages.a.shape, n, dtype=np.intp)
        weighted.append(
            replace(pages, weight=pages.weight * factor, importance=pages.importance * factor, domain=domain)
        )
    return PageArrays(
        *(np.concatenate([getattr(each, name) for each in weighted]) for name in PageArrays.__struct_fields__)
    )


class RefittedPriors(Struct, frozen=True):
    """Refitted priors.

    domains: the priors of each domain; the first is that of the whole domain.
    kinds: the prior of each kind of site, and of ALL_KINDS.
    """

    domains: list[tuple[RateEstimate, ...]]
    kinds: tuple[KindPrior, ...]


def refit_all_priors(samples: Sequence[PageSample], kinds: Sequence[str]) -> RefittedPriors:
    """Refit the priors of each domain and kind of site.

    Templates shrink toward their domain, domains toward their kind, and kinds toward all domains together.
    kinds: the kind of each domain; domains of NO_KIND shrink toward all domains.
    """
    priors_now = _refit_once(samples, kinds)
    for _ in range(EM_ROUNDS - 1):
        samples = [replace(sample, priors=priors) for sample, priors in zip(samples, priors_now.domains, strict=True)]
        priors_now = _refit_once(samples, kinds)
    return priors_now


def _refit_once(samples: Sequence[PageSample], kinds: Sequence[str]) -> RefittedPriors:
    by_domain = [compute_sample_moments(sample) for sample in samples]
    domain_moments = [pool_moments(templates) for templates in by_domain]
    domains = Moments(*np.array([(each.pages, each.rate, each.log_rate) for each in domain_moments]).reshape(-1, 3).T)
    revisited_pages = np.array([sample.revisited_pages for sample in samples])
    everywhere = pool_moments(domains)
    members = {kind: np.array([each == kind for each in kinds]) for kind in sorted(set(kinds) - {NO_KIND})}
    by_kind: dict[str, Moments] = {}
    for kind, chosen in members.items():
        selected = Moments(domains.pages[chosen], domains.rate[chosen], domains.log_rate[chosen])
        by_kind[kind] = pool_kind(selected, revisited_pages[chosen])
    members[ALL_KINDS] = np.ones(len(samples), np.bool_)
    domain_priors: list[tuple[RateEstimate, ...]] = []
    for templates, kind in zip(by_domain, kinds, strict=True):
        a0, b0, domain = refit_priors(templates, everywhere=everywhere, kind=by_kind.get(kind))
        rates = (RateEstimate(float(a), float(b)) for a, b in zip(a0[1:], b0[1:], strict=True))
        domain_priors.append((domain, *rates))
    kind_priors: list[KindPrior] = []
    for kind, chosen in members.items():
        prior, pages = fit_kind_prior(by_kind.get(kind), everywhere=everywhere), revisited_pages[chosen]
        kind_priors.append(KindPrior(kind, prior, pages=float(pages.sum()), domains=int((pages > 0).sum())))
    return RefittedPriors(domain_priors, tuple(kind_priors))
