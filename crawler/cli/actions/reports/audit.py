"""recrawl audit: what is reported, held to random looks; and the next pages to be looked at by chance."""

from collections.abc import Sequence
from datetime import UTC, datetime

from crawler.app.registration import domain_named, require_not_before_last_visit
from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import print_json, remark, say, show
from crawler.cli.session import Interrupts, with_database
from crawler.core.freshness import Agreement
from crawler.format.values import format_share, format_span
from crawler.planner import LOOKED_BACK, AuditFinding, DomainAudit, audit_domains, findings
from crawler.store import domains
from crawler.store.database import Database

COLUMNS = ("drawn", "looks by chance", "expected fresh", "found fresh", "other looks", "expected", "found")


def audit(text: str | None, *, at: datetime | None, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> list[DomainAudit]:
        only = await domain_named(db, text) if text is not None else None
        if at is not None:
            wanted = [only] if only is not None else [listed.domain for listed in await domains.every(db)]
            await require_not_before_last_visit(db, wanted, at)
        return await audit_domains(db, at=at or datetime.now(UTC), only=only)

    found = with_database(work)
    off = findings(found)
    if as_json:
        print_json({"domains": [_document(each) for each in found], "findings": [_finding(each) for each in off]})
    elif not found:
        say("No domain is registered: recrawl domains add URL")
    else:
        _show(found, off)
    return PROBLEM if off else DONE


def _show(found: Sequence[DomainAudit], off: Sequence[AuditFinding]) -> None:
    show(["domain", *COLUMNS], [_row(each) for each in found], right=COLUMNS)
    say(
        f"\nLooks of the last {format_span(LOOKED_BACK)}, by finished UTC days. The next crawl looks at what was drawn."
    )
    for each in off:
        remark(each.sentence)


def _row(each: DomainAudit) -> tuple[str, ...]:
    return (str(each.domain.authority), str(each.drawn), *_cells(each.found.audits), *_cells(each.found.scheduled))


def _cells(agreement: Agreement) -> tuple[str, str, str]:
    return f"{agreement.looks:,}", format_share(agreement.expected_fresh), format_share(agreement.found_fresh)


def _document(each: DomainAudit) -> dict[str, object]:
    return {
        "domain": each.domain.authority,
        "drawn": each.drawn,
        "audits": described(each.found.audits),
        "scheduled": described(each.found.scheduled),
    }


def _finding(each: AuditFinding) -> dict[str, object]:
    return {"name": each.name, "by_chance": each.by_chance, "text": each.sentence} | described(each.agreement)


def described(agreement: Agreement) -> dict[str, object]:
    """What looks found against what was expected of them, for JSON."""
    return {
        "looks": agreement.looks,
        "expected_fresh": agreement.expected_fresh,
        "found_fresh": agreement.found_fresh,
        "deviations": agreement.deviations if agreement.looks else None,
        "is_off": agreement.is_off,
    }
