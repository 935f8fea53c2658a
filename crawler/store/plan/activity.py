"""The activity of each site: learned by the plan from what the visits of the last months found."""

from datetime import datetime, timedelta
from math import ceil

from crawler.core.domain import Domain
from crawler.core.freshness.site_activity import REMEMBERED, SiteActivity, site_activity
from crawler.store.database import BY_KEY, Database
from crawler.store.domain_inbox import post_reprice
from crawler.store.plan.samples import slice_of
from crawler.store.rows import fetch_row, fetch_rows

LEARNED_EVERY = timedelta(hours=5)  # at least, so that an hourly plan reads the visits of months four times a day
MAX_PAGES = 2000  # whose visits are read
DUE = """
    SELECT s.tracked, s.activity_at, s.activity_ahead,
           (SELECT 1 - coalesce(max(o.silence), 0) FROM domain_source o WHERE o.domain_id = %(domain_id)s)
      FROM domain_state s
     WHERE s.domain_id = %(domain_id)s AND s.last_visit_at IS NOT NULL
       AND (cardinality(s.activity_at) = 0
            OR s.activity_at[cardinality(s.activity_at)] < least(s.last_visit_at, %(late)s))
"""
# A page that follows another one is visited when that one has changed, which says nothing of the days in between.
# Visits before the remembered ones only say when the gaps of these began.
FINDINGS = """
    WITH slice AS MATERIALIZED (
        SELECT p.key, (g.a + p.evidence_a) / (g.b + p.evidence_b) AS rate
          FROM page p
          JOIN prior g ON g.domain_id = %(domain_id)s AND g.no = p.prior_no
         WHERE p.domain_id = %(domain_id)s AND p.key >= %(low)s AND p.key < %(high)s AND p.leader IS NULL
           AND p.version > 0
           AND NOT EXISTS (SELECT FROM url_list u WHERE u.domain_id = %(domain_id)s AND u.key = p.key)),
    visits AS (
        SELECT v.key, v.at, v.change FROM visit v
         WHERE v.domain_id = %(domain_id)s AND v.key >= %(low)s AND v.key < %(high)s AND v.at > %(since)s
         UNION ALL
        SELECT substring(p.keys FROM (16 * x.place - 15)::int FOR 16), x.at, x.change
          FROM visit_pack p
         CROSS JOIN LATERAL unnest(p.at, p.change) WITH ORDINALITY AS x(at, change, place)
         WHERE p.domain_id = %(domain_id)s AND p.until > %(since)s AND x.at > %(since)s
           AND p.bucket BETWEEN visit_bucket(%(low)s, p.bits) AND visit_bucket(%(high)s, p.bits))
    SELECT v.before, v.at, v.change = 'changed', s.rate
      FROM (SELECT key, at, change, lag(at) OVER (PARTITION BY key ORDER BY at) AS before
              FROM visits WHERE at <= %(at)s AND change IN ('first', 'same', 'cosmetic', 'changed', 'back')) v
      JOIN slice s ON s.key = v.key
     WHERE v.before IS NOT NULL AND v.at > %(remembered)s AND v.change IN ('same', 'cosmetic', 'changed')
"""
WRITE = """
    UPDATE domain_state SET activity_at = %(limits)s, activity_ahead = %(ahead)s WHERE domain_id = %(domain_id)s
"""


async def learn_activity(db: Database, domain: Domain, *, at: datetime) -> None:
    """Learn the activity of a site from visits before `at`, where there are new ones and that was not done for hours.

    Pages that wait are scored again where it has moved. Of a large site the visits of a sample of pages are read.
    """
    values = {"domain_id": domain.id, "at": at, "late": at - LEARNED_EVERY}
    async with db.transaction() as connection:
        await connection.execute(BY_KEY)
        row = await fetch_row(connection, DUE, values)
        if row is None:
            return
        tracked, limits, ahead, untold = row
        slices = max(ceil(tracked / MAX_PAGES), 1)
        window = {"since": at - 2 * REMEMBERED, "remembered": at - REMEMBERED}
        rows = await fetch_rows(connection, FINDINGS, values | window | slice_of(0, slices), binary=True)
        found = site_activity(rows, at=at, untold=untold)
        written = {"limits": list(found.at), "ahead": list(found.ahead)}
        await connection.execute(WRITE, values | written)
        if found.has_moved(SiteActivity(tuple(limits), tuple(ahead))):
            await post_reprice(connection, domain.id, at=at)
