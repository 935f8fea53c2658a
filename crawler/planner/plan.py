"""Planning: prices, priors and importances of all domains, solved apart from the crawl and stored for it to read."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from crawler.core.budget.constraints import DomainLimits, budget_for
from crawler.core.budget.cost import Price
from crawler.core.budget.domain_prices import DomainPlan, has_moved, solve_plans
from crawler.core.budget.hours import Hours, day_share, week_from
from crawler.core.budget.page_arrays import SAMPLE, SAMPLE_PER_DOMAIN
from crawler.core.budget.refitted import Refitted, refitted
from crawler.core.budget.sample import PageSample, amounts_in, work_in
from crawler.core.budget.shadow_price import Budget, Shares, Work, price_correction
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.amount import ChangeValue
from crawler.core.freshness.belief import DAY, Belief
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

    price_correction: a factor on the price.
    """

    domain: Domain
    importance: float
    known: float
    price_correction: float
    usual_price: float
    plan: DomainPlan

    @property
    def price(self) -> Price:
        """Value that a request and a byte must have, before its correction."""
        return self.plan.price or Price(self.usual_price)


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


@dataclass(frozen=True, slots=True)
class Forecasts:
    """All domains as they were read, by name, and what they say together of each kind of site."""

    domains: list[DomainForecast]
    kinds: tuple[KindPrior, ...]


async def plan_domains(db: Database, *, at: datetime, settings: Settings, only: Domain | None = None) -> list[Planned]:
    """Plan for all domains, by name: importances relative to each other, priors, prices, and targets out of reach.

    only: plan for this one as if there were no other; for one that lives in a time of its own. Kinds of site learn
    nothing from it.
    """
    forecasts = await domain_forecasts(db, at=at, settings=settings, only=only)
    if only is None:
        await domains.write_kind_priors(db, forecasts.kinds, at=at)
    return [await _write_plan(db, each, settings, at=at) for each in forecasts.domains]


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
    planned = Planned(
        domain,
        found.importance,
        found.sample.known,
        correction,
        settings.price,
        replace(solved, requests=0.0) if found.rests else solved,
    )
    wake = has_moved(plan_input.price or Price(settings.price), planned.price, found.work.known)
    whole = uses_whole_budget(domain.settings, settings) and not found.rests
    await plan.write_plan(db, domain, row, wake=wake, at=at, uses_whole_budget=whole)
    await plan.learn_activity(db, domain, at=at)
    return planned


async def domain_forecasts(
    db: Database,
    *,
    at: datetime,
    settings: Settings,
    only: Domain | None = None,
    refits: bool = True,
    sample: int = SAMPLE,
) -> Forecasts:
    """The forecasts of all domains, by name, or of one as if there were no other. Changes nothing.

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
    terms = [limits_of(each, settings, importance=importances[each.domain.id], at=at) for each in inputs]
    resting = [each.rests(at=at, over=HOUR) for each in inputs]
    solved = _tariffs(works, terms, resting, settings)
    forecasts = [
        DomainForecast(plan_input, importances[plan_input.domain.id], sample, belief, work, rests, tariff)
        for plan_input, sample, belief, work, rests, tariff in zip(
            inputs, censuses, priors.domains, works, resting, solved, strict=True
        )
    ]
    return Forecasts(forecasts, priors.kinds)


def _tariffs(works: list[Work], terms: list[DomainLimits], resting: list[bool], settings: Settings) -> list[DomainPlan]:
    """Prices of all domains; those that rest leave what they would use of the overall budget to the others."""
    overall, shares = overall_of(settings), shares_of(settings)
    everybody = solve_plans(works, terms, overall=overall, shares=shares)
    if not any(resting):
        return everybody
    awake = [pair for pair, rests in zip(zip(works, terms, strict=True), resting, strict=True) if not rests]
    solved = iter(solve_plans([work for work, _ in awake], [each for _, each in awake], overall=overall, shares=shares))
    return [tariff if rests else next(solved) for tariff, rests in zip(everybody, resting, strict=True)]


async def _importances(db: Database, inputs: Sequence[PlanInput]) -> Mapping[int, float]:
    """Importance of each domain relative to the others: by links (mean 1), times its weight."""
    weights = {each.domain.id: each.domain.settings.weight for each in inputs}
    if len(weights) == 1:  # beside itself alone: no page's links need be read
        return {domain: float(weight) for domain, weight in weights.items()}
    by_links = popularity(list(weights), await plan.flows_between(db, list(weights)))
    return {domain: by_links[domain] * weight for domain, weight in weights.items()}


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


def uses_whole_budget(domain_settings: DomainSettings, settings: Settings) -> bool:
    """Whether scheduled crawls make each request of the domain's budget."""
    return domain_settings.uses_whole_budget and settings.defaults.fills_budgets


def limits_of(plan_input: PlanInput, settings: Settings, *, importance: float, at: datetime) -> DomainLimits:
    """Limits of the domain: its user's settings, and what politeness leaves; a mean day's, of the week from `at` on."""
    domain_settings, is_own = plan_input.domain.settings, plan_input.domain.is_own
    hours = plan_input.domain.hours
    delays = _Delays.of(settings.delay_of(domain_settings, is_own=is_own), plan_input.announced_s, hours)
    lines = settings.parallelism_of(domain_settings, is_own=is_own)
    open_days = open_day_share(hours, at=at)
    return DomainLimits(
        importance=importance,
        budget=Budget(
            _or_no_limit(domain_settings.budget_per_day) * open_days,
            _or_no_limit(domain_settings.bytes_per_day) * open_days,
        ),
        delay_s=delays.at_speed(1.0),
        cap=delays.requests_per_day(hours, at=at) * lines,
        is_always_open=hours.is_always,
        freshness=domain_settings.target_freshness,
        oldest_days=domain_settings.target_age / DAY if domain_settings.target_age else None,
        usual_price=settings.price,
        most_days=settings.most_interval / DAY,
        scales_gaps=uses_whole_budget(domain_settings, settings)
        and policy_of_domain(domain_settings, settings) is not BY_PRICE,
    )


def open_day_share(hours: Hours, *, at: datetime) -> float:
    """The share of the UTC days of a week that have open hours: the others' budgets are not spent."""
    week = week_from(hours, at)
    return max(sum(map(bool, week)), 1) / len(week)  # none in a week when a change of clocks leaves its one hour out


@dataclass(frozen=True, slots=True)
class _Delays:
    """Seconds between two requests, at the usual speed, and at least, as robots.txt has it."""

    usual: float
    least: float

    @classmethod
    def of(cls, delay: timedelta, announced_s: float, hours: Hours) -> "_Delays":
        """announced_s: by the last lease, for the slowest hours; what is more than these ask, robots.txt wants."""
        usual = delay.total_seconds()
        slowest = usual / min(window.speed for window in hours.windows)
        return cls(usual, announced_s if announced_s > slowest else 0.0)

    def at_speed(self, speed: float) -> float:
        return max(self.usual / speed, self.least)

    def requests_per_day(self, hours: Hours, *, at: datetime) -> float:
        """One after the other, on a mean day of the week."""
        if not self.at_speed(1.0):
            return NO_LIMIT
        week = week_from(hours, at)
        lengths = ((span.length.total_seconds(), span.speed) for day in week for span in day)
        return sum(seconds / self.at_speed(speed) for seconds, speed in lengths) / len(week)


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
