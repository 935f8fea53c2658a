"""recrawl audit: what is reported, held to random looks; and the next pages to be looked at by chance."""

from collections.abc import Sequence
from datetime import datetime

from crawler.app.reports import LOOKED_BACK, Agreement, AuditFinding, DomainAudit, findings
from crawler.app.reports import audit as audit_domains
from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import print_json, remark, say, show
from crawler.cli.session import with_database
from crawler.format.reports import format_agreement
from crawler.format.values import format_span

COLUMNS = ("drawn", "looks by chance", "expected fresh", "found fresh", "other looks", "expected", "found")


def audit(text: str | None, *, at: datetime | None, as_json: bool) -> int:
    found = with_database(lambda db, _: audit_domains(db, text, at=at))
    off = findings(found)
    if as_json:
        said = [
            {"name": each.name, "by_chance": each.by_chance, "text": each.sentence} | described(each.agreement)
            for each in off
        ]
        print_json({"domains": [_document(each) for each in found], "findings": said})
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
    found = each.found
    return (
        str(each.domain.authority),
        str(each.drawn),
        *format_agreement(found.audits),
        *format_agreement(found.scheduled),
    )


def _document(each: DomainAudit) -> dict[str, object]:
    return {
        "domain": each.domain.authority,
        "drawn": each.drawn,
        "audits": described(each.found.audits),
        "scheduled": described(each.found.scheduled),
    }


def described(agreement: Agreement) -> dict[str, object]:
    """What looks found against what was expected of them, for JSON."""
    return {
        "looks": agreement.looks,
        "expected_fresh": agreement.expected_fresh,
        "found_fresh": agreement.found_fresh,
        "deviations": agreement.deviations if agreement.looks else None,
        "is_off": agreement.is_off,
    }
