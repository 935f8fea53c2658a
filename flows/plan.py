"""plan: what all domains together say about each."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from prefect import flow, get_run_logger
from prefect.artifacts import acreate_markdown_artifact
from prefect.events import emit_event

from crawler.app.registration import domain_named
from crawler.core.domain import Domain
from crawler.format.values import format_bytes
from crawler.planner import Planned, TrafficFinding, plan_domains, traffic_findings
from crawler.prune import keep_quota
from crawler.runtime.stack import crawl_database
from crawler.settings import settings
from crawler.store import record, report
from crawler.store.database import Database, open_database
from flows.choices import tell_forms
from flows.ending import says_why
from flows.lease import if_heard
from flows.shift import instant

FRESHNESS_BELOW = "recrawl.freshness.below"
TRAFFIC_OFF = "recrawl.traffic.off"
HOUR = timedelta(hours=1)
COMPARED = 20  # chunks of events of each domain in one run, so that 100,000 take half a minute; the next goes on
SHOWN = 100  # domains in the artifact, the most important ones
COLUMNS = ("domain", "importance", "price", "budget", "requests a day", "fresh", "age, days")


@flow(name="plan", flow_run_name="plan", persist_result=False)
@says_why
async def plan(domain: str = "", at: str = "") -> dict[str, dict[str, object]]:
    """Work out what a request must be worth in each domain, so that budgets are spent where they do most.

    New and changed pages are made ready to be compared with others, for `recrawl duplicates`. Those whose texts were
    the same for some looks will share one schedule. Domains whose last hour was far from its usual are told. Of domains
    that take more than their quota versions go, as by prune.

    Args:
        domain: Show only this domain, such as docs.example.com; all are planned, since they share a budget.
        at: Knowledge time, such as 2026-01-31T12:00:00Z; empty for now.

    """
    with crawl_database(settings()) as url:
        async with open_database(url) as db:
            only = await domain_named(db, domain) if domain else None
            now = instant(at) or datetime.now(UTC)
            planned = await plan_domains(db, at=now, settings=settings())
            for each in planned:
                await report.fill(db, each.domain, chunks=COMPARED)
                await record.propose(db, each.domain, at=now)
                await report.keep_figures(db, each.domain, at=now)
            await keep_quotas(db, [each.domain for each in planned])
            await tell_of_targets(db, planned, at=now)
            await if_heard(tell_forms(db))
            tell_of_traffic(await traffic_findings(db, at=now))
    shown = [each for each in planned if only is None or each.domain.id == only.id]
    for each in shown:
        if each.plan.finding:
            get_run_logger().warning("%s: %s", each.domain.authority, each.plan.finding)
    await if_heard(acreate_markdown_artifact(markdown(shown), key="plan-result", description="What was planned"))
    return {each.domain.authority: facts(each) for each in shown}


async def keep_quotas(db: Database, wanted: Sequence[Domain]) -> None:
    """Thin out the versions of domains that have outgrown their quota since the night, and say so."""
    for domain in wanted:
        done = await keep_quota(db, domain)
        if done is None:
            continue
        freed = format_bytes(done.freed_bytes)
        get_run_logger().info("%s: %d versions thinned out for its quota, %s", done.domain, done.versions, freed)
        if done.exceeds:
            get_run_logger().warning("%s: %s above its quota", done.domain, format_bytes(done.exceeds))
            if done.reader:
                get_run_logger().warning("%s: %s", done.domain, done.held_back)


async def tell_of_targets(db: Database, planned: Sequence[Planned], *, at: datetime) -> None:
    """Say which domains' copies are less fresh than their users want, in the log and as an event for automations."""
    for each in planned:
        name, target = each.domain.authority, each.domain.settings.target_freshness
        found = await report.domain_report(db, each.domain, at=at, window=HOUR) if target is not None else None
        if target is None or found is None or found.freshness is None or found.freshness >= target:
            continue
        get_run_logger().warning("%s: %.1f %% fresh of %.1f %% wanted", name, 100 * found.freshness, 100 * target)
        emit_event(
            event=FRESHNESS_BELOW,
            resource={"prefect.resource.id": f"recrawl.domain.{name}", "prefect.resource.name": name},
            payload={"freshness": found.freshness, "target": target, "finding": each.plan.finding},
        )


def tell_of_traffic(found: Sequence[TrafficFinding]) -> None:
    """Say which domains' last hour was far from its usual, in the log and as an event for automations."""
    for each in found:
        name, hour = each.domain.authority, each.judged.traffic
        get_run_logger().warning("%s, hour from %s: %s", name, f"{hour.hour:%Y-%m-%dT%H:%MZ}", each.judged.why)
        emit_event(
            event=TRAFFIC_OFF,
            resource={"prefect.resource.id": f"recrawl.domain.{name}", "prefect.resource.name": name},
            payload={
                "why": each.judged.why,
                "hour": hour.hour.isoformat(),
                "looks": hour.looks,
                "errors": hour.errors,
                "latency_ms": hour.latency_ms,
            },
        )


def facts(planned: Planned) -> dict[str, object]:
    """The facts of one domain's plan, by name."""
    outlook = planned.plan.expected
    return {
        "importance": planned.importance,
        "price": planned.price.per_request,
        "requests": planned.plan.requests,
        "freshness": outlook.freshness if planned.known else None,
        "finding": planned.plan.finding,
    }


def markdown(planned: Sequence[Planned]) -> str:
    """The domains by importance, as a person reads it, and what cannot be had."""
    rows = sorted(planned, key=lambda each: (-each.importance, each.domain.authority))
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|" + "---:|" * (len(COLUMNS) - 1)]
    lines += [f"| {' | '.join(row(each))} |" for each in rows[:SHOWN]]
    lines += [f"\n{each.domain.authority}: {each.plan.finding}." for each in rows[:SHOWN] if each.plan.finding]
    return "\n".join(lines)


def row(planned: Planned) -> tuple[str, ...]:
    """The table row of one domain, in the order of COLUMNS."""
    tariff, domain_settings = planned.plan, planned.domain.settings
    budget = domain_settings.budget_per_day if domain_settings.budget_per_day is not None else tariff.asked
    return (
        planned.domain.authority,
        f"{planned.importance:.2f}",
        f"{planned.price.per_request:.3g}",
        "-" if budget is None else f"{budget:,.0f}",
        f"{tariff.requests:,.1f}",
        f"{100 * tariff.expected.freshness:.1f} %" if planned.known else "-",
        f"{tariff.expected.age_days:.2f}" if planned.known else "-",
    )
