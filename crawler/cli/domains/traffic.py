"""recrawl traffic: requests, bytes, latency and errors of domains by the hour."""

from datetime import UTC, datetime
from typing import Annotated

from crawler.cli.lazy import reports
from crawler.cli.options import At, DomainOrAll, Json, option
from crawler.cli.output import print_found, remark
from crawler.cli.session import with_database
from crawler.format.values import format_bytes, format_count, format_instant
from crawler.json_lines import values_of

NUMBERS = ("looks", "requests", "received", "errors", "latency")


def traffic(
    domain: DomainOrAll = None,
    hours: Annotated[int, option("N", "Whole hours before this one.", min=1, max=10_000)] = 24,
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
    judged = with_database(lambda db, _: reports.list_hours(db, domain, hours=hours, at=instant))
    rows = (_row(name, each) for name, each in judged)
    hours_of = [{"domain": name, **values_of(each.traffic), "off": each.why} for name, each in judged]
    none = f"No look in the {format_count(hours, 'hour')} before {format_instant(instant)}"
    if print_found({"hours": hours_of}, rows, right=NUMBERS, empty=none, as_json=as_json):
        for name, each in judged:
            if each.why:
                remark(f"{name}, {format_instant(each.traffic.hour)}: {each.why}")


def _row(name: str, judged: "reports.JudgedHour") -> dict[str, str]:
    hour = judged.traffic
    return {
        "hour": format_instant(hour.hour),
        "domain": f"{name}{' *' if judged.why else ''}",
        "looks": f"{hour.looks:,}",
        "requests": f"{hour.requests:,}",
        "received": format_bytes(hour.received_bytes),
        "errors": f"{hour.errors:,}",
        "latency": "-" if hour.latency_ms is None else f"{hour.latency_ms:,.0f} ms",
    }
