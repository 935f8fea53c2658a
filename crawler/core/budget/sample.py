"""A domain as a random sample of its pages shows it: what its priors are fitted to, and what its price is solved on."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from crawler.core.budget.cost import Costs, Kind
from crawler.core.budget.page_arrays import Flags, Groups, Pages, pages_of, subset
from crawler.core.budget.shadow_price import Work
from crawler.core.freshness import PRIOR, Belief, Floats, Moments, moments, pooled, refit, weights_of, with_prior

COLUMNS = 9  # of a row: is_new, evidence_a, evidence_b, group, importance, asked, least, most, rides
ASKED = (Kind.FULL, Kind.CONDITIONAL, Kind.HEAD)  # how, by number
SAYS_NOTHING = float("nan")  # as least or most


def _no_priors() -> tuple[Belief, ...]:
    return (PRIOR,)


@dataclass(frozen=True, slots=True)
class Census:
    """Some pages of one domain by chance; columns of equal length, one entry a page.

    is_new: never asked for; the others are known and have a version to lose.  evidence_a, evidence_b: see core/prior.
    group: the number of the page's prior; 0 is that of the whole domain.  importance: the domain's mean page has 1.
    asked: how it is asked for, as the nth of ASKED.  least, most: what rules say of its interval, in days; nan where
    they say nothing.  rides: whether it shares another one's schedule (core/sharing).  share: of the domain's pages,
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
    rides: Flags
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


def census_of(
    rows: Sequence[Sequence[float]], *, share: float, priors: Sequence[Belief], costs: Costs, activity: float
) -> Census:
    """The census with these rows, each COLUMNS numbers in the order of its fields."""
    table = np.array(rows, dtype=np.float64).reshape(len(rows), COLUMNS)
    return Census(
        is_new=table[:, 0] > 0,
        evidence_a=table[:, 1],
        evidence_b=table[:, 2],
        group=np.minimum(table[:, 3].astype(np.intp), len(priors) - 1),
        importance=table[:, 4],
        asked=table[:, 5].astype(np.intp),
        least=table[:, 6],
        most=table[:, 7],
        rides=table[:, 8] > 0,
        share=share,
        priors=tuple(priors),
        costs=costs,
        activity=activity,
    )


def beliefs_in(census: Census, priors: Sequence[Belief]) -> tuple[Floats, Floats]:
    """Today's belief (a, b) of each page, on these priors."""
    a0 = np.array([prior.a for prior in priors])[census.group]
    b0 = np.array([prior.b for prior in priors])[census.group]
    return with_prior(census.evidence_a, census.evidence_b, a0, b0)


def moments_in(census: Census) -> Moments:
    """What the known pages say of each group, pages counted as the whole domain has them.

    Those without evidence say what the prior says, as in expectation maximisation: left out, the first pages that were
    looked at twice, which are those that change most, would speak for all.
    """
    told = ~census.is_new
    a, b = beliefs_in(census, census.priors)
    found = moments(a[told], b[told], census.group[told], groups=len(census.priors))
    return Moments(found.pages / census.share, found.rate, found.log_rate)


def refitted(censuses: Sequence[Census]) -> list[tuple[Belief, ...]]:
    """The priors of each domain after another look at all: templates lean on their domain, domains on all of them."""
    by_domain = [moments_in(census) for census in censuses]
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


def work_in(census: Census, priors: Sequence[Belief], *, least_days: float, most_days: float) -> Work:
    """What could be fetched of the domain. least_days, most_days: bounds of an interval where no rule says any.

    Pages that share a schedule count once, by who leads them. The tests of the others are rare, and left to the trim.
    """
    a, b = beliefs_in(census, priors)
    most = np.where(np.isnan(census.most), np.fmax(most_days, census.least), census.most)
    costs = [census.costs.of(kind) for kind in ASKED]
    pages = pages_of(
        a,
        b / census.activity,
        weights_of(census.importance),
        requests=np.array([cost.requests for cost in costs])[census.asked],
        received_bytes=np.array([cost.received_bytes for cost in costs])[census.asked],
        least=np.minimum(np.where(np.isnan(census.least), least_days, census.least), most),
        most=most,
        stands_for=1 / census.share,
        is_ruled=~np.isnan(census.most),
    )
    return Work(known=subset(pages, ~census.is_new & ~census.rides), new=subset(pages, census.is_new))


def joined(works: Sequence[Work], importances: Sequence[float]) -> Work:
    """The work of many domains as one; the nth domain's pages weigh importances[n] times as much."""
    return Work(
        known=_joined([work.known for work in works], importances),
        new=_joined([work.new for work in works], importances),
        domains=len(works),
    )


def _joined(parts: Sequence[Pages], importances: Sequence[float]) -> Pages:
    weights = [pages.weight * importance for pages, importance in zip(parts, importances, strict=True)]
    domains = [np.full(pages.a.shape, n, dtype=np.intp) for n, pages in enumerate(parts)]

    def one(columns: list[Floats]) -> Floats:
        return np.concatenate(columns) if columns else np.empty(0)

    return Pages(
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
