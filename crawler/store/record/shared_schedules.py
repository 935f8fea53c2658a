"""Shared schedules of pages with equal texts: proposed by the plan or by canonical links, checked by visits.

A duplicate follows the schedule of its canonical page: its own visits are suspended, except at longer intervals to
check that the texts are still equal, and, unless it is a copy, when the canonical page has changed.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from psycopg.rows import scalar_row

from crawler.core.change.change import Change
from crawler.core.domain import Domain
from crawler.core.freshness.shared_schedule import (
    MIN_SHARED_BYTES,
    MIN_VISITS,
    DuplicateCandidate,
    SharedPair,
    compute_test_time,
    derive_stem,
    pair_duplicates,
)
from crawler.core.freshness.visit_terms import RequestReason
from crawler.core.visit.state import State
from crawler.core.visit.visit import Visit
from crawler.store.database import PREFER_KEY_LOOKUPS, Connection, Database
from crawler.store.domain_rows import post_to_inbox
from crawler.store.rows import build_unnest, fetch_all, fetch_rows, fetch_value, split_into_columns

PAIRS_CHUNK = 1000  # pairs in one row of the inbox
MAX_PAIRS = 20_000  # pairs in one plan; the next plan finds the rest
MAX_REQUESTED = 500  # duplicates requested by one batch, the longest unvisited first; others wait for their own check
MAX_UNLINKED = 500  # duplicates released by one batch; others wait for the next visit of the canonical page
LAST_VISITS = 3  # visits of a canonical page before the one that found a change
MAX_CHANGED = 2  # if this many of LAST_VISITS found a change, sharing the schedule saves no visits
MAX_FAILURES = 3  # consecutive failures after which a canonical page loses its duplicates

IS_WAITING = "SELECT EXISTS (SELECT FROM inbox WHERE domain_id = %(domain_id)s AND kind = 'share')"
# Equal main texts have equal fingerprints, which are indexed. Visits are counted only for these pages.
CANDIDATES = """
    WITH alike AS MATERIALIZED (
        SELECT fingerprint FROM page_fingerprint WHERE domain_id = %(domain_id)s GROUP BY 1 HAVING count(*) > 1)
    SELECT p.key, p.main_digest,
           coalesce(page_importance(c.history, c.net + q.dividend, s.total_cash - s.dormant, c.clock, s.clock,
                                    (SELECT sum(o.pages)::bigint FROM pool o WHERE o.domain_id = %(domain_id)s),
                                    s.window_passes), 0),
           EXISTS (SELECT FROM page o WHERE o.domain_id = %(domain_id)s AND o.canonical = p.key), p.url,
           octet_length(t.text) >= %(least_bytes)s
           AND (SELECT count(*) FROM (SELECT FROM visits_of(%(domain_id)s, n.key) v
                                       WHERE v.at >= t.at
                                         AND v.change IN ('added', 'unchanged', 'cosmetic', 'changed', 'restored')
                                       LIMIT %(enough)s) v) >= %(enough)s
      FROM alike a
      JOIN page_fingerprint n ON n.domain_id = %(domain_id)s AND n.fingerprint = a.fingerprint
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = n.key AND p.failures = 0 AND p.canonical IS NULL
      JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = n.key AND f.state = 'fetched'
      JOIN snapshot t ON t.domain_id = %(domain_id)s AND t.key = n.key AND t.number = p.version
      JOIN domain_state s ON s.domain_id = %(domain_id)s
      LEFT JOIN cash c ON c.domain_id = %(domain_id)s AND c.key = n.key
      LEFT JOIN pool q ON q.domain_id = %(domain_id)s AND q.pool = c.pool
     WHERE EXISTS (SELECT FROM domain d WHERE d.id = %(domain_id)s AND d.revisit = 'value')
"""
# Checks the current state, which may have changed since the pair was proposed. A canonical page cannot be a duplicate.
# Schedules are shared only if the revisit policy is by value.
PAIR_COLUMNS = "canonical bytea, key bytea, is_copy bool"
LINK_DUPLICATES = f"""
    UPDATE page p SET canonical = x.canonical, is_copy = x.is_copy
      FROM {build_unnest(PAIR_COLUMNS)}
      JOIN page l ON l.domain_id = %(domain_id)s AND l.key = x.canonical AND l.canonical IS NULL
      JOIN frontier g ON g.domain_id = %(domain_id)s AND g.key = x.canonical AND g.state = 'fetched'
      JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = x.key AND f.state = 'fetched'
     WHERE p.domain_id = %(domain_id)s AND p.key = x.key AND p.canonical IS NULL AND p.main_digest = l.main_digest
       AND NOT EXISTS (SELECT FROM page o WHERE o.domain_id = %(domain_id)s AND o.canonical = x.key)
       AND EXISTS (SELECT FROM domain d WHERE d.id = %(domain_id)s AND d.revisit = 'value')
 RETURNING p.key
"""  # noqa: S608  only our own columns are inserted
# A copy needs no further check now: it was visited, and its text was equal to that of the canonical page.
SUSPEND_COPIES = """
    UPDATE frontier f SET due_at = greatest(f.due_at, p.last_visit_at + %(wait)s)
      FROM page p
     WHERE p.domain_id = %(domain_id)s AND p.key = ANY(%(keys)s::bytea[]) AND p.is_copy AND p.failures = 0
       AND f.domain_id = %(domain_id)s AND f.key = p.key AND f.request_reason = 0
"""
DUPLICATES = """
    SELECT key, is_copy FROM page
     WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)b::bytea[]) AND canonical IS NOT NULL
"""
# Sharing ends if the texts differ, if one of the pages is no longer fetched, or if the canonical page keeps failing.
# The due time of the duplicate is then that of its own change-rate estimate.
END_SHARING = """
    UPDATE page p SET canonical = NULL, is_copy = false
     WHERE p.domain_id = %(domain_id)s AND p.key = ANY(%(keys)s::bytea[]) AND p.canonical IS NOT NULL
       AND NOT EXISTS (SELECT FROM page l
                         JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key AND f.state = 'fetched'
                         JOIN frontier g ON g.domain_id = %(domain_id)s AND g.key = p.canonical AND g.state = 'fetched'
                        WHERE l.domain_id = %(domain_id)s AND l.key = p.canonical AND l.main_digest = p.main_digest
                          AND l.failures < %(failures)s)
"""
SUSPENSION_COLUMNS = "key bytea, due_at timestamptz"
SUSPEND_DUPLICATES = f"""
    UPDATE frontier f SET due_at = x.due_at
      FROM {build_unnest(SUSPENSION_COLUMNS)}
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = x.key AND p.canonical IS NOT NULL
     WHERE f.domain_id = %(domain_id)s AND f.key = x.key
"""  # noqa: S608  likewise
# Duplicates in the same batch as their canonical page have been checked already.
REQUEST_DUPLICATES = """
    UPDATE frontier f
       SET due_at = least(f.due_at, %(at)s),
           request_reason = CASE f.request_reason WHEN 0 THEN %(request_reason)s ELSE f.request_reason END
      FROM (SELECT key FROM page
             WHERE domain_id = %(domain_id)s AND canonical = ANY(%(changed_or_lost)s::bytea[])
               AND key <> ALL(%(keys)s::bytea[]) AND failures = 0
               AND (NOT is_copy OR canonical = ANY(%(lost)s::bytea[]))
             ORDER BY last_visit_at LIMIT %(max_requested)s) p
     WHERE f.domain_id = %(domain_id)s AND f.key = p.key AND f.state = 'fetched'
"""
# Changed canonical pages that also changed in most of their last visits. The current visit is not written yet.
OFTEN_CHANGED = """
    SELECT x.key FROM unnest(%(changed)s::bytea[]) AS x(key)
     WHERE EXISTS (SELECT FROM page o WHERE o.domain_id = %(domain_id)s AND o.canonical = x.key)
       AND (SELECT count(*) FILTER (WHERE v.change = 'changed')
              FROM (SELECT change FROM visits_of(%(domain_id)s, x.key)
                     WHERE change IN ('added', 'unchanged', 'cosmetic', 'changed', 'restored')
                     ORDER BY at DESC LIMIT %(visits)s) v) >= %(many)s
"""
# In the same order as REQUEST_DUPLICATES: the longest unvisited first.
UNLINK_DUPLICATES = """
    UPDATE page p SET canonical = NULL, is_copy = false
      FROM (SELECT key FROM page WHERE domain_id = %(domain_id)s AND canonical = ANY(%(lost_or_often_changed)s::bytea[])
                                   AND (NOT is_copy OR canonical = ANY(%(lost)s::bytea[]))
             ORDER BY last_visit_at LIMIT %(max_unlinked)s) x
     WHERE p.domain_id = %(domain_id)s AND p.key = x.key
"""


async def propose_pairs(db: Database, domain: Domain, *, at: datetime) -> int:
    """Find pairs of pages that could share a schedule, put them into the inbox, and return their number.

    Pairs are found as of the last `fill_fingerprints`. Do nothing while earlier pairs wait in the inbox.
    """
    values = {"domain_id": domain.id, "least_bytes": MIN_SHARED_BYTES, "enough": MIN_VISITS}
    async with db.transaction() as connection:
        await connection.execute(PREFER_KEY_LOOKUPS)
        if await fetch_value(connection, IS_WAITING, values):
            return 0
        rows = await fetch_rows(connection, CANDIDATES, values, binary=True)
        candidates = (
            DuplicateCandidate(key, digest, importance, has_duplicates, derive_stem(url), is_settled)
            for key, digest, importance, has_duplicates, url, is_settled in rows
        )
        chosen = pair_duplicates(candidates)[:MAX_PAIRS]
        pairs = [[each.canonical.hex(), each.key.hex(), each.is_copy] for each in chosen]
        for start in range(0, len(pairs), PAIRS_CHUNK):
            payload = {"pairs": pairs[start : start + PAIRS_CHUNK]}
            await post_to_inbox(connection, domain.id, "share", payload, at=at)
        return len(pairs)


async def begin_sharing(
    connection: Connection, domain_id: int, pairs: Sequence[SharedPair], *, copy_wait: timedelta | None = None
) -> None:
    """Make pages with equal texts share the schedule of their canonical page, within the lease holder's transaction.

    Each duplicate is visited once more by its own schedule, as the first check.
    copy_wait: for a pair with `is_copy`, the wait until the first check; None: as for others.
    """
    await connection.execute(PREFER_KEY_LOOKUPS)
    values = split_into_columns(PAIR_COLUMNS, [(pair.canonical, pair.key, pair.is_copy) for pair in pairs])
    linked = await fetch_all(connection, scalar_row, LINK_DUPLICATES, values | {"domain_id": domain_id}, binary=True)
    if linked and copy_wait is not None:
        await connection.execute(SUSPEND_COPIES, {"domain_id": domain_id, "keys": linked, "wait": copy_wait})


async def update_schedules(connection: Connection, domain_id: int, visits: Sequence[Visit]) -> None:
    """Apply a batch of visits to shared schedules.

    A duplicate that was visited waits for its next check, or has its own schedule again if its text differs. The
    duplicates of a canonical page are requested if it changed, except copies, and requested and released if it failed
    repeatedly or is no longer fetched. Call this after the pages and due times of the batch are written.
    """
    good = {visit.target.key: visit for visit in visits if visit.is_good}
    values: dict[str, Any] = {"domain_id": domain_id, "keys": list(good), "failures": MAX_FAILURES}
    # Pages that name another page as canonical.
    declared = [SharedPair(each.canonical, key, is_copy=True) for key, each in good.items() if each.canonical]
    copies = {pair.key for pair in declared}
    if pairs := [pair for pair in declared if pair.canonical not in copies]:
        await begin_sharing(connection, domain_id, pairs)
    duplicates = await fetch_rows(connection, DUPLICATES, values, binary=True)
    if duplicates:
        await connection.execute(END_SHARING, values, binary=True)
        suspensions = [(key, _compute_suspension(good[key], is_copy=is_copy)) for key, is_copy in duplicates]
        columns = split_into_columns(SUSPENSION_COLUMNS, suspensions)
        await connection.execute(SUSPEND_DUPLICATES, values | columns, binary=True)
    # Pages that can no longer be canonical.
    lost = [visit.target.key for visit in visits if visit.state is not State.FETCHED or visit.failures >= MAX_FAILURES]
    changed = [key for key, visit in good.items() if visit.change is Change.CHANGED]
    changed_or_lost = lost + changed
    if changed_or_lost:
        changed_params = values | {"changed": changed, "visits": LAST_VISITS, "many": MAX_CHANGED}
        often_changed = await fetch_all(connection, scalar_row, OFTEN_CHANGED, changed_params, binary=True)
        values |= {"changed_or_lost": changed_or_lost, "lost": lost, "lost_or_often_changed": lost + often_changed}
        values |= {"max_requested": MAX_REQUESTED, "max_unlinked": MAX_UNLINKED}
        values |= {"request_reason": RequestReason.BY_CANONICAL.value, "at": max(visit.at for visit in visits)}
        await connection.execute(REQUEST_DUPLICATES, values, binary=True)
        await connection.execute(UNLINK_DUPLICATES, values, binary=True)


def _compute_suspension(visit: Visit, *, is_copy: bool) -> datetime:
    since, longest = visit.at - (visit.target.last_good_at or visit.at), visit.target.terms.max_interval
    return compute_test_time(visit.at, due_at=visit.due_at, longest=longest, is_copy=is_copy, since_visit=since)
