"""The traffic monitor: find domains whose last hour was unusual."""

from datetime import UTC, datetime, timedelta

from msgspec import Struct

from crawler.core.domain import Domain
from crawler.core.http.traffic import BASELINE_PERIOD, TrafficHour, describe_anomaly
from crawler.store import domains, report
from crawler.store.database import Database

HOUR = timedelta(hours=1)


class JudgedHour(Struct, frozen=True):
    """One hour of a domain's traffic. anomaly: what is unusual about it; empty if nothing is."""

    traffic: TrafficHour
    anomaly: str


class TrafficFinding(Struct, frozen=True):
    """A domain whose last full hour was unusual."""

    domain: Domain
    judged: JudgedHour


async def judge_hours(db: Database, domain: Domain, *, at: datetime, window: timedelta) -> list[JudgedHour]:
    """Return the domain's hours with visits in the window before the current hour, and the current hour so far.

    window: a whole number of hours.
    Each full hour is compared with those of the BASELINE_PERIOD before it; the current hour is not judged.
    """
    current_hour = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    since = current_hour - window
    hours = await report.read_traffic(db, domain, since=since - BASELINE_PERIOD, until=current_hour + HOUR)
    judged = []
    for n, each in enumerate(hours):
        if each.hour >= since:
            baseline = [earlier for earlier in hours[:n] if earlier.hour >= each.hour - BASELINE_PERIOD]
            judged.append(JudgedHour(each, describe_anomaly(each, baseline) if each.hour < current_hour else ""))
    return judged


async def find_unusual_traffic(db: Database, *, at: datetime) -> list[TrafficFinding]:
    """Return all domains, by name, whose last full hour was unusual."""
    findings = []
    for listed in await domains.list_domains(db):
        judged = await judge_hours(db, listed.domain, at=at, window=HOUR)
        findings += [TrafficFinding(listed.domain, each) for each in judged if each.anomaly]
    return findings
