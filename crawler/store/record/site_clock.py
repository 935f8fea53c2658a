"""The site's clock, moved on by a batch of looks."""

from collections.abc import Mapping, Sequence
from typing import Any

from crawler.core.change import Change
from crawler.core.freshness import LookFinding, SiteClock, Wanted, clock_after, recall_of, weighed_now
from crawler.core.visit import TEACHES, Visit
from crawler.store.database import Connection

WRITE = """
    UPDATE domain_state
       SET site_clock_at = %(at)s, site_clock_ahead = %(ahead)s, site_clock_changes = %(changes)s,
           site_clock_rates = %(rates)s, site_clock_scores = %(scores)s, site_clock_weighed = %(weighed)s
     WHERE domain_id = %(domain_id)s
"""


async def settle(connection: Connection, domain_id: int, visits: Sequence[Visit], state: Mapping[str, Any]) -> bool:
    """Take in what looks say of the site's clock; whether it has leapt, so that pages are to be weighed again.

    state: of the domain before, with the columns of its clock.
    """
    findings = findings_of(visits)
    if not findings:
        return False
    clock = clock_after(_clock(state), findings)
    has_leapt = clock.has_leapt
    if has_leapt:
        clock = weighed_now(clock)
    values = {
        "domain_id": domain_id,
        "at": list(clock.at),
        "ahead": list(clock.ahead),
        "changes": list(clock.changes),
        "rates": list(clock.rates),
        "scores": list(clock.scores),
        "weighed": clock.weighed,
    }
    await connection.execute(WRITE, values)
    return has_leapt


def _clock(state: Mapping[str, Any]) -> SiteClock:
    if not state["site_clock_at"]:
        return SiteClock()
    return SiteClock(
        at=tuple(state["site_clock_at"]),
        ahead=tuple(state["site_clock_ahead"]),
        changes=tuple(state["site_clock_changes"]),
        rates=tuple(state["site_clock_rates"]),
        scores=tuple(state["site_clock_scores"]),
        weighed=state["site_clock_weighed"],
    )


def findings_of(visits: Sequence[Visit]) -> list[LookFinding]:
    """What good looks found, in the order of time.

    A page looked at since another one changed is no sample, nor is one about which a signal came: the look comes soon
    after the change. Changes that no source tells come at their own times.
    """
    found = [
        LookFinding(
            at=visit.at,
            before=visit.target.last_good_at,
            believed=visit.target.belief,
            changed=visit.change is Change.CHANGED,
            untold=1 - recall_of(visit.target.terms.sources),
        )
        for visit in visits
        if visit.change in TEACHES
        and visit.target.last_good_at is not None
        and visit.target.version is not None
        and visit.target.last_good_at < visit.at
        and visit.target.known_list is None
        and visit.target.wanted is not Wanted.BY_LEADER
        and not any(visit.target.signals)
    ]
    return sorted(found, key=lambda finding: finding.at)
