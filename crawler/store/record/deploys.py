"""Deploys that a batch of looks tells: kept with the domain, and signals about all pages not looked at since."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from crawler.core.change import Change
from crawler.core.freshness import DeployWatch, LookFinding, SignalSource, Wanted, watched
from crawler.core.visit import TEACHES, Visit
from crawler.store import learned
from crawler.store.database import Connection

WRITE = """
    UPDATE domain_state SET deployed_at = %(told)s, deploy_evidence = %(evidence)s, deploy_since = %(since)s
     WHERE domain_id = %(domain_id)s
"""


async def settle(connection: Connection, domain_id: int, visits: Sequence[Visit], state: Mapping[str, Any]) -> bool:
    """Take in what looks say of deploys; whether one was told, so that pages are to be weighed again.

    state: of the domain before, with the columns of its watch.
    """
    before = DeployWatch(
        evidence=state["deploy_evidence"], since=state["deploy_since"], told=tuple(state["deployed_at"])
    )
    watch = watched(before, findings_of(visits))
    if watch == before:
        return False
    values = {"domain_id": domain_id, "told": list(watch.told), "evidence": watch.evidence, "since": watch.since}
    await connection.execute(WRITE, values)
    if watch.told == before.told:
        return False
    await _count(connection, domain_id, at=max(visit.at for visit in visits))
    return True


def findings_of(visits: Sequence[Visit]) -> list[LookFinding]:
    """What good looks found, in the order of time. A page looked at since another one changed is no sample."""
    found = [
        LookFinding(
            at=visit.at,
            before=visit.target.last_good_at,
            expected=visit.expected_change,
            changed=visit.change is Change.CHANGED,
        )
        for visit in visits
        if visit.change in TEACHES
        and visit.target.last_good_at is not None
        and visit.expected_change is not None
        and visit.target.known_list is None
        and visit.target.wanted is not Wanted.BY_LEADER
    ]
    return sorted(found, key=lambda finding: finding.at)


async def _count(connection: Connection, domain_id: int, *, at: datetime) -> None:
    """Count the deploy as a signal about each page, so that plans expect as many as come."""
    source = await learned.source_named(connection, domain_id, SignalSource.DEPLOY, at=at)
    if source is not None:
        await learned.count_heard(connection, domain_id, source, source.pages, at=at)
