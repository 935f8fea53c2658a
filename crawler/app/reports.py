"""How fresh each domain is, how true that is, what keeping it so costs, and what other budgets would buy."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.app.database import Database
from crawler.app.registration import find_domains
from crawler.app.status import waiting_lines
from crawler.core.budget.cost import Price
from crawler.core.budget.expected import PolicyForecast
from crawler.core.budget.hours import week_from
from crawler.core.domain import Domain
from crawler.core.freshness.calibration import Agreement
from crawler.core.freshness.estimates import DAY
from crawler.planner.audit import LOOKED_BACK, DomainAudit, audit_domains, findings
from crawler.planner.forecast import BudgetSource, Forecast, ForecastStep, forecast
from crawler.planner.plan import Planned, plan_domains
from crawler.planner.traffic import JudgedHour, TrafficFinding, judged_hours, traffic_findings
from crawler.plugins import is_policy, load
from crawler.prune import Pruned, keep_quota
from crawler.runtime.machine import private_folder
from crawler.runtime.pages import pages_origin
from crawler.runtime.stack import is_without_worker
from crawler.settings import Settings
from crawler.store import record, report
from crawler.store.learned.credibility import TrustRow, trust_rows
from crawler.store.plan import Calibration, calibration
from crawler.store.report import HOWEVER_OLD, KEPT_FOR, DomainReport, ListReport, SourceFacts

COMPARED = 20  # chunks of events of each domain in one run, so that 100,000 take half a minute; the next goes on
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class FullReport:
    """All that is reported of one domain."""

    found: DomainReport
    calibration: Calibration
    standings: list[TrustRow]
    lists: list[ListReport]
    sources: list[SourceFacts]


async def report_domains(
    db: Database, name: str | None, *, window: timedelta, at: datetime | None
) -> tuple[list[FullReport], list[str]]:
    """Return the reports of one domain, or of all, and a sentence for each where a requested page waits.

    at: knowledge time, which must not be before a last visit; None for now.  Raises BadInput.
    """
    wanted = await find_domains(db, name, at=at)
    instant = at or datetime.now(UTC)
    found = [
        FullReport(
            found=each,
            calibration=await calibration_of(db, domain, each),
            standings=await trust_rows(db, domain),
            lists=await report.lists_of(db, domain),
            sources=await report.signal_sources(db, domain),
        )
        for domain in wanted
        if (each := await report.domain_report(db, domain, at=instant, window=window)) is not None
    ]
    return found, await waiting_lines(db, at=instant, only=wanted, requested=True)


async def measure_freshness(
    db: Database, wanted: Collection[Domain], *, window: timedelta, at: datetime, kept_for: timedelta = KEPT_FOR
) -> list[DomainReport]:
    """Return how fresh domains are, and what that took; without those that were removed meanwhile.

    kept_for: figures of a large domain may be as old as that.
    """
    found = [await report.domain_report(db, each, at=at, window=window, kept_for=kept_for) for each in wanted]
    return [each for each in found if each is not None]


async def calibration_of(db: Database, domain: Domain, found: DomainReport) -> Calibration:
    """Return what audits say of the finished UTC days within the report's window."""
    today = found.at.astimezone(UTC).date()
    return await calibration(db, domain, since=today - max(found.window, DAY), until=today)


async def list_hours(db: Database, name: str | None, *, hours: int, at: datetime) -> list[tuple[str, JudgedHour]]:
    """Return the whole hours before an instant in which a domain, or any of them, was visited, with its name."""
    wanted, last = await find_domains(db, name), timedelta(hours=hours)
    return [(domain.authority, hour) for domain in wanted for hour in await judged_hours(db, domain, at=at, last=last)]


def next_fetch_at(found: DomainReport) -> datetime | None:
    """Return when something is due that may be fetched; None if nothing will be due."""
    due_at = found.next_due_at
    return None if due_at is None else max(due_at, found.hold_until or due_at)


def price_in_force(settings: Settings, found: DomainReport) -> float | None:
    """Return the price by which pages are revisited; None where a policy of a plugin says when."""
    if found.revisit != "price" and is_policy(found.revisit, settings.plugins):
        return None
    return settings.price if found.price is None else found.price


def lacks_worker(settings: Settings, found: Sequence[DomainReport]) -> bool:
    """Whether something is due, and the worker that would fetch it does not run."""
    is_waiting = any(
        (at := next_fetch_at(each)) is not None and at <= each.at and not each.paused and each.holder is None
        for each in found
    )
    return is_waiting and is_without_worker(settings)


@dataclass(frozen=True, slots=True)
class BelowTarget:
    """A domain whose copies are less fresh than its user wants."""

    domain: str
    freshness: float
    target: float
    finding: str


@dataclass(frozen=True, slots=True)
class HourlyPlan:
    """What is done every hour. pruned: domains that had outgrown their quotas.  traffic: last hours that were off."""

    planned: Sequence[Planned]
    pruned: Sequence[Pruned]
    below: Sequence[BelowTarget]
    traffic: Sequence[TrafficFinding]


async def plan(db: Database, *, only: str | None = None, at: datetime | None) -> list[Planned]:
    """Set the prices of all domains, or of one as if there were no other. Raises BadInput.

    at: knowledge time, which must not be before a last visit; None for now.
    """
    load(db.settings.plugins)
    found = await find_domains(db, only, at=at)
    chosen = None if only is None else found[0]
    return await plan_domains(db, at=at or datetime.now(UTC), settings=db.settings, only=chosen)


async def plan_hourly(db: Database, *, at: datetime) -> HourlyPlan:
    """Plan all domains, make pages comparable, propose shared schedules, count, keep quotas, look for what is off."""
    planned = await plan_domains(db, at=at, settings=db.settings)
    wanted = [each.domain for each in planned]
    for domain in wanted:
        await report.fill(db, domain, chunks=COMPARED)
        await record.propose(db, domain, at=at)
        await report.keep_figures(db, domain, at=at)
    pruned = [done for domain in wanted if (done := await keep_quota(db, domain)) is not None]
    below = [found for each in planned if (found := await _below_target(db, each, at=at)) is not None]
    return HourlyPlan(planned, pruned, below, await traffic_findings(db, at=at))


async def _below_target(db: Database, planned: Planned, *, at: datetime) -> BelowTarget | None:
    target = planned.domain.settings.target_freshness
    found = await report.domain_report(db, planned.domain, at=at, window=HOUR) if target is not None else None
    if target is None or found is None or found.freshness is None or found.freshness >= target:
        return None
    return BelowTarget(planned.domain.authority, found.freshness, target, planned.plan.finding)


async def forecast_domain(db: Database, name: str, *, at: datetime | None) -> tuple[Domain, Forecast | None]:
    """Return what more and fewer requests would buy in a domain; None if no page could become stale yet.

    at: as in `plan`.  Raises BadInput.
    """
    load(db.settings.plugins)
    (domain,) = await find_domains(db, name, at=at)
    return domain, await forecast(db, domain, at=at or datetime.now(UTC), settings=db.settings)


async def audit(db: Database, name: str | None, *, at: datetime | None) -> list[DomainAudit]:
    """Draw pages for the next crawl to look at by chance, and compare earlier looks with what was reported.

    name: of one domain; None for all.  at: as in `plan`.  Raises BadInput.
    """
    found = await find_domains(db, name, at=at)
    return await audit_domains(db, at=at or datetime.now(UTC), only=None if name is None else found[0])
