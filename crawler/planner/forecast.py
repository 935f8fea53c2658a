"""Forecast the freshness of a domain at a tenth to ten times its current budget."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from crawler.core.budget.constraints import UNLIMITED, DomainLimits, compute_budget, compute_request_limit
from crawler.core.budget.cost import ShadowPrice
from crawler.core.budget.domain_plans import DomainPlan, compute_requests, solve_plans
from crawler.core.budget.expected import FACTORS, PolicyForecast, compare_policies, compute_domain_expectation
from crawler.core.budget.page_arrays import SAMPLE_SIZE
from crawler.core.budget.shadow_price import Budget, Workload
from crawler.core.domain import Domain
from crawler.core.freshness.policies import VALUE_POLICY
from crawler.errors import BadInput
from crawler.planner import plan as planning
from crawler.planner.plan import DomainForecast, build_work, get_overall_budget
from crawler.settings import Settings
from crawler.store import plan, report
from crawler.store.database import Database

NEARLY = 0.98  # share of the domain's own budget from which on that budget counts as the limit


class BudgetSource(StrEnum):
    """What determines how many requests a domain makes per day."""

    BUDGET = "budget"
    TARGET = "target"
    OVERALL = "overall budget"
    PRICE = "price"  # no limit: all visits above the minimum value


class ForecastStep(Struct, frozen=True):
    """The outcome of one budget. factor: multiple of today's budget; None if that is zero.

    budget: requests per day.  is_allowed: whether politeness and the overall budget allow it.
    """

    factor: float | None
    budget: float
    is_allowed: bool
    plan: DomainPlan


@dataclass(frozen=True, slots=True)
class Forecast:
    """The forecast of one domain. All numbers of requests are per day.

    fetched, unfetched: numbers of pages, estimated from a sample.  shadow_price: as planned last, or the default.
    price_correction: the current factor on it.  planned_at: when it was planned; None if never.
    is_suspended: the domain sends nothing for an hour or more; the forecast ignores that.
    current_plan: the plan for today's pages and budget.  budget: requests that the domain makes, limited by `source`.
    cap: requests that politeness allows.  overall: requests that all domains together may make.
    policies: outcomes of the domain's revisit policy and of others; empty with a budget of 0.
    plain_freshness, equal_freshness: the freshness with all pages counted equally, when visits are chosen by the
    domain's importance mix and by equal weights, at today's budget; None if the mix has no effect or the budget is 0.
    """

    domain: Domain
    at: datetime
    fetched: float
    unfetched: float
    shadow_price: ShadowPrice
    price_correction: float
    planned_at: datetime | None
    is_suspended: bool
    current_plan: DomainPlan = field(repr=False)
    budget: float
    source: BudgetSource
    cap: float
    overall: float
    steps: Sequence[ForecastStep]
    policies: Sequence[PolicyForecast]
    plain_freshness: float | None
    equal_freshness: float | None

    @property
    def shadow_price_in_force(self) -> ShadowPrice:
        """Return the shadow price with its correction."""
        return _apply_correction(self.shadow_price, self.price_correction)

    @property
    def points_for_tenth(self) -> float | None:
        """Return the percentage points of freshness that a 10% larger budget would add; None with a budget of 0."""
        fresh = {step.factor: step.plan.expected.freshness for step in self.steps}
        return 100 * (fresh[1.1] - fresh[1.0]) if 1.0 in fresh else None


async def compute_forecast(
    db: Database,
    domain: Domain,
    *,
    at: datetime,
    settings: Settings,
    sample_size: int = SAMPLE_SIZE,
    max_domains: int | None = None,
) -> Forecast | None:
    """Compute the forecast of a domain without changing anything; return None if it has no fetched pages.

    The step with factor 1 is a plan for the current pages; it refits priors only if there has been no plan yet. All
    domains are read if they share a budget, or if priors are not fitted yet.
    sample_size: approximate number of pages to read.  max_domains: return None if more domains would have to be read.
    Raise BadInput if the domain was removed.
    """
    inputs = await plan.read_plan_inputs(db, at=at, only=domain)
    is_planned = any(each.planned_at for each in inputs)
    is_alone = is_planned and get_overall_budget(settings) == UNLIMITED
    if not is_alone and max_domains is not None and await report.count_domains(db) > max_domains:
        return None
    forecasts, _ = await planning.forecast_domains(
        db, at=at, settings=settings, only=domain if is_alone else None, refits=not is_planned, sample_size=sample_size
    )
    chosen = next((each for each in forecasts if each.input.domain.id == domain.id), None)
    if chosen is None:
        raise BadInput(f"{domain.authority} is no longer registered")
    if not chosen.sample.fetched_pages:
        return None
    domain_limits, overall = planning.compute_limits(chosen.input, 1.0, settings, at=at), get_overall_budget(settings)
    budget, source = _choose_budget(domain_limits, chosen.plan, overall)
    max_requests = min(domain_limits.polite_requests, overall.requests)
    plain, equal = _compute_plain_freshness(chosen, domain_limits, budget, settings)
    return Forecast(
        domain=domain,
        at=at,
        fetched=chosen.sample.fetched_pages,
        unfetched=chosen.sample.unfetched_pages,
        shadow_price=chosen.input.price or ShadowPrice(settings.min_value),
        price_correction=chosen.input.price_correction,
        planned_at=chosen.input.planned_at,
        is_suspended=chosen.is_suspended,
        current_plan=chosen.plan,
        budget=budget,
        source=source,
        cap=domain_limits.polite_requests,
        overall=overall.requests,
        steps=tuple(_build_steps(chosen, domain_limits, budget, max_requests, settings)),
        policies=_compare_policies(chosen, domain_limits, settings) if budget else (),
        plain_freshness=plain,
        equal_freshness=equal,
    )


def _compare_policies(
    chosen: DomainForecast, domain_limits: DomainLimits, settings: Settings
) -> Sequence[PolicyForecast]:
    """Compare the domain's revisit policy with other policies."""
    by_price = build_work(chosen.input, chosen.sample, chosen.priors, settings, revisit=VALUE_POLICY)
    expectation = chosen.plan.expected
    if not domain_limits.scales_gaps:
        base_price = chosen.input.price or ShadowPrice(settings.min_value)
        shadow_price = _apply_correction(base_price, chosen.input.price_correction)
        expectation = compute_domain_expectation(chosen.work.fetched, shadow_price)
    return compare_policies(by_price.fetched, expectation, policy=chosen.input.domain.settings.revisit)


def _compute_plain_freshness(
    chosen: DomainForecast, domain_limits: DomainLimits, budget: float, settings: Settings
) -> tuple[float, float] | tuple[None, None]:
    """Return plain_freshness and equal_freshness of the Forecast."""
    domain_settings = chosen.input.domain.settings
    is_by_value = planning.choose_policy(domain_settings, settings) is VALUE_POLICY
    if not budget or not domain_settings.importance_mix or not is_by_value:
        return None, None
    samples = (chosen.sample.with_equal_importance(), chosen.sample.with_equal_weights())
    works = (build_work(chosen.input, each, chosen.priors, settings) for each in samples)
    plain, equal = (_solve_at(work, domain_limits, budget, 1.0, settings).expected.freshness for work in works)
    return plain, equal


def _apply_correction(shadow_price: ShadowPrice, correction: float) -> ShadowPrice:
    return ShadowPrice(shadow_price.per_request * correction, shadow_price.per_byte * correction)


def _choose_budget(
    domain_limits: DomainLimits, current_plan: DomainPlan, overall: Budget
) -> tuple[float, BudgetSource]:
    """Return how many requests per day the domain may make, and what determines that."""
    requested, source = domain_limits.budget.requests, BudgetSource.BUDGET
    target_requests = current_plan.target_requests
    if target_requests is not None and target_requests < requested:
        requested, source = target_requests, BudgetSource.TARGET
    part = compute_request_limit(current_plan.requests)
    if overall != UNLIMITED and part < NEARLY * min(requested, domain_limits.polite_requests):
        return min(part, overall.requests), BudgetSource.OVERALL
    return (requested, source) if math.isfinite(requested) else (part, BudgetSource.PRICE)


def _build_steps(
    chosen: DomainForecast, domain_limits: DomainLimits, budget: float, max_requests: float, settings: Settings
) -> Iterator[ForecastStep]:
    """Yield outcomes of a tenth to ten times the budget; if it is 0, of the requests at the default price."""
    work, price = chosen.work, ShadowPrice(settings.min_value)
    base = budget or compute_budget(compute_requests(work, price, limit=domain_limits.polite_requests))
    for factor in FACTORS:
        is_current = budget and factor == 1.0
        solved = chosen.plan if is_current else _solve_at(work, domain_limits, base, factor, settings)
        yield ForecastStep(factor if budget else None, base * factor, base * factor <= max_requests, solved)


def _solve_at(
    work: Workload, domain_limits: DomainLimits, base: float, factor: float, settings: Settings
) -> DomainPlan:
    """Return the plan for `factor` times the byte budget and `base` requests per day, without a target freshness."""
    budget = Budget(base * factor, domain_limits.budget.received_bytes * factor)
    scaled = replace(domain_limits, budget=budget, target_freshness=None, spends_all=True)
    return solve_plans([work], [scaled], shares=planning.get_shares(settings))[0]
