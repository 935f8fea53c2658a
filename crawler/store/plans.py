"""What is planned for each domain: read from all of them, written beside them, never into what a holder writes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from crawler.store.database import Database

DOMAINS = "SELECT id, weight FROM domain ORDER BY id"
# Along which links between registered domains how much importance flows: of every page its part, by all its links.
FLOWS = """
    WITH names AS (SELECT authority, id AS domain_id FROM domain
                   UNION SELECT authority, domain_id FROM domain_alias)
    SELECT n.domain_id, sum(page_importance(c.history, c.net + q.dividend, s.coins - s.dormant, c.clock, s.clock,
                                            m.pages) * x.links / (octet_length(l.targets) / 16 + o.links))
      FROM domain_state s
      JOIN page_links l ON l.domain_id = %(domain_id)s AND cardinality(l.elsewhere) > 0
      JOIN cash c ON c.domain_id = %(domain_id)s AND c.key = l.key
      JOIN pool q ON q.domain_id = %(domain_id)s AND q.pool = c.pool
     CROSS JOIN (SELECT sum(pages)::float8 AS pages FROM pool WHERE domain_id = %(domain_id)s) m
     CROSS JOIN LATERAL (SELECT sum(links)::float8 AS links FROM unnest(l.elsewhere_links) u(links)) o
     CROSS JOIN LATERAL unnest(l.elsewhere, l.elsewhere_links) x(authority, links)
      JOIN names n ON n.authority = x.authority
     WHERE s.domain_id = %(domain_id)s
     GROUP BY n.domain_id
"""
WRITE = """
    INSERT INTO domain_plan (domain_id, importance, planned_at)
    SELECT d.id, x.importance, %(at)s
      FROM unnest(%(ids)s::bigint[], %(importance)s::float8[]) AS x(id, importance)
      JOIN domain d ON d.id = x.id  -- it may have been removed meanwhile
    ON CONFLICT (domain_id) DO UPDATE SET importance = excluded.importance, planned_at = excluded.planned_at
"""


@dataclass(frozen=True, slots=True)
class Links:
    """The graph of domains: their weights, and how much importance flows from one to another."""

    weights: Mapping[int, float]
    flows: Mapping[tuple[int, int], float]


async def links_between(db: Database) -> Links:
    """The graph of all registered domains, each read in a transaction of its own: a big one takes its time."""
    async with db.transaction() as connection:
        weights = dict(await (await connection.execute(DOMAINS)).fetchall())
    flows: dict[tuple[int, int], float] = {}
    for domain_id in weights:
        async with db.transaction() as connection:
            cursor = await connection.execute(FLOWS, {"domain_id": domain_id})
            flows |= {(domain_id, to): flow for to, flow in await cursor.fetchall() if flow and flow > 0}
    return Links(weights, flows)


async def write_importance(db: Database, importance: Mapping[int, float], *, at: datetime) -> None:
    """Write how important each domain is beside the others."""
    async with db.transaction() as connection:
        values = {"ids": list(importance), "importance": list(importance.values()), "at": at}
        await connection.execute(WRITE, values)
