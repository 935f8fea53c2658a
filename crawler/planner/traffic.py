"""The traffic monitor: which domains' last hour is far from what is usual for them."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.core.domain import Domain
from crawler.core.http.traffic import BASELINE_PERIOD, TrafficHour, describe_anomaly
from crawler.store import domains, report
from crawler.store.database import Database

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class JudgedHour:
    """One hour of a domain's traffic. anomaly: it is far from the usual, or empty."""

    traffic: TrafficHour
    anomaly: str


@dataclass(frozen=True, slots=True)
class TrafficFinding:
    """A domain whose last whole hour was far from what is usual for it."""

    domain: Domain
    judged: JudgedHour


async def judge_hours(db: Database, domain: Domain, *, at: datetime, window: timedelta) -> list[JudgedHour]:
    """The hours of a domain with visits, within `last` before the hour of an instant, and that hour as far as it is.

    window: whole hours.  Each whole hour is held against those before; of one that is not over there is nothing to say.
    """
    current_hour = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    since = current_hour - window
    hours = await report.read_traffic(db, domain, since=since - BASELINE_PERIOD, until=current_hour + HOUR)
    return [
        JudgedHour(
            each,
            describe_anomaly(each, [h for h in hours[:n] if h.hour >= each.hour - BASELINE_PERIOD])
            if each.hour < current_hour
            else "",
        )
        for n, each in enumerate(hours)
        if each.hour >= since
    ]


async def find_unusual_traffic(db: Database, *, at: datetime) -> list[TrafficFinding]:
    """All domains, by name, whose last whole hour before an instant is off."""
    findings = []
    for listed in await domains.list_domains(db):
        judged = await judge_hours(db, listed.domain, at=at, window=HOUR)
        findings += [TrafficFinding(listed.domain, each) for each in judged if each.anomaly]
    return findings
