"""The flows plan (hourly), audit, report and prune (daily)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from prefect import flow, get_run_logger

from crawler.app import reports
from crawler.app.database import open_configured_database
from crawler.app.registration import find_domains, get_domain
from crawler.app.running import maintenance
from crawler.format.reports import format_agreement, format_plan, render_markdown_table
from crawler.format.values import format_bytes, format_share
from crawler.settings import get_settings
from flows.form import parse_instant, update_forms
from flows.lease import emit, show_markdown, try_prefect_call
from flows.run_ending import build_run_name, report_errors

MAX_DOMAINS = 100  # domains per artifact; the most relevant ones come first
DAY = timedelta(days=1)
PLAN_COLUMNS = ("domain", "importance", "minimum value", "budget", "requests/day", "fresh", "age, days")
AUDIT_COLUMNS = (
    *("domain", "drawn", "audits (30 days)", "audits: expected fresh", "audits: found fresh"),
    *("scheduled visits", "scheduled: expected fresh", "scheduled: found fresh"),
)
REPORT_COLUMNS = ("domain", "fresh", "target", "pages", "visits", "changes", "failed", "requests", "received", "saved")
PRUNE_COLUMNS = (
    *("domain", "versions deleted", "freed", "visits packed"),
    *("visits deleted", "changes deleted", "remaining"),
)


@flow(name="audit", flow_run_name=build_run_name("audit"), persist_result=False)
@report_errors
async def audit(domain: str = "", at: str = "") -> dict[str, int]:
    """Draw random pages that the next crawl visits, and compare earlier visits with the reported freshness.

    Args:
        domain: Only this domain, such as docs.example.com; empty for all registered domains.
        at: Act as if it were this time, such as 2026-01-31T12:00:00Z; empty for now.

    """
    async with open_configured_database(get_settings()) as db:
        audits = await reports.draw_audits(db, domain or None, at=parse_instant(at))
    for off in reports.list_findings(audits):
        get_run_logger().warning("%s", off.sentence)
        names = ("expected_fresh", "found_fresh", "deviations")
        figures = {"visits": off.agreement.visits} | {name: getattr(off.agreement, name) for name in names}
        # A finding of audits means that the predicted freshness is wrong; one of scheduled visits, that pages change
        # more or less often than estimated.
        event = "recrawl.calibration.off" if off.by_chance else "recrawl.estimates.off"
        emit(event, off.name, figures, kind="calibration")
    if audits:
        await show_markdown(render_audits(audits), key="audit-result", description="Audit results")
    return {each.domain.authority: each.drawn for each in audits}


def render_audits(audits: Sequence[reports.DomainAudit]) -> str:
    """Render the audit results as Markdown, with inaccurate domains first."""
    rows = []
    for each in audits:
        name, audited, scheduled = each.domain.authority, each.calibration.audits, each.calibration.scheduled
        row = (name, str(each.drawn), *format_agreement(audited), *format_agreement(scheduled))
        rows.append((not (audited.is_off or scheduled.is_off), row))
    lines = render_markdown_table(AUDIT_COLUMNS, [row for _, row in sorted(rows)[:MAX_DOMAINS]])
    off = reports.list_findings(audits)
    lines += [f"\n{each.sentence}." for each in off]
    if not off:
        lines.append("\nThe predicted freshness and the change-rate estimates agree with what visits found.")
    return "\n".join(lines)


@flow(name="report", flow_run_name=build_run_name("report"), persist_result=False)
@report_errors
async def daily_report(domain: str = "", at: str = "") -> dict[str, float | None]:
    """Report the freshness and the costs of the last day, and write the HTML report.

    Args:
        domain: Only this domain, such as docs.example.com; empty for all registered domains.
        at: Act as if it were this time, such as 2026-01-31T12:00:00Z; empty for now.

    """
    from crawler.server import write_pages  # noqa: PLC0415  no other flow needs the web UI

    now, home = parse_instant(at) or datetime.now(UTC), get_settings().home.resolve()
    async with open_configured_database(get_settings()) as db:
        domains = await find_domains(db, domain or None)
        domain_reports = await reports.measure_freshness(db, domains, window=DAY, at=now)
        written = await write_pages(db, domains, reports.ensure_private_folder(home, "report"), at=now)
    get_run_logger().info("%d pages written: %s", written.files, written.index)
    lines = render_markdown_table(REPORT_COLUMNS, map(_format_report_row, domain_reports))
    lines.append(f"\nVisits, changes, requests and bytes cover the last day. HTML report: {written.index}")
    if (origin := reports.find_web_ui_origin(home)) is not None:
        lines.append(f"\n[Open the web UI](<{origin}/>)")
    # The same key every day, so that Prefect shows the history.
    await show_markdown("\n".join(lines), key="freshness-report", description="Freshness report")
    return {each.domain: each.freshness for each in domain_reports}


def _format_report_row(each: reports.DomainReport) -> tuple[str, ...]:
    counts = (each.fetched, each.visits, sum(each.changes.values()), each.failures, each.requests)
    shares = format_share(each.freshness), format_share(each.target_freshness)
    sizes = format_bytes(each.received_bytes), format_bytes(each.saved_bytes)
    return (each.domain, *shares, *(f"{count:,}" for count in counts), *sizes)


@flow(name="prune", flow_run_name="prune", persist_result=False)
@report_errors
async def prune(domain: str = "", dry_run: bool = False) -> dict[str, int]:  # noqa: FBT001, FBT002  a field of the form
    """Delete old versions, visits and changes according to the retention settings of each domain.

    The Prefect server deletes its own old runs itself.

    Args:
        domain: Only this domain, such as docs.example.com; empty for all registered domains.
        dry_run: Show what would be deleted, without deleting it.

    """
    async with open_configured_database(get_settings()) as db:
        results, _ = await maintenance.prune_history(db, domain or None, at=datetime.now(UTC), dry_run=dry_run)
    for each in results:
        if each.excess_bytes:
            get_run_logger().warning("%s: %s above its storage quota", each.domain, format_bytes(each.excess_bytes))
        if each.reader:
            get_run_logger().warning("%s: %s", each.domain, each.deferral_note)
    if dry_run or any(map(_has_findings, results)):
        await show_markdown(render_pruned(results, dry_run=dry_run), key="prune-result", description="Prune results")
    return {each.domain: each.freed_bytes for each in results}


def _has_findings(each: maintenance.PruneStats) -> bool:
    is_pruned = each.versions or each.packed or each.visits or each.changes
    return bool(is_pruned or each.excess_bytes or each.reader)


def render_pruned(results: Sequence[maintenance.PruneStats], *, dry_run: bool) -> str:
    """Render what was pruned, by domain, as Markdown."""
    rows = sorted(results, key=lambda each: (-each.freed_bytes, each.domain))
    lines = render_markdown_table(PRUNE_COLUMNS, map(_format_pruned_row, rows[:MAX_DOMAINS]))
    excesses = [(each.domain, format_bytes(each.excess_bytes)) for each in rows if each.excess_bytes]
    lines += [f"\n{name} is {excess} above its storage quota." for name, excess in excesses]
    lines += [f"\n{each.domain}: {each.deferral_note}." for each in rows if each.reader][:MAX_DOMAINS]
    if dry_run:
        lines.append("\nDry run: nothing was deleted.")
    return "\n".join(lines)


def _format_pruned_row(each: maintenance.PruneStats) -> tuple[str, ...]:
    counts = (f"{count:,}" for count in (each.packed, each.visits, each.changes))
    sizes = format_bytes(each.freed_bytes), format_bytes(each.stored_bytes)
    return (each.domain, f"{each.versions:,}", sizes[0], *counts, sizes[1])


@flow(name="plan", flow_run_name="plan", persist_result=False)
@report_errors
async def plan(domain: str = "", at: str = "") -> dict[str, dict[str, object]]:
    """Set the minimum value of a visit in each domain, so that budgets are spent where they help most.

    This flow also computes fingerprints of new and changed pages for `recrawl duplicates`, lets pages with identical
    texts share a schedule, reports domains with anomalous traffic, and deletes the contents of old versions in domains
    that exceed their storage quota.

    Args:
        domain: Show only this domain, such as docs.example.com. All domains are planned, since they share a budget.
        at: Act as if it were this time, such as 2026-01-31T12:00:00Z; empty for now.

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
    if selected:
        await show_markdown(render_planned(selected), key="plan-result", description="Plan results")
    return {
        each.domain.authority: {
            "importance": each.importance,
            "shadow_price": each.shadow_price.per_request,
            "requests": each.plan.requests,
            "freshness": each.plan.expected.freshness if each.fetched else None,
            "finding": each.plan.finding,
        }
        for each in selected
    }


def report_plan(hourly_plan: reports.HourlyPlan) -> None:
    """Log deleted versions, domains below their targets and anomalous traffic, and emit events for automations."""
    log = get_run_logger()
    for pruned in hourly_plan.pruned:
        freed = format_bytes(pruned.freed_bytes)
        log.info("%s: %d versions deleted to keep its storage quota, %s freed", pruned.domain, pruned.versions, freed)
        if pruned.excess_bytes:
            log.warning("%s: %s above its storage quota", pruned.domain, format_bytes(pruned.excess_bytes))
            if pruned.reader:
                log.warning("%s: %s", pruned.domain, pruned.deferral_note)
    for below in hourly_plan.below:
        log.warning("%s: freshness %.1f %%, target %.1f %%", below.domain, 100 * below.freshness, 100 * below.target)
        payload = {"freshness": below.freshness, "target": below.target, "finding": below.finding}
        emit("recrawl.freshness.below", below.domain, payload)
    for each in hourly_plan.traffic:
        name, hour = each.domain.authority, each.judged.traffic
        log.warning("%s, hour from %s: %s", name, f"{hour.hour:%Y-%m-%dT%H:%MZ}", each.judged.anomaly)
        facts = {"anomaly": each.judged.anomaly, "hour": hour.hour.isoformat()}
        counts = {"visits": hour.visits, "errors": hour.errors, "latency_ms": hour.latency_ms}
        emit("recrawl.traffic.off", name, facts | counts)


def render_planned(planned: Sequence[reports.PlannedDomain]) -> str:
    """Render the plans as Markdown, most important domains first, with their findings."""
    top_domains = sorted(planned, key=lambda each: (-each.importance, each.domain.authority))[:MAX_DOMAINS]
    rows = []
    for each in top_domains:
        age = f"{each.plan.expected.age_days:.2f}" if each.fetched else "-"
        rows.append((each.domain.authority, *format_plan(each), age))
    lines = render_markdown_table(PLAN_COLUMNS, rows)
    lines += [f"\n{each.domain.authority}: {each.plan.finding}." for each in top_domains if each.plan.finding]
    return "\n".join(lines)
