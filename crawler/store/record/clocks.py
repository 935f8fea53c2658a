"""Repair of a domain that was crawled while the clock was ahead: move its visits and due times back to now."""

from datetime import datetime

from crawler.core.domain import Domain
from crawler.errors import BadInput
from crawler.store.database import Database
from crawler.store.rows import fetch_row

LOCK = """
    SELECT last_visit_at, holder FROM domain_state WHERE domain_id = %(id)s FOR NO KEY UPDATE
"""
IS_LEASED = "SELECT FROM domain_state WHERE domain_id = %(id)s AND leased_until > clock_timestamp()"
# Pages whose last visit is not ahead, but whose due times were computed while the clock was ahead.
RESET_DUE_TIMES = """
    UPDATE frontier f SET due_at = %(at)s
      FROM page p, domain_state s
     WHERE f.domain_id = %(id)s AND p.domain_id = %(id)s AND p.key = f.key AND s.domain_id = %(id)s
       AND coalesce(p.last_visit_at <= %(at)s, true) AND f.due_at > s.last_visit_at AND f.due_at < '9999-01-01'
"""
# Pages keep their interval after the visit. This must run before PAGES, which changes the times that this reads.
SHIFT_DUE_TIMES = """
    UPDATE frontier f SET due_at = greatest(f.due_at - (p.last_visit_at - %(at)s), %(at)s)
      FROM page p
     WHERE f.domain_id = %(id)s AND p.domain_id = %(id)s AND p.key = f.key AND p.last_visit_at > %(at)s
       AND f.due_at < '9999-01-01'
"""
TIMES = ("last_visit_at", "last_good_at", "last_change_at", "missing_since", "withheld_since")
PAGES = f"""
    UPDATE page SET first_seen_at = least(first_seen_at, %(at)s),
           {", ".join(f"{name} = CASE WHEN {name} > %(at)s THEN %(at)s ELSE {name} END" for name in TIMES)},
           signaled_at = ARRAY(SELECT CASE WHEN signal_at IS NOT NULL THEN least(signal_at, %(at)s) END
                                  FROM unnest(signaled_at) WITH ORDINALITY s(signal_at, n) ORDER BY n)
     WHERE domain_id = %(id)s
       AND greatest(first_seen_at, last_visit_at, missing_since, withheld_since, %(at)s) > %(at)s
"""  # noqa: S608  only our own columns are inserted
# Several visits of one page, and several rows of a value, keep their order, a microsecond apart.
VISITS, VALUES = (
    f"""
    WITH ahead AS (
        SELECT {key}, at, row_number() OVER (PARTITION BY {key} ORDER BY at DESC) - 1 AS later
          FROM {table} WHERE domain_id = %(id)s AND at > %(at)s)
    UPDATE {table} v SET at = %(at)s - a.later * interval '1 microsecond'
      FROM ahead a
     WHERE v.domain_id = %(id)s AND (v.{key.replace(", ", ", v.")}, v.at) = (a.{key.replace(", ", ", a.")}, a.at)
"""  # noqa: S608  only our own columns are inserted
    for table, key in (("visit", "key"), ("page_value", "key, name"))
)
# A suspension that has not ended keeps its remaining time. The site activity is reset and learned again.
STATE = """
    UPDATE domain_state
       SET resume_at = CASE WHEN resume_at > last_visit_at THEN resume_at - (last_visit_at - %(at)s)
                            WHEN resume_at > %(at)s THEN %(at)s ELSE resume_at END,
           last_visit_at = %(at)s, wake_at = %(at)s, paced_until = NULL, closed_from = NULL, opens_at = NULL,
           budget_day = CASE WHEN budget_day IS NOT NULL THEN least(budget_day, (%(at)s AT TIME ZONE 'UTC')::date) END,
           activity_at = '{}', activity_ahead = '{}'
     WHERE domain_id = %(id)s
"""
OTHER_TIMES = (
    *(("event", "at"), ("snapshot", "at"), ("domain_plan", "planned_at")),
    *(("domain_source", "measured_at"), ("prior", "deferred_until"), ("url_list", "found_at")),
    ("failure_run", "since"),
)
OTHER_UPDATES = (
    *(
        f"UPDATE {table} SET {name} = %(at)s WHERE domain_id = %(id)s AND {name} > %(at)s"  # noqa: S608  likewise
        for table, name in OTHER_TIMES
    ),
    """UPDATE robots SET fetched_at = %(at)s, due_at = %(at)s,
              good_at = CASE WHEN good_at > %(at)s THEN %(at)s ELSE good_at END
        WHERE domain_id = %(id)s AND fetched_at > %(at)s""",
    "DELETE FROM domain_figures WHERE domain_id = %(id)s AND counted_at > %(at)s",
    "UPDATE ledger SET day = (%(at)s AT TIME ZONE 'UTC')::date WHERE day > (%(at)s AT TIME ZONE 'UTC')::date",
)


async def reset_clock(db: Database, domain: Domain, *, at: datetime) -> datetime | None:
    """Move everything recorded later than `at` back to it and return the previous time of the last visit.

    Pages visited later than `at` keep their intervals between visit and due time. Change-rate estimates stay unchanged.
    Return None without any change if no visit is later. Raise BadInput while a worker holds the domain.
    """
    values = {"id": domain.id, "at": at}
    async with db.transaction() as connection:
        row = await fetch_row(connection, LOCK, values)
        if row is None or row[0] is None or row[0] <= at:
            return None
        if await fetch_row(connection, IS_LEASED, values) is not None:
            raise BadInput(f"{domain.authority} is being crawled by {row[1]}; stop that crawl, then reset the clock")
        for statement in (RESET_DUE_TIMES, SHIFT_DUE_TIMES, PAGES, VISITS, VALUES, *OTHER_UPDATES, STATE):
            await connection.execute(statement.encode(), values)
        return row[0]  # type: ignore[no-any-return]  # a row is a tuple of anything
