"""plan, audit, report, prune: by the hour what a request must be worth; by the day how fresh copies are, what goes."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from prefect import flow, get_run_logger

from crawler.app import reports
from crawler.app.database import open_configured_database
from crawler.app.registration import find_domains, get_domain
from crawler.app.running import maintenance
from crawler.format.reports import format_agreement, format_plan, render_markdown_table
from crawler.format.values import format_bytes, format_share
from crawler.settings import get_settings
from flows.ending import build_run_name, report_errors
from flows.form import parse_instant, update_forms
from flows.lease import emit, show_markdown, try_prefect_call

MAX_DOMAINS = 100  # domains in an artifact: the most important ones, those that are off, or that freed most, first
DAY = timedelta(days=1)
CALIBRATION_OFF = "recrawl.calibration.off"  # of audits: the reported freshness is not true
CHANCES_OFF = "recrawl.chances.off"  # of all other looks: pages change more often, or less, than is believed
FRESHNESS_BELOW = "recrawl.freshness.below"
TRAFFIC_OFF = "recrawl.traffic.off"
PLAN_COLUMNS = ("domain", "importance", "price", "budget", "requests a day", "fresh", "age, days")
AUDIT_COLUMNS = (
    *("domain", "drawn now", "audits of 30 days", "expected fresh", "found fresh"),
    *("other looks", "expected", "found"),
)
REPORT_COLUMNS = ("domain", "fresh", "target", "pages", "visits", "changes", "failed", "requests", "received", "saved")
PRUNE_COLUMNS = (
    "domain",
    "versions thinned out",
    "freed",
    "looks packed",
    "looks forgotten",
    "changes forgotten",
    "left",
)


@flow(name="audit", flow_run_name=build_run_name("audit"), persist_result=False)
@report_errors
async def audit(domain: str = "", at: str = "") -> dict[str, int]:
    """Draw pages by chance to be looked at whether they are due or not, and hold earlier such looks to the report.

    Args:
        domain: Only this domain, such as docs.example.com; empty for all that are registered.
        at: Knowledge time, such as 2026-01-31T12:00:00Z; empty for now.

    """
    async with open_configured_database(get_settings()) as db:
        audits = await reports.draw_audits(db, domain or None, at=parse_instant(at))
    for off in reports.list_findings(audits):
        get_run_logger().warning("%s", off.sentence)
        names = ("visits", "expected_fresh", "found_fresh", "deviations")
        figures = {name: getattr(off.agreement, name) for name in names}
        emit(CALIBRATION_OFF if off.by_chance else CHANCES_OFF, off.name, figures, kind="calibration")
    await show_markdown(render_audits(audits), key="audit-result", description="What was audited")
    return {each.domain.authority: each.drawn for each in audits}


def render_audits(audits: Sequence[reports.DomainAudit]) -> str:
    """The findings as Markdown, for a person; domains that are off come first."""
    rows = sorted(
        audits,
        key=lambda each: (
            not (each.calibration.audits.is_off or each.calibration.scheduled.is_off),
            each.domain.authority,
        ),
    )
    lines = render_markdown_table(
        AUDIT_COLUMNS,
        [
            (
                each.domain.authority,
                str(each.drawn),
                *format_agreement(each.calibration.audits),
                *format_agreement(each.calibration.scheduled),
            )
            for each in rows[:MAX_DOMAINS]
        ],
    )
    off = reports.list_findings(audits)
    lines += [f"\n{each.sentence}." for each in off]
    if not off:
        lines.append("\nNo report of freshness and no chance of change is off by more than chance explains.")
    return "\n".join(lines)


@flow(name="report", flow_run_name=build_run_name("report"), persist_result=False)
@report_errors
async def daily_report(domain: str = "", at: str = "") -> dict[str, float | None]:
    """Say how fresh the copies are and what the last day took, and write the pages of one's own as files.

    Args:
        domain: Only this domain, such as docs.example.com; empty for all that are registered.
        at: Knowledge time, such as 2026-01-31T12:00:00Z; empty for now.

    """
    from crawler.server import write_pages  # noqa: PLC0415  no other flow needs the web UI

    now, home = parse_instant(at) or datetime.now(UTC), get_settings().home.resolve()
    async with open_configured_database(get_settings()) as db:
        domains = await find_domains(db, domain or None)
        domain_reports = await reports.measure_freshness(db, domains, window=DAY, at=now)
        written = await write_pages(db, domains, reports.ensure_private_folder(home, "report"), at=now)
    get_run_logger().info("%d pages written: %s", written.files, written.index)
    summary = render_reports(domain_reports, index=written.index, origin=reports.find_web_ui_origin(home))
    # One key for all days: its history is the trend.
    await show_markdown(summary, key="freshness-report", description="How fresh the copies are")
    return {each.domain: each.freshness for each in domain_reports}


def render_reports(domain_reports: list[reports.DomainReport], *, index: Path, origin: str | None) -> str:
    """The reports as a person reads them."""
    lines = render_markdown_table(REPORT_COLUMNS, map(_format_report_row, domain_reports))
    lines.append(f"\nLooks, changes, requests and bytes of one day. As files: {index}")
    if origin is not None:
        lines.append(f"\n[Look at them now](<{origin}/>)")
    return "\n".join(lines)


def _format_report_row(each: reports.DomainReport) -> tuple[str, ...]:
    return (
        each.domain,
        format_share(each.freshness),
        format_share(each.target_freshness),
        f"{each.fetched:,}",
        f"{each.visits:,}",
        f"{sum(each.changes.values()):,}",
        f"{each.failures:,}",
        f"{each.requests:,}",
        format_bytes(each.received_bytes),
        format_bytes(each.saved_bytes),
    )


@flow(name="prune", flow_run_name="prune", persist_result=False)
@report_errors
async def prune(domain: str = "", dry_run: bool = False) -> dict[str, int]:  # noqa: FBT001, FBT002  a form asks for it
    """Thin out old versions, pack old looks, forget old changes. Prefect's own runs its server forgets by itself.

    Args:
        domain: Only this domain, such as docs.example.com; empty for all that are registered.
        dry_run: Say what would go, and change nothing.

    """
    async with open_configured_database(get_settings()) as db:
        results, _ = await maintenance.prune_history(db, domain or None, at=datetime.now(UTC), dry_run=dry_run)
    for each in results:
        if each.excess_bytes:
            get_run_logger().warning("%s: %s above its quota", each.domain, format_bytes(each.excess_bytes))
        if each.reader:
            get_run_logger().warning("%s: %s", each.domain, each.deferral_note)
    summary = render_pruned(results, dry_run=dry_run)
    await show_markdown(summary, key="prune-result", description="What was pruned")
    return {each.domain: each.freed_bytes for each in results}


def render_pruned(results: Sequence[maintenance.PruneStats], *, dry_run: bool) -> str:
    """What went by domain, as a person reads it."""
    rows = sorted(results, key=lambda each: (-each.freed_bytes, each.domain))
    lines = render_markdown_table(PRUNE_COLUMNS, map(_format_pruned_row, rows[:MAX_DOMAINS]))
    lines += [
        f"\n{each.domain} is {format_bytes(each.excess_bytes)} above its quota." for each in rows if each.excess_bytes
    ]
    lines += [f"\n{each.domain}: {each.deferral_note}." for each in rows if each.reader][:MAX_DOMAINS]
    if dry_run:
        lines.append("\nA dry run: nothing was changed.")
    return "\n".join(lines)


def _format_pruned_row(each: maintenance.PruneStats) -> tuple[str, ...]:
    return (
        each.domain,
        f"{each.versions:,}",
        format_bytes(each.freed_bytes),
        f"{each.packed:,}",
        f"{each.visits:,}",
        f"{each.changes:,}",
        format_bytes(each.stored_bytes),
    )


@flow(name="plan", flow_run_name="plan", persist_result=False)
@report_errors
async def plan(domain: str = "", at: str = "") -> dict[str, dict[str, object]]:
    """Work out what a request must be worth in each domain, so that budgets are spent where they do most.

    New and changed pages are made ready to be compared with others, for `recrawl duplicates`. Those whose texts were
    the same for some looks will share one schedule. Domains whose last hour was far from its usual are told. Of domains
    that take more than their quota versions go, as by prune.

    Args:
        domain: Show only this domain, such as docs.example.com; all are planned, since they share a budget.
        at: Knowledge time, such as 2026-01-31T12:00:00Z; empty for now.

    """
    async with open_configured_database(get_settings()) as db:
        only = await get_domain(db, domain) if domain else None
        hourly_plan = await reports.plan_hourly(db, at=parse_instant(at) or datetime.now(UTC))
        await try_prefect_call(update_forms(db))
    report_plan(hourly_plan)
    selected = [each for each in hourly_plan.planned if only is None or each.domain.id == only.id]
    for each in selected:
        if each.plan.finding:
            get_run_logger().warning("%s: %s", each.domain.authority, each.plan.finding)
    await show_markdown(render_planned(selected), key="plan-result", description="What was planned")
    return {
        each.domain.authority: {
            "importance": each.importance,
            "price": each.shadow_price.per_request,
            "requests": each.plan.requests,
            "freshness": each.plan.expected.freshness if each.fetched else None,
            "finding": each.plan.finding,
        }
        for each in selected
    }


def report_plan(hourly_plan: reports.HourlyPlan) -> None:
    """Say in the log, and by events for automations, what went for quotas and which domains are not as they should."""
    log = get_run_logger()
    for pruned in hourly_plan.pruned:
        freed = format_bytes(pruned.freed_bytes)
        log.info("%s: %d versions thinned out for its quota, %s", pruned.domain, pruned.versions, freed)
        if pruned.excess_bytes:
            log.warning("%s: %s above its quota", pruned.domain, format_bytes(pruned.excess_bytes))
            if pruned.reader:
                log.warning("%s: %s", pruned.domain, pruned.deferral_note)
    for below in hourly_plan.below:
        log.warning("%s: %.1f %% fresh of %.1f %% wanted", below.domain, 100 * below.freshness, 100 * below.target)
        payload = {"freshness": below.freshness, "target": below.target, "finding": below.finding}
        emit(FRESHNESS_BELOW, below.domain, payload)
    for each in hourly_plan.traffic:
        name, hour = each.domain.authority, each.judged.traffic
        log.warning("%s, hour from %s: %s", name, f"{hour.hour:%Y-%m-%dT%H:%MZ}", each.judged.anomaly)
        facts = {"why": each.judged.anomaly, "hour": hour.hour.isoformat()}
        counts = {"visits": hour.visits, "errors": hour.errors, "latency_ms": hour.latency_ms}
        emit(TRAFFIC_OFF, name, facts | counts)


def render_planned(planned: Sequence[reports.PlannedDomain]) -> str:
    """The domains by importance, as a person reads it, and what cannot be had."""
    top_domains = sorted(planned, key=lambda each: (-each.importance, each.domain.authority))[:MAX_DOMAINS]
    lines = render_markdown_table(
        PLAN_COLUMNS,
        [
            (
                each.domain.authority,
                *format_plan(each),
                f"{each.plan.expected.age_days:.2f}" if each.fetched else "-",
            )
            for each in top_domains
        ],
    )
    lines += [f"\n{each.domain.authority}: {each.plan.finding}." for each in top_domains if each.plan.finding]
    return "\n".join(lines)
