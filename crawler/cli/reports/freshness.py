"""recrawl report, plan and audit: their options and their help, and what an audit prints."""

from pathlib import Path
from typing import Annotated

import typer

from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.lazy import plan_output, report_output, reports
from crawler.cli.options import NO_DOMAIN, At, DomainOrAll, Json, argument, option
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


def report(
    domain: DomainOrAll = None,
    days: Annotated[float, typer.Option(min=0.01, max=36_500, help="Sum looks and requests up over so long.")] = 30.0,
    html: Annotated[Path | None, option("DIR", "Write it as web pages to a folder.", "--html", file_okay=False)] = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Say how fresh the copy is, how true that is, and what keeping it so costs.

    How true: as far as `recrawl audit` has found out, which the running stack asks for every day. With --html, what
    `recrawl serve` shows is written as files that need no server: the domains, the newest changes, and the pages that
    changed, fail or are to worry about.

    Examples:

        recrawl report
        recrawl report docs.example.com --days 7
        recrawl report --json
        recrawl report --html report
    """
    if html is not None:
        report_output.write_as_html(domain, html, at=at, as_json=as_json)
    else:
        report_output.report(domain, days=days, at=at, as_json=as_json)


def plan(
    domain: Annotated[str | None, argument("DOMAIN", "What this one may expect; else plan.")] = None,
    only: Annotated[
        str | None, option("DOMAIN", "Plan for one domain as if there were no other, such as one of another time.")
    ] = None,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Spread the looks of all domains anew by their budgets; or say what more and fewer requests would buy in one.

    Without a DOMAIN it sets what a request must be worth from now on, and so when pages are due, as a running stack
    does every hour. With a DOMAIN nothing is changed: freshness and age are shown for a tenth to ten times today's
    budget, of which robots.txt and audits take their part and the rest are requests for pages.

    Examples:

        recrawl plan
        recrawl plan docs.example.com
        recrawl plan docs.example.com --json
        recrawl plan --only docs.example.com --at 2027-01-31
    """
    if domain is not None and only is not None:
        raise typer.BadParameter("give a domain to look at or --only to plan for one, not both")
    if domain is not None:
        return plan_output.plan_one(domain, at=at, as_json=as_json)
    plan_output.plan(only=only, at=at, as_json=as_json)
    return DONE
