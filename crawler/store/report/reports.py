"""Reports for a user: how fresh the copy is, what that costs, which pages matter, and what would be done next.

Importance and freshness are computed where the pages are, by the functions of the second migration.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg.rows import dict_row

from crawler.core.change import Change
from crawler.core.domain import Domain
from crawler.core.http import Url
from crawler.core.visit import State
from crawler.store.database import Connection, Database

# Of a page, with the aliases of PAGES below. Knowledge cannot be older than the domain's newest look.
POPULARITY = """
    page_importance(c.history, c.net + q.dividend, s.coins - s.dormant, c.clock, s.clock,
                    (SELECT sum(n.pages) FROM pool n WHERE n.domain_id = %(domain_id)s)::float8, s.window_passes)
"""
# How much of importance the URL makes up: nothing, but in the order that mixes it in.
URL_SHARE = """
    (SELECT CASE WHEN o.discovery_order = 'mixed' THEN o.url_share ELSE 0 END FROM domain o WHERE o.id = %(domain_id)s)
"""
IMPORTANCE = f"((1 - {URL_SHARE}) * {POPULARITY} + {URL_SHARE} * f.url_score)"
FRESHNESS = """
    CASE WHEN f.state = 'known' AND p.version > 0 AND p.failures > 0 AND p.status IN (404, 410) THEN 0
         WHEN f.state = 'known' AND p.version > 0
         THEN page_freshness(g.a + p.evidence_a, g.b + p.evidence_b,
                             heard_gap(site_gap(greatest(%(at)s::timestamptz, s.last_visit_at), s.site_clock_at,
                                                s.site_clock_ahead, p.last_good_at),
                                       p.signals,
                                       (SELECT array_agg(o.recall ORDER BY o.no) FROM domain_source o
                                         WHERE o.domain_id = %(domain_id)s),
                                       (SELECT array_agg(o.noise ORDER BY o.no) FROM domain_source o
                                         WHERE o.domain_id = %(domain_id)s),
                                       (SELECT max(o.silence) FROM domain_source o
                                         WHERE o.domain_id = %(domain_id)s),
                                       g.a + p.evidence_a, g.b + p.evidence_b)) END
"""
PAGES = f"""
    SELECT p.key, p.url, f.state, {IMPORTANCE} AS importance, {POPULARITY} AS popularity,
           CASE WHEN c.key IS NOT NULL THEN f.url_score END AS url_score, {FRESHNESS} AS freshness,
           p.last_look_at, p.version, (g.a + p.evidence_a) / (g.b + p.evidence_b) AS rate_per_day, f.due_at,
           p.status, p.reason, p.failures, p.last_good_at, u.kind AS list_kind
      FROM page p
      JOIN prior g ON g.domain_id = %(domain_id)s AND g.no = p.prior_no
      JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key
      JOIN domain_state s ON s.domain_id = %(domain_id)s
      LEFT JOIN cash c ON c.domain_id = %(domain_id)s AND c.key = p.key
      LEFT JOIN pool q ON q.domain_id = %(domain_id)s AND q.pool = c.pool
      LEFT JOIN url_list u ON u.domain_id = %(domain_id)s AND u.key = p.key
     WHERE p.domain_id = %(domain_id)s
"""  # noqa: S608  only our own expressions are put in
# Freshness and titles are looked up for the pages that are shown, and for no others.
TOP = f"""
    WITH best AS MATERIALIZED (
        SELECT p.key
          FROM page p
          JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key
          JOIN domain_state s ON s.domain_id = %(domain_id)s
          LEFT JOIN cash c ON c.domain_id = %(domain_id)s AND c.key = p.key
          LEFT JOIN pool q ON q.domain_id = %(domain_id)s AND q.pool = c.pool
         WHERE p.domain_id = %(domain_id)s AND (%(state)s::text IS NULL OR f.state = %(state)s)
           AND (NOT %(failing)s OR p.failures > 0) AND (NOT %(rendered)s OR p.is_rendered)
         ORDER BY {IMPORTANCE} DESC NULLS LAST, p.url LIMIT %(top)s)
    SELECT p.*, coalesce(v.title, '') AS title
      FROM ({PAGES} AND p.key IN (SELECT key FROM best)) p
      LEFT JOIN snapshot v ON v.domain_id = %(domain_id)s AND v.key = p.key AND v.number = p.version
     ORDER BY importance DESC NULLS LAST, url
"""  # noqa: S608  the same
TOTALS = f"""
    SELECT count(*) FILTER (WHERE state = 'new') AS new,
           count(*) FILTER (WHERE state = 'new' AND due_at > %(at)s) AS held_back,
           count(*) FILTER (WHERE state = 'known') AS known,
           count(*) FILTER (WHERE state = 'gone' AND list_kind IS DISTINCT FROM '') AS gone,
           count(*) FILTER (WHERE state = 'moved') AS moved,
           count(*) FILTER (WHERE state = 'refused') AS refused,
           sum(importance * freshness) / nullif(sum(importance) FILTER (WHERE freshness IS NOT NULL), 0) AS freshness,
           avg(freshness) AS freshness_plain,
           min(last_look_at) FILTER (WHERE freshness IS NOT NULL) AS oldest_look_at
      FROM ({PAGES}) p
"""  # noqa: S608  the same
# The visits of a domain are one range of each partition's key.
WINDOW = """
    SELECT CASE WHEN change = 'gone' AND key = ANY(ARRAY(SELECT u.key FROM url_list u
                                                          WHERE u.domain_id = %(domain_id)s AND u.kind = ''))
                THEN 'same' ELSE change END AS change,
           count(*) FILTER (WHERE requests > 0) AS looks,
           count(*) FILTER (WHERE change = 'unknown' AND requests > 0) AS failures,
           coalesce(sum(requests), 0) AS requests,
           coalesce(sum(received_bytes::bigint), 0)::bigint AS received_bytes,
           coalesce(sum(saved_bytes::bigint), 0)::bigint AS saved_bytes
      FROM visit
     WHERE domain_id = %(domain_id)s AND at > %(since)s AND at <= %(until)s
     GROUP BY 1
"""
STATE = """
    SELECT d.authority, d.state = 'paused' AS paused, d.insecure_tls, d.budget_per_day, s.last_visit_at,
           s.wake_at AS next_due_at,
           d.target_freshness, d.target_age_s * interval '1 second' AS target_age, l.budget_per_day AS asked_per_day,
           l.price_request * l.price_correction AS price, coalesce(l.finding, '') AS finding,
           greatest(%(at)s::timestamptz, s.last_visit_at) AS at,
           CASE WHEN s.resume_at > greatest(%(at)s::timestamptz, s.last_visit_at) THEN s.resume_at END AS hold_until,
           CASE WHEN s.resume_at > greatest(%(at)s::timestamptz, s.last_visit_at) THEN s.resume_reason ELSE '' END
               AS hold_reason,
           CASE WHEN s.budget_day = (greatest(%(at)s::timestamptz, s.last_visit_at) AT TIME ZONE 'UTC')::date
                THEN s.spent_requests ELSE 0 END AS spent_today,
           CASE WHEN s.leased_until > clock_timestamp() THEN s.holder END AS holder
      FROM domain d
      JOIN domain_state s ON s.domain_id = d.id
      LEFT JOIN domain_plan l ON l.domain_id = d.id
     WHERE d.id = %(domain_id)s
"""
DUE = """
    SELECT count(*) FILTER (WHERE f.state = 'new') AS new,
           count(*) FILTER (WHERE f.state <> 'new') AS due,
           count(*) FILTER (WHERE f.state <> 'new' AND coalesce(p.etag, p.last_modified) IS NOT NULL
                                  AND p.version > 0) AS conditional,
           coalesce(sum(p.received_bytes::bigint) FILTER (WHERE f.state <> 'new'), 0)::bigint AS known_bytes,
           (SELECT coalesce(avg(received_bytes), 0) FROM page
             WHERE domain_id = %(domain_id)s AND version > 0)::float8 AS mean_bytes,
           (SELECT count(*) FROM inbox WHERE domain_id = %(domain_id)s) AS inbox_rows
      FROM frontier f JOIN page p ON p.domain_id = %(domain_id)s AND p.key = f.key
     WHERE f.domain_id = %(domain_id)s AND (coalesce(f.due_at <= %(at)s, true))
"""
# What the inbox asks for is work as well, though only the next lease applies it. It may be any page: all are read.
ASKED_FOR = "SELECT FROM inbox WHERE domain_id = %(domain_id)s AND kind IN ('refresh', 'seed') LIMIT 1"
DUE_OR_ASKED_FOR = f"""
    WITH beneath AS MATERIALIZED (
        SELECT payload->>'prefix' AS prefix FROM inbox WHERE domain_id = %(domain_id)s AND kind = 'refresh'),
    named AS MATERIALIZED (
        SELECT DISTINCT jsonb_array_elements_text(payload->'urls') AS url
          FROM inbox WHERE domain_id = %(domain_id)s AND kind = 'seed'),
    unheard AS MATERIALIZED (
        SELECT count(*) AS many FROM named n
         WHERE n.url NOT IN (SELECT url FROM page WHERE domain_id = %(domain_id)s)),
    found AS ({DUE.rstrip().removesuffix(")")} OR p.url IN (SELECT url FROM named)
            OR EXISTS (SELECT FROM beneath b WHERE starts_with(p.url, b.prefix))))
    SELECT found.new + unheard.many AS new, due, conditional, known_bytes, mean_bytes, inbox_rows FROM found, unheard
"""  # noqa: S608  only our own statement is put in
HOLDERS = "SELECT DISTINCT holder FROM domain_state WHERE leased_until > clock_timestamp() AND holder IS NOT NULL"
BENEATH = """
    SELECT count(*) AS pages
      FROM page p JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key
     WHERE p.domain_id = %(domain_id)s AND starts_with(p.url, %(prefix)s)
"""


@dataclass(frozen=True, slots=True)
class PageLine:
    """One page of a list. importance: the domain's mean is 1; None outside the economy.

    popularity, url_score: what links and what the URL make of it; a mixed order weighs both, the others links alone.
    list_kind: of a sitemap or a feed, "" for one that was never read; None for pages that are no lists.
    failures: looks in a row that brought no good answer; last_good_at: the newest that did.
    """

    url: Url
    state: State
    importance: float | None
    popularity: float | None
    url_score: float | None
    freshness: float | None
    last_look_at: datetime | None
    version: int
    rate_per_day: float
    due_at: datetime | None
    status: int | None
    reason: str
    list_kind: str | None = None
    title: str = ""
    failures: int = 0
    last_good_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class DomainReport:
    """The state of one domain at an instant, and what it cost within a window before that.

    freshness: expected share of the known pages that are as they were when last seen, weighted by importance;
    freshness_plain: with every page counted alike. None without known pages.
    held_back: of the new pages, since pages like them have said nothing new of late.
    looks, changes, failures, requests, bytes: of the window; robots.txt is not among them.
    target_freshness, target_age: what its user wants instead of a budget.  asked_per_day: requests that this takes.
    insecure_tls: nobody asks whose certificate its server has.
    price: importance x days that a request must be worth now, None for the usual.  finding: what cannot be had, as
    planned last, or an empty string.
    """

    domain: str
    at: datetime
    paused: bool
    insecure_tls: bool
    new: int
    held_back: int
    known: int
    gone: int
    moved: int
    refused: int
    freshness: float | None
    freshness_plain: float | None
    oldest_look_at: datetime | None
    last_visit_at: datetime | None
    next_due_at: datetime | None
    window: timedelta
    looks: int
    changes: Mapping[Change, int]
    failures: int
    requests: int
    received_bytes: int
    saved_bytes: int
    budget_per_day: int | None
    target_freshness: float | None
    target_age: timedelta | None
    asked_per_day: int | None
    price: float | None
    finding: str
    spent_today: int
    hold_until: datetime | None
    hold_reason: str
    holder: str | None


@dataclass(frozen=True, slots=True)
class Workload:
    """The work that waits in a domain at an instant.

    conditional: of `due`, those that a 304 may spare the body.  known_bytes: the due pages' bodies at their last good
    looks.  mean_bytes: of the domain's pages.  inbox_rows: waiting there; the pages that they ask for are counted.
    """

    new: int
    due: int
    conditional: int
    known_bytes: int
    mean_bytes: float
    inbox_rows: int


async def pages(
    db: Database,
    domain: Domain,
    *,
    top: int,
    at: datetime,
    state: State | None = None,
    failing: bool = False,
    rendered: bool = False,
) -> list[PageLine]:
    """The domain's most important pages, those outside the economy last.

    state: only those in it.  failing: only those of which the newest look brought no good answer.  rendered: only those
    whose last version a browser made.
    """
    values = {"domain_id": domain.id, "at": at, "top": top, "state": state, "failing": failing, "rendered": rendered}
    async with db.transaction() as connection:
        rows = await _rows(connection, TOP, values)
    return [
        PageLine(
            url=Url(row["url"]),
            state=State(row["state"]),
            importance=row["importance"],
            popularity=row["popularity"],
            url_score=row["url_score"],
            freshness=row["freshness"],
            last_look_at=row["last_look_at"],
            version=row["version"],
            rate_per_day=row["rate_per_day"],
            due_at=row["due_at"],
            status=row["status"],
            reason=row["reason"],
            list_kind=row["list_kind"],
            title=row["title"],
            failures=row["failures"],
            last_good_at=row["last_good_at"],
        )
        for row in rows
    ]


async def domain_report(db: Database, domain: Domain, *, at: datetime, window: timedelta) -> DomainReport | None:
    """The domain's report; None if it was removed meanwhile.

    An instant before the domain's newest look counts as that look's: what is known now was not known then.
    """
    async with db.transaction() as connection:
        states = await _rows(connection, STATE, {"domain_id": domain.id, "at": at})
        if not states:
            return None
        state = states[0]
        totals = (await _rows(connection, TOTALS, {"domain_id": domain.id, "at": at}))[0]
        span = {"domain_id": domain.id, "since": state["at"] - window, "until": state["at"]}
        visits = await _rows(connection, WINDOW, span)
    return DomainReport(
        domain=state.pop("authority"),
        **state,
        **totals,
        window=window,
        changes={
            Change(row["change"]): row["looks"]
            for row in visits
            if row["change"] not in {"same", "cosmetic", "unknown"}
        },
        looks=_sum(visits, "looks"),
        failures=_sum(visits, "failures"),
        requests=_sum(visits, "requests"),
        received_bytes=_sum(visits, "received_bytes"),
        saved_bytes=_sum(visits, "saved_bytes"),
    )


def _sum(rows: Sequence[Mapping[str, Any]], name: str) -> int:
    return sum(int(row[name]) for row in rows)


async def workload(db: Database, domain: Domain, *, at: datetime) -> Workload:
    """The work that waits in the domain at this instant."""
    async with db.transaction() as connection:
        values = {"domain_id": domain.id, "at": at}
        statement = DUE_OR_ASKED_FOR if await _rows(connection, ASKED_FOR, values) else DUE
        return Workload(**(await _rows(connection, statement, values))[0])


async def holders(db: Database) -> set[str]:
    """Workers that hold a lease now, by the names that they gave themselves."""
    async with db.transaction() as connection:
        return {row["holder"] for row in await _rows(connection, HOLDERS, {})}


async def pages_beneath(db: Database, domain: Domain, prefix: Url) -> int:
    """How many of the domain's pages have URLs that begin so."""
    async with db.transaction() as connection:
        return int((await _rows(connection, BENEATH, {"domain_id": domain.id, "prefix": prefix}))[0]["pages"])


async def _rows(connection: Connection, statement: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement.encode(), values)
        return await cursor.fetchall()
