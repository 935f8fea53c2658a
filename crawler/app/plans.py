"""What requests are worth in each domain, what other budgets would buy, and audits of what is reported."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.app.registration import find_domains
from crawler.core.budget import PolicyForecast, Price, week_from
from crawler.core.domain import Domain
from crawler.core.freshness import Agreement
from crawler.planner import (
    LOOKED_BACK,
    AuditFinding,
    BudgetSource,
    DomainAudit,
    Forecast,
    ForecastStep,
    Planned,
    TrafficFinding,
    audit_domains,
    findings,
    forecast,
    plan_domains,
    traffic_findings,
)
from crawler.plugins import load
from crawler.prune import Pruned, keep_quota
from crawler.settings import Settings
from crawler.store import record, report
from crawler.store.database import Database

COMPARED = 20  # chunks of events of each domain in one run, so that 100,000 take half a minute; the next goes on
HOUR = timedelta(hours=1)


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


async def plan(db: Database, settings: Settings, *, only: str | None = None, at: datetime | None) -> list[Planned]:
    """Set the prices of all domains, or of one as if there were no other. Raises BadInput.

    at: knowledge time, which must not be before a last visit; None for now.
    """
    load(settings.plugins)
    found = await find_domains(db, only, at=at)
    chosen = None if only is None else found[0]
    return await plan_domains(db, at=at or datetime.now(UTC), settings=settings, only=chosen)


async def plan_hourly(db: Database, settings: Settings, *, at: datetime) -> HourlyPlan:
    """Plan all domains, make pages comparable, propose shared schedules, count, keep quotas, look for what is off."""
    planned = await plan_domains(db, at=at, settings=settings)
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


async def forecast_domain(
    db: Database, settings: Settings, name: str, *, at: datetime | None
) -> tuple[Domain, Forecast | None]:
    """Return what more and fewer requests would buy in a domain; None if no page could become stale yet.

    at: as in `plan`.  Raises BadInput.
    """
    load(settings.plugins)
    (domain,) = await find_domains(db, name, at=at)
    return domain, await forecast(db, domain, at=at or datetime.now(UTC), settings=settings)


async def audit(db: Database, name: str | None, *, at: datetime | None) -> list[DomainAudit]:
    """Draw pages for the next crawl to look at by chance, and compare earlier looks with what was reported.

    name: of one domain; None for all.  at: as in `plan`.  Raises BadInput.
    """
    found = await find_domains(db, name, at=at)
    return await audit_domains(db, at=at or datetime.now(UTC), only=None if name is None else found[0])
