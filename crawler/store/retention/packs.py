"""Packs of a month that is over, merged: few large ones of narrow buckets in place of many that each night has left.

A night's looks at a domain fill packs of wide buckets, so that a page's old looks would be among all of these packs: a
domain of a thousand looks a day has four packs a night, and after two years a question for one page reads a quarter of
730,000 looks. Merged by month the same looks are in buckets of a sixty-fourth, and it reads 24 packs. Nothing of a look
changes; each chunk is one bucket and one transaction.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from crawler.core.domain import Domain
from crawler.store.database import Database
from crawler.store.partitions import month_after
from crawler.store.retention.visits import (
    COLUMNS,
    MOST_IN_A_PACK,
    PACKED_AFTER,
    PLACED_AND_PACKED,
    bits_for,
)

# Months that are over, by the domain's own time, and all of whose looks are packed: what is older than PACKED_AFTER.
BY_MONTH = """
    SELECT date_trunc('month', p.until, 'UTC') AS month, p.bits, sum(p.visits)::bigint
      FROM domain_state s
      JOIN visit_pack p ON p.domain_id = %(domain_id)s
                       AND p.until < date_trunc('month', s.last_visit_at - %(age)s, 'UTC')
     WHERE s.domain_id = %(domain_id)s
     GROUP BY month, p.bits ORDER BY month, p.bits
"""
OF_BUCKET = "domain_id = %(domain_id)s AND bits = %(from_bits)s AND until >= %(since)s AND until < %(before)s"
BUCKETS = f"SELECT DISTINCT bucket FROM visit_pack WHERE {OF_BUCKET} ORDER BY bucket"  # noqa: S608  our own condition
MERGE = f"""
    WITH gone AS (DELETE FROM visit_pack WHERE {OF_BUCKET} AND bucket = %(bucket)s RETURNING *),
    taken AS (
        SELECT substring(p.keys FROM (16 * x.place - 15)::int FOR 16) AS key, {", ".join(f"x.{n}" for n in COLUMNS)}
          FROM gone p
         CROSS JOIN LATERAL unnest({", ".join(f"p.{name}" for name in COLUMNS)})
                    WITH ORDINALITY AS x({", ".join(COLUMNS)}, place)),
    {PLACED_AND_PACKED}
"""  # noqa: S608  only our own columns and conditions are put in


@dataclass(frozen=True, slots=True)
class MergeablePacks:
    """Packs of a month of a domain, all of buckets of so many bits, which are enough for narrower ones.

    month: its first instant, UTC.  visits: in all of them.
    """

    month: datetime
    bits: int
    visits: int


async def packs_to_merge(db: Database, domain: Domain) -> list[MergeablePacks]:
    """What of a domain's old visits is spread over more packs than it need be, by month; empty once it is merged."""
    async with db.transaction() as connection:
        cursor = await connection.execute(BY_MONTH, {"domain_id": domain.id, "age": PACKED_AFTER})
        rows = await cursor.fetchall()
    found = [MergeablePacks(month=month.astimezone(UTC), bits=bits, visits=visits) for month, bits, visits in rows]
    return [packs for packs in found if bits_for(packs.visits) > packs.bits]


async def merge_packs(db: Database, domain: Domain, packs: MergeablePacks) -> int:
    """Merge those packs, a bucket in each transaction; gives how many visits they held."""
    values = {
        "domain_id": domain.id,
        "from_bits": packs.bits,
        "since": packs.month,
        "before": month_after(packs.month),
        "bits": bits_for(packs.visits),
        "most": MOST_IN_A_PACK,
    }
    async with db.transaction() as connection:
        buckets = [bucket for (bucket,) in await (await connection.execute(BUCKETS.encode(), values)).fetchall()]
    merged = 0
    for bucket in buckets:
        async with db.transaction() as connection:
            row = await (await connection.execute(MERGE.encode(), values | {"bucket": bucket})).fetchone()
        merged += int(row[0]) if row else 0
    return merged
