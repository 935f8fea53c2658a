"""Plan all domains: compute shadow prices, priors and importances, and store them for the crawl."""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from crawler.core.budget import sample as samplings
from crawler.core.budget.constraints import DomainLimits, compute_budget
from crawler.core.budget.cost import ShadowPrice
from crawler.core.budget.domain_plans import DomainPlan, has_price_moved, solve_plans
from crawler.core.budget.hours import Hours, compute_day_share, list_week_spans
from crawler.core.budget.page_arrays import MIN_SAMPLE_PER_DOMAIN, SAMPLE_SIZE
from crawler.core.budget.sample import PageSample, RefittedPriors
from crawler.core.budget.shadow_price import Budget, Shares, Workload, update_price_correction
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.estimates import DAY, ChangeWeight, RateEstimate
from crawler.core.freshness.policies import VALUE_POLICY, RevisitPolicy, parse_policy_or_default
from crawler.core.freshness.prior import KindPrior, classify_site
from crawler.core.opic.domains import compute_popularity
from crawler.plugins import add_plugin_defaults, load_plugins
from crawler.settings import Settings
from crawler.store import domains, plan
from crawler.store.database import Database
from crawler.store.plan import PlanInput, PlanRow, sample_domain

NO_LIMIT = float("inf")
MAX_REQUESTS = 2**31 - 1  # per day; the maximum of column domain_plan.budget_per_day
MAX_SAMPLES = 10  # maximum sum of the minimum samples of all domains, as a multiple of the sample size
CORRECTION_INTERVAL = timedelta(minutes=50)  # a plan sooner after the last one does not change the price correction
HOUR = timedelta(hours=1)
GRANT_MARGIN = 2  # requests: grants are integers, so a fully used budget may still have one or two left


class PlannedDomain(Struct, frozen=True):
    """The plan of one domain. importance: among all domains, by links (mean 1), times the domain's weight.

    fetched: number of its fetched pages, estimated from the sample.  shadow_price: minimum value per request and per
    byte.  price_correction: a factor on it.
    """

    domain: Domain
    importance: float
    fetched: float
    shadow_price: ShadowPrice
    price_correction: float
    plan: DomainPlan


class DomainForecast(Struct, frozen=True):
    """One domain with its inputs and its plan, before anything is written.

    is_suspended: the domain sends nothing for an hour or more; its plan ignores that.
    """

    input: PlanInput
    importance: float
    sample: PageSample
    priors: tuple[RateEstimate, ...]
    work: Workload
    is_suspended: bool
    plan: DomainPlan


async def plan_domains(
    db: Database, *, at: datetime, settings: Settings, only: Domain | None = None
) -> list[PlannedDomain]:
    """Plan all domains: relative importances, priors, shadow prices and findings. Return the plans by domain name.

    only: plan only this domain, as if there were no other. The priors of kinds of sites are not updated then.
    """
    forecasts, kinds = await forecast_domains(db, at=at, settings=settings, only=only)
    if only is None:
        await domains.write_kind_priors(db, kinds, at=at)
    return [await _write_plan(db, each, settings, at=at) for each in forecasts]


async def _write_plan(db: Database, forecast: DomainForecast, settings: Settings, *, at: datetime) -> PlannedDomain:
    plan_input, domain, solved = forecast.input, forecast.input.domain, forecast.plan
    correction = plan_input.price_correction if forecast.is_suspended else _correct_price(plan_input, solved, at=at)
    target_requests, budget = solved.target_requests, domain.settings.budget_per_day
    if target_requests is not None:  # for an average day; days without open hours leave their requests to other days
        target_requests = math.ceil(target_requests / compute_open_day_share(domain.hours, at=at))
        target_requests = min(target_requests, MAX_REQUESTS if budget is None else budget)
    by_group, mean = samplings.refit_sample_magnitudes(forecast.sample)
    row = PlanRow(
        importance=forecast.importance,
        shadow_price=solved.shadow_price,
        longest_s=solved.longest_days * DAY.total_seconds(),
        target_requests=target_requests,
        price_correction=correction,
        finding=solved.finding,
        priors=forecast.priors,
        pages=forecast.sample.pages_by_group,
        magnitudes=by_group,
        mean_magnitude=mean,
    )
    default_price = ShadowPrice(settings.min_value)
    shadow_price = solved.shadow_price or default_price
    rescores_pages = has_price_moved(plan_input.price or default_price, shadow_price, forecast.work.fetched)
    uses_whole_budget = settings.uses_whole_budget(domain.settings) and not forecast.is_suspended
    await plan.write_plan(db, domain, row, rescores_pages=rescores_pages, at=at, uses_whole_budget=uses_whole_budget)
    await plan.learn_activity(db, domain, at=at)
    solved = replace(solved, requests=0.0) if forecast.is_suspended else solved
    fetched = forecast.sample.fetched_pages
    return PlannedDomain(domain, forecast.importance, fetched, shadow_price, correction, solved)


async def forecast_domains(
    db: Database,
    *,
    at: datetime,
    settings: Settings,
    only: Domain | None = None,
    refits: bool = True,
    sample_size: int = SAMPLE_SIZE,
) -> tuple[list[DomainForecast], tuple[KindPrior, ...]]:
    """Forecast all domains, by name, and fit the priors of kinds of sites, without changing anything.

    only: forecast only this domain, as if there were no other.
    refits: whether to fit priors again; otherwise use those of the last plan and return no priors of kinds.
    sample_size: approximate number of pages to read from all domains together.
    """
    inputs = await plan.read_plan_inputs(db, at=at, only=only)
    importances = await _compute_importances(db, inputs)
    defaults = add_plugin_defaults(settings.defaults, settings.plugins)
    samples = []
    for each in inputs:
        size = _compute_sample_size(each, inputs, sample_size)
        samples.append(await sample_domain(db, each, sample_size=size, at=at, defaults=defaults))
    priors = RefittedPriors([each.priors for each in samples], ())
    if refits:
        priors = samplings.refit_all_priors(samples, [classify_site(each.domain.authority) for each in inputs])
    works = [build_work(*each, settings) for each in zip(inputs, samples, priors.domains, strict=True)]
    domain_limits = [compute_limits(*each, settings, at=at) for each in zip(inputs, importances, strict=True)]
    suspended = [each.is_suspended(at=at, min_duration=HOUR) for each in inputs]
    plans = _solve_plans(works, domain_limits, suspended, settings)
    columns = (inputs, importances, samples, priors.domains, works, suspended, plans)
    return [DomainForecast(*each) for each in zip(*columns, strict=True)], priors.kinds


def _solve_plans(
    works: list[Workload], domain_limits: list[DomainLimits], suspended: list[bool], settings: Settings
) -> list[DomainPlan]:
    """Solve the plans of all domains. Suspended domains leave their part of the overall budget to the others."""
    overall, shares = get_overall_budget(settings), get_shares(settings)
    plans = solve_plans(works, domain_limits, overall=overall, shares=shares)
    if any(suspended):
        active = [n for n, is_suspended in enumerate(suspended) if not is_suspended]
        chosen = [works[n] for n in active], [domain_limits[n] for n in active]
        for n, active_plan in zip(active, solve_plans(*chosen, overall=overall, shares=shares), strict=True):
            plans[n] = active_plan
    return plans


async def _compute_importances(db: Database, inputs: Sequence[PlanInput]) -> list[float]:
    """Return the importance of each domain relative to the others: by links (mean 1), times its weight."""
    ids, weights = [each.domain.id for each in inputs], [each.domain.settings.weight for each in inputs]
    if len(ids) == 1:  # nothing to compare with, so links need not be read
        return weights
    by_links = compute_popularity(ids, await plan.read_flows(db, ids))
    return [by_links[domain] * weight for domain, weight in zip(ids, weights, strict=True)]


def _compute_sample_size(plan_input: PlanInput, inputs: Sequence[PlanInput], sample_size: int) -> int:
    """Return how many of the domain's pages to read: in proportion to its size, but with a minimum for small ones."""
    tracked = max(sum(each.tracked for each in inputs), 1)
    min_size = min(MIN_SAMPLE_PER_DOMAIN, MAX_SAMPLES * sample_size // len(inputs))
    return max(sample_size * plan_input.tracked // tracked, min_size, 1)


def build_work(
    plan_input: PlanInput,
    sample: PageSample,
    priors: Sequence[RateEstimate],
    settings: Settings,
    *,
    revisit: RevisitPolicy | None = None,
) -> Workload:
    """Build the workload of a domain under a revisit policy. revisit: None means the domain's own policy."""
    domain_settings = plan_input.domain.settings
    return samplings.build_workload(
        sample,
        priors,
        min_interval_days=settings.min_interval / DAY,
        max_interval_days=settings.max_interval / DAY,
        by_magnitude=domain_settings.change_weight == ChangeWeight.MAGNITUDE,
        revisit=revisit or choose_policy(domain_settings, settings),
    )


def choose_policy(domain_settings: DomainSettings, settings: Settings) -> RevisitPolicy:
    """Return the revisit policy of the domain, or the value policy if its plugin is not enabled."""
    return parse_policy_or_default(domain_settings.revisit, load_plugins(settings.plugins).revisits)


def compute_limits(plan_input: PlanInput, importance: float, settings: Settings, *, at: datetime) -> DomainLimits:
    """Return the limits of the domain from its settings and politeness, for an average day of the week from `at`."""
    domain_settings, hours = plan_input.domain.settings, plan_input.domain.hours
    delay_s, cap = _compute_pace(plan_input, settings, at=at)
    open_days = compute_open_day_share(hours, at=at)
    budgets = (domain_settings.budget_per_day, domain_settings.bytes_per_day)
    return DomainLimits(
        importance=importance,
        budget=Budget(*(_default_to_no_limit(each) * open_days for each in budgets)),
        delay_s=delay_s,
        polite_requests=cap,
        is_always_open=hours.is_always,
        target_freshness=domain_settings.target_freshness,
        target_age_days=domain_settings.max_age / DAY if domain_settings.max_age else None,
        default_shadow_price=settings.min_value,
        max_interval_days=settings.max_interval / DAY,
        scales_gaps=settings.uses_whole_budget(domain_settings)
        and choose_policy(domain_settings, settings) is not VALUE_POLICY,
    )


def compute_open_day_share(hours: Hours, *, at: datetime) -> float:
    """Return the share of the UTC days of a week that have open hours; the budgets of other days are not spent."""
    week = list_week_spans(hours, at)
    # At least one day: a change to daylight saving time can skip the only open hour of a week.
    return max(sum(map(bool, week)), 1) / len(week)


def _compute_pace(plan_input: PlanInput, settings: Settings, *, at: datetime) -> tuple[float, float]:
    """Return the seconds between two requests at normal speed, and how many requests an average day allows."""
    domain, hours = plan_input.domain, plan_input.domain.hours
    default_delay_s = settings.choose_delay(domain.settings, is_own=domain.is_own_server).total_seconds()
    # The stored delay applies to the slowest hours. If it is longer than they require, robots.txt announces it.
    slowest_delay_s = default_delay_s / min(window.speed for window in hours.windows)
    min_delay_s = plan_input.announced_s if plan_input.announced_s > slowest_delay_s else 0.0
    if not (default_delay_s or min_delay_s):
        return 0.0, NO_LIMIT
    week = list_week_spans(hours, at)
    spans = chain.from_iterable(week)
    requests = sum(span.length.total_seconds() / max(default_delay_s / span.speed, min_delay_s) for span in spans)
    connections = settings.choose_parallelism(domain.settings, is_own=domain.is_own_server)
    return max(default_delay_s, min_delay_s), requests / len(week) * connections


def _default_to_no_limit(number: int | None) -> float:
    return NO_LIMIT if number is None else float(number)


def get_overall_budget(settings: Settings) -> Budget:
    return Budget(_default_to_no_limit(settings.budget_per_day), _default_to_no_limit(settings.bytes_per_day))


def get_shares(settings: Settings) -> Shares:
    return Shares(discovery=settings.min_discovery_share, refresh=settings.min_revisit_share)


def _correct_price(plan_input: PlanInput, solved: DomainPlan, *, at: datetime) -> float:
    """Return the new factor on the shadow price, by comparing the requests used today with those allowed so far.

    An hour is 1/24 of the day's open time.
    """
    hours = 24 * compute_day_share(plan_input.domain.hours, at, lead=timedelta(0)).elapsed
    if solved.shadow_price is None:
        return 1.0
    if plan_input.planned_at is None or at - plan_input.planned_at < CORRECTION_INTERVAL or hours < 1:
        return plan_input.price_correction
    if not plan_input.spent_today:  # a crawl that did not run says nothing about the price
        return plan_input.price_correction
    steps = min(max((at - plan_input.planned_at) / HOUR, 1.0), hours)
    open_days = compute_open_day_share(plan_input.domain.hours, at=at)
    allowed = min(compute_budget(solved.requests), solved.limit) / open_days / 24
    used, before = (plan_input.spent_today + GRANT_MARGIN) / hours, plan_input.price_correction
    return update_price_correction(before, used=used, allowed=allowed, waiting=plan_input.waiting, hours=steps)
