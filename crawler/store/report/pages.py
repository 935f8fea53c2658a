"""The most important pages of a domain, all or those of a state; one page as a Target for a look outside a crawl."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from crawler.core.domain import Domain
from crawler.core.freshness.estimates import PRIOR, Belief
from crawler.core.http.urls import Url, key_of
from crawler.core.page.snapshot import Version
from crawler.core.visit.visit import State, Target
from crawler.store.database import BY_KEY, Database
from crawler.store.report.figures import ALL, FAILING, KEPT_FOR, RENDERED, kept_top
from crawler.store.report.reports import IMPORTANCE, PAGES, RANKED_TABLES
from crawler.store.rows import fetch_dicts, fetch_values, from_signed

WANTED = f"""
    CASE %(which)s::text WHEN '{ALL}' THEN true WHEN '{FAILING}' THEN p.failures > 0
                         WHEN '{RENDERED}' THEN p.is_rendered
                         ELSE page_counted_as(f.state, p.version, u.kind) = %(which)s END
"""
# Freshness and titles are looked up for the pages that are shown, and for no others.
BEST = f"""
    SELECT p.key
      FROM {RANKED_TABLES}
     WHERE p.domain_id = %(domain_id)s AND {WANTED}
     ORDER BY {IMPORTANCE} DESC NULLS LAST, p.url LIMIT %(top)s
"""  # noqa: S608  only our own expressions are put in
SHOWN = """
    SELECT p.*, coalesce(v.title, '') AS title
      FROM ({pages}) p
      LEFT JOIN snapshot v ON v.domain_id = %(domain_id)s AND v.key = p.key AND v.number = p.version
     ORDER BY importance DESC NULLS LAST, url LIMIT %(top)s
"""
SHOWN_BEST = SHOWN.format(pages=f"{PAGES} AND p.key IN (SELECT key FROM best)")  # noqa: S608  the same
TOP = f"WITH best AS MATERIALIZED ({BEST}) {SHOWN_BEST}"
# Of a ranking that is kept: without those that have left it since.
TOP_OF = SHOWN.format(pages=f"{PAGES} AND p.key = ANY(%(keys)s) AND {WANTED}")

ONE = """
    SELECT f.state, f.depth, g.a + p.evidence_a AS a, g.b + p.evidence_b AS b, p.received_bytes, p.status, p.reason,
           p.failures, p.soft_errors, p.withheld_since, p.last_look_at, p.last_good_at,
           p.version AS number, p.body_digest, p.text_digest, p.main_digest, p.shape_digest, p.fingerprint,
           p.is_rendered
      FROM page p
      JOIN frontier f ON f.domain_id = p.domain_id AND f.key = p.key
      JOIN prior g ON g.domain_id = p.domain_id AND g.no = p.prior_no
     WHERE p.domain_id = %(domain_id)s AND p.key = %(key)s
"""
VERSION_COLUMNS = ("number", "body_digest", "text_digest", "main_digest", "shape_digest", "is_rendered")


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


async def pages(
    db: Database, domain: Domain, *, top: int, at: datetime, which: str = ALL, kept_for: timedelta = KEPT_FOR
) -> list[PageLine]:
    """The domain's most important pages, those outside the economy last.

    Of a large domain those that were so when it was last counted, if that was no longer ago than kept_for, as they are
    now.

    which: ALL; those that count as a CountedAs; FAILING, of which the newest look brought no good answer; or RENDERED,
    whose last version a browser made.
    """
    values = {"domain_id": domain.id, "at": at, "top": top, "which": str(which)}
    async with db.transaction() as connection:
        kept = await kept_top(connection, domain, str(which), top=top, at=at, kept_for=kept_for)
        if kept is None:
            return await fetch_values(connection, PageLine, TOP, values)
        await connection.execute(BY_KEY)
        return await fetch_values(connection, PageLine, TOP_OF, values | {"keys": kept})


async def target_of(db: Database, domain: Domain, url: Url) -> Target:
    """The page of that URL without its links; one that was never seen if it is not known. No validators are sent."""
    key = key_of(url)
    rows = await fetch_dicts(db, ONE, {"domain_id": domain.id, "key": key})
    if not rows:
        return Target(key=key, url=url, depth=0, state=State.NEW, belief=PRIOR)
    (row,) = rows
    said = {name: row.pop(name) for name in VERSION_COLUMNS}
    version = Version(**said, fingerprint=from_signed(row.pop("fingerprint")))
    state, belief = State(row.pop("state")), Belief(row.pop("a"), row.pop("b"))
    return Target(key, url, state=state, belief=belief, version=version if version.number else None, **row)
