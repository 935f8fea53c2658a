"""Auditing: random samples of pages against what is reported of them, since a report that nobody checks may be off."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.core.calibration import Agreement, together
from crawler.core.domain import Domain
from crawler.core.target import AUDIT_SHARE
from crawler.store import audits
from crawler.store.audits import Audited
from crawler.store.database import Database

RECOUNTED = timedelta(days=2)  # finished UTC days whose looks are counted again: some were recorded after midnight
LOOKED_BACK = timedelta(days=30)  # over which audits are judged: few a day, in a small domain
MOST_DRAWN = 200  # pages of one domain a day: by 30 days, the share is known to half a point


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit says of one domain. drawn: pages to be looked at, by chance.  agreement: of the audits so far."""

    domain: Domain
    drawn: int
    agreement: Agreement


async def audit(db: Database, *, at: datetime, only: Domain | None = None) -> list[Audit]:
    """Count what the looks of the last finished days found, judge the audits among them, and draw the next sample."""
    return [await _audit(db, each, at=at) for each in await audits.domains_to_audit(db, only=only)]


def overall(found: Sequence[Audit]) -> Agreement:
    """The audits of all domains together."""
    return together([each.agreement for each in found])


async def _audit(db: Database, each: Audited, *, at: datetime) -> Audit:
    today = at.astimezone(UTC).date()
    await audits.calibrate(db, each.domain, since=today - RECOUNTED, until=today)
    agreement = await audits.audited(db, each.domain, since=today - LOOKED_BACK, until=today)
    most = await _most(db, each, at=at)
    drawn = await audits.draw(db, each.domain, most=most, at=at) if most else []
    return Audit(each.domain, len(drawn), agreement)


async def _most(db: Database, each: Audited, *, at: datetime) -> int:
    """How many pages to draw: a hundredth of the day's requests, and one at least where any may be made."""
    if each.domain.paused or each.budget == 0:
        return 0
    yesterday = at.astimezone(UTC).date() - timedelta(days=1)
    requests = each.budget if each.budget is not None else await audits.requests_of(db, each.domain, day=yesterday)
    return min(max(int(AUDIT_SHARE * requests), 1), MOST_DRAWN)
