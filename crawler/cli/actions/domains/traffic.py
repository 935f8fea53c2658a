"""recrawl traffic: requests, bytes, latency and errors of domains by the hour."""

from datetime import UTC, datetime, timedelta

from crawler.app.registration import domain_named
from crawler.cli.exits import DONE
from crawler.cli.output import print_json, remark, say, show
from crawler.cli.session import Interrupts, with_database
from crawler.format.values import format_bytes, format_count, format_instant
from crawler.json_lines import values_of
from crawler.planner import JudgedHour, judged_hours
from crawler.store import domains
from crawler.store.database import Database

COLUMNS = ("looks", "requests", "received", "errors", "latency")


def traffic(text: str | None, *, hours: int, at: datetime | None, as_json: bool) -> int:
    instant = at or datetime.now(UTC)

    async def work(db: Database, _: Interrupts) -> list[tuple[str, list[JudgedHour]]]:
        if text is not None:
            wanted = [await domain_named(db, text)]
        else:
            wanted = [listed.domain for listed in await domains.every(db)]
        last = timedelta(hours=hours)
        return [(domain.authority, await judged_hours(db, domain, at=instant, last=last)) for domain in wanted]

    found = with_database(work)
    judged = [(name, each) for name, domain_hours in found for each in domain_hours]
    if as_json:
        print_json({"hours": [{"domain": name, **values_of(each.traffic), "off": each.why} for name, each in judged]})
        return DONE
    if not judged:
        say(f"No look in the {format_count(hours, 'hour')} before {format_instant(instant)}")
        return DONE
    show(["hour", "domain", *COLUMNS], [_row(name, each) for name, each in judged], right=COLUMNS)
    for name, each in judged:
        if each.why:
            remark(f"{name}, {format_instant(each.traffic.hour)}: {each.why}")
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
