"""plan: what all domains together say about each."""

from collections.abc import Sequence
from datetime import UTC, datetime

from prefect import flow, get_run_logger

from crawler.app.database import open_database_of
from crawler.app.registration import domain_named
from crawler.app.reports import HourlyPlan, Planned, plan_hourly
from crawler.format.reports import format_plan, markdown_table
from crawler.format.values import format_bytes
from crawler.settings import settings
from flows.ending import says_why
from flows.form import instant, tell_forms
from flows.lease import emit, if_heard, show_markdown

FRESHNESS_BELOW = "recrawl.freshness.below"
TRAFFIC_OFF = "recrawl.traffic.off"
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
    async with open_database_of(settings()) as db:
        only = await domain_named(db, domain) if domain else None
        done = await plan_hourly(db, at=instant(at) or datetime.now(UTC))
        await if_heard(tell_forms(db))
    tell(done)
    shown = [each for each in done.planned if only is None or each.domain.id == only.id]
    for each in shown:
        if each.plan.finding:
            get_run_logger().warning("%s: %s", each.domain.authority, each.plan.finding)
    await show_markdown(markdown(shown), key="plan-result", description="What was planned")
    return {
        each.domain.authority: {
            "importance": each.importance,
            "price": each.price.per_request,
            "requests": each.plan.requests,
            "freshness": each.plan.expected.freshness if each.known else None,
            "finding": each.plan.finding,
        }
        for each in shown
    }


def tell(done: HourlyPlan) -> None:
    """Say in the log, and by events for automations, what went for quotas and which domains are not as they should."""
    log = get_run_logger()
    for pruned in done.pruned:
        freed = format_bytes(pruned.freed_bytes)
        log.info("%s: %d versions thinned out for its quota, %s", pruned.domain, pruned.versions, freed)
        if pruned.exceeds:
            log.warning("%s: %s above its quota", pruned.domain, format_bytes(pruned.exceeds))
            if pruned.reader:
                log.warning("%s: %s", pruned.domain, pruned.held_back)
    for below in done.below:
        log.warning("%s: %.1f %% fresh of %.1f %% wanted", below.domain, 100 * below.freshness, 100 * below.target)
        payload = {"freshness": below.freshness, "target": below.target, "finding": below.finding}
        emit(FRESHNESS_BELOW, below.domain, payload)
    for each in done.traffic:
        name, hour = each.domain.authority, each.judged.traffic
        log.warning("%s, hour from %s: %s", name, f"{hour.hour:%Y-%m-%dT%H:%MZ}", each.judged.why)
        facts = {"why": each.judged.why, "hour": hour.hour.isoformat()}
        counts = {"looks": hour.looks, "errors": hour.errors, "latency_ms": hour.latency_ms}
        emit(TRAFFIC_OFF, name, facts | counts)


def markdown(planned: Sequence[Planned]) -> str:
    """The domains by importance, as a person reads it, and what cannot be had."""
    shown = sorted(planned, key=lambda each: (-each.importance, each.domain.authority))[:SHOWN]
    lines = markdown_table(
        COLUMNS,
        [
            (
                each.domain.authority,
                *format_plan(each),
                f"{each.plan.expected.age_days:.2f}" if each.known else "-",
            )
            for each in shown
        ],
    )
    lines += [f"\n{each.domain.authority}: {each.plan.finding}." for each in shown if each.plan.finding]
    return "\n".join(lines)
