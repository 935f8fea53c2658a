"""recrawl report, traffic, plan and audit: their options and their help, and what traffic and audits print."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from crawler.cli.lazy import plan_output, report_output, reports
from crawler.cli.options import NO_DOMAIN, At, DomainOrAll, Json, declare_argument, declare_option
from crawler.cli.output import pick_fields, print_listing, remark, say
from crawler.cli.session import DONE, PROBLEM, run_on_database
from crawler.format.values import format_bytes, format_count, format_instant, format_span
from crawler.json_lines import get_field_values

HOURLY_NUMBERS = ("visits", "requests", "received", "errors", "latency")
AUDIT_NUMBERS = ("drawn", "looks by chance", "expected fresh", "found fresh", "other looks", "expected", "found")


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
    audits = run_on_database(lambda db, _: reports.draw_audits(db, domain, at=at))
    findings = reports.list_findings(audits)
    document = {
        "domains": [
            {
                "domain": each.domain.authority,
                "drawn": each.drawn,
                "audits": describe_agreement(each.calibration.audits),
                "scheduled": describe_agreement(each.calibration.scheduled),
            }
            for each in audits
        ],
        "findings": [
            {"name": each.name, "by_chance": each.by_chance, "text": each.sentence} | describe_agreement(each.agreement)
            for each in findings
        ],
    }
    if print_listing(document, map(_format_audit_row, audits), right=AUDIT_NUMBERS, empty=NO_DOMAIN, as_json=as_json):
        window = format_span(reports.AUDIT_WINDOW)
        say(f"\nLooks of the last {window}, by finished UTC days. The next crawl looks at what was drawn.")
        for each in findings:
            remark(each.sentence)
    return PROBLEM if findings else DONE


def _format_audit_row(each: "reports.DomainAudit") -> dict[str, str]:
    from crawler.format.reports import format_agreement

    figures = (*format_agreement(each.calibration.audits), *format_agreement(each.calibration.scheduled))
    return {"domain": each.domain.authority} | dict(zip(AUDIT_NUMBERS, (str(each.drawn), *figures), strict=True))


def describe_agreement(agreement: "reports.Agreement") -> dict[str, object]:
    """What looks found against what was expected of them, for JSON."""
    deviations = agreement.deviations if agreement.visits else None
    return pick_fields(agreement, "visits", "expected_fresh", "found_fresh", "is_off") | {"deviations": deviations}


def report(
    domain: DomainOrAll = None,
    days: Annotated[float, typer.Option(min=0.01, max=36_500, help="Sum looks and requests up over so long.")] = 30.0,
    html: Annotated[
        Path | None, declare_option("DIR", "Write it as web pages to a folder.", "--html", file_okay=False)
    ] = None,
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
        report_output.write_html(domain, html, at=at, as_json=as_json)
    else:
        report_output.show_reports(domain, days=days, at=at, as_json=as_json)


def plan(
    domain: Annotated[str | None, declare_argument("DOMAIN", "What this one may expect; else plan.")] = None,
    only: Annotated[
        str | None,
        declare_option("DOMAIN", "Plan for one domain as if there were no other, such as one of another time."),
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
        return plan_output.show_forecast(domain, at=at, as_json=as_json)
    plan_output.show_plans(only=only, at=at, as_json=as_json)
    return DONE


def traffic(
    domain: DomainOrAll = None,
    hours: Annotated[int, declare_option("N", "Whole hours before this one.", min=1, max=10_000)] = 24,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Show by the hour what was asked of domains, what came, and how long answers took; and which hour is off.

    Off is what is far from the domain's own usual of two weeks: errors that chance does not explain, or answers that
    take twice as long and longer than they ever vary. The running stack looks every hour, says so in the log of its
    plan and emits the event recrawl.traffic.off.

    Examples:

        recrawl traffic docs.example.com
        recrawl traffic docs.example.com --hours 168
        recrawl traffic --json
    """
    instant = at or datetime.now(UTC)
    judged = run_on_database(lambda db, _: reports.list_hours(db, domain, hours=hours, at=instant))
    rows = (_format_hour_row(name, each) for name, each in judged)
    hour_documents = [{"domain": name, **get_field_values(each.traffic), "off": each.anomaly} for name, each in judged]
    empty = f"No look in the {format_count(hours, 'hour')} before {format_instant(instant)}"
    if print_listing({"hours": hour_documents}, rows, right=HOURLY_NUMBERS, empty=empty, as_json=as_json):
        for name, each in judged:
            if each.anomaly:
                remark(f"{name}, {format_instant(each.traffic.hour)}: {each.anomaly}")


def _format_hour_row(name: str, judged: "reports.JudgedHour") -> dict[str, str]:
    hour = judged.traffic
    return {
        "hour": format_instant(hour.hour),
        "domain": f"{name}{' *' if judged.anomaly else ''}",
        "visits": f"{hour.visits:,}",
        "requests": f"{hour.requests:,}",
        "received": format_bytes(hour.received_bytes),
        "errors": f"{hour.errors:,}",
        "latency": "-" if hour.latency_ms is None else f"{hour.latency_ms:,.0f} ms",
    }
