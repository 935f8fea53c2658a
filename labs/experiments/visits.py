"""When each page was visited, and what that cost, for comparison with the truth."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from crawler.core.domain import Domain
from crawler.core.http.urls import Url
from crawler.store.database import Database

# Successful visits, and visits that found the page gone or moved.
LOOKS = """
    SELECT p.url, v.at, v.change FROM every_visit v JOIN page p ON p.domain_id = v.domain_id AND p.key = v.key
     WHERE v.domain_id = %s AND v.change <> 'unknown' ORDER BY v.at
"""
COSTS = """
    SELECT coalesce(sum(requests), 0)::bigint, coalesce(sum(received_bytes::bigint), 0)::bigint,
           coalesce(sum(saved_bytes::bigint), 0)::bigint
      FROM every_visit WHERE domain_id = %s
"""


@dataclass(frozen=True, slots=True)
class ReplayedLook:
    """One visit that determined the state of its page."""

    at: datetime
    changed: bool  # according to the verdict


@dataclass(frozen=True, slots=True)
class ReplayedCosts:
    """The costs of a domain's visits, without robots.txt."""

    requests: int
    received_bytes: int
    saved_bytes: int


async def looks_by_url(db: Database, domain: Domain) -> dict[Url, list[ReplayedLook]]:
    """Return the visits that determined the state of each page, in order."""
    found: defaultdict[Url, list[ReplayedLook]] = defaultdict(list)
    async with db.transaction() as connection:
        async for url, at, change in await connection.execute(LOOKS, (domain.id,)):
            found[Url(url)].append(ReplayedLook(at, changed=change == "changed"))
    return dict(found)


async def costs(db: Database, domain: Domain) -> ReplayedCosts:
    """Return the costs of all visits of the domain so far."""
    async with db.transaction() as connection:
        row = await (await connection.execute(COSTS, (domain.id,))).fetchone()
        assert row is not None
        return ReplayedCosts(*row)
