"""recrawl report, traffic, plan and audit, and the output of traffic and audit."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from crawler.cli.lazy import plan_output, report_output, reports
from crawler.cli.options import NO_DOMAIN, At, DomainOrAll, Json, argument, option
from crawler.cli.output import print_listing, remark, say
from crawler.cli.session import DONE, PROBLEM, run_on_database
from crawler.format.values import format_bytes, format_count, format_instant, format_span
from crawler.json_lines import get_field_values, pick_fields

HOURLY_NUMBERS = ("visits", "requests", "received", "errors", "latency")
AUDIT_NUMBERS = (
    *("drawn", "audits", "audits expected", "audits found"),
    *("scheduled visits", "scheduled expected", "scheduled found"),
)


def audit(domain: DomainOrAll = None, at: At = None, as_json: Json = False) -> int:
    """Check the reported freshness against visits to random pages.

    This draws random pages, which the next crawl visits, and compares the share of past visits that found the copy
    fresh with the expected share. The local stack does this once a day. Without it, run this command daily; further
    runs on the same UTC day draw the same pages. Exit code 1 if the shares differ by more than chance would explain.

    Examples:

        recrawl audit
        recrawl audit docs.example.com
        recrawl audit --json
    """
    audits = run_on_database(lambda db, _: reports.draw_audits(db, domain, at=at))
    findings = reports.list_findings(audits)
    document = {
        "domains": [
            {"domain": each.domain.authority, "drawn": each.drawn}
            | {name: describe_agreement(getattr(each.calibration, name)) for name in ("audits", "scheduled")}
            for each in audits
        ],
        "findings": [
            {"name": each.name, "by_chance": each.by_chance, "text": each.sentence} | describe_agreement(each.agreement)
            for each in findings
        ],
    }
    if print_listing(document, map(_format_audit_row, audits), right=AUDIT_NUMBERS, empty=NO_DOMAIN, as_json=as_json):
        window = format_span(reports.AUDIT_WINDOW)
        say(
            f"\nVisits of the last {window} (whole UTC days); expected and found are shares of fresh pages. The next "
            "crawl visits the drawn pages."
        )
        for each in findings:
            remark(each.sentence)
    return PROBLEM if findings else DONE


def _format_audit_row(each: "reports.DomainAudit") -> dict[str, str]:
    from crawler.format.reports import format_agreement

    figures = (*format_agreement(each.calibration.audits), *format_agreement(each.calibration.scheduled))
    return {"domain": each.domain.authority} | dict(zip(AUDIT_NUMBERS, (str(each.drawn), *figures), strict=True))


def describe_agreement(agreement: "reports.Agreement") -> dict[str, object]:
    """Return what visits found and what was expected of them, for JSON."""
    deviations = agreement.deviations if agreement.visits else None
    fields = pick_fields(agreement, "expected_fresh", "found_fresh", "is_off")
    return {"visits": agreement.visits, **fields, "deviations": deviations}


def report(
    domain: DomainOrAll = None,
    days: Annotated[
        float | None,
        option(
            "N",
            "Count visits, requests and bytes of the last N days. Default: 30. Not with --html, which always shows 30.",
            min=0.01,
            max=36_500,
        ),
    ] = None,
    html: Annotated[
        Path | None, option("DIR", "Write an HTML report to this folder.", "--html", file_okay=False)
    ] = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Report how fresh the copy is, how accurate that figure is, and what the copy costs.

    The accuracy comes from `recrawl audit`, which the local stack runs every day. --html writes the web UI as static
    files: the domains, the newest changes, and the changed, failing and probably stale pages.

    Examples:

        recrawl report
        recrawl report docs.example.com --days 7
        recrawl report --json
        recrawl report --html report
    """
    if html is not None and days is not None:
        raise typer.BadParameter("--days and --html cannot be combined: --html always shows 30 days")
    if html is not None:
        report_output.write_html(domain, html, at=at, as_json=as_json)
    else:
        report_output.show_reports(domain, days=30 if days is None else days, at=at, as_json=as_json)


def plan(
    domain: Annotated[
        str | None, argument("DOMAIN", "Show a forecast for this domain. Default: plan all domains.")
    ] = None,
    only: Annotated[
        str | None,
        option(
            "DOMAIN",
            "Plan only this domain. Unlike the argument DOMAIN, this changes its due times. For tests with --at.",
        ),
    ] = None,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Plan the visits of all domains within their budgets, or forecast the freshness of one domain at other budgets.

    Without DOMAIN, this computes the minimum value of a visit for each domain (docs/freshness.md), and from it when
    pages are due. The local stack does this every hour.

    With DOMAIN, this only shows a forecast: freshness and age at 0.1 to 10 times today's budget and under each revisit
    policy, and how much unweighted freshness the setting --importance-mix gives up. Requests for robots.txt and for
    audit visits count toward the budget.

    Examples:

        recrawl plan
        recrawl plan docs.example.com
        recrawl plan docs.example.com --json
        recrawl plan --only docs.example.com --at 2027-01-31
    """
    if domain is not None and only is not None:
        raise typer.BadParameter("DOMAIN and --only cannot be combined")
    if domain is not None:
        return plan_output.show_forecast(domain, at=at, as_json=as_json)
    plan_output.show_plans(only=only, at=at, as_json=as_json)
    return DONE


def traffic(
    domain: DomainOrAll = None,
    hours: Annotated[int, option("N", "The number of full hours before the current one.", min=1, max=10_000)] = 24,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Show visits, requests, bytes, errors and latency by hour, and mark anomalous hours with *.

    An hour is anomalous if it differs strongly from the domain's last two weeks: more errors than chance would explain,
    or a latency twice as long as usual and outside its normal variation. The local stack checks every hour, logs
    anomalies and emits the event recrawl.traffic.off.

    Examples:

        recrawl traffic docs.example.com
        recrawl traffic docs.example.com --hours 168
        recrawl traffic --json
    """
    instant = at or datetime.now(UTC)
    judged = run_on_database(lambda db, _: reports.list_hours(db, domain, hours=hours, at=instant))
    rows = (_format_hour_row(name, each) for name, each in judged)
    hourly = [{"domain": name, **get_field_values(each.traffic), "anomaly": each.anomaly} for name, each in judged]
    empty = f"There were no visits in the {format_count(hours, 'hour')} before {format_instant(instant)}"
    if print_listing({"hours": hourly}, rows, right=HOURLY_NUMBERS, empty=empty, as_json=as_json):
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
