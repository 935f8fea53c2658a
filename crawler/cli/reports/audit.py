"""recrawl audit: what is reported, held to random looks; and the next pages to be looked at by chance."""

from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.lazy import reports
from crawler.cli.options import NO_DOMAIN, At, DomainOrAll, Json
from crawler.cli.output import pick, print_found, remark, say
from crawler.cli.session import with_database
from crawler.format.values import format_span

NUMBERS = ("drawn", "looks by chance", "expected fresh", "found fresh", "other looks", "expected", "found")


def audit(
    domain: DomainOrAll = None,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Hold what is reported to what looks found, and draw pages by chance for the next crawl to look at.

    For once a day where no stack runs that does it; all through a UTC day it draws the same pages. Exit code 1 where
    the freshness that is reported, or what was expected of looks, is off by more than chance explains.

    Examples:

        recrawl audit
        recrawl audit docs.example.com
        recrawl audit --json
    """
    found = with_database(lambda db, _: reports.audit(db, domain, at=at))
    off = reports.findings(found)
    document = {
        "domains": [
            {
                "domain": each.domain.authority,
                "drawn": each.drawn,
                "audits": described(each.found.audits),
                "scheduled": described(each.found.scheduled),
            }
            for each in found
        ],
        "findings": [
            {"name": each.name, "by_chance": each.by_chance, "text": each.sentence} | described(each.agreement)
            for each in off
        ],
    }
    if print_found(document, map(_row, found), right=NUMBERS, empty=NO_DOMAIN, as_json=as_json):
        back = format_span(reports.LOOKED_BACK)
        say(f"\nLooks of the last {back}, by finished UTC days. The next crawl looks at what was drawn.")
        for each in off:
            remark(each.sentence)
    return PROBLEM if off else DONE


def _row(each: "reports.DomainAudit") -> dict[str, str]:
    from crawler.format.reports import format_agreement

    figures = (*format_agreement(each.found.audits), *format_agreement(each.found.scheduled))
    return {"domain": each.domain.authority} | dict(zip(NUMBERS, (str(each.drawn), *figures), strict=True))


def described(agreement: "reports.Agreement") -> dict[str, object]:
    """What looks found against what was expected of them, for JSON."""
    deviations = agreement.deviations if agreement.looks else None
    return pick(agreement, "looks", "expected_fresh", "found_fresh", "is_off") | {"deviations": deviations}
