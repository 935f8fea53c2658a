"""Reports on domains: freshness, its accuracy and costs, plans, and forecasts for other budgets."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.app.database import AppDatabase
from crawler.app.registration import find_domains
from crawler.app.status import WaitReason, find_wait, format_waits
from crawler.core.budget.cost import ShadowPrice
from crawler.core.budget.expected import PolicyForecast
from crawler.core.budget.hours import list_week_spans
from crawler.core.domain import Domain
from crawler.core.freshness.calibration import Agreement
from crawler.core.freshness.estimates import DAY
from crawler.planner.audit import AUDIT_WINDOW, DomainAudit, audit_domains, list_findings
from crawler.planner.forecast import BudgetSource, Forecast, ForecastStep, compute_forecast
from crawler.planner.plan import PlannedDomain, plan_domains
from crawler.planner.traffic import JudgedHour, TrafficFinding, find_unusual_traffic, judge_hours
from crawler.plugins import is_known_policy, load_plugins
from crawler.prune import PruneStats, enforce_quota
from crawler.runtime.machine import ensure_private_folder
from crawler.runtime.stack import is_without_worker
from crawler.runtime.web_ui import find_web_ui_origin
from crawler.settings import Settings
from crawler.store import record, report
from crawler.store.learned.credibility import TrustRow, list_trust_rows
from crawler.store.plan import Calibration, load_calibration
from crawler.store.report import ANY_AGE, MAX_AGE, DomainReport, ListReport, SourceReport

FINGERPRINT_CHUNKS = 20  # chunks of 5,000 feed events per domain and run, about half a minute; the next run continues


@dataclass(frozen=True, slots=True)
class FullReport:
    """The full report of one domain.

    standings: how reliable its validators are.  lists: its sitemaps and feeds.  sources: its sources of change signals.
    """

    domain_report: DomainReport
    calibration: Calibration
    standings: list[TrustRow]
    lists: list[ListReport]
    sources: list[SourceReport]


async def report_domains(
    db: AppDatabase, name: str | None, *, window: timedelta, at: datetime | None
) -> tuple[list[FullReport], list[str], bool]:
    """Return the reports of one domain or all, a sentence for each domain in which requested pages wait, and a flag.

    The flag is whether a domain waits only for a worker.
    at: knowledge time, not before a domain's last visit; None for now.  Raises BadInput.
    """
    selected = await find_domains(db, name, at=at)
    instant = at or datetime.now(UTC)
    full_reports = [
        FullReport(
            domain_report=each,
            calibration=await read_calibration(db, domain, each),
            standings=await list_trust_rows(db, domain),
            lists=await report.read_url_lists(db, domain),
            sources=await report.list_signal_sources(db, domain),
        )
        for domain in selected
        if (each := await report.read_domain_report(db, domain, at=instant, window=window)) is not None
    ]
    waiting = await format_waits(db, at=instant, only=selected, requested=True)
    return full_reports, waiting, await _lacks_worker(db, selected, at=instant)


async def _lacks_worker(db: AppDatabase, selected: Iterable[Domain], *, at: datetime) -> bool:
    """Return whether a domain could be crawled now, but no worker is running."""
    if not is_without_worker(db.settings):
        return False
    for domain in selected:
        wait = await find_wait(db, domain, at=at)
        if wait is not None and wait.reason is WaitReason.NO_WORKER:
            return True
    return False


async def measure_freshness(
    db: AppDatabase, selected: Collection[Domain], *, window: timedelta, at: datetime, max_age: timedelta = MAX_AGE
) -> list[DomainReport]:
    """Return the freshness and costs of domains, except removed ones. max_age: of the figures of a large domain."""
    measured = [await report.read_domain_report(db, each, at=at, window=window, max_age=max_age) for each in selected]
    return [each for each in measured if each is not None]


async def read_calibration(db: AppDatabase, domain: Domain, domain_report: DomainReport) -> Calibration:
    """Return the results of audits for the whole UTC days within the report's window."""
    today = domain_report.at.astimezone(UTC).date()
    return await load_calibration(db, domain, since=today - max(domain_report.window, DAY), until=today)


async def list_hours(db: AppDatabase, name: str | None, *, hours: int, at: datetime) -> list[tuple[str, JudgedHour]]:
    """Return the last hours in which domains were visited, and the current hour so far, each with the domain's name."""
    selected, last = await find_domains(db, name), timedelta(hours=hours)
    return [(each.authority, hour) for each in selected for hour in await judge_hours(db, each, at=at, window=last)]


def find_next_fetch_time(domain_report: DomainReport) -> datetime | None:
    """Return when the next page is due, or when a suspension ends if that is later; None if nothing will be due."""
    due_at = domain_report.next_due_at
    return None if due_at is None else max(due_at, domain_report.suspended_until or due_at)


def get_shadow_price(settings: Settings, domain_report: DomainReport) -> float | None:
    """Return the minimum value of a visit (docs/freshness.md); None under another known revisit policy than `value`."""
    if domain_report.revisit != "value" and is_known_policy(domain_report.revisit, settings.plugins):
        return None
    return settings.min_value if domain_report.shadow_price is None else domain_report.shadow_price


@dataclass(frozen=True, slots=True)
class BelowTarget:
    """A domain whose freshness is below its target."""

    domain: str
    freshness: float
    target: float
    finding: str


@dataclass(frozen=True, slots=True)
class HourlyPlan:
    """The result of the hourly plan.

    pruned: domains that exceeded their storage quotas.  below: domains below their targets.
    traffic: recent hours with anomalous traffic.
    """

    planned: Sequence[PlannedDomain]
    pruned: Sequence[PruneStats]
    below: Sequence[BelowTarget]
    traffic: Sequence[TrafficFinding]


async def plan_budgets(db: AppDatabase, *, only: str | None = None, at: datetime | None) -> list[PlannedDomain]:
    """Plan the visits of all domains and set their shadow prices. Raises BadInput.

    only: plan this domain as if there were no others.  at: knowledge time, not before a last visit; None for now.
    """
    load_plugins(db.settings.plugins)
    selected = await find_domains(db, only, at=at)
    only_domain = None if only is None else selected[0]
    return await plan_domains(db, at=at or datetime.now(UTC), settings=db.settings, only=only_domain)


async def plan_hourly(db: AppDatabase, *, at: datetime) -> HourlyPlan:
    """Plan all domains and do the hourly upkeep.

    Compute fingerprints, pair pages that may share a schedule, store report figures, enforce quotas and check traffic.
    """
    planned = await plan_domains(db, at=at, settings=db.settings)
    planned_domains = [each.domain for each in planned]
    for domain in planned_domains:
        await report.fill_fingerprints(db, domain, max_chunks=FINGERPRINT_CHUNKS)
        await record.propose_pairs(db, domain, at=at)
        await report.store_figures(db, domain, at=at)
    pruned = [outcome for domain in planned_domains if (outcome := await enforce_quota(db, domain)) is not None]
    below = [found for each in planned if (found := await _find_below_target(db, each, at=at)) is not None]
    return HourlyPlan(planned, pruned, below, await find_unusual_traffic(db, at=at))


async def _find_below_target(db: AppDatabase, planned: PlannedDomain, *, at: datetime) -> BelowTarget | None:
    target = planned.domain.settings.target_freshness
    if target is None:
        return None
    found = await report.read_domain_report(db, planned.domain, at=at, window=timedelta(hours=1))
    if found is None or found.freshness is None or found.freshness >= target:
        return None
    return BelowTarget(planned.domain.authority, found.freshness, target, planned.plan.finding)


async def forecast_domain(db: AppDatabase, name: str, *, at: datetime | None) -> tuple[Domain, Forecast | None]:
    """Forecast a domain's freshness at several budgets; None without fetched pages. at: as in `plan_budgets`."""
    load_plugins(db.settings.plugins)
    (domain,) = await find_domains(db, name, at=at)
    return domain, await compute_forecast(db, domain, at=at or datetime.now(UTC), settings=db.settings)


async def draw_audits(db: AppDatabase, name: str | None, *, at: datetime | None) -> list[DomainAudit]:
    """Draw random pages for the next crawl to visit, and compare earlier visits with the reported freshness.

    name: a domain; None for all.  at: as in `plan_budgets`.  Raises BadInput.
    """
    selected = await find_domains(db, name, at=at)
    return await audit_domains(db, at=at or datetime.now(UTC), only=None if name is None else selected[0])
