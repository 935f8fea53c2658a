"""The groups of a domain's pages that share a prior: which one a new page belongs to."""

from collections.abc import Sequence

from crawler.core.freshness import ELSEWHERE, group_of
from crawler.core.http import Url
from crawler.store.database import Connection

GROUPS = "SELECT template, no FROM prior WHERE domain_id = %s"
# A group that is new knows what the domain knows.
ADD = """
    INSERT INTO prior (domain_id, no, template, a, b, amount)
    SELECT %(domain_id)s, x.no, x.template, d.a, d.b, d.amount
      FROM unnest(%(no)s::smallint[], %(template)s::text[]) AS x(no, template)
      JOIN prior d ON d.domain_id = %(domain_id)s AND d.no = 0
    ON CONFLICT DO NOTHING
"""


async def groups_of(connection: Connection, domain_id: int, urls: Sequence[Url]) -> list[int]:
    """The number of each URL's group. New groups are added, as long as the domain has room for them."""
    known: dict[str, int] = dict(await (await connection.execute(GROUPS, (domain_id,))).fetchall())
    fresh: dict[str, int] = {}
    found = []
    for url in urls:
        template = group_of(url, known)
        if template not in known and template != ELSEWHERE:
            fresh[template] = known[template] = max(known.values(), default=0) + 1
        found.append(known.get(template, 0))
    if fresh:
        values = {"domain_id": domain_id, "no": list(fresh.values()), "template": list(fresh)}
        await connection.execute(ADD, values)
    return found
