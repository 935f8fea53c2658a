"""Bounded random samples of a domain's pages: for the plan, with the kind of request for each, and of their visits,
from which the activity of the site is learned.

Keys are hashes, so any slice of them is a random sample, and the index holds it in one place.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from math import ceil
from typing import Any

from crawler.core.budget.cost import RequestKind
from crawler.core.budget.sample import NO_RULE, REQUEST_KINDS, PageSample, sample_of
from crawler.core.domain import Domain
from crawler.core.freshness.estimates import DAY, PRIOR, Belief
from crawler.core.freshness.signals import loudest
from crawler.core.freshness.site_activity import REMEMBERED, SiteActivity, site_activity
from crawler.core.freshness.terms import Defaults
from crawler.core.http.response import Validators
from crawler.core.http.urls import Url
from crawler.store.database import BY_KEY, Database
from crawler.store.domain_rows import post_reprice
from crawler.store.hand_out import ScoringContext, scoring_context
from crawler.store.plan.plans import PlanInput
from crawler.store.report import IMPORTANCE, MIX
from crawler.store.rows import fetch_row, fetch_rows

# Pages that are looked at by their worth: those never asked for, and known ones with a version that may be out of date.
SAMPLE = f"""
    SELECT (f.state = 'new')::int, p.evidence_a, p.evidence_b, p.prior_no,
           look_importance(coalesce(u.worth, i.own, 1), f.state = 'new', p.announces, g.first_looks, g.novelty),
           look_importance(coalesce(u.worth, 1 - {MIX} + {MIX} * i.own, 1), f.state = 'new', p.announces,
                           g.first_looks, g.novelty),
           p.version > 0 AND p.etag IS NOT NULL, p.version > 0 AND p.last_modified IS NOT NULL, p.received_bytes,
           (p.leader IS NOT NULL)::int, p.amount_total, p.amount_changes,
           CASE WHEN p.signals = '' AND p.last_good_at < %(at)s
                THEN date_part('epoch', activity_gap(%(at)s, s.activity_at, s.activity_ahead, p.last_good_at)) / 86400
                ELSE 0 END, p.is_rendered, p.url
      FROM frontier f
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = f.key AND p.key >= %(low)s AND p.key < %(high)s
      JOIN prior g ON g.domain_id = %(domain_id)s AND g.no = p.prior_no
      JOIN domain_state s ON s.domain_id = %(domain_id)s
      LEFT JOIN cash c ON c.domain_id = %(domain_id)s AND c.key = f.key AND c.key >= %(low)s AND c.key < %(high)s
      LEFT JOIN pool q ON q.domain_id = %(domain_id)s AND q.pool = c.pool
      LEFT JOIN url_list u ON u.domain_id = %(domain_id)s AND u.key = f.key
     CROSS JOIN LATERAL (SELECT {IMPORTANCE} AS own OFFSET 0) i  -- computed once
     WHERE f.domain_id = %(domain_id)s AND f.key >= %(low)s AND f.key < %(high)s
       AND (f.state = 'new' AND f.due_at IS NULL OR f.state = 'known' AND p.version > 0)
"""  # noqa: S608  only our own expressions are put in
PRIORS = "SELECT no, a, b FROM prior WHERE domain_id = %s ORDER BY no"
KEYS = 1 << 128
AT_ONCE = 200  # rows
AFTER_ALL = b"\xff" * 17  # beyond the last key

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


async def sample_domain(
    db: Database, plan_input: PlanInput, *, most: int, at: datetime, defaults: Defaults
) -> PageSample:
    """About `most` pages of the domain by chance, others at another instant; all of them if there are no more."""
    slices = max(ceil(plan_input.tracked / max(most, 1)), 1)
    domain_id = plan_input.domain.id
    chance = blake2b(f"{domain_id} {at.isoformat()}".encode(), digest_size=8).digest()
    values = slice_of(int.from_bytes(chance, "big") % slices, slices) | {"domain_id": domain_id, "at": at}
    async with db.transaction() as connection:
        rows = await fetch_rows(connection, PRIORS, (domain_id,))
        found = {no: Belief(a, b) for no, a, b in rows}  # where one is missing, that of the domain counts
        priors = [found.get(no, found.get(0, PRIOR)) for no in range(max(found, default=0) + 1)]
        context = await scoring_context(connection, plan_input.domain, at=at, defaults=defaults)
        ruled: list[tuple[float, ...]] = []
        if context is not None:  # else it was removed meanwhile
            cursor = await connection.execute(SAMPLE, values, binary=True)
            while rows := await cursor.fetchmany(AT_ONCE):  # what is wanted of a row is a third of it
                ruled += _ruled(rows, context)
    sources = context.sources if context is not None else ()
    return sample_of(ruled, share=1 / slices, priors=priors, costs=plan_input.costs, source=loudest(sources))


def slice_of(n: int, slices: int) -> dict[str, bytes]:
    """The nth of so many equal parts of all keys: from low on, below high."""
    low = (KEYS * n // slices).to_bytes(16, "big")
    return {"low": low, "high": (KEYS * (n + 1) // slices).to_bytes(17, "big")[1:] if n + 1 < slices else AFTER_ALL}


def _ruled(rows: Sequence[Sequence[Any]], context: ScoringContext) -> Iterator[tuple[float, ...]]:
    """Rows of SAMPLE as rows of a PageSample, by the rules. A page wanted only once, and had, is left out."""
    kinds: dict[tuple[object, ...], tuple[RequestKind, RequestKind]] = {}
    for is_new, a, b, group, *figures, is_rendered, url in rows:
        importance, weight, has_etag, has_date, body_bytes, shares_schedule, *others = figures
        said = context.rules.terms(Url(url))
        if said.once and not is_new:
            continue
        alike = (is_new, group, has_etag, has_date, is_rendered)
        if alike not in kinds:
            held = Validators("etag" if has_etag else None, "date" if has_date else None)  # what they are is the same
            known = context.kinds(held, group, is_rendered=is_rendered)
            kinds[alike] = (RequestKind.FULL, RequestKind.FULL) if is_new else known
        kind, otherwise = kinds[alike]
        if kind is not otherwise and not context.is_head_worth_it(group, body_bytes=body_bytes):
            kind = otherwise
        least, most = (NO_RULE if days is None else days / DAY for days in (said.least, said.most))
        asked, factor = REQUEST_KINDS.index(kind), said.weight * context.rules.score(Url(url))
        yield is_new, a, b, group, importance * factor, asked, least, most, shares_schedule, *others, weight * factor


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
