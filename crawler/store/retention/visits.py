"""Retention of visits: old visits are packed, then deleted, and empty partitions are dropped.

A visit takes some 200 bytes as a row with its index entry, and a quarter of that in a *pack*: a row in which each
column is an array. Visits stay rows as long as crawls read them and are packed afterwards. Each transaction moves a
chunk of visits, so a visit is always in exactly one of the two tables.

A pack has the visits of one *bucket*: of pages whose keys share a prefix. The more visits are packed at a time, the
longer the prefix and the narrower the bucket. The packs of a finished month are merged into packs with narrower
buckets, because those of one night have wide ones: a domain with a thousand visits a day gets four packs a night, and
after two years, reading one page's visits would read a quarter of 730,000 visits. After merging, each bucket has a
sixty-fourth of a month, and the same query reads 24 packs. Merging changes no visit. Each bucket is one transaction.
"""

from datetime import UTC, datetime, timedelta

from msgspec import Struct
from psycopg import errors, sql

from crawler.core.domain import Domain
from crawler.store.database import Connection, Database
from crawler.store.partitions import LOCK_TIMEOUT, VISIT_PARTITIONS, get_next_month
from crawler.store.rows import fetch_number, fetch_row, fetch_rows

PACKED_AFTER = timedelta(days=8)  # recording reads only newer visits in table visit alone
CHUNK = 10_000  # visits in one transaction: a third of a second
MIN_PACK_VISITS = 128  # minimum mean number of visits in a bucket, if a domain has that many
MAX_PACK_VISITS = 4 * MIN_PACK_VISITS
MIN_WAITING_VISITS = 128  # fewer visits are packed only once the oldest is older than 8 * PACKED_AFTER
MAX_BITS = 16  # of the key prefix of a bucket
FORGET_PACKS_CHUNK = 200  # packs

# In the order of the columns of models.visit.VisitPack.
VISIT_COLUMNS = (
    *("at", "outcome", "status", "reason", "change", "evidence", "distance_bits", "conditional", "requests"),
    *("received_bytes", "saved_bytes", "elapsed_ms", "cash", "expected", "due_at", "shadow_price", "audit", "parts"),
    *("magnitude", "rendering", "added_words", "added_links"),
)
# Age is measured from the domain's last visit: the visits of a domain that is not crawled do not age.
COUNT_WAITING = """
    SELECT s.last_visit_at, count(v.at), min(v.at)
      FROM domain_state s
      LEFT JOIN visit v ON v.domain_id = %(domain_id)s AND v.at < s.last_visit_at - %(age)s
                       AND octet_length(v.key) = 16
     WHERE s.domain_id = %(domain_id)s
     GROUP BY s.last_visit_at
"""
END_OF_CHUNK = """
    SELECT key, at FROM visit
     WHERE domain_id = %(domain_id)s AND at < %(before)s AND (key, at) > (%(key)s, %(at)s)
     ORDER BY key, at OFFSET %(more)s LIMIT 1
"""
# Packs the visits of CTE "taken" by bucket; a bucket that is too large for one pack is split by time.
PLACED_AND_PACKED = f"""
    placed AS (
        SELECT *, (row_number() OVER (PARTITION BY bucket ORDER BY at, key) - 1) / %(most)s AS piece
          FROM (SELECT *, visit_bucket(key, %(bits)s) AS bucket FROM taken) t),
    packed AS (
        INSERT INTO visit_pack (domain_id, bits, bucket, since, until, visits, keys, {", ".join(VISIT_COLUMNS)})
        SELECT %(domain_id)s, %(bits)s, bucket, min(at), max(at), count(*), string_agg(key, '' ORDER BY key, at),
               {", ".join(f"array_agg({name} ORDER BY key, at)" for name in VISIT_COLUMNS)}
          FROM placed GROUP BY bucket, piece
     RETURNING visits)
    SELECT coalesce(sum(visits), 0)::bigint, count(*) FROM packed
"""  # noqa: S608  only our own columns are inserted
PACK = f"""
    WITH taken AS (
        DELETE FROM visit
         WHERE domain_id = %(domain_id)s AND at < %(before)s AND octet_length(key) = 16
           AND (key, at) > (%(key)s, %(at)s)
           AND (%(last_key)s::bytea IS NULL OR (key, at) <= (%(last_key)s, %(last_at)s))
     RETURNING *),
    {PLACED_AND_PACKED}
"""  # noqa: S608  only our own columns are inserted
# The packs of finished months, of which all visits are old enough to be packed.
PACKS_BY_MONTH = """
    SELECT date_trunc('month', p.until, 'UTC') AS month, p.bits, sum(p.visits)::bigint
      FROM domain_state s
      JOIN visit_pack p ON p.domain_id = %(domain_id)s
                       AND p.until < date_trunc('month', s.last_visit_at - %(age)s, 'UTC')
     WHERE s.domain_id = %(domain_id)s
     GROUP BY month, p.bits ORDER BY month, p.bits
"""
IS_IN_MONTH = "domain_id = %(domain_id)s AND bits = %(from_bits)s AND until >= %(since)s AND until < %(before)s"
BUCKETS = f"SELECT DISTINCT bucket FROM visit_pack WHERE {IS_IN_MONTH} ORDER BY bucket"  # noqa: S608  our own condition
MERGE = f"""
    WITH gone AS (DELETE FROM visit_pack WHERE {IS_IN_MONTH} AND bucket = %(bucket)s RETURNING *),
    taken AS (
        SELECT substring(p.keys FROM (16 * x.place - 15)::int FOR 16) AS key,
           {", ".join(f"x.{n}" for n in VISIT_COLUMNS)}
          FROM gone p
         CROSS JOIN LATERAL unnest({", ".join(f"p.{name}" for name in VISIT_COLUMNS)})
                    WITH ORDINALITY AS x({", ".join(VISIT_COLUMNS)}, place)),
    {PLACED_AND_PACKED}
"""  # noqa: S608  only our own columns and conditions are inserted
FORGET_ROWS = """
    DELETE FROM visit v USING (
        SELECT key, at FROM visit WHERE domain_id = %(domain_id)s AND at < %(before)s ORDER BY key, at LIMIT %(most)s) o
     WHERE v.domain_id = %(domain_id)s AND v.key = o.key AND v.at = o.at
"""
FORGET_PACKS = """
    WITH gone AS (
        DELETE FROM visit_pack p USING (
            SELECT bits, bucket, id FROM visit_pack WHERE domain_id = %(domain_id)s AND until < %(before)s
             ORDER BY until LIMIT %(most)s) o
         WHERE p.domain_id = %(domain_id)s AND p.bits = o.bits AND p.bucket = o.bucket AND p.id = o.id
     RETURNING p.visits)
    SELECT coalesce(sum(visits), 0)::bigint, count(*) FROM gone
"""
COUNT_OLD = """
    SELECT (SELECT count(*) FROM visit WHERE domain_id = %(domain_id)s AND at < %(before)s)
         + (SELECT coalesce(sum(visits), 0)::bigint FROM visit_pack
             WHERE domain_id = %(domain_id)s AND until < %(before)s)
"""


class WaitingVisits(Struct, frozen=True):
    """The visits of a domain that can be packed: their number, and the instant before which all of them were made."""

    visits: int
    before: datetime


class MergeablePacks(Struct, frozen=True):
    """The packs of a domain and month with prefixes of `bits` bits, which can be merged into narrower buckets.

    month: its first instant, UTC.  visits: the total number of visits.
    """

    month: datetime
    bits: int
    visits: int


def choose_bits(visits: int) -> int:
    """Return the length in bits of the key prefix that divides `visits` visits into buckets; an even number."""
    bits = 0
    while bits < MAX_BITS and visits >> (bits + 2) >= MIN_PACK_VISITS:
        bits += 2
    return bits


async def find_visits_to_pack(db: Database, domain: Domain) -> WaitingVisits | None:
    """Return the visits of a domain that are old enough to pack, or None if there are none or too few."""
    row = await fetch_row(db, COUNT_WAITING, {"domain_id": domain.id, "age": PACKED_AFTER})
    if row is None or row[0] is None or not row[1]:
        return None
    last_visit_at, visits, oldest = row
    if visits < MIN_WAITING_VISITS and last_visit_at - oldest < 8 * PACKED_AFTER:
        return None
    return WaitingVisits(visits=visits, before=last_visit_at - PACKED_AFTER)


async def pack_visits(
    db: Database,
    domain: Domain,
    waiting: WaitingVisits,
    *,
    after: tuple[bytes, datetime] | None = None,
    max_visits: int = CHUNK,
) -> tuple[int, tuple[bytes, datetime] | None]:
    """Pack a chunk of a domain's visits; return their number and where to continue (None at the end).

    after: page and time of the last visit of the previous chunk.
    """
    key, at = after or (b"", datetime.min.replace(tzinfo=UTC))
    values = {"domain_id": domain.id, "before": waiting.before, "key": key, "at": at, "more": max_visits - 1}
    values |= {"bits": choose_bits(waiting.visits), "most": MAX_PACK_VISITS}
    async with db.transaction() as connection:
        end = await fetch_row(connection, END_OF_CHUNK, values)
        values |= {"last_key": end[0] if end else None, "last_at": end[1] if end else None}
        return await fetch_number(connection, PACK, values), (end[0], end[1]) if end else None


async def find_packs_to_merge(db: Database, domain: Domain) -> list[MergeablePacks]:
    """Return the finished months of a domain whose packs can be merged into narrower buckets."""
    rows = await fetch_rows(db, PACKS_BY_MONTH, {"domain_id": domain.id, "age": PACKED_AFTER})
    months = [MergeablePacks(month=month.astimezone(UTC), bits=bits, visits=visits) for month, bits, visits in rows]
    return [packs for packs in months if choose_bits(packs.visits) > packs.bits]


async def merge_packs(db: Database, domain: Domain, packs: MergeablePacks) -> int:
    """Merge packs, one bucket per transaction, and return the number of their visits."""
    values = {"domain_id": domain.id, "from_bits": packs.bits, "since": packs.month}
    values |= {"before": get_next_month(packs.month), "bits": choose_bits(packs.visits), "most": MAX_PACK_VISITS}
    buckets = await fetch_rows(db, BUCKETS, values)
    return sum([await fetch_number(db, MERGE, values | {"bucket": bucket}) for (bucket,) in buckets])


async def forget_visits(db: Database, domain: Domain, *, before: datetime, max_visits: int = CHUNK) -> int:
    """Delete a chunk of a domain's visits before an instant and return their number; 0 if none are left.

    A pack is deleted once its last visit is old enough.
    """
    values = {"domain_id": domain.id, "before": before, "most": max_visits}
    async with db.transaction() as connection:
        rows = await connection.execute(FORGET_ROWS, values)
        return rows.rowcount + await fetch_number(connection, FORGET_PACKS, values | {"most": FORGET_PACKS_CHUNK})


async def count_visits(db: Database, domain: Domain, *, before: datetime) -> int:
    """Return the total number of visits that `forget_visits` would delete."""
    return await fetch_number(db, COUNT_OLD, {"domain_id": domain.id, "before": before})


async def drop_empty_partitions(db: Database, *, at: datetime) -> list[str]:
    """Drop the empty partitions of finished months and return their names.

    This returns their space to the operating system at once. Busy partitions are skipped.
    """
    dropped = []
    for (name,) in sorted(await fetch_rows(db, VISIT_PARTITIONS, {})):
        month = _parse_month(name)
        if month is None or get_next_month(month) + PACKED_AFTER > at:
            continue
        async with db.transaction() as connection:
            if await _is_empty(connection, name) and await _try_to_drop(connection, name):
                dropped.append(name)
    return dropped


def _parse_month(name: str) -> datetime | None:
    try:
        return datetime.strptime(name, "visit_%Y_%m").replace(tzinfo=UTC)
    except ValueError:
        return None  # the default partition


async def _is_empty(connection: Connection, name: str) -> bool:
    statement = sql.SQL("SELECT NOT EXISTS (SELECT FROM {})").format(sql.Identifier(name))
    row = await (await connection.execute(statement)).fetchone()
    return bool(row and row[0])


async def _try_to_drop(connection: Connection, name: str) -> bool:
    await connection.execute(LOCK_TIMEOUT)
    table = sql.Identifier(name)
    try:
        async with connection.transaction():
            await connection.execute(sql.SQL("LOCK TABLE ONLY visit, ONLY {} IN ACCESS EXCLUSIVE MODE").format(table))
            if not await _is_empty(connection, name):
                return False  # a visit was inserted before the lock
            await connection.execute(sql.SQL("DROP TABLE {}").format(table))
    except (errors.LockNotAvailable, errors.InsufficientPrivilege):
        return False
    return True
