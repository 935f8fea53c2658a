"""Whether a move is to be believed: what the domain knows of the places that its pages say they moved to."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from crawler.core.change.change import Change
from crawler.core.domain import Lease
from crawler.core.http.urls import PageKey
from crawler.core.visit.lifecycle import (
    BULK_REDIRECT,
    CONFIRM_CROWD_AFTER,
    CROWD,
    CROWD_TIME,
    REDIRECT_TO_EXISTING,
    MoveTarget,
    confirm_move,
)
from crawler.core.visit.visit import TEMPORARY, Visit
from crawler.errors import LeaseLost
from crawler.store.database import Connection, Database
from crawler.store.record.positions import MOST_MOVES
from crawler.store.rows import fetch_rows, fetch_value

HOLDS = "SELECT domain_id FROM domain_state WHERE domain_id = %(domain_id)s AND lease_token = %(token)s"
READ_SINCE = "SELECT key, first_seen_at FROM page WHERE domain_id = %s AND key = ANY(%s) AND version > 0"
# A page that redirects for now stays what it was; its status tells of the redirect.
ONWARD = """
    SELECT p.key, CASE WHEN f.state = 'moved' THEN p.moved_to ELSE p.led_to END
      FROM page p JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key
     WHERE p.domain_id = %(domain_id)s AND p.key = ANY(%(keys)s)
       AND CASE WHEN f.state = 'moved' THEN p.moved_to WHEN p.status = ANY(%(temporary)s) THEN p.led_to END IS NOT NULL
"""
# Pages that lately began to redirect there, whether the move was confirmed or not, or are gone for it. A page that had
# moved long before, and was fetched again, is not among them.
# Reads all pages of the domain, since led_to has no index, once for a batch; batches with a move are few.
OTHERS = """
    SELECT p.led_to, count(*)
      FROM page p
     WHERE p.domain_id = %(domain_id)s AND p.led_to = ANY(%(targets)s) AND p.version > 0
       AND p.last_look_at > %(since)s AND p.key <> ALL(%(batch)s)
       AND EXISTS (SELECT FROM visit v
                    WHERE v.domain_id = %(domain_id)s AND v.key = p.key AND v.at > %(since)s
                      AND (v.change = 'moved' OR v.reason = ANY(%(doubts)s)))
     GROUP BY p.led_to
"""
# Moves that were confirmed before there were many of them: such pages are fetched again when that is over.
ASK_AGAIN = """
    UPDATE frontier f SET due_at = %(due_at)s
      FROM page p
     WHERE p.domain_id = %(domain_id)s AND p.led_to = ANY(%(targets)s) AND p.version > 0
       AND f.domain_id = %(domain_id)s AND f.key = p.key AND f.state = 'moved' AND f.due_at > %(due_at)s
       AND EXISTS (SELECT FROM visit v WHERE v.domain_id = %(domain_id)s AND v.key = p.key AND v.at > %(since)s
                                         AND v.change = 'moved')
"""


async def judge_moves(db: Database, lease: Lease, visits: Sequence[Visit]) -> list[Visit]:
    """The visits of a batch, to be recorded: a move that may be an outage is no move in them (core/visit/lifecycle.py).

    Nor is a redirect for now one where redirects lead back to the page. Nearly always the visits as they are, and then
    without a question to the database. Raises LeaseLost.
    """
    moves = [visit for visit in visits if visit.change is Change.MOVED or visit.status in TEMPORARY]
    if not moves:
        return list(visits)
    async with db.transaction() as connection:
        values = {"domain_id": lease.domain.id, "token": lease.token}
        if await fetch_value(connection, HOLDS, values) is None:
            raise LeaseLost(f"another worker has taken {lease.domain.authority}")
        landings = await _landings(connection, lease.domain.id, moves)
    return [confirm_move(visit, landings.get(visit.target.key, MoveTarget())) for visit in visits]


async def _landings(connection: Connection, domain_id: int, moves: Sequence[Visit]) -> dict[PageKey, MoveTarget]:
    """For each page that moves, what is known of where it goes."""
    heirs = {visit.target.key: to for visit in moves if (to := _heir(visit)) is not None}
    onward = heirs | await _onward(connection, domain_id, heirs)
    told = {
        visit.target.key: visit.led_to
        for visit in moves
        if visit.change is Change.MOVED and visit.target.version is not None and visit.led_to
    }
    if not told:
        return {key: MoveTarget(is_circle=_leads_to(key, heir, onward)) for key, heir in heirs.items()}
    rows = await fetch_rows(connection, READ_SINCE, (domain_id, list(set(heirs.values()))))
    read_since: dict[PageKey, datetime] = dict(rows)
    others = await _others(connection, domain_id, told, at=max(visit.at for visit in moves))
    return {
        key: MoveTarget(
            others=others[told[key]] - 1 if key in told else 0,
            read_since=read_since.get(heirs[key]) if key in heirs else None,
            is_circle=key in heirs and _leads_to(key, heirs[key], onward),
        )
        for key in heirs.keys() | told.keys()
    }


def _heir(visit: Visit) -> PageKey | None:
    """The page of the domain to which a page redirects."""
    if visit.change is not Change.MOVED:
        return visit.led_to
    return visit.moved_to.key if visit.moved_to else None


async def _others(
    connection: Connection, domain_id: int, told: Mapping[PageKey, PageKey], *, at: datetime
) -> Counter[PageKey]:
    """How many pages lately moved to each target, with those of this batch."""
    values = {
        "domain_id": domain_id,
        "targets": list(set(told.values())),
        "batch": list(told),
        "since": at - CROWD_TIME,
        "doubts": [BULK_REDIRECT, REDIRECT_TO_EXISTING],
    }
    many = Counter(told.values())
    for target, before in await fetch_rows(connection, OTHERS, values):
        many[PageKey(target)] += before
    crowded = [target for target, pages in many.items() if pages >= CROWD]
    if crowded:
        await connection.execute(ASK_AGAIN, values | {"targets": crowded, "due_at": at + CONFIRM_CROWD_AFTER})
    return many


async def _onward(connection: Connection, domain_id: int, heirs: Mapping[PageKey, PageKey]) -> dict[PageKey, PageKey]:
    """Where those went that had moved before, link by link."""
    onward: dict[PageKey, PageKey] = {}
    keys: Collection[PageKey] = set(heirs.values())
    for _ in range(MOST_MOVES):
        values = {"domain_id": domain_id, "keys": list(keys), "temporary": list(TEMPORARY)}
        found = {PageKey(key): PageKey(to) for key, to in await fetch_rows(connection, ONWARD, values)}
        keys = set(found.values()) - onward.keys() - found.keys()
        onward |= found
        if not keys:
            break
    return {key: to for key, to in onward.items() if key not in heirs}


def _leads_to(key: PageKey, heir: PageKey, onward: Mapping[PageKey, PageKey]) -> bool:
    """Whether redirects lead from the new page back to the old one."""
    for _ in range(len(onward)):
        if heir == key:
            return True
        if heir not in onward:
            return False
        heir = onward[heir]
    return heir == key
