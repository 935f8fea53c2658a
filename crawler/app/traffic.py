"""What was asked of domains by the hour, and which hours are far from their usual."""

from datetime import datetime, timedelta

from crawler.app.registration import domain_named
from crawler.planner import JudgedHour, judged_hours
from crawler.store import domains
from crawler.store.database import Database


async def list_hours(db: Database, name: str | None, *, hours: int, at: datetime) -> list[tuple[str, JudgedHour]]:
    """Return the whole hours before an instant in which a domain, or any of them, was visited, with its name."""
    wanted = (
        [await domain_named(db, name)] if name is not None else [listed.domain for listed in await domains.every(db)]
    )
    last = timedelta(hours=hours)
    return [(domain.authority, hour) for domain in wanted for hour in await judged_hours(db, domain, at=at, last=last)]
