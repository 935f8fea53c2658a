"""audit: whether the reported freshness is true."""

from collections.abc import Sequence

from prefect import flow, get_run_logger
from prefect.artifacts import acreate_markdown_artifact
from prefect.events import emit_event
from prefect.runtime import flow_run

from crawler.app.database import open_database_of
from crawler.app.reports import Agreement, DomainAudit, findings
from crawler.app.reports import audit as audit_domains
from crawler.format.reports import format_agreement, markdown_table
from crawler.settings import settings
from flows.ending import says_why
from flows.lease import if_heard
from flows.shift import instant

CALIBRATION_OFF = "recrawl.calibration.off"  # of audits: the reported freshness is not true
CHANCES_OFF = "recrawl.chances.off"  # of all other looks: pages change more often, or less, than is believed
SHOWN = 100  # domains in the artifact, those that are off first
COLUMNS = (
    *("domain", "drawn now", "audits of 30 days", "expected fresh", "found fresh"),
    *("other looks", "expected", "found"),
)


def _name() -> str:
    domain = flow_run.parameters.get("domain")
    return f"audit {domain}" if domain else "audit"


@flow(name="audit", flow_run_name=_name, persist_result=False)
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
        emit_event(
            event=CALIBRATION_OFF if off.by_chance else CHANCES_OFF,
            resource={"prefect.resource.id": f"recrawl.calibration.{off.name}", "prefect.resource.name": off.name},
            payload=figures(off.agreement),
        )
    await if_heard(acreate_markdown_artifact(markdown(found), key="audit-result", description="What was audited"))
    return {each.domain.authority: each.drawn for each in found}


def figures(agreement: Agreement) -> dict[str, float | None]:
    """The figures of an event."""
    return {
        "looks": agreement.looks,
        "expected_fresh": agreement.expected_fresh,
        "found_fresh": agreement.found_fresh,
        "deviations": agreement.deviations,
    }


def markdown(found: Sequence[DomainAudit]) -> str:
    """The findings as Markdown, for a person; domains that are off come first."""
    rows = sorted(
        found, key=lambda each: (not (each.found.audits.is_off or each.found.scheduled.is_off), each.domain.authority)
    )
    lines = markdown_table(
        COLUMNS,
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
