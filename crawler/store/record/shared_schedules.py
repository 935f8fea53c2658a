"""Shared schedules of pages with one text: found by the plan, begun under a lease, tested and ended by records."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from psycopg.rows import scalar_row

from crawler.core.change.change import Change
from crawler.core.domain import Domain
from crawler.core.freshness.shared_schedule import (
    ENOUGH_LOOKS,
    LEAST_SHARED_BYTES,
    SharedPair,
    Twin,
    rests_until,
    sharers,
    stem_of,
)
from crawler.core.freshness.terms import Wanted
from crawler.core.visit.visit import State, Visit
from crawler.store.database import BY_KEY, Connection, Database
from crawler.store.domain_rows import post
from crawler.store.rows import fetch_all, fetch_rows, fetch_value, to_columns, unnest

PAIRS_CHUNK = 1000  # of one row of the inbox
MOST_PAIRS = 20_000  # of one plan; the next finds the rest
MOST_CALLED = 500  # pages of one record, those not seen for longest; the others wait for their own test,
MOST_LEFT = 500  # or for the next look at whom they followed
LAST_LOOKS = 3  # of who leads, before the one that found it changed:
MOST_CHANGED = 2  # of these; from that on it calls at most looks, and nobody is spared one
MOST_FAILURES = 3  # of who leads, in a row: it vouches for nobody any more

IS_WAITING = "SELECT EXISTS (SELECT FROM inbox WHERE domain_id = %(domain_id)s AND kind = 'share')"
# Equal main texts have equal fingerprints, which are at hand by number. Their looks are counted only then.
TWINS = """
    WITH alike AS MATERIALIZED (
        SELECT fingerprint FROM page_fingerprint WHERE domain_id = %(domain_id)s GROUP BY 1 HAVING count(*) > 1)
    SELECT p.key, p.main_digest,
           coalesce(page_importance(c.history, c.net + q.dividend, s.coins - s.dormant, c.clock, s.clock,
                                    (SELECT sum(o.pages)::bigint FROM pool o WHERE o.domain_id = %(domain_id)s),
                                    s.window_passes), 0),
           EXISTS (SELECT FROM page o WHERE o.domain_id = %(domain_id)s AND o.leader = p.key), p.url,
           octet_length(t.text) >= %(least_bytes)s
           AND (SELECT count(*) FROM (SELECT FROM visits_of(%(domain_id)s, n.key) v
                                       WHERE v.at >= t.at
                                         AND v.change IN ('first', 'same', 'cosmetic', 'changed', 'back')
                                       LIMIT %(enough)s) v) >= %(enough)s
      FROM alike a
      JOIN page_fingerprint n ON n.domain_id = %(domain_id)s AND n.fingerprint = a.fingerprint
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = n.key AND p.failures = 0 AND p.leader IS NULL
      JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = n.key AND f.state = 'known'
      JOIN snapshot t ON t.domain_id = %(domain_id)s AND t.key = n.key AND t.number = p.version
      JOIN domain_state s ON s.domain_id = %(domain_id)s
      LEFT JOIN cash c ON c.domain_id = %(domain_id)s AND c.key = n.key
      LEFT JOIN pool q ON q.domain_id = %(domain_id)s AND q.pool = c.pool
     WHERE EXISTS (SELECT FROM domain d WHERE d.id = %(domain_id)s AND d.revisit = 'price')
"""
# By what holds now, whatever held when the pair was found. A page that leads does not follow another. Where no price
# decides, each page has a time of its own.
PAIR_COLUMNS = "leader bytea, key bytea, is_copy bool"
BEGIN = f"""
    UPDATE page p SET leader = x.leader, is_copy = x.is_copy
      FROM {unnest(PAIR_COLUMNS)}
      JOIN page l ON l.domain_id = %(domain_id)s AND l.key = x.leader AND l.leader IS NULL
      JOIN frontier g ON g.domain_id = %(domain_id)s AND g.key = x.leader AND g.state = 'known'
      JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = x.key AND f.state = 'known'
     WHERE p.domain_id = %(domain_id)s AND p.key = x.key AND p.leader IS NULL AND p.main_digest = l.main_digest
       AND NOT EXISTS (SELECT FROM page o WHERE o.domain_id = %(domain_id)s AND o.leader = x.key)
       AND EXISTS (SELECT FROM domain d WHERE d.id = %(domain_id)s AND d.revisit = 'price')
 RETURNING p.key
"""  # noqa: S608  only our own columns are put in
# A copy was visited: its visit was equal to the other page's.
REST_COPIES = """
    UPDATE frontier f SET due_at = greatest(f.due_at, p.last_look_at + %(wait)s)
      FROM page p
     WHERE p.domain_id = %(domain_id)s AND p.key = ANY(%(keys)s::bytea[]) AND p.is_copy AND p.failures = 0
       AND f.domain_id = %(domain_id)s AND f.key = p.key AND f.wanted = 0
"""
RIDING = """
    SELECT key, is_copy FROM page
     WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s::bytea[]) AND leader IS NOT NULL
"""
# A text of its own ends it, and so does whoever is not there any more, or vouches for nobody.
# Its due time is its own belief's.
END = """
    UPDATE page p SET leader = NULL, is_copy = false
     WHERE p.domain_id = %(domain_id)s AND p.key = ANY(%(keys)s::bytea[]) AND p.leader IS NOT NULL
       AND NOT EXISTS (SELECT FROM page l
                         JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key AND f.state = 'known'
                         JOIN frontier g ON g.domain_id = %(domain_id)s AND g.key = p.leader AND g.state = 'known'
                        WHERE l.domain_id = %(domain_id)s AND l.key = p.leader AND l.main_digest = p.main_digest
                          AND l.failures < %(failures)s)
"""
REST_COLUMNS = "key bytea, due_at timestamptz"
REST = f"""
    UPDATE frontier f SET due_at = x.due_at
      FROM {unnest(REST_COLUMNS)}
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = x.key AND p.leader IS NOT NULL
     WHERE f.domain_id = %(domain_id)s AND f.key = x.key
"""  # noqa: S608  likewise
# Those who were looked at together with their leader have been tested.
CALL = """
    UPDATE frontier f
       SET due_at = least(f.due_at, %(at)s), wanted = CASE f.wanted WHEN 0 THEN %(wanted)s ELSE f.wanted END
      FROM (SELECT key FROM page
             WHERE domain_id = %(domain_id)s AND leader = ANY(%(news)s::bytea[]) AND key <> ALL(%(keys)s::bytea[])
               AND failures = 0 AND (NOT is_copy OR leader = ANY(%(away)s::bytea[]))
             ORDER BY last_look_at LIMIT %(most)s) p
     WHERE f.domain_id = %(domain_id)s AND f.key = p.key AND f.state = 'known'
"""
# Of those who lead and have changed. This look is not written yet.
LIVELY = """
    SELECT x.key FROM unnest(%(changed)s::bytea[]) AS x(key)
     WHERE EXISTS (SELECT FROM page o WHERE o.domain_id = %(domain_id)s AND o.leader = x.key)
       AND (SELECT count(*) FILTER (WHERE v.change = 'changed')
              FROM (SELECT change FROM visits_of(%(domain_id)s, x.key)
                     WHERE change IN ('first', 'same', 'cosmetic', 'changed', 'back')
                     ORDER BY at DESC LIMIT %(looks)s) v) >= %(many)s
"""
# As many as are called, and the same ones: who was not seen for longest.
LEAVE = """
    UPDATE page p SET leader = NULL, is_copy = false
      FROM (SELECT key FROM page WHERE domain_id = %(domain_id)s AND leader = ANY(%(lost)s::bytea[])
                                   AND (NOT is_copy OR leader = ANY(%(away)s::bytea[]))
             ORDER BY last_look_at LIMIT %(most_left)s) x
     WHERE p.domain_id = %(domain_id)s AND p.key = x.key
"""


async def propose(db: Database, domain: Domain, *, at: datetime) -> int:
    """Find pages that could share a schedule and leave them for the domain's holder; gives how many were found.

    As of the last `duplicates.fill`. Nothing is left while something is waiting there.
    """
    values = {"domain_id": domain.id, "least_bytes": LEAST_SHARED_BYTES, "enough": ENOUGH_LOOKS}
    async with db.transaction() as connection:
        await connection.execute(BY_KEY)
        if await fetch_value(connection, IS_WAITING, values):
            return 0
        rows = await fetch_rows(connection, TWINS, values, binary=True)
        twins = (
            Twin(key, main_digest, importance, leads, stem=stem_of(url), is_settled=is_settled)
            for key, main_digest, importance, leads, url, is_settled in rows
        )
        pairs = sharers(twins)[:MOST_PAIRS]
        for start in range(0, len(pairs), PAIRS_CHUNK):
            chunk = [[each.leader.hex(), each.key.hex(), each.is_copy] for each in pairs[start : start + PAIRS_CHUNK]]
            await post(connection, domain.id, "share", {"pairs": chunk}, at=at)
        return len(pairs)


async def begin(
    connection: Connection, domain_id: int, pairs: Sequence[SharedPair], *, copies_rest: timedelta | None = None
) -> None:
    """Let pages whose texts are still the same follow their leaders, within a transaction of the lease's holder.

    Each page is looked at once more by its own schedule, which is the first test of the sharing. A copy is not, where
    copies_rest says for how long: two equal visits, one of each URL, are enough.
    """
    await connection.execute(BY_KEY)
    values = to_columns(PAIR_COLUMNS, [(pair.leader, pair.key, pair.is_copy) for pair in pairs])
    begun = await fetch_all(connection, scalar_row, BEGIN, values | {"domain_id": domain_id}, binary=True)
    if begun and copies_rest is not None:
        rest = {"domain_id": domain_id, "keys": begun, "wait": copies_rest}
        await connection.execute(REST_COPIES, rest)


async def settle(connection: Connection, domain_id: int, visits: Sequence[Visit]) -> None:
    """Apply a batch to shared schedules: a tested follower rests or leaves, a leader that changed calls its followers.

    Called when the record has written pages and due times.
    """
    good = {visit.target.key: visit for visit in visits if visit.is_good}
    values: dict[str, Any] = {"domain_id": domain_id, "keys": list(good), "failures": MOST_FAILURES}
    canonical = [SharedPair(each.canonical, key, is_copy=True) for key, each in good.items() if each.canonical]
    copies = {pair.key for pair in canonical}
    if pairs := [pair for pair in canonical if pair.leader not in copies]:
        await begin(connection, domain_id, pairs)
    riding = await fetch_rows(connection, RIDING, values, binary=True)
    if riding:
        await connection.execute(END, values, binary=True)
        rest = [(key, _rest_of(good[key], is_copy=is_copy)) for key, is_copy in riding]
        await connection.execute(REST, values | to_columns(REST_COLUMNS, rest), binary=True)
    lost = [visit.target.key for visit in visits if visit.state is not State.KNOWN or visit.failures >= MOST_FAILURES]
    changed = [key for key, visit in good.items() if visit.change is Change.CHANGED]
    news = lost + changed
    if news:
        lively = values | {"changed": changed, "looks": LAST_LOOKS, "many": MOST_CHANGED}
        lively_keys = await fetch_all(connection, scalar_row, LIVELY, lively, binary=True)
        values |= {
            "news": news,
            "away": lost,
            "lost": lost + lively_keys,
            "most": MOST_CALLED,
            "most_left": MOST_LEFT,
            "at": max(visit.at for visit in visits),
            "wanted": Wanted.BY_LEADER.value,
        }
        await connection.execute(CALL, values, binary=True)
        await connection.execute(LEAVE, values, binary=True)


def _rest_of(visit: Visit, *, is_copy: bool) -> datetime:
    rested = visit.at - (visit.target.last_good_at or visit.at)
    return rests_until(visit.at, due_at=visit.due_at, longest=visit.target.terms.most, is_copy=is_copy, rested=rested)
