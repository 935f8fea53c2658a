"""Plausibility of moves: what is known about the targets to which pages redirect."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from crawler.core.change.change import Change
from crawler.core.domain import Lease
from crawler.core.http.urls import PageKey
from crawler.core.visit import lifecycle
from crawler.core.visit.lifecycle import MoveTarget, confirm_move
from crawler.core.visit.state import BULK_REDIRECT, REDIRECT_TO_EXISTING, TEMPORARY_REDIRECTS
from crawler.core.visit.visit import Visit
from crawler.errors import LeaseLost
from crawler.store.database import Connection, Database
from crawler.store.record.positions import MAX_MOVES
from crawler.store.rows import fetch_rows, fetch_value

IS_LEASED = "SELECT domain_id FROM domain_state WHERE domain_id = %(domain_id)s AND lease_token = %(token)s"
FIRST_SEEN = "SELECT key, first_seen_at FROM page WHERE domain_id = %s AND key = ANY(%s) AND version > 0"
# A temporary redirect leaves the state of a page unchanged, so it is found by status.
REDIRECT_TARGETS = """
    SELECT p.key, CASE WHEN f.state = 'moved' THEN p.moved_to ELSE p.led_to END
      FROM page p JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key
     WHERE p.domain_id = %(domain_id)s AND p.key = ANY(%(keys)s)
       AND CASE WHEN f.state = 'moved' THEN p.moved_to WHEN p.status = ANY(%(temporary)s) THEN p.led_to END IS NOT NULL
"""
# Pages that recently started to redirect to a target, whether or not the move was confirmed. Pages that moved long
# before and were fetched again do not count.
# Reads all pages of the domain once per batch, because led_to has no index; batches with a move are rare.
OTHER_MOVES = """
    SELECT p.led_to, count(*)
      FROM page p
     WHERE p.domain_id = %(domain_id)s AND p.led_to = ANY(%(targets)s) AND p.version > 0
       AND p.last_visit_at > %(since)s AND p.key <> ALL(%(batch)s)
       AND EXISTS (SELECT FROM visit v
                    WHERE v.domain_id = %(domain_id)s AND v.key = p.key AND v.at > %(since)s
                      AND (v.change = 'moved' OR v.reason = ANY(%(doubts)s)))
     GROUP BY p.led_to
"""
# For pages whose move to a target was recorded before many pages moved there, bring forward the next visit, which
# checks the move.
REFETCH_MOVED = """
    UPDATE frontier f SET due_at = %(due_at)s
      FROM page p
     WHERE p.domain_id = %(domain_id)s AND p.led_to = ANY(%(targets)s) AND p.version > 0
       AND f.domain_id = %(domain_id)s AND f.key = p.key AND f.state = 'moved' AND f.due_at > %(due_at)s
       AND EXISTS (SELECT FROM visit v WHERE v.domain_id = %(domain_id)s AND v.key = p.key AND v.at > %(since)s
                                         AND v.change = 'moved')
"""


async def judge_moves(db: Database, lease: Lease, visits: Sequence[Visit]) -> list[Visit]:
    """Return the visits of a batch as they should be recorded: doubtful moves become other verdicts.

    A move is doubtful if it may be an outage, if the target existed before the redirect, or if the redirect leads back
    to the page (core/visit/lifecycle.py, confirm_move). If many pages move to one target, pages whose move there is
    already recorded become due sooner. Without redirects, the visits are returned unchanged, without a query. Raise
    LeaseLost.
    """
    moves = [visit for visit in visits if visit.change is Change.MOVED or visit.status in TEMPORARY_REDIRECTS]
    if not moves:
        return list(visits)
    async with db.transaction() as connection:
        values = {"domain_id": lease.domain.id, "token": lease.token}
        if await fetch_value(connection, IS_LEASED, values) is None:
            raise LeaseLost(f"another worker has taken over {lease.domain.authority}")
        move_targets = await _read_targets(connection, lease.domain.id, moves)
    return [confirm_move(visit, move_targets.get(visit.target.key, MoveTarget())) for visit in visits]


async def _read_targets(connection: Connection, domain_id: int, moves: Sequence[Visit]) -> dict[PageKey, MoveTarget]:
    """Return what is known about the target of each page that redirects; recheck earlier moves to the same targets."""
    # Targets within the domain, of all redirects.
    successors = {visit.target.key: to for visit in moves if (to := _get_successor(visit)) is not None}
    onward = successors | await _follow_moves(connection, domain_id, successors)
    moved = (visit for visit in moves if visit.change is Change.MOVED and visit.target.version is not None)
    # Targets within or outside the domain, of permanent redirects of pages with a version.
    destinations = {visit.target.key: visit.led_to for visit in moved if visit.led_to}
    if not destinations:
        return {key: MoveTarget(is_loop=_leads_back(key, successor, onward)) for key, successor in successors.items()}
    rows = await fetch_rows(connection, FIRST_SEEN, (domain_id, list(set(successors.values()))))
    first_seen: dict[PageKey, datetime] = dict(rows)
    at = max(visit.at for visit in moves)
    move_counts = await _count_moves(connection, domain_id, destinations, at=at)
    await _recheck_bulk_moves(connection, domain_id, move_counts, at=at)
    return {
        key: MoveTarget(
            other_pages=move_counts[destinations[key]] - 1 if key in destinations else 0,
            first_seen_at=first_seen.get(successors[key]) if key in successors else None,
            is_loop=key in successors and _leads_back(key, successors[key], onward),
        )
        for key in successors.keys() | destinations.keys()
    }


def _get_successor(visit: Visit) -> PageKey | None:
    """Return the page of the domain that a page redirects to, or None."""
    if visit.change is not Change.MOVED:
        return visit.led_to
    return visit.moved_to.key if visit.moved_to else None


async def _count_moves(
    connection: Connection, domain_id: int, destinations: Mapping[PageKey, PageKey], *, at: datetime
) -> Counter[PageKey]:
    """Count the pages that recently moved to each target, including those of this batch."""
    counts = Counter(destinations.values())
    values = {
        "domain_id": domain_id,
        "targets": list(counts),
        "batch": list(destinations),
        "since": at - lifecycle.BULK_REDIRECT_PERIOD,
        "doubts": [BULK_REDIRECT, REDIRECT_TO_EXISTING],
    }
    for target, before in await fetch_rows(connection, OTHER_MOVES, values):
        counts[PageKey(target)] += before
    return counts


async def _recheck_bulk_moves(
    connection: Connection, domain_id: int, move_counts: Mapping[PageKey, int], *, at: datetime
) -> None:
    """Make pages due sooner whose recent move is recorded and whose target many pages have moved to since."""
    bulk_targets = [target for target, pages in move_counts.items() if pages >= lifecycle.BULK_REDIRECT_PAGES]
    if bulk_targets:
        values = {
            "domain_id": domain_id,
            "targets": bulk_targets,
            "since": at - lifecycle.BULK_REDIRECT_PERIOD,
            "due_at": at + lifecycle.CONFIRM_BULK_REDIRECT_AFTER,
        }
        await connection.execute(REFETCH_MOVED, values)


async def _follow_moves(
    connection: Connection, domain_id: int, successors: Mapping[PageKey, PageKey]
) -> dict[PageKey, PageKey]:
    """Return the recorded redirects that continue from the successors, as a mapping from page to target."""
    onward: dict[PageKey, PageKey] = {}
    keys: Collection[PageKey] = set(successors.values())
    for _ in range(MAX_MOVES):
        values = {"domain_id": domain_id, "keys": list(keys), "temporary": list(TEMPORARY_REDIRECTS)}
        step = {PageKey(key): PageKey(to) for key, to in await fetch_rows(connection, REDIRECT_TARGETS, values)}
        keys = set(step.values()) - onward.keys() - step.keys()
        onward |= step
        if not keys:
            break
    return {key: to for key, to in onward.items() if key not in successors}


def _leads_back(key: PageKey, successor: PageKey, onward: Mapping[PageKey, PageKey]) -> bool:
    """Return whether redirects lead from the successor back to the page."""
    for _ in range(len(onward)):
        if successor == key or successor not in onward:
            break
        successor = onward[successor]
    return successor == key
