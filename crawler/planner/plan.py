"""Planning: prices, priors and importances of all domains, solved apart from the crawl and stored for it to read."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from crawler.core.budget.constraints import DomainLimits, budget_for
from crawler.core.budget.cost import Price
from crawler.core.budget.domain_prices import DomainPlan, has_moved, solve_plans
from crawler.core.budget.hours import Hours, day_share, week_from
from crawler.core.budget.page_arrays import SAMPLE, SAMPLE_PER_DOMAIN
from crawler.core.budget.sample import PageSample, Refitted, amounts_in, refitted, work_in
from crawler.core.budget.shadow_price import Budget, Shares, Work, price_correction
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.estimates import DAY, Belief, ChangeValue
from crawler.core.freshness.policies import BY_PRICE, RevisitPolicy, policy_or_price
from crawler.core.freshness.prior import KindPrior, site_kind
from crawler.core.opic.domains import popularity
from crawler.plugins import defaults_with, load
from crawler.settings import Settings
from crawler.store import domains, plan
from crawler.store.database import Database
from crawler.store.plan import PlanInput, PlanRow, sample_domain

NO_LIMIT = float("inf")
MOST_REQUESTS = 2**31 - 1  # a day, as the tables have it
MOST_SAMPLES = 10  # times the sample, however many domains there are
CORRECTED_EVERY = timedelta(minutes=50)  # plans that a user asks for in between leave the correction alone
HOUR = timedelta(hours=1)
WHOLE = 2  # requests: grants are whole ones, so that one or two of a budget that is used to the full are still to come


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan of one domain. known: its pages that have a version, by the sample.

    price: that a request and a byte must be worth.  price_correction: a factor on it.
    """

    domain: Domain
    importance: float
    known: float
    price: Price
    price_correction: float
    plan: DomainPlan


@dataclass(frozen=True, slots=True)
class DomainForecast:
    """One domain as it was read, with its solved price, before anything is written.

    rests: the domain sends nothing for an hour and more; its plan is what would hold otherwise.
    """

    input: PlanInput
    importance: float
    sample: PageSample
    priors: tuple[Belief, ...]
    work: Work
    rests: bool
    plan: DomainPlan


async def plan_domains(db: Database, *, at: datetime, settings: Settings, only: Domain | None = None) -> list[Planned]:
    """Plan for all domains, by name: importances relative to each other, priors, prices, and targets out of reach.

    only: plan for this one as if there were no other; for one that lives in a time of its own. Kinds of site learn
    nothing from it.
    """
    found, kinds = await domain_forecasts(db, at=at, settings=settings, only=only)
    if only is None:
        await domains.write_kind_priors(db, kinds, at=at)
    return [await _write_plan(db, each, settings, at=at) for each in found]


async def _write_plan(db: Database, found: DomainForecast, settings: Settings, *, at: datetime) -> Planned:
    plan_input, domain, solved = found.input, found.input.domain, found.plan
    correction = plan_input.price_correction if found.rests else _corrected_price(plan_input, solved, at=at)
    asked, budget = solved.asked, domain.settings.budget_per_day
    if asked is not None:  # of a mean day; days without open hours leave theirs to the others
        asked = min(math.ceil(asked / open_day_share(domain.hours, at=at)), MOST_REQUESTS if budget is None else budget)
    by_group, mean = amounts_in(found.sample)
    row = PlanRow(
        importance=found.importance,
        price=solved.price,
        longest_s=solved.longest_days * DAY.total_seconds(),
        asked=asked,
        price_correction=correction,
        finding=solved.finding,
        priors=found.priors,
        pages=found.sample.by_group,
        amounts=by_group,
        mean_amount=mean,
    )
    price = solved.price or Price(settings.price)
    wake = has_moved(plan_input.price or Price(settings.price), price, found.work.known)
    whole = settings.uses_whole_budget_of(domain.settings) and not found.rests
    await plan.write_plan(db, domain, row, wake=wake, at=at, uses_whole_budget=whole)
    await plan.learn_activity(db, domain, at=at)
    now = replace(solved, requests=0.0) if found.rests else solved
    return Planned(domain, found.importance, found.sample.known, price, correction, now)


async def domain_forecasts(
    db: Database,
    *,
    at: datetime,
    settings: Settings,
    only: Domain | None = None,
    refits: bool = True,
    sample: int = SAMPLE,
) -> tuple[list[DomainForecast], tuple[KindPrior, ...]]:
    """The forecasts of all domains, by name, or of one as if there were no other, and what they say of kinds of sites.

    Changes nothing.
    refits: priors are fitted anew; else they are those of the last plan, and nothing is said of kinds.
    sample: pages that are read of all domains together, about.
    """
    inputs = await plan.plan_inputs(db, at=at, only=only)
    importances = await _importances(db, inputs)
    defaults = defaults_with(settings.defaults, settings.plugins)
    censuses = [
        await sample_domain(db, each, most=_share(each, inputs, sample), at=at, defaults=defaults) for each in inputs
    ]
    priors = Refitted([each.priors for each in censuses], ())
    if refits:
        priors = refitted(censuses, [site_kind(each.domain.authority) for each in inputs])
    works = [work_of(*each, settings) for each in zip(inputs, censuses, priors.domains, strict=True)]
    terms = [limits_of(*each, settings, at=at) for each in zip(inputs, importances, strict=True)]
    resting = [each.rests(at=at, over=HOUR) for each in inputs]
    plans = _solve(works, terms, resting, settings)
    columns = (inputs, importances, censuses, priors.domains, works, resting, plans)
    return [DomainForecast(*each) for each in zip(*columns, strict=True)], priors.kinds


def _solve(works: list[Work], terms: list[DomainLimits], resting: list[bool], settings: Settings) -> list[DomainPlan]:
    """Solve the plans of all; domains that rest leave what they would use of the overall budget to the others."""
    overall, shares = overall_of(settings), shares_of(settings)
    plans = solve_plans(works, terms, overall=overall, shares=shares)
    if any(resting):
        awake = [n for n, rests in enumerate(resting) if not rests]
        chosen = [works[n] for n in awake], [terms[n] for n in awake]
        for n, plan_awake in zip(awake, solve_plans(*chosen, overall=overall, shares=shares), strict=True):
            plans[n] = plan_awake
    return plans


async def _importances(db: Database, inputs: Sequence[PlanInput]) -> list[float]:
    """Importance of each domain relative to the others: by links (mean 1), times its weight."""
    ids, weights = [each.domain.id for each in inputs], [each.domain.settings.weight for each in inputs]
    if len(ids) == 1:  # beside itself alone: no page's links need be read
        return weights
    by_links = popularity(ids, await plan.flows_between(db, ids))
    return [by_links[domain] * weight for domain, weight in zip(ids, weights, strict=True)]


def _share(plan_input: PlanInput, inputs: Sequence[PlanInput], sample: int) -> int:
    """Share of the domain's pages that is read: by its size, and enough of a small one, which has its own price."""
    tracked = max(sum(each.tracked for each in inputs), 1)
    return max(sample * plan_input.tracked // tracked, min(SAMPLE_PER_DOMAIN, MOST_SAMPLES * sample // len(inputs)), 1)


def work_of(
    plan_input: PlanInput,
    sample: PageSample,
    priors: Sequence[Belief],
    settings: Settings,
    *,
    revisit: RevisitPolicy | None = None,
) -> Work:
    """The pages of a domain, with their gaps as a revisit policy has them; None: as the domain's own has."""
    domain_settings = plan_input.domain.settings
    return work_in(
        sample,
        priors,
        least_days=settings.least_interval / DAY,
        most_days=settings.most_interval / DAY,
        by_amount=domain_settings.value == ChangeValue.AMOUNT,
        revisit=revisit or policy_of_domain(domain_settings, settings),
    )


def policy_of_domain(domain_settings: DomainSettings, settings: Settings) -> RevisitPolicy:
    """The revisit policy of the domain; the price where that is a plugin's that is not there any more."""
    return policy_or_price(domain_settings.revisit, load(settings.plugins).revisits)


def limits_of(plan_input: PlanInput, importance: float, settings: Settings, *, at: datetime) -> DomainLimits:
    """Limits of the domain: its user's settings, and what politeness leaves; a mean day's, of the week from `at` on."""
    domain_settings, hours = plan_input.domain.settings, plan_input.domain.hours
    delay_s, cap = _pace_of(plan_input, settings, at=at)
    open_days = open_day_share(hours, at=at)
    return DomainLimits(
        importance=importance,
        budget=Budget(
            _or_no_limit(domain_settings.budget_per_day) * open_days,
            _or_no_limit(domain_settings.bytes_per_day) * open_days,
        ),
        delay_s=delay_s,
        cap=cap,
        is_always_open=hours.is_always,
        freshness=domain_settings.target_freshness,
        oldest_days=domain_settings.target_age / DAY if domain_settings.target_age else None,
        usual_price=settings.price,
        most_days=settings.most_interval / DAY,
        scales_gaps=settings.uses_whole_budget_of(domain_settings)
        and policy_of_domain(domain_settings, settings) is not BY_PRICE,
    )


def open_day_share(hours: Hours, *, at: datetime) -> float:
    """The share of the UTC days of a week that have open hours: the others' budgets are not spent."""
    week = week_from(hours, at)
    return max(sum(map(bool, week)), 1) / len(week)  # none in a week when a change of clocks leaves its one hour out


def _pace_of(plan_input: PlanInput, settings: Settings, *, at: datetime) -> tuple[float, float]:
    """Return the seconds between two requests at the usual speed, and how many requests that leaves of a mean day."""
    domain, hours = plan_input.domain, plan_input.domain.hours
    usual = settings.delay_of(domain.settings, is_own=domain.is_own).total_seconds()
    # The delay of the last lease is that of the slowest hours; what is more than these ask, robots.txt wants.
    slowest = usual / min(window.speed for window in hours.windows)
    least = plan_input.announced_s if plan_input.announced_s > slowest else 0.0
    if not (usual or least):
        return 0.0, NO_LIMIT
    week = week_from(hours, at)
    one_by_one = sum(span.length.total_seconds() / max(usual / span.speed, least) for day in week for span in day)
    lines = settings.parallelism_of(domain.settings, is_own=domain.is_own)
    return max(usual, least), one_by_one / len(week) * lines


def _or_no_limit(number: int | None) -> float:
    return NO_LIMIT if number is None else float(number)


def overall_of(settings: Settings) -> Budget:
    return Budget(_or_no_limit(settings.budget_per_day), _or_no_limit(settings.bytes_per_day))


def shares_of(settings: Settings) -> Shares:
    return Shares(discovery=settings.discovery_share, refresh=settings.refresh_share)


def _corrected_price(plan_input: PlanInput, tariff: DomainPlan, *, at: datetime) -> float:
    """The factor on the price, by the hour: what the day's looks have taken so far against what its pace allows.

    An hour is the 24th part of the day's open time.
    """
    hours = 24 * day_share(plan_input.domain.hours, at, lead=timedelta(0)).gone
    if tariff.price is None:
        return 1.0
    if plan_input.planned_at is None or at - plan_input.planned_at < CORRECTED_EVERY or hours < 1:
        return plan_input.price_correction
    if not plan_input.spent_today:  # a crawl that did not run says nothing about the price
        return plan_input.price_correction
    steps = min(max((at - plan_input.planned_at) / HOUR, 1.0), hours)
    per_open_day = min(budget_for(tariff.requests), tariff.limit) / open_day_share(plan_input.domain.hours, at=at)
    used, allowed = (plan_input.spent_today + WHOLE) / hours, per_open_day / 24
    return price_correction(
        plan_input.price_correction, used=used, allowed=allowed, waiting=plan_input.waiting, hours=steps
    )
