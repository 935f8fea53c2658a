"""audit: whether the reported freshness is true."""

from collections.abc import Sequence
from datetime import UTC, datetime

from prefect import flow, get_run_logger
from prefect.artifacts import acreate_markdown_artifact
from prefect.events import emit_event
from prefect.runtime import flow_run

from crawler.audit import Audit, overall
from crawler.audit import audit as audit_all
from crawler.core.calibration import Agreement
from crawler.local.stack import crawl_database
from crawler.naming import domain_named
from crawler.settings import settings
from crawler.store.database import open_database
from flows.lease import if_heard
from flows.shift import instant

CALIBRATION_OFF = "recrawl.calibration.off"
ALL = "all domains"
SHOWN = 100  # domains in the artifact, those that are off first


def _name() -> str:
    domain = flow_run.parameters.get("domain")
    return f"audit {domain}" if domain else "audit"


@flow(name="audit", flow_run_name=_name, persist_result=False)
async def audit(domain: str = "", at: str = "") -> dict[str, int]:
    """Draw pages by chance to be looked at whether they are due or not, and hold earlier such looks to the report.

    Args:
        domain: Only this domain, such as docs.example.com; empty for all that are registered.
        at: Knowledge time, such as 2026-01-31T12:00:00Z; empty for now.

    """
    with crawl_database(settings()) as url:
        async with open_database(url) as db:
            only = await domain_named(db, domain) if domain else None
            found = await audit_all(db, at=instant(at) or datetime.now(UTC), only=only)
    for name, agreement in findings(found):
        get_run_logger().warning("The freshness reported for %s is off: %s", name, sentence(agreement))
        emit_event(
            event=CALIBRATION_OFF,
            resource={"prefect.resource.id": f"recrawl.calibration.{name}", "prefect.resource.name": name},
            payload=figures(agreement),
        )
    await if_heard(acreate_markdown_artifact(markdown(found), key="audit-result", description="What was audited"))
    return {each.domain.authority: each.drawn for each in found}


def findings(found: Sequence[Audit]) -> list[tuple[str, Agreement]]:
    """Where the report is off: domains, and all of them together if there are several."""
    agreements: list[tuple[str, Agreement]] = [(each.domain.authority, each.agreement) for each in found]
    if len(found) > 1:
        agreements.append((ALL, overall(found)))
    return [(name, agreement) for name, agreement in agreements if agreement.is_off]


def figures(agreement: Agreement) -> dict[str, float | None]:
    """What an event tells."""
    return {
        "looks": agreement.looks,
        "expected_fresh": agreement.expected_fresh,
        "found_fresh": agreement.found_fresh,
        "deviations": agreement.deviations,
    }


def sentence(agreement: Agreement) -> str:
    """The figures for a person."""
    assert agreement.expected_fresh is not None
    assert agreement.found_fresh is not None
    return (
        f"{agreement.looks:,} pages looked at by chance, {100 * agreement.expected_fresh:.1f} % of them expected to be "
        f"fresh, {100 * agreement.found_fresh:.1f} % found so ({abs(agreement.deviations):.1f} standard deviations)"
    )


def markdown(found: Sequence[Audit]) -> str:
    """What was found, as a person reads it."""
    lines = ["| domain | drawn now | audits of 30 days | expected fresh | found fresh |", "|---|---:|---:|---:|---:|"]
    rows = sorted(found, key=lambda each: (not each.agreement.is_off, each.domain.authority))
    lines += [
        f"| {each.domain.authority} | {each.drawn} | {each.agreement.looks:,} "
        f"| {share(each.agreement.expected_fresh)} | {share(each.agreement.found_fresh)} |"
        for each in rows[:SHOWN]
    ]
    off = findings(found)
    lines += [f"\nThe freshness reported for {name} is off: {sentence(agreement)}." for name, agreement in off]
    if not off:
        lines.append("\nNo report of freshness is off by more than chance explains.")
    return "\n".join(lines)


def share(part: float | None) -> str:
    """A share as a percentage."""
    return "-" if part is None else f"{100 * part:.1f} %"
