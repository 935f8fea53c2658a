"""recrawl traffic: requests, bytes, latency and errors of domains by the hour."""

from datetime import UTC, datetime

from crawler.app.database import Database
from crawler.app.traffic import JudgedHour, list_hours
from crawler.cli.exits import DONE
from crawler.cli.output import print_json, remark, say, show
from crawler.cli.session import Interrupts, with_database
from crawler.format.values import format_bytes, format_count, format_instant
from crawler.json_lines import values_of

COLUMNS = ("looks", "requests", "received", "errors", "latency")


def traffic(name: str | None, *, hours: int, at: datetime | None, as_json: bool) -> int:
    instant = at or datetime.now(UTC)

    async def work(db: Database, _: Interrupts) -> list[tuple[str, JudgedHour]]:
        return await list_hours(db, name, hours=hours, at=instant)

    judged = with_database(work)
    if as_json:
        print_json(
            {"hours": [{"domain": domain, **values_of(each.traffic), "off": each.why} for domain, each in judged]}
        )
        return DONE
    if not judged:
        say(f"No look in the {format_count(hours, 'hour')} before {format_instant(instant)}")
        return DONE
    show(["hour", "domain", *COLUMNS], [_row(domain, each) for domain, each in judged], right=COLUMNS)
    for domain, each in judged:
        if each.why:
            remark(f"{domain}, {format_instant(each.traffic.hour)}: {each.why}")
    return DONE


def _row(name: str, judged: JudgedHour) -> tuple[str, ...]:
    hour = judged.traffic
    return (
        format_instant(hour.hour),
        f"{name}{' *' if judged.why else ''}",
        f"{hour.looks:,}",
        f"{hour.requests:,}",
        format_bytes(hour.received_bytes),
        f"{hour.errors:,}",
        "-" if hour.latency_ms is None else f"{hour.latency_ms:,.0f} ms",
    )
