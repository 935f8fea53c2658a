"""The traffic monitor: which domains' last hour is far from what is usual for them."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.core.domain import Domain
from crawler.core.http.traffic import LOOKED_BACK, TrafficHour, far_from_usual
from crawler.store import domains, report
from crawler.store.database import Database

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class JudgedHour:
    """One hour of a domain's traffic. why: it is far from the usual, or empty."""

    traffic: TrafficHour
    why: str


@dataclass(frozen=True, slots=True)
class TrafficFinding:
    """A domain whose last whole hour was far from what is usual for it."""

    domain: Domain
    judged: JudgedHour


async def judged_hours(db: Database, domain: Domain, *, at: datetime, last: timedelta) -> list[JudgedHour]:
    """The hours of a domain with visits, within `last` before the hour of an instant, and that hour as far as it is.

    last: whole hours.  Each whole hour is held against those before; of one that is not over there is nothing to say.
    """
    running = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    since = running - last
    hours = await report.traffic(db, domain, since=since - LOOKED_BACK, until=running + HOUR)
    return [
        JudgedHour(
            each,
            far_from_usual(each, [h for h in hours[:n] if h.hour >= each.hour - LOOKED_BACK])
            if each.hour < running
            else "",
        )
        for n, each in enumerate(hours)
        if each.hour >= since
    ]


async def traffic_findings(db: Database, *, at: datetime) -> list[TrafficFinding]:
    """All domains, by name, whose last whole hour before an instant is off."""
    found = []
    for listed in await domains.every(db):
        judged = await judged_hours(db, listed.domain, at=at, last=HOUR)
        found += [TrafficFinding(listed.domain, each) for each in judged if each.why]
    return found
