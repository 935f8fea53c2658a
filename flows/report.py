"""report: how fresh the copies are, day by day."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from prefect import flow, get_run_logger
from prefect.artifacts import acreate_markdown_artifact
from prefect.runtime import flow_run

from crawler.app.database import open_database_of
from crawler.app.registration import find_domains
from crawler.app.reports import DomainReport, measure_freshness, pages_origin, private_folder
from crawler.format.reports import markdown_table
from crawler.format.values import format_bytes, format_share
from crawler.server import write_pages
from crawler.settings import settings
from flows.ending import says_why
from flows.lease import if_heard
from flows.shift import instant

DAY = timedelta(days=1)
KEY = "freshness-report"  # one key for all days: its history is the trend
FOLDER = "report"  # of RECRAWL_HOME
COLUMNS = ("domain", "fresh", "target", "pages", "looks", "changes", "failed", "requests", "received", "saved")


def _name() -> str:
    domain = flow_run.parameters.get("domain")
    return f"report {domain}" if domain else "report"


@flow(name="report", flow_run_name=_name, persist_result=False)
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
        written = await write_pages(db, wanted, private_folder(home, FOLDER), at=now)
    get_run_logger().info("%d pages written: %s", written.files, written.index)
    shown = markdown(found, index=written.index, origin=pages_origin(home))
    await if_heard(acreate_markdown_artifact(shown, key=KEY, description="How fresh the copies are"))
    return {each.domain: each.freshness for each in found}


def markdown(found: list[DomainReport], *, index: Path, origin: str | None) -> str:
    """The reports as a person reads them."""
    lines = markdown_table(COLUMNS, map(_row, found))
    lines.append(f"\nLooks, changes, requests and bytes of one day. As files: {index}")
    if origin is not None:
        lines.append(f"\n[Look at them now](<{origin}/>)")
    return "\n".join(lines)


def _row(each: DomainReport) -> tuple[str, ...]:
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
