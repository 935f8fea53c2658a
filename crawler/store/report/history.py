"""The freshness of a domain at past instants, computed from its visits with today's change-rate estimates."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from crawler.core.domain import Domain
from crawler.core.visit.state import State
from crawler.store.database import PREFER_KEY_LOOKUPS, Database
from crawler.store.report.expressions import CALIBRATION, IMPORTANCE, PAGE_TABLES
from crawler.store.report.freshness import read_stored_ranking
from crawler.store.rows import fetch_number, fetch_values

# Number of pages: half are the most important ones, half a random choice of the others. Keys are hashes, so the others
# with the first keys are random.
SAMPLE_SIZE = 500
GOOD_CHANGES = "('added', 'unchanged', 'cosmetic', 'changed', 'restored')"  # verdicts of visits that got the page
FETCHED_PAGES = f"""
    SELECT p.key, {IMPORTANCE} AS importance, g.a + p.rate_a AS a, g.b + p.rate_b AS b
      FROM {PAGE_TABLES}
     WHERE p.domain_id = %(domain_id)s AND p.version > 0 AND f.state = 'fetched'
"""  # noqa: S608  only our own expressions are inserted
SAMPLE = f"""
    known AS MATERIALIZED (
        SELECT *, row_number() OVER (ORDER BY importance DESC NULLS LAST, key) AS rank FROM ({FETCHED_PAGES}) k),
    sample AS MATERIALIZED (
        SELECT *, 1.0 AS stands_for FROM known WHERE rank <= %(by_rank)s
        UNION ALL
        SELECT * FROM (SELECT *, greatest((SELECT count(*) - %(by_rank)s FROM known)::float8 / %(by_chance)s, 1)
                         FROM known WHERE rank > %(by_rank)s ORDER BY key LIMIT %(by_chance)s) o)
"""  # noqa: S608  the same
# The same for a domain with stored figures, which provide the most important pages and the number of pages.
STORED_SAMPLE = f"""
    first AS MATERIALIZED ({FETCHED_PAGES} AND p.key = ANY(%(first)s)),
    sample AS MATERIALIZED (
        SELECT *, 1.0 AS stands_for FROM first
        UNION ALL
        SELECT * FROM (SELECT k.*, greatest((%(pages)s - (SELECT count(*) FROM first))::float8 / %(by_chance)s, 1)
                         FROM ({FETCHED_PAGES} AND p.key <> ALL(%(first)s) ORDER BY p.key LIMIT %(by_chance)s) k) o)
"""  # noqa: S608  the same
STORED_PAGES = "SELECT pages FROM freshness_figures WHERE domain_id = %(domain_id)s AND grouped_by = 'domain'"
# Reads one visit per page and instant by primary key, so the sample bounds the work in a domain of any size. Packed
# visits are unpacked once per page, and the last one before an instant is found by bisection.
# OFFSET 0 keeps Postgres from inlining the gap into page_freshness, which would compute it three times and take most of
# the time of the query.
FRESHNESS_OVER_TIME = f"""
    , sampled AS MATERIALIZED (
        SELECT s.*, (SELECT array_agg(o.at ORDER BY o.at) FROM old_verdicts_of(%(domain_id)s, s.key) o
                      WHERE o.change IN {GOOD_CHANGES}) AS old
          FROM sample s)
    SELECT t.at, count(*) AS pages,
           sum(s.stands_for * s.importance * v.fresh) / nullif(sum(s.stands_for * s.importance), 0) AS freshness,
           sum(s.stands_for * v.fresh) / sum(s.stands_for) AS freshness_plain
      FROM domain_state d
     CROSS JOIN LATERAL (SELECT i.at, activity_ahead(d.activity_at, d.activity_ahead, i.at) AS ahead,
                                {CALIBRATION.format(at="i.at")} AS calibration
                           FROM unnest(%(instants)s::timestamptz[]) AS i(at)) t
     CROSS JOIN sampled s
     CROSS JOIN LATERAL (SELECT page_freshness(s.a, s.b, gap, t.calibration) AS fresh
                           FROM (SELECT make_interval(secs => greatest(0,
                                            date_part('epoch', t.at - l.at)  -- in site activity
                                            + 86400 * (CASE WHEN cardinality(d.activity_at) = 0 THEN 0 ELSE
                                                  activity_ahead(d.activity_at, d.activity_ahead, l.at) END
                                                       - t.ahead))) AS gap
                                   FROM (SELECT coalesce(
                                             (SELECT v.at FROM visit v
                                               WHERE v.domain_id = %(domain_id)s AND v.key = s.key AND v.at <= t.at
                                                 AND v.change IN {GOOD_CHANGES}
                                               ORDER BY v.at DESC LIMIT 1),
                                             s.old[width_bucket(t.at, s.old)]) AS at) l
                                  WHERE l.at IS NOT NULL
                                 OFFSET 0) g) v
     WHERE d.domain_id = %(domain_id)s
     GROUP BY t.at ORDER BY t.at
"""  # noqa: S608  only our own expressions are inserted


class PastFreshness(Struct, frozen=True):
    """The freshness of a domain at an instant. pages: the number of pages of the sample that had been fetched by then.

    freshness: weighted by importance; None if none of these pages has an importance.  freshness_plain: unweighted.
    """

    at: datetime
    pages: int
    freshness: float | None
    freshness_plain: float


async def read_freshness_history(
    db: Database, domain: Domain, *, instants: Sequence[datetime], sample_size: int = SAMPLE_SIZE
) -> list[PastFreshness]:
    """Return the freshness at the given instants. Skip instants at which no page had been fetched.

    Uses the pages that are in state fetched today, with today's change-rate estimates and importances, and ignores
    change signals. So the result may differ from the freshness that was reported at the time.
    All pages are included if there are no more than sample_size; otherwise, the result is an estimate from the most
    important pages and an equal number of random others.
    """
    half = sample_size // 2
    values = {"domain_id": domain.id, "instants": list(instants), "by_rank": half, "by_chance": half}
    if not instants:
        return []
    async with db.transaction() as connection:
        first = await read_stored_ranking(connection, domain, State.FETCHED.value, top=half, at=None)
        statement = SAMPLE
        if first is not None:
            await connection.execute(PREFER_KEY_LOOKUPS)
            values |= {"first": first[:half], "pages": await fetch_number(connection, STORED_PAGES, values)}
            statement = STORED_SAMPLE
        return await fetch_values(connection, PastFreshness, f"WITH {statement} {FRESHNESS_OVER_TIME}", values)
