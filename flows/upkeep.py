"""plan, audit, report, prune: by the hour what a request must be worth; by the day how fresh copies are, what goes."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from prefect import flow, get_run_logger

from crawler.app import reports
from crawler.app.database import open_database_of
from crawler.app.registration import domain_named, find_domains
from crawler.app.running import maintenance
from crawler.format.reports import format_agreement, format_plan, markdown_table
from crawler.format.values import format_bytes, format_share
from crawler.settings import settings
from flows.ending import named, says_why
from flows.form import instant, tell_forms
from flows.lease import emit, if_heard, show_markdown

SHOWN = 100  # domains in an artifact: the most important ones, those that are off, or that freed most, first
DAY = timedelta(days=1)
CALIBRATION_OFF = "recrawl.calibration.off"  # of audits: the reported freshness is not true
CHANCES_OFF = "recrawl.chances.off"  # of all other looks: pages change more often, or less, than is believed
FRESHNESS_BELOW = "recrawl.freshness.below"
TRAFFIC_OFF = "recrawl.traffic.off"
PLANNED = ("domain", "importance", "price", "budget", "requests a day", "fresh", "age, days")
AUDITED = (
    *("domain", "drawn now", "audits of 30 days", "expected fresh", "found fresh"),
    *("other looks", "expected", "found"),
)
REPORTED = ("domain", "fresh", "target", "pages", "looks", "changes", "failed", "requests", "received", "saved")
PRUNED = ("domain", "versions thinned out", "freed", "looks packed", "looks forgotten", "changes forgotten", "left")


@flow(name="audit", flow_run_name=named("audit"), persist_result=False)
@says_why
async def audit(domain: str = "", at: str = "") -> dict[str, int]:
    """Draw pages by chance to be looked at whether they are due or not, and hold earlier such looks to the report.

    Args:
        domain: Only this domain, such as docs.example.com; empty for all that are registered.
        at: Knowledge time, such as 2026-01-31T12:00:00Z; empty for now.

    """
    async with open_database_of(settings()) as db:
        found = await reports.audit(db, domain or None, at=instant(at))
    for off in reports.findings(found):
        get_run_logger().warning("%s", off.sentence)
        names = ("looks", "expected_fresh", "found_fresh", "deviations")
        figures = {name: getattr(off.agreement, name) for name in names}
        emit(CALIBRATION_OFF if off.by_chance else CHANCES_OFF, off.name, figures, kind="calibration")
    await show_markdown(show_audits(found), key="audit-result", description="What was audited")
    return {each.domain.authority: each.drawn for each in found}


def show_audits(found: Sequence[reports.DomainAudit]) -> str:
    """The findings as Markdown, for a person; domains that are off come first."""
    rows = sorted(
        found, key=lambda each: (not (each.found.audits.is_off or each.found.scheduled.is_off), each.domain.authority)
    )
    lines = markdown_table(
        AUDITED,
        [
            (
                each.domain.authority,
                str(each.drawn),
                *format_agreement(each.found.audits),
                *format_agreement(each.found.scheduled),
            )
            for each in rows[:SHOWN]
        ],
    )
    off = reports.findings(found)
    lines += [f"\n{each.sentence}." for each in off]
    if not off:
        lines.append("\nNo report of freshness and no chance of change is off by more than chance explains.")
    return "\n".join(lines)


@flow(name="report", flow_run_name=named("report"), persist_result=False)
@says_why
async def daily_report(domain: str = "", at: str = "") -> dict[str, float | None]:
    """Say how fresh the copies are and what the last day took, and write the pages of one's own as files.

    Args:
        domain: Only this domain, such as docs.example.com; empty for all that are registered.
        at: Knowledge time, such as 2026-01-31T12:00:00Z; empty for now.

    """
    from crawler.server import write_pages  # noqa: PLC0415  no other flow needs the web UI

    now, home = instant(at) or datetime.now(UTC), settings().home.resolve()
    async with open_database_of(settings()) as db:
        wanted = await find_domains(db, domain or None)
        found = await reports.measure_freshness(db, wanted, window=DAY, at=now)
        written = await write_pages(db, wanted, reports.private_folder(home, "report"), at=now)
    get_run_logger().info("%d pages written: %s", written.files, written.index)
    shown = show_reports(found, index=written.index, origin=reports.pages_origin(home))
    # One key for all days: its history is the trend.
    await show_markdown(shown, key="freshness-report", description="How fresh the copies are")
    return {each.domain: each.freshness for each in found}


def show_reports(found: list[reports.DomainReport], *, index: Path, origin: str | None) -> str:
    """The reports as a person reads them."""
    lines = markdown_table(REPORTED, map(_report_row, found))
    lines.append(f"\nLooks, changes, requests and bytes of one day. As files: {index}")
    if origin is not None:
        lines.append(f"\n[Look at them now](<{origin}/>)")
    return "\n".join(lines)


def _report_row(each: reports.DomainReport) -> tuple[str, ...]:
    return (
        each.domain,
        format_share(each.freshness),
        format_share(each.target_freshness),
        f"{each.known:,}",
        f"{each.looks:,}",
        f"{sum(each.changes.values()):,}",
        f"{each.failures:,}",
        f"{each.requests:,}",
        format_bytes(each.received_bytes),
        format_bytes(each.saved_bytes),
    )


@flow(name="prune", flow_run_name="prune", persist_result=False)
@says_why
async def prune(domain: str = "", dry_run: bool = False) -> dict[str, int]:  # noqa: FBT001, FBT002  a form asks for it
    """Thin out old versions, pack old looks, forget old changes. Prefect's own runs its server forgets by itself.

    Args:
        domain: Only this domain, such as docs.example.com; empty for all that are registered.
        dry_run: Say what would go, and change nothing.

    """
    async with open_database_of(settings()) as db:
        found, _ = await maintenance.prune(db, domain or None, at=datetime.now(UTC), dry_run=dry_run)
    for each in found:
        if each.exceeds:
            get_run_logger().warning("%s: %s above its quota", each.domain, format_bytes(each.exceeds))
        if each.reader:
            get_run_logger().warning("%s: %s", each.domain, each.held_back)
    shown = show_pruned(found, dry_run=dry_run)
    await show_markdown(shown, key="prune-result", description="What was pruned")
    return {each.domain: each.freed_bytes for each in found}


def show_pruned(found: Sequence[maintenance.Pruned], *, dry_run: bool) -> str:
    """What went by domain, as a person reads it."""
    rows = sorted(found, key=lambda each: (-each.freed_bytes, each.domain))
    lines = markdown_table(PRUNED, map(_pruned_row, rows[:SHOWN]))
    lines += [f"\n{each.domain} is {format_bytes(each.exceeds)} above its quota." for each in rows if each.exceeds]
    lines += [f"\n{each.domain}: {each.held_back}." for each in rows if each.reader][:SHOWN]
    if dry_run:
        lines.append("\nA dry run: nothing was changed.")
    return "\n".join(lines)


def _pruned_row(each: maintenance.Pruned) -> tuple[str, ...]:
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
        done = await reports.plan_hourly(db, at=instant(at) or datetime.now(UTC))
        await if_heard(tell_forms(db))
    tell(done)
    shown = [each for each in done.planned if only is None or each.domain.id == only.id]
    for each in shown:
        if each.plan.finding:
            get_run_logger().warning("%s: %s", each.domain.authority, each.plan.finding)
    await show_markdown(show_planned(shown), key="plan-result", description="What was planned")
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


def tell(done: reports.HourlyPlan) -> None:
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


def show_planned(planned: Sequence[reports.Planned]) -> str:
    """The domains by importance, as a person reads it, and what cannot be had."""
    shown = sorted(planned, key=lambda each: (-each.importance, each.domain.authority))[:SHOWN]
    lines = markdown_table(
        PLANNED,
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
