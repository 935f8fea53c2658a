"""What was learnt of each kind of site: written by plan, and the prior with which a new domain begins."""

from collections.abc import Sequence
from datetime import datetime

from crawler.core.freshness import ALL_KINDS, PRIOR, Belief, KindPrior
from crawler.store.database import Connection, Database

# The kind's own row before that of all; a kind of which no domain was looked at again knows no more than all.
KNOWN = """
    SELECT kind, a, b, pages, domains FROM kind_prior
     WHERE kind IN (%(kind)s, %(all)s) AND domains > 0 ORDER BY kind = %(all)s LIMIT 1
"""
WRITE = """
    INSERT INTO kind_prior (kind, a, b, pages, domains, planned_at)
    SELECT x.kind, x.a, x.b, x.pages, x.domains, %(at)s
      FROM unnest(%(kind)s::text[], %(a)s::float8[], %(b)s::float8[], %(pages)s::bigint[], %(domains)s::int[])
        AS x(kind, a, b, pages, domains)
    ON CONFLICT (kind) DO UPDATE
       SET a = excluded.a, b = excluded.b, pages = excluded.pages, domains = excluded.domains,
           planned_at = excluded.planned_at
"""


async def kind_prior(connection: Connection, kind: str) -> KindPrior:
    """What a page of a new domain of this kind is expected to do: as its kind, or as all do, or PRIOR.

    The kind that is given says which; PRIOR, of which no domain told, has that of ALL_KINDS and no domains.
    """
    cursor = await connection.execute(KNOWN, {"kind": kind, "all": ALL_KINDS})
    row = await cursor.fetchone()
    if row is None:
        return KindPrior(ALL_KINDS, PRIOR, pages=0, domains=0)
    found, a, b, pages, domains = row
    return KindPrior(found, Belief(a, b), pages=pages, domains=domains)


async def write_kind_priors(db: Database, kinds: Sequence[KindPrior], *, at: datetime) -> None:
    """Write what was learnt. A kind of which no domain is left keeps what it was."""
    values = {
        "kind": [each.kind for each in kinds],
        "a": [each.prior.a for each in kinds],
        "b": [each.prior.b for each in kinds],
        "pages": [round(each.pages) for each in kinds],
        "domains": [each.domains for each in kinds],
        "at": at,
    }
    async with db.transaction() as connection:
        await connection.execute(WRITE, values)
