"""Forecast: the freshness that a domain gets of the requests it makes, and of a tenth to ten times as many."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from crawler.core.budget.constraints import UNLIMITED, DomainLimits, budget_for, requests_for
from crawler.core.budget.cost import Price
from crawler.core.budget.domain_prices import DomainPlan, requests_at, solve_plans
from crawler.core.budget.expected import FACTORS, PolicyForecast, compare_policies, expected_in_one
from crawler.core.budget.page_arrays import SAMPLE
from crawler.core.budget.shadow_price import Budget, Work
from crawler.core.domain import Domain
from crawler.core.freshness.policies import BY_PRICE
from crawler.errors import BadInput
from crawler.planner.plan import (
    DomainForecast,
    domain_forecasts,
    limits_of,
    overall_of,
    policy_of_domain,
    shares_of,
    work_of,
)
from crawler.settings import Settings
from crawler.store import plan, report
from crawler.store.database import Database

NEARLY = 0.98  # of a budget: it is the domain's own that limits it


class BudgetSource(StrEnum):
    """The source of a domain's requests a day."""

    BUDGET = "budget"
    TARGET = "target"
    OVERALL = "overall budget"
    PRICE = "price"  # nothing limits them: what is worth it costs so many


@dataclass(frozen=True, slots=True)
class ForecastStep:
    """The outcome of one budget. factor: times today's, None where that is nothing.

    is_allowed: politeness and the overall budget leave so many requests a day.
    """

    factor: float | None
    budget: float
    is_allowed: bool
    plan: DomainPlan


@dataclass(frozen=True, slots=True)
class Forecast:
    """One domain's prospects. known, new: pages, by a sample.  price: as planned last, or the usual one.

    price_correction: the factor on it that is in force.  planned_at: when that was, None if never.
    rests: nothing is sent for an hour and more; all this is what would hold otherwise.
    now: the plan by its pages of today, which is today's step.  budget: requests a day that it may make, by `source`.
    cap: requests a day that politeness leaves.  overall: what all domains together may make.
    policies: the domain's revisit policy, and others beside it; none where nothing is sent.
    plain_freshness, equal_freshness: the freshness with all pages counted alike, by the domain's importance mix and by
    equal weights, at today's budget; None where the mix decides nothing.
    """

    domain: Domain
    at: datetime
    known: float
    new: float
    price: Price
    price_correction: float
    planned_at: datetime | None
    rests: bool
    now: DomainPlan = field(repr=False)
    budget: float
    source: BudgetSource
    cap: float
    overall: float
    steps: Sequence[ForecastStep]
    policies: Sequence[PolicyForecast]
    plain_freshness: float | None
    equal_freshness: float | None

    @property
    def price_in_force(self) -> Price:
        """The price that a look must be worth today."""
        return _in_force(self.price, self.price_correction)

    @property
    def points_for_tenth(self) -> float | None:
        """Points of freshness that a budget larger by a tenth would bring; None if no step is larger."""
        fresh = {step.factor: step.plan.expected.freshness for step in self.steps}
        return 100 * (fresh[1.1] - fresh[1.0]) if 1.0 in fresh else None


async def forecast(
    db: Database,
    domain: Domain,
    *,
    at: datetime,
    settings: Settings,
    sample: int = SAMPLE,
    most_domains: int | None = None,
) -> Forecast | None:
    """The forecast of a domain; None without known pages. Changes nothing. Raises BadInput for a removed domain.

    Today's step is what the last plan said, or where there is none what the first one would say, by the pages as they
    are now. All domains are read where one is not enough: they share a budget, or priors that are still to be fitted.
    sample: pages that are read, about.  most_domains: None as well where more of them would have to be read.
    """
    standing = await plan.plan_inputs(db, at=at, only=domain)
    is_planned = any(each.planned_at for each in standing)
    is_alone = is_planned and overall_of(settings) == UNLIMITED
    if not is_alone and most_domains is not None and await report.count_domains(db) > most_domains:
        return None
    found, _ = await domain_forecasts(
        db, at=at, settings=settings, only=domain if is_alone else None, refits=not is_planned, sample=sample
    )
    own = next((each for each in found if each.input.domain.id == domain.id), None)
    if own is None:
        raise BadInput(f"{domain.authority} is not registered any more")
    if not own.sample.known:
        return None
    terms, overall = limits_of(own.input, 1.0, settings, at=at), overall_of(settings)
    budget, source = _budget(terms, own.plan, overall)
    plain, equal = _plain_freshness(own, terms, budget, settings)
    return Forecast(
        domain=domain,
        at=at,
        known=own.sample.known,
        new=own.sample.new,
        price=own.input.price or Price(settings.price),
        price_correction=own.input.price_correction,
        planned_at=own.input.planned_at,
        rests=own.rests,
        now=own.plan,
        budget=budget,
        source=source,
        cap=terms.cap,
        overall=overall.requests,
        steps=_steps(own, terms, budget, min(terms.cap, overall.requests), settings),
        policies=_policies(own, terms, settings) if budget else (),
        plain_freshness=plain,
        equal_freshness=equal,
    )


def _policies(own: DomainForecast, terms: DomainLimits, settings: Settings) -> Sequence[PolicyForecast]:
    """The domain's revisit policy at the price in force, and the others beside it."""
    by_price = work_of(own.input, own.sample, own.priors, settings, revisit=BY_PRICE)
    chosen, now = own.input.domain.settings, own.plan.expected
    if not terms.scales_gaps:
        price = _in_force(own.input.price or Price(settings.price), own.input.price_correction)
        now = expected_in_one(own.work.known, price)
    return compare_policies(by_price.known, now, policy=chosen.revisit)


def _plain_freshness(
    own: DomainForecast, terms: DomainLimits, budget: float, settings: Settings
) -> tuple[float, float] | tuple[None, None]:
    """The freshness with all pages counted alike: by the domain's importance mix, and by equal weights."""
    chosen = own.input.domain.settings
    if not budget or not chosen.importance_mix or policy_of_domain(chosen, settings) is not BY_PRICE:
        return None, None
    samples = (own.sample.counted_alike(), own.sample.weighed_alike())
    works = (work_of(own.input, each, own.priors, settings) for each in samples)
    plain, equal = (_at(work, terms, budget, 1.0, settings).expected.freshness for work in works)
    return plain, equal


def _in_force(price: Price, correction: float) -> Price:
    return Price(price.per_request * correction, price.per_byte * correction)


def _budget(terms: DomainLimits, now: DomainPlan, overall: Budget) -> tuple[float, BudgetSource]:
    """Requests a day that the domain may make, and their source."""
    own, asked = terms.budget.requests, math.inf if now.asked is None else now.asked
    wished, source = (asked, BudgetSource.TARGET) if asked < own else (own, BudgetSource.BUDGET)
    part = requests_for(now.requests)
    if overall != UNLIMITED and part < NEARLY * min(wished, terms.cap):
        return min(part, overall.requests), BudgetSource.OVERALL
    return (wished, source) if math.isfinite(wished) else (part, BudgetSource.PRICE)


def _steps(
    own: DomainForecast, terms: DomainLimits, budget: float, most: float, settings: Settings
) -> list[ForecastStep]:
    """Outcomes of a tenth to ten times the budget; without a budget, of as many times what the usual price costs."""
    base = budget or budget_for(requests_at(own.work, Price(settings.price), limit=terms.cap))
    return [
        ForecastStep(
            factor if budget else None,
            base * factor,
            base * factor <= most,
            own.plan if budget and factor == 1.0 else _at(own.work, terms, base, factor, settings),
        )
        for factor in FACTORS
    ]


def _at(work: Work, terms: DomainLimits, base: float, factor: float, settings: Settings) -> DomainPlan:
    """Outcome of so many requests a day. A target of freshness is ignored, a target of age may stretch."""
    budget = Budget(base * factor, terms.budget.received_bytes * factor)
    scaled = replace(terms, budget=budget, freshness=None, spends_all=True)
    return solve_plans([work], [scaled], shares=shares_of(settings))[0]
