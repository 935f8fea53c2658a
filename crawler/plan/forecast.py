"""Forecast: the freshness that a domain gets of the requests it makes, and of a tenth to ten times as many."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from crawler.core.budget import (
    FACTORS,
    UNLIMITED,
    Budget,
    DomainLimits,
    DomainPlan,
    PolicyForecast,
    Price,
    Work,
    budget_for,
    compare_policies,
    requests_at,
    requests_for,
    solve_plans,
)
from crawler.core.domain import Domain
from crawler.core.freshness import BY_PRICE
from crawler.errors import BadInput
from crawler.plan.plan import domain_forecasts, limits_of, overall_of, shares_of, work_of
from crawler.plugins import defaults_with
from crawler.settings import Settings
from crawler.store import plan
from crawler.store.database import Database
from crawler.store.plan import sample_domain

PAGES = 10_000  # read of the domain; freshness is then right to half a point
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
    """One domain's prospects. known, new: pages, by a sample.  price: in force, with its trim.

    budget: requests a day that it may make, by `source`.  cap: requests a day that politeness leaves.
    overall: what all domains together may make.  finding: what is out of reach today.  policies: the domain's revisit
    policy, and others beside it; none where nothing is sent.
    """

    domain: Domain
    known: float
    new: float
    price: Price
    budget: float
    source: BudgetSource
    cap: float
    overall: float
    finding: str
    steps: Sequence[ForecastStep]
    policies: Sequence[PolicyForecast]

    @property
    def points_for_tenth(self) -> float | None:
        """Points of freshness that a budget larger by a tenth would bring; None if no step is larger."""
        fresh = {step.factor: step.plan.expected.freshness for step in self.steps}
        return 100 * (fresh[1.1] - fresh[1.0]) if 1.0 in fresh else None


async def forecast(db: Database, domain: Domain, *, at: datetime, settings: Settings) -> Forecast | None:
    """The forecast of a domain; None without known pages. Changes nothing. Raises BadInput for a removed domain."""
    inputs = await plan.plan_inputs(db, at=at, only=domain)
    if not inputs:
        raise BadInput(f"{domain.authority} is not registered any more")
    (plan_input,) = inputs
    defaults = defaults_with(settings.defaults, settings.plugins)
    found = await sample_domain(db, plan_input, most=PAGES, at=at, defaults=defaults)
    if not found.known:
        return None
    work = work_of(plan_input, found, found.priors, settings)
    terms = limits_of(plan_input, settings, importance=1.0)
    now = await _now(db, domain, work, terms, at=at, settings=settings)
    price = plan_input.price or Price(settings.price)
    price = Price(price.per_request * plan_input.price_correction, price.per_byte * plan_input.price_correction)
    cost = budget_for(requests_at(work, price, limit=terms.cap))
    budget, source = _budget(terms, now, cost, overall_of(settings))
    overall = overall_of(settings).requests
    steps = _steps(work, terms, budget, min(terms.cap, overall), settings)
    free = work_of(plan_input, found, found.priors, settings, revisit=BY_PRICE)
    revisit = plan_input.domain.settings.revisit
    policies = compare_policies(free.known, work.known, price, policy=revisit) if budget else []
    return Forecast(
        domain, found.known, found.new, price, budget, source, terms.cap, overall, now.finding, steps, policies
    )


async def _now(
    db: Database, domain: Domain, work: Work, terms: DomainLimits, *, at: datetime, settings: Settings
) -> DomainPlan:
    """The plan that the domain would get now. Where all share a budget, all of them are read."""
    if overall_of(settings) == UNLIMITED:
        return solve_plans([work], [terms], shares=shares_of(settings))[0]
    for each in await domain_forecasts(db, at=at, settings=settings):
        if each.input.domain.id == domain.id:
            return each.plan
    raise BadInput(f"{domain.authority} is not registered any more")


def _budget(terms: DomainLimits, now: DomainPlan, cost: float, overall: Budget) -> tuple[float, BudgetSource]:
    """Requests a day that the domain may make, and their source."""
    own, asked = terms.budget.requests, math.inf if now.asked is None else now.asked
    wished, source = (asked, BudgetSource.TARGET) if asked < own else (own, BudgetSource.BUDGET)
    part = requests_for(now.requests)
    if overall != UNLIMITED and part < NEARLY * min(wished, terms.cap):
        return min(part, overall.requests), BudgetSource.OVERALL
    return (wished, source) if math.isfinite(wished) else (cost, BudgetSource.PRICE)


def _steps(work: Work, terms: DomainLimits, budget: float, most: float, settings: Settings) -> list[ForecastStep]:
    """Outcomes of a tenth to ten times the budget; without a budget, of as many times what the usual price costs."""
    base = budget or budget_for(requests_at(work, Price(settings.price), limit=terms.cap))
    return [
        ForecastStep(
            factor if budget else None, base * factor, base * factor <= most, _at(work, terms, base, factor, settings)
        )
        for factor in FACTORS
    ]


def _at(work: Work, terms: DomainLimits, base: float, factor: float, settings: Settings) -> DomainPlan:
    """Outcome of so many requests a day. A target of freshness is ignored, a target of age may stretch."""
    budget = Budget(base * factor, terms.budget.received_bytes * factor)
    scaled = replace(terms, budget=budget, freshness=None, spends_all=True)
    return solve_plans([work], [scaled], shares=shares_of(settings))[0]
