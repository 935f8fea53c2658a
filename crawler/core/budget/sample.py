"""A domain as a random sample of its pages shows it: what its priors are fitted to, and what its price is solved on."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from crawler.core.budget.cost import Costs, RequestKind
from crawler.core.budget.page_arrays import Flags, Groups, PageArrays, page_arrays, subset
from crawler.core.budget.shadow_price import Work
from crawler.core.freshness import PRIOR, Belief, Floats, Moments, moments, pooled, refit, weights_of, with_prior

COLUMNS = 9  # of a row: is_new, evidence_a, evidence_b, group, importance, asked, least, most, rides
ASKED = (RequestKind.FULL, RequestKind.CONDITIONAL, RequestKind.HEAD)  # how, by number
SAYS_NOTHING = float("nan")  # as least or most


def _no_priors() -> tuple[Belief, ...]:
    return (PRIOR,)


@dataclass(frozen=True, slots=True)
class PageSample:
    """Some pages of one domain by chance; columns of equal length, one entry a page.

    is_new: never asked for; the others are known and have a version to lose.  evidence_a, _b: core/freshness/prior.py.
    group: the number of the page's prior; 0 is that of the whole domain.  importance: the domain's mean page has 1.
    asked: how it is asked for, as the nth of ASKED.  least, most: what rules say of its interval, in days; nan where
    they say nothing.  rides: whether it shares another one's schedule.  share: of the domain's pages,
    how many these are: above 0, at most 1.  priors: as they are so far, by number.  activity: how many times its usual
    rate the domain changes at.
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
    share: float = 1.0
    priors: tuple[Belief, ...] = field(default_factory=_no_priors)
    costs: Costs = field(default_factory=Costs)
    activity: float = 1.0

    @property
    def known(self) -> float:
        """How many known pages the domain has, by the sample."""
        return float((~self.is_new).sum()) / self.share

    @property
    def new(self) -> float:
        """How many pages it has that were never asked for."""
        return float(self.is_new.sum()) / self.share

    @property
    def by_group(self) -> list[int]:
        """How many pages each prior stands for."""
        return [round(count / self.share) for count in np.bincount(self.group, minlength=len(self.priors))]


def sample_of(
    rows: Sequence[Sequence[float]], *, share: float, priors: Sequence[Belief], costs: Costs, activity: float
) -> PageSample:
    """The census with these rows, each COLUMNS numbers in the order of its fields."""
    table = np.array(rows, dtype=np.float64).reshape(len(rows), COLUMNS)
    return PageSample(
        is_new=table[:, 0] > 0,
        evidence_a=table[:, 1],
        evidence_b=table[:, 2],
        group=np.minimum(table[:, 3].astype(np.intp), len(priors) - 1),
        importance=table[:, 4],
        asked=table[:, 5].astype(np.intp),
        least=table[:, 6],
        most=table[:, 7],
        follows=table[:, 8] > 0,
        share=share,
        priors=tuple(priors),
        costs=costs,
        activity=activity,
    )


def beliefs_in(sample: PageSample, priors: Sequence[Belief]) -> tuple[Floats, Floats]:
    """Today's belief (a, b) of each page, on these priors."""
    a0 = np.array([prior.a for prior in priors])[sample.group]
    b0 = np.array([prior.b for prior in priors])[sample.group]
    return with_prior(sample.evidence_a, sample.evidence_b, a0, b0)


def moments_in(sample: PageSample) -> Moments:
    """What the known pages say of each group, pages counted as the whole domain has them.

    Those without evidence say what the prior says, as in expectation maximisation: left out, the first pages that were
    looked at twice, which are those that change most, would speak for all.
    """
    told = ~sample.is_new
    a, b = beliefs_in(sample, sample.priors)
    found = moments(a[told], b[told], sample.group[told], groups=len(sample.priors))
    return Moments(found.pages / sample.share, found.rate, found.log_rate)


def refitted(censuses: Sequence[PageSample]) -> list[tuple[Belief, ...]]:
    """The priors of each domain after another look at all: templates lean on their domain, domains on all of them."""
    by_domain = [moments_in(sample) for sample in censuses]
    domains = [pooled(templates) for templates in by_domain]
    everywhere = pooled(
        Moments(
            np.array([each.pages for each in domains]),
            np.array([each.rate for each in domains]),
            np.array([each.log_rate for each in domains]),
        )
    )
    return [_refitted(templates, everywhere) for templates in by_domain]


def _refitted(templates: Moments, everywhere: Moments) -> tuple[Belief, ...]:
    a0, b0, domain = refit(templates, everywhere=everywhere)
    return domain, *(Belief(float(a), float(b)) for a, b in zip(a0[1:], b0[1:], strict=True))


def work_in(sample: PageSample, priors: Sequence[Belief], *, least_days: float, most_days: float) -> Work:
    """What could be fetched of the domain. least_days, most_days: bounds of an interval where no rule says any.

    Pages that share a schedule count once, by who leads them. The tests of the others are rare, and left to the trim.
    """
    a, b = beliefs_in(sample, priors)
    most = np.where(np.isnan(sample.most), np.fmax(most_days, sample.least), sample.most)
    costs = [sample.costs.of(kind) for kind in ASKED]
    pages = page_arrays(
        a,
        b / sample.activity,
        weights_of(sample.importance),
        requests=np.array([cost.requests for cost in costs])[sample.asked],
        received_bytes=np.array([cost.received_bytes for cost in costs])[sample.asked],
        least=np.minimum(np.where(np.isnan(sample.least), least_days, sample.least), most),
        most=most,
        stands_for=1 / sample.share,
        is_ruled=~np.isnan(sample.most),
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
    weights = [pages.weight * importance for pages, importance in zip(parts, importances, strict=True)]
    domains = [np.full(pages.a.shape, n, dtype=np.intp) for n, pages in enumerate(parts)]

    def one(columns: list[Floats]) -> Floats:
        return np.concatenate(columns) if columns else np.empty(0)

    return PageArrays(
        a=one([pages.a for pages in parts]),
        b=one([pages.b for pages in parts]),
        weight=one(weights),
        requests=one([pages.requests for pages in parts]),
        received_bytes=one([pages.received_bytes for pages in parts]),
        least=one([pages.least for pages in parts]),
        most=one([pages.most for pages in parts]),
        domain=np.concatenate(domains) if domains else np.empty(0, dtype=np.intp),
        stands_for=one([pages.stands_for for pages in parts]),
        is_ruled=np.concatenate([pages.is_ruled for pages in parts]) if parts else np.empty(0, dtype=np.bool_),
    )
