"""Bounded random samples of a domain's pages for the plan, and of their visits for learning the site activity.

Keys are hashes, so any slice of the key space is a random sample that the index reads as one range.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from math import ceil
from typing import Any

from crawler.core.budget.cost import RequestKind
from crawler.core.budget.sample import NO_RULE, REQUEST_KINDS, PageSample, build_sample
from crawler.core.domain import Domain
from crawler.core.freshness.estimates import DAY, PRIOR, RateEstimate
from crawler.core.freshness.signals import find_best_source
from crawler.core.freshness.site_activity import ACTIVITY_WINDOW, SiteActivity, learn_site_activity
from crawler.core.freshness.visit_terms import CrawlDefaults
from crawler.core.http.response import Validators
from crawler.core.http.urls import Url
from crawler.store.database import AVOID_NESTED_LOOPS, PREFER_KEY_LOOKUPS, Database
from crawler.store.domain_rows import post_reprice
from crawler.store.frontier import ScoringContext, read_scoring_context
from crawler.store.plan.plans import PlanInput
from crawler.store.report import IMPORTANCE, MIX
from crawler.store.rows import fetch_row, fetch_rows

# Pages that are visited by value: unfetched pages that are not deferred, and fetched pages with a version.
SAMPLE = f"""
    SELECT (f.state = 'unfetched')::int, p.rate_a, p.rate_b, p.prior_no,
           visit_importance(coalesce(u.value, i.own, 1), f.state = 'unfetched', p.announces, g.first_visits, g.novelty),
           visit_importance(coalesce(u.value, 1 - {MIX} + {MIX} * i.own, 1), f.state = 'unfetched', p.announces,
                           g.first_visits, g.novelty),
           p.version > 0 AND p.etag IS NOT NULL, p.version > 0 AND p.last_modified IS NOT NULL, p.received_bytes,
           (p.canonical IS NOT NULL)::int, p.magnitude_total, p.magnitude_changes,
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
       AND (f.state = 'unfetched' AND f.due_at IS NULL OR f.state = 'fetched' AND p.version > 0)
"""  # noqa: S608  only our own expressions are inserted
PRIORS = "SELECT no, a, b FROM prior WHERE domain_id = %s ORDER BY no"
KEYS = 1 << 128
FETCH_SIZE = 200  # rows
AFTER_LAST_KEY = b"\xff" * 17  # beyond the last key

# The minimum time after which the site activity is learned again, so that an hourly plan reads the visits of months
# only four or five times a day.
LEARN_INTERVAL = timedelta(hours=5)
MAX_PAGES = 2000  # the approximate number of pages whose visits are read
ACTIVITY_DUE = """
    SELECT s.tracked, s.activity_at, s.activity_ahead,
           (SELECT 1 - coalesce(max(o.effective_recall), 0) FROM domain_source o WHERE o.domain_id = %(domain_id)s)
      FROM domain_state s
     WHERE s.domain_id = %(domain_id)s AND s.last_visit_at IS NOT NULL
       AND (cardinality(s.activity_at) = 0
            OR s.activity_at[cardinality(s.activity_at)] < least(s.last_visit_at, %(late)s))
"""
# Without duplicates, which are visited when their canonical page has changed: that would bias the activity.
# Of the visits before `remembered`, only the last one of each page is used, as the start of its first interval.
FINDINGS = """
    WITH slice AS MATERIALIZED (
        SELECT p.key, (g.a + p.rate_a) / (g.b + p.rate_b) AS rate
          FROM page p
          JOIN prior g ON g.domain_id = %(domain_id)s AND g.no = p.prior_no
         WHERE p.domain_id = %(domain_id)s AND p.key >= %(low)s AND p.key < %(high)s AND p.canonical IS NULL
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
              FROM visits WHERE at <= %(at)s AND change IN ('added', 'unchanged', 'cosmetic', 'changed', 'restored')) v
      JOIN slice s ON s.key = v.key
     WHERE v.before IS NOT NULL AND v.at > %(remembered)s AND v.change IN ('unchanged', 'cosmetic', 'changed')
"""
WRITE_ACTIVITY = "UPDATE domain_state SET activity_at = %s, activity_ahead = %s WHERE domain_id = %s"


async def sample_domain(
    db: Database, plan_input: PlanInput, *, sample_size: int, at: datetime, defaults: CrawlDefaults
) -> PageSample:
    """Sample about sample_size random pages of the domain, or all if there are fewer.

    at: the current time, which also selects the sample: a call with another instant samples other pages.
    """
    slices = max(ceil(plan_input.tracked / max(sample_size, 1)), 1)
    domain_id = plan_input.domain.id
    seed = blake2b(f"{domain_id} {at.isoformat()}".encode(), digest_size=8).digest()
    values = build_key_slice(int.from_bytes(seed, "big") % slices, slices) | {"domain_id": domain_id, "at": at}
    async with db.transaction() as connection:
        rows = await fetch_rows(connection, PRIORS, (domain_id,))
        priors_by_no = {no: RateEstimate(a, b) for no, a, b in rows}  # a missing one is replaced by that of the domain
        priors = [priors_by_no.get(no, priors_by_no.get(0, PRIOR)) for no in range(max(priors_by_no, default=0) + 1)]
        context = await read_scoring_context(connection, plan_input.domain, at=at, defaults=defaults)
        sample_rows: list[tuple[float, ...]] = []
        if context is not None:  # None if the domain was deleted
            await connection.execute(AVOID_NESTED_LOOPS)
            cursor = await connection.execute(SAMPLE, values, binary=True)
            while rows := await cursor.fetchmany(FETCH_SIZE):  # converted at once to rows of a third of the size
                sample_rows += _apply_rules(rows, context)
    source = find_best_source(context.sources if context is not None else ())
    return build_sample(sample_rows, share=1 / slices, priors=priors, costs=plan_input.costs, source=source)


def build_key_slice(n: int, slices: int) -> dict[str, bytes]:
    """Return the nth of several equal slices of the key space, as parameters low (inclusive) and high (exclusive)."""
    low, high = ((KEYS * part // slices).to_bytes(17, "big")[1:] for part in (n, n + 1))
    return {"low": low, "high": high if n + 1 < slices else AFTER_LAST_KEY}


def _apply_rules(rows: Sequence[Sequence[Any]], context: ScoringContext) -> Iterator[tuple[float, ...]]:
    """Apply the rules to rows of SAMPLE and yield rows of a PageSample. Skip fetched pages that a rule fetches once."""
    kinds: dict[tuple[object, ...], tuple[RequestKind, RequestKind]] = {}
    for is_new, a, b, group, *figures, is_rendered, url in rows:
        importance, weight, has_etag, has_date, body_bytes, shares_schedule, *others = figures
        rule_terms = context.rules.merge_terms(Url(url))
        if rule_terms.once and not is_new:
            continue
        kind_key = (is_new, group, has_etag, has_date, is_rendered)
        if kind_key not in kinds:
            # Only their presence matters, not their values.
            validators = Validators("etag" if has_etag else None, "date" if has_date else None)
            request_kinds = context.list_request_kinds(validators, group, is_rendered=is_rendered)
            kinds[kind_key] = (RequestKind.FULL, RequestKind.FULL) if is_new else request_kinds
        kind, without_head = kinds[kind_key]
        if kind is not without_head and not context.should_send_head(group, body_bytes=body_bytes):
            kind = without_head
        bounds = (rule_terms.min_interval, rule_terms.max_interval)
        min_days, max_days = (NO_RULE if days is None else days / DAY for days in bounds)
        factor = rule_terms.weight * context.rules.compute_score(Url(url))
        terms = (importance * factor, REQUEST_KINDS.index(kind), min_days, max_days)
        yield (is_new, a, b, group, *terms, shares_schedule, *others, weight * factor)


async def learn_activity(db: Database, domain: Domain, *, at: datetime) -> None:
    """Learn the activity of a site from its visits until `at`.

    Do nothing if the activity was learned less than LEARN_INTERVAL ago, or if there was no visit since. If it has
    changed, put a request into the inbox to recompute the due times of all pages. For a large site, only the visits of
    a sample of pages are read.
    """
    values = {"domain_id": domain.id, "at": at, "late": at - LEARN_INTERVAL}
    async with db.transaction() as connection:
        await connection.execute(PREFER_KEY_LOOKUPS)
        row = await fetch_row(connection, ACTIVITY_DUE, values)
        if row is None:
            return
        tracked, boundaries, ahead, unsignaled = row
        slices = max(ceil(tracked / MAX_PAGES), 1)
        window = {"since": at - 2 * ACTIVITY_WINDOW, "remembered": at - ACTIVITY_WINDOW}
        rows = await fetch_rows(connection, FINDINGS, values | window | build_key_slice(0, slices), binary=True)
        activity = learn_site_activity(rows, at=at, unsignaled_share=unsignaled)
        await connection.execute(WRITE_ACTIVITY, (list(activity.at), list(activity.ahead), domain.id))
        if activity.has_moved(SiteActivity(tuple(boundaries), tuple(ahead))):
            await post_reprice(connection, domain.id, at=at)
