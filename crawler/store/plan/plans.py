"""The plan of each domain: its inputs and its result.

The result is stored in table domain_plan, not in domain_state, whose row the lease holder locks. The plan reads a
sample of the pages (store/plan/samples.py).
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import astuple

from crawler.core.budget.cost import Costs, ShadowPrice
from crawler.core.domain import Domain
from crawler.core.freshness.estimates import DEFAULT_MAGNITUDE, RateEstimate
from crawler.store.database import Database
from crawler.store.domain_rows import DOMAIN_COLUMNS, build_domain, post_reprice
from crawler.store.rows import (
    build_placeholders,
    build_unnest,
    build_upsert_set,
    decode_costs,
    execute,
    fetch_dicts,
    fetch_rows,
    split_into_columns,
)

# The importance that flows along links to other registered domains: each page divides its importance among its links.
FLOWS = """
    WITH names AS (SELECT authority, id AS domain_id FROM domain
                   UNION SELECT authority, domain_id FROM domain_alias)
    SELECT n.domain_id, sum(page_importance(c.history, c.net + q.dividend, s.total_cash - s.dormant, c.clock, s.clock,
                                            m.pages, s.window_passes)
                            * x.links / (octet_length(l.targets) / 16 + o.links))
      FROM domain_state s
      JOIN page_links l ON l.domain_id = %(domain_id)s AND cardinality(l.external_domains) > 0
      JOIN cash c ON c.domain_id = %(domain_id)s AND c.key = l.key
      JOIN pool q ON q.domain_id = %(domain_id)s AND q.pool = c.pool
     CROSS JOIN (SELECT sum(pages)::float8 AS pages FROM pool WHERE domain_id = %(domain_id)s) m
     CROSS JOIN LATERAL (SELECT sum(links)::float8 AS links FROM unnest(l.external_link_counts) u(links)) o
     CROSS JOIN LATERAL unnest(l.external_domains, l.external_link_counts) x(authority, links)
      JOIN names n ON n.authority = x.authority
     WHERE s.domain_id = %(domain_id)s
     GROUP BY n.domain_id
"""
INPUTS = f"""
    SELECT {DOMAIN_COLUMNS}, s.tracked, s.delay_s AS announced_s, s.costs, s.resume_at, l.price_request,
           coalesce(l.price_byte, 0) AS price_byte, coalesce(l.price_correction, 1) AS price_correction,
           coalesce(l.importance, d.weight) AS importance, l.planned_at,
           CASE WHEN s.budget_day = (%(at)s AT TIME ZONE 'UTC')::date THEN s.spent_requests ELSE 0 END AS spent_today,
           (SELECT count(*) FROM (SELECT FROM frontier f WHERE f.domain_id = d.id AND f.state <> 'unfetched'
                                     AND f.due_at <= l.planned_at LIMIT %(most_waiting)s) f) AS waiting
      FROM domain d
      JOIN domain_state s ON s.domain_id = d.id
      LEFT JOIN domain_plan l ON l.domain_id = d.id
     WHERE %(only)s::bigint IS NULL OR d.id = %(only)s
     ORDER BY d.authority
"""  # noqa: S608  only our own column list is inserted
PRIOR_COLUMNS = "no smallint, a float8, b float8, pages bigint, magnitude float8"
WRITE_PRIORS = f"""
    UPDATE prior p SET a = x.a, b = x.b, pages = x.pages, magnitude = x.magnitude
      FROM {build_unnest(PRIOR_COLUMNS)}
     WHERE p.domain_id = %(domain_id)s AND p.no = x.no
"""  # noqa: S608  only our own columns are inserted
# Columns named like fields of PlanRow, and those with other names.
COPIED_COLUMNS = ("importance", "longest_s", "price_correction", "finding", "mean_magnitude")
PLAN_COLUMNS = (*COPIED_COLUMNS, "planned_at", "price_request", "price_byte", "budget_per_day")
# A higher budget wakes a domain that sleeps because the previous budget is spent or paced. A domain that sleeps for
# another reason is woken if its whole budget must be used.
WRITE_DOMAIN_PLAN = f"""
    WITH awoken AS (
        UPDATE domain_state s SET wake_at = least(s.wake_at, %(planned_at)s)
          FROM domain_plan l
         WHERE s.domain_id = %(domain_id)s AND l.domain_id = %(domain_id)s
           AND CASE WHEN s.paced_until > %(planned_at)s THEN %(budget_per_day)s > l.budget_per_day
                    ELSE %(uses_whole_budget)s END)
    INSERT INTO domain_plan (domain_id, {", ".join(PLAN_COLUMNS)})
    SELECT d.id, {build_placeholders(PLAN_COLUMNS)}
      FROM domain d WHERE d.id = %(domain_id)s  -- it may have been deleted
    ON CONFLICT (domain_id) DO UPDATE SET {build_upsert_set(PLAN_COLUMNS)}
"""  # noqa: S608  only our own columns are inserted
MAX_WAITING = 10_000  # waiting pages are counted up to this number


class PlanInput(Struct, frozen=True):
    """The input of a domain's plan.

    tracked: the number of pages in any state.  announced_s: the crawl delay of the last lease, in seconds, which
    includes that of robots.txt.  importance, price, price_correction: from the last plan; price is the shadow price,
    None for the default.  planned_at: the time of the last plan, or None.  resume_at: when the last suspension ends or
    ended, or None.  spent_today: requests debited on this UTC day.
    waiting: pages that have been due since before the last plan, without unfetched ones; up to MAX_WAITING.
    """

    domain: Domain
    tracked: int
    announced_s: float
    costs: Costs
    importance: float
    price: ShadowPrice | None
    price_correction: float
    planned_at: datetime | None
    resume_at: datetime | None
    spent_today: int
    waiting: int

    def is_suspended(self, *, at: datetime, min_duration: timedelta) -> bool:
        """Return whether the domain is paused, or suspended for more than min_duration after `at`."""
        return self.domain.paused or (self.resume_at is not None and self.resume_at - at > min_duration)


class PlanRow(Struct, frozen=True):
    """The plan of one domain, as stored.

    shadow_price: None means the default.  longest_s: the longest interval, in seconds.  priors, pages: the prior of
    each group of pages, and the number of its pages.  target_requests: requests per day needed for its target, or None.
    finding: what cannot be achieved, or empty.  magnitudes: the expected magnitude of a change in each group; empty:
    mean_magnitude for all.  mean_magnitude: over all pages.
    """

    importance: float
    shadow_price: ShadowPrice | None
    longest_s: float
    target_requests: int | None
    price_correction: float
    finding: str
    priors: Sequence[RateEstimate]
    pages: Sequence[int]
    magnitudes: Sequence[float] = ()
    mean_magnitude: float = DEFAULT_MAGNITUDE


COPIED_FIELDS = [name for name in PlanInput.__struct_fields__ if name not in {"domain", "costs", "price"}]


async def read_plan_inputs(db: Database, *, at: datetime, only: Domain | None = None) -> list[PlanInput]:
    """Read the inputs of all domains by name, or of one."""
    values = {"at": at, "only": only.id if only else None, "most_waiting": MAX_WAITING}
    rows = await fetch_dicts(db, INPUTS, values)
    return [
        PlanInput(
            domain=build_domain(row),
            costs=decode_costs(row["costs"]),
            price=None if row["price_request"] is None else ShadowPrice(row["price_request"], row["price_byte"]),
            **{name: row[name] for name in COPIED_FIELDS},
        )
        for row in rows
    ]


async def read_flows(db: Database, domain_ids: Sequence[int]) -> dict[tuple[int, int], float]:
    """Return the importance that links carry from each of these domains to others, by the ids of both.

    The unit is the importance of the mean page of the source domain.
    """
    flows: dict[tuple[int, int], float] = {}
    for domain_id in domain_ids:
        rows = await fetch_rows(db, FLOWS, {"domain_id": domain_id})
        flows |= {(domain_id, to): flow for to, flow in rows if flow and flow > 0}
    return flows


async def write_plan(
    db: Database, domain: Domain, plan: PlanRow, *, rescores_pages: bool, at: datetime, uses_whole_budget: bool = False
) -> None:
    """Store the plan of a domain, unless it was deleted.

    rescores_pages: put a request into the inbox to recompute the due times of its pages at the new shadow price. Until
    it is applied, a selection uses the new price, but reads the pages in the order of their old due times.
    uses_whole_budget: the domain spends its budget even if no page has enough value.
    """
    per_request, per_byte = astuple(plan.shadow_price) if plan.shadow_price else (None, 0.0)
    values = {name: getattr(plan, name) for name in COPIED_COLUMNS} | {"domain_id": domain.id, "planned_at": at}
    values |= {"price_request": per_request, "price_byte": per_byte}
    values |= {"budget_per_day": plan.target_requests, "uses_whole_budget": uses_whole_budget}
    magnitudes = plan.magnitudes or [plan.mean_magnitude] * len(plan.priors)
    groups = zip(plan.priors, plan.pages, magnitudes, strict=True)
    priors = [(no, prior.a, prior.b, pages, magnitude) for no, (prior, pages, magnitude) in enumerate(groups)]
    async with db.transaction() as connection:
        if not await execute(connection, WRITE_DOMAIN_PLAN, values):
            return
        await connection.execute(WRITE_PRIORS, split_into_columns(PRIOR_COLUMNS, priors) | {"domain_id": domain.id})
        if rescores_pages:
            await post_reprice(connection, domain.id, at=at)
