"""The report of a domain: freshness, cost, and traffic by the hour."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from crawler.core.change.change import Change
from crawler.core.domain import Domain
from crawler.core.http.traffic import TrafficHour
from crawler.store.database import Database
from crawler.store.report.freshness import MAX_AGE, Totals, count_if_large, read_totals
from crawler.store.rows import fetch_dict, fetch_dicts, fetch_values

# The visits of a domain are one key range in each partition. A visit that finds a dead link does not count as gone.
WINDOW = """
    SELECT CASE WHEN change = 'gone' AND (SELECT p.version = 0 FROM page p
                                           WHERE p.domain_id = %(domain_id)s AND p.key = v.key)
                THEN 'unchanged' ELSE change END AS change,
           count(*) FILTER (WHERE requests > 0) AS visits,
           count(*) FILTER (WHERE change = 'unknown' AND requests > 0) AS failures,
           coalesce(sum(requests), 0) AS requests, coalesce(sum(received_bytes::bigint), 0)::bigint AS received_bytes,
           coalesce(sum(saved_bytes::bigint), 0)::bigint AS saved_bytes
      FROM visits_between(%(domain_id)s, %(since)s, %(until)s) v
     WHERE at > %(since)s GROUP BY 1
"""
STATE = """
    SELECT d.authority AS domain, d.state = 'paused' AS paused, d.insecure_tls, d.revisit, d.budget_per_day,
           s.last_visit_at, s.wake_at AS next_due_at, d.target_freshness,
           d.max_age_s * interval '1 second' AS max_age, l.budget_per_day AS target_requests_per_day,
           l.price_request * l.price_correction AS shadow_price, coalesce(l.finding, '') AS finding, t.at,
           CASE WHEN s.resume_at > t.at THEN s.resume_at END AS suspended_until,
           CASE WHEN s.resume_at > t.at THEN s.resume_reason ELSE '' END AS suspension_reason,
           CASE WHEN s.budget_day = (t.at AT TIME ZONE 'UTC')::date THEN s.spent_requests ELSE 0 END AS spent_today,
           CASE WHEN s.leased_until > clock_timestamp() THEN s.holder END AS holder
      FROM domain d
      JOIN domain_state s ON s.domain_id = d.id
     CROSS JOIN LATERAL (SELECT greatest(%(at)s::timestamptz, s.last_visit_at) AS at) t
      LEFT JOIN domain_plan l ON l.domain_id = d.id
     WHERE d.id = %(domain_id)s
"""

# The same figures as in the view report_traffic, but the range of time selects the partitions.
TRAFFIC_BY_HOUR = """
    SELECT date_trunc('hour', at, 'UTC') AS hour, count(*) FILTER (WHERE requests > 0) AS visits,
           coalesce(sum(requests), 0) AS requests, coalesce(sum(received_bytes::bigint), 0)::bigint AS received_bytes,
           count(*) FILTER (WHERE requests > 0 AND (outcome = 'unreached' OR status = 429 OR status >= 500)) AS errors,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY elapsed_ms)
               FILTER (WHERE requests > 0 AND outcome <> 'unreached') AS latency_ms
      FROM visits_between(%(domain_id)s, %(since)s, %(until)s)
     WHERE at < %(until)s GROUP BY 1 ORDER BY 1
"""

SUMMED_COLUMNS = ("visits", "failures", "requests", "received_bytes", "saved_bytes")


@dataclass(frozen=True, slots=True)
class DomainReport(Totals):
    """The state of one domain at an instant, and its activity in a window before that.

    freshness: the expected share of fetched pages, weighted by importance, whose stored copy is current.
    freshness_plain: the same, unweighted. Both are None without fetched pages.
    deferred: unfetched pages that wait until a due time, most because pages like them had hardly any new text.
    dead_links: URLs that never were a page; not included in `gone`.  withheld: pages whose new content is withheld as
    a possible soft error (core/soft_errors.py).
    counted_at: when pages and freshness were counted: `at`, or earlier in a large domain.
    visits, changes, failures, requests, received_bytes, saved_bytes: totals of the window, without robots.txt.
    target_freshness, max_age: the targets that the user set.  target_requests_per_day: requests needed for them.
    insecure_tls: certificates are not verified.  revisit: the revisit policy.  shadow_price: of a request, in
    importance x days; None for the default.  finding: what the last plan could not achieve, or empty.
    """

    domain: str
    at: datetime
    paused: bool
    insecure_tls: bool
    revisit: str
    last_visit_at: datetime | None
    next_due_at: datetime | None
    window: timedelta
    visits: int
    changes: Mapping[Change, int]
    failures: int
    requests: int
    received_bytes: int
    saved_bytes: int
    budget_per_day: int | None
    target_freshness: float | None
    max_age: timedelta | None
    target_requests_per_day: int | None
    shadow_price: float | None
    finding: str
    spent_today: int
    suspended_until: datetime | None
    suspension_reason: str
    holder: str | None


async def read_domain_report(
    db: Database, domain: Domain, *, at: datetime, window: timedelta, max_age: timedelta = MAX_AGE
) -> DomainReport | None:
    """Return the report of a domain, or None if it was deleted.

    The pages of a large domain are counted again only if the last count is older than max_age.
    If `at` is before the last visit, the time of the last visit is used, because earlier states are not known.
    """
    await count_if_large(db, domain, at=at, max_age=max_age)
    async with db.transaction() as connection:
        state = await fetch_dict(connection, STATE, {"domain_id": domain.id, "at": at})
        if state is None:
            return None
        counted = await read_totals(connection, domain, at=state["at"], max_age=max_age)
        span = {"domain_id": domain.id, "since": state["at"] - window, "until": state["at"]}
        visits = await fetch_dicts(connection, WINDOW, span)
    sums: dict[str, Any] = {name: sum(int(row[name]) for row in visits) for name in SUMMED_COLUMNS}
    changed = [row for row in visits if row["change"] not in {"unchanged", "cosmetic", "unknown"}]
    changes = {Change(row["change"]): row["visits"] for row in changed}
    return DomainReport(**state, **asdict(counted), window=window, changes=changes, **sums)


async def read_traffic(db: Database, domain: Domain, *, since: datetime, until: datetime) -> list[TrafficHour]:
    """Return the hours with visits between two instants, in order; both instants must be full hours."""
    span = {"domain_id": domain.id, "since": since, "until": until}
    return await fetch_values(db, TrafficHour, TRAFFIC_BY_HOUR, span)
