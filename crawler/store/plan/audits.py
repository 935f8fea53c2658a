"""Audits: random samples of pages, and the calibration of predicted changes against the changes that visits found."""

from datetime import UTC, date, datetime, timedelta
from hashlib import blake2b

from msgspec import Struct
from psycopg.types.json import Jsonb

from crawler.core.domain import Domain
from crawler.core.freshness.calibration import Agreement
from crawler.core.http.urls import PageKey, Url
from crawler.core.page_rules import PageRules
from crawler.core.visit.state import NEVER
from crawler.store.database import Database
from crawler.store.domain_rows import DOMAIN_COLUMNS, build_domain
from crawler.store.rows import fetch_dicts, fetch_rows, fetch_value

DOMAINS = f"""
    SELECT {DOMAIN_COLUMNS}, coalesce(d.budget_per_day, l.budget_per_day) AS budget
      FROM domain d LEFT JOIN domain_plan l ON l.domain_id = d.id
     WHERE %(only)s::bigint IS NULL OR d.id = %(only)s
     ORDER BY d.authority
"""  # noqa: S608  only our own column list is inserted
# The first day to count: the last counted one or an earlier `since`, because the audit may not have run for days.
SINCE = """
    SELECT least(%(since)s::date, coalesce(max(k.day), (d.registered_at AT TIME ZONE 'UTC')::date))
      FROM domain d LEFT JOIN calibration k ON k.domain_id = d.id
     WHERE d.id = %(domain_id)s GROUP BY d.id
"""
# Visits with a prediction that found a page changed or unchanged, by UTC day.
CALIBRATE = """
    INSERT INTO calibration (domain_id, day, audit, visits, expected, found, variance)
    SELECT v.domain_id, (v.at AT TIME ZONE 'UTC')::date, v.audit, count(*), sum(v.expected),
           count(*) FILTER (WHERE v.change = 'changed'), sum(v.expected * (1 - v.expected))
      FROM visits_between(%(domain_id)s, %(since)s, %(until)s) v
      JOIN domain d ON d.id = v.domain_id  -- it may have been deleted
     WHERE v.at < %(until)s
       AND v.expected IS NOT NULL AND v.change IN ('unchanged', 'cosmetic', 'changed')
     GROUP BY v.domain_id, 2, v.audit
    ON CONFLICT (domain_id, day, audit) DO UPDATE
       SET visits = excluded.visits, expected = excluded.expected, found = excluded.found, variance = excluded.variance
"""
REQUESTS = """
    SELECT coalesce(sum(requests), 0) FROM visits_between(%(domain_id)s, %(since)s, %(until)s) WHERE at < %(until)s
"""
# From each of several points in the key space, find the next page that may be audited, wrapping around at the end. Keys
# are hashes, so the sample is random. Each point reads one window, or two at the end, and may find no page in it.
NEXT_PAGE = """
    SELECT f.key, p.url, {lap} AS lap
      FROM (SELECT key, state, due_at FROM frontier
             WHERE domain_id = %(domain_id)s AND {where} ORDER BY key LIMIT %(window)s) f
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = f.key
     WHERE f.state = 'fetched' AND p.version > 0 AND f.due_at < %(never)s
     ORDER BY f.key LIMIT 1
"""
IS_LAST_WINDOW = """
    NOT EXISTS (SELECT FROM frontier WHERE domain_id = %(domain_id)s AND key >= point
                 ORDER BY key OFFSET %(window)s LIMIT 1)
"""
SAMPLE = f"""
    SELECT DISTINCT drawn.key, drawn.url
      FROM unnest(%(points)s::bytea[]) AS point
     CROSS JOIN LATERAL (
        ({NEXT_PAGE.format(lap=0, where="key >= point")})
        UNION ALL
        ({NEXT_PAGE.format(lap=1, where=IS_LAST_WINDOW)})
        ORDER BY lap LIMIT 1) drawn
     ORDER BY drawn.key
"""  # noqa: S608  only our own conditions are inserted
WINDOW = 1000  # pages
POST_AUDIT = """
    INSERT INTO inbox (domain_id, kind, payload, arrived_at)
    SELECT d.id, 'audit', %(payload)s, %(at)s FROM domain d
     WHERE d.id = %(domain_id)s
       AND NOT EXISTS (SELECT FROM inbox WHERE domain_id = %(domain_id)s AND kind = 'audit')
 RETURNING id
"""
AGREEMENTS = """
    SELECT audit, sum(visits)::bigint AS visits, sum(expected) AS expected, sum(found)::bigint AS found,
           sum(variance) AS variance
      FROM calibration
     WHERE domain_id = %(domain_id)s AND day >= %(since)s AND day < %(until)s
     GROUP BY audit
"""


class Calibration(Struct, frozen=True):
    """Predicted changes compared with the changes that visits found.

    audits: visits of the random sample, which validate the reported freshness.  scheduled: all other visits, which were
    selected by the estimates and validate these.
    """

    audits: Agreement
    scheduled: Agreement


async def list_domains_to_audit(db: Database, *, only: Domain | None = None) -> list[tuple[Domain, int | None]]:
    """Return all domains by name, or one, each with its daily budget as set by the user or planned for a target."""
    rows = await fetch_dicts(db, DOMAINS, {"only": only.id if only else None})
    return [(build_domain(row), row["budget"]) for row in rows]


async def count_calibration(db: Database, domain: Domain, *, since: date, until: date) -> None:
    """Compare the visits of these UTC days, excluding `until`, with their predicted changes and store the counts.

    Earlier days that were not counted yet are included. A repeated call replaces the counts of days whose visits are
    still stored.
    """
    async with db.transaction() as connection:
        first = await fetch_value(connection, SINCE, {"domain_id": domain.id, "since": since})
        if first is not None:  # the domain may have been deleted
            span = {"domain_id": domain.id, "since": _get_midnight(first), "until": _get_midnight(until)}
            await connection.execute(CALIBRATE, span)


async def count_requests(db: Database, domain: Domain, *, day: date) -> int:
    """Return the number of requests of the domain's visits on a UTC day."""
    span = {"domain_id": domain.id, "since": _get_midnight(day), "until": _get_midnight(day + timedelta(days=1))}
    return int(await fetch_value(db, REQUESTS, span))


async def draw_sample(db: Database, domain: Domain, *, max_pages: int, at: datetime) -> list[PageKey]:
    """Draw a random sample of fetched pages with a version, put them into the inbox for a visit, and return them.

    max_pages: the number of draws; several may find the same page, or none.  at: repeated calls on one UTC day draw the
    same pages, unless the frontier changes. Return no pages if an earlier sample still waits in the inbox.
    Pages that a rule fetches only once are left out. Minimum intervals of rules do not apply, because leaving out
    recently visited pages would bias the sample.
    """
    rules = PageRules(domain.settings.rules)
    day = at.astimezone(UTC).date().isoformat()
    points = [blake2b(f"{domain.id} {day} {n}".encode(), digest_size=16).digest() for n in range(max_pages)]
    async with db.transaction() as connection:
        values = {"domain_id": domain.id, "points": points, "window": WINDOW, "never": NEVER}
        drawn = await fetch_rows(connection, SAMPLE, values)
        keys = [PageKey(key) for key, url in drawn if not rules.merge_terms(Url(url)).once]
        payload = Jsonb({"keys": [key.hex() for key in keys]})
        inbox_row = {"domain_id": domain.id, "payload": payload, "at": at}
        return keys if keys and await fetch_value(connection, POST_AUDIT, inbox_row) is not None else []


async def load_calibration(db: Database, domain: Domain, *, since: date, until: date) -> Calibration:
    """Return the stored calibration of these UTC days, excluding `until`."""
    rows = await fetch_dicts(db, AGREEMENTS, {"domain_id": domain.id, "since": since, "until": until})
    agreements = {row.pop("audit"): Agreement(**row) for row in rows}
    return Calibration(audits=agreements.get(True, Agreement()), scheduled=agreements.get(False, Agreement()))


def _get_midnight(day: date) -> datetime:
    return datetime.combine(day, datetime.min.time(), tzinfo=UTC)
