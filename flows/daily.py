"""audit, report, prune: once a day, whether the reported freshness is true, how fresh the copies are, and what goes."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from prefect import flow, get_run_logger

from crawler.app.database import open_database_of
from crawler.app.registration import find_domains
from crawler.app.reports import DomainAudit, DomainReport, findings, measure_freshness, pages_origin, private_folder
from crawler.app.reports import audit as audit_domains
from crawler.app.running.maintenance import Pruned
from crawler.app.running.maintenance import prune as prune_domains
from crawler.format.reports import format_agreement, markdown_table
from crawler.format.values import format_bytes, format_share
from crawler.server import write_pages
from crawler.settings import settings
from flows.ending import named, says_why
from flows.form import instant
from flows.lease import emit, show_markdown

SHOWN = 100  # domains in an artifact: those that are off, or that freed most, first
DAY = timedelta(days=1)
CALIBRATION_OFF = "recrawl.calibration.off"  # of audits: the reported freshness is not true
CHANCES_OFF = "recrawl.chances.off"  # of all other looks: pages change more often, or less, than is believed
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
        found = await audit_domains(db, domain or None, at=instant(at))
    for off in findings(found):
        get_run_logger().warning("%s", off.sentence)
        names = ("looks", "expected_fresh", "found_fresh", "deviations")
        figures = {name: getattr(off.agreement, name) for name in names}
        emit(CALIBRATION_OFF if off.by_chance else CHANCES_OFF, off.name, figures, kind="calibration")
    await show_markdown(show_audits(found), key="audit-result", description="What was audited")
    return {each.domain.authority: each.drawn for each in found}


def show_audits(found: Sequence[DomainAudit]) -> str:
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
    off = findings(found)
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
    now, home = instant(at) or datetime.now(UTC), settings().home.resolve()
    async with open_database_of(settings()) as db:
        wanted = await find_domains(db, domain or None)
        found = await measure_freshness(db, wanted, window=DAY, at=now)
        written = await write_pages(db, wanted, private_folder(home, "report"), at=now)
    get_run_logger().info("%d pages written: %s", written.files, written.index)
    shown = show_reports(found, index=written.index, origin=pages_origin(home))
    # One key for all days: its history is the trend.
    await show_markdown(shown, key="freshness-report", description="How fresh the copies are")
    return {each.domain: each.freshness for each in found}


def show_reports(found: list[DomainReport], *, index: Path, origin: str | None) -> str:
    """The reports as a person reads them."""
    lines = markdown_table(REPORTED, map(_report_row, found))
    lines.append(f"\nLooks, changes, requests and bytes of one day. As files: {index}")
    if origin is not None:
        lines.append(f"\n[Look at them now](<{origin}/>)")
    return "\n".join(lines)


def _report_row(each: DomainReport) -> tuple[str, ...]:
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
        found, _ = await prune_domains(db, domain or None, at=datetime.now(UTC), dry_run=dry_run)
    for each in found:
        if each.exceeds:
            get_run_logger().warning("%s: %s above its quota", each.domain, format_bytes(each.exceeds))
        if each.reader:
            get_run_logger().warning("%s: %s", each.domain, each.held_back)
    shown = show_pruned(found, dry_run=dry_run)
    await show_markdown(shown, key="prune-result", description="What was pruned")
    return {each.domain: each.freed_bytes for each in found}


def show_pruned(found: Sequence[Pruned], *, dry_run: bool) -> str:
    """What went by domain, as a person reads it."""
    rows = sorted(found, key=lambda each: (-each.freed_bytes, each.domain))
    lines = markdown_table(PRUNED, map(_pruned_row, rows[:SHOWN]))
    lines += [f"\n{each.domain} is {format_bytes(each.exceeds)} above its quota." for each in rows if each.exceeds]
    lines += [f"\n{each.domain}: {each.held_back}." for each in rows if each.reader][:SHOWN]
    if dry_run:
        lines.append("\nA dry run: nothing was changed.")
    return "\n".join(lines)


def _pruned_row(each: Pruned) -> tuple[str, ...]:
    return (
        each.domain,
        f"{each.versions:,}",
        format_bytes(each.freed_bytes),
        f"{each.packed:,}",
        f"{each.visits:,}",
        f"{each.changes:,}",
        format_bytes(each.stored_bytes),
    )
