"""Pages of a domain that say nearly the same: filled in from its events, read by bands.

Nothing of this is on the way of a look: the plan once an hour, and whoever wants to know, read on where the last one
ended.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from crawler.core.change.near_duplicates import LEAST_TEXT_BYTES, NEAR_BITS, DuplicateGroup, duplicate_groups
from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey, Url
from crawler.core.page.fingerprint import Fingerprint
from crawler.store.database import BY_KEY, Connection, Database
from crawler.store.rows import fetch_number, fetch_row, fetch_rows, to_signed

CHUNK = 5_000  # events of one transaction; a second
# Whoever removes the domain waits for us, or we for him; its holder does not.
STAY = "SELECT FROM domain_state WHERE domain_id = %(domain_id)s FOR KEY SHARE"
# Who else fills in the same domain waits here.
CURSOR = """
    INSERT INTO fingerprint_cursor AS c (domain_id) VALUES (%(domain_id)s)
    ON CONFLICT (domain_id) DO UPDATE SET event = c.event
 RETURNING event
"""
# A domain's events are numbered under the lock of its lease: whoever sees one sees all before it.
EVENTS = """
    SELECT number, key FROM event WHERE domain_id = %(domain_id)s AND number > %(after)s ORDER BY number LIMIT %(most)s
"""
# What a page is now, whatever its event was. octet_length does not unpack a text.
NOW = """
    SELECT x.key, p.fingerprint
      FROM unnest(%(keys)s::bytea[]) AS x(key)
      LEFT JOIN (page p
                 JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key AND f.state NOT IN ('gone', 'moved')
                 JOIN snapshot s ON s.domain_id = %(domain_id)s AND s.key = p.key AND s.number = p.version
                                AND octet_length(s.text) >= %(least_bytes)s)
        ON p.domain_id = %(domain_id)s AND p.key = x.key
"""
FORGET = """
    DELETE FROM page_fingerprint p
     USING unnest(%(keys)s::bytea[], %(fingerprints)s::bigint[]) AS x(key, fingerprint)
     WHERE p.domain_id = %(domain_id)s AND p.key = x.key AND p.fingerprint IS DISTINCT FROM x.fingerprint
 RETURNING p.fingerprint
"""
REMEMBER = """
    INSERT INTO page_fingerprint (domain_id, key, fingerprint)
    SELECT %(domain_id)s, x.key, x.fingerprint
      FROM unnest(%(keys)s::bytea[], %(fingerprints)s::bigint[]) AS x(key, fingerprint)
     WHERE x.fingerprint IS NOT NULL
    ON CONFLICT (domain_id, key) DO NOTHING
"""
UNBAND = """
    DELETE FROM fingerprint_band b
     USING unnest(%(fingerprints)s::bigint[]) AS x(fingerprint), generate_series(0, 3) AS q
     WHERE b.domain_id = %(domain_id)s AND b.band = fingerprint_band(x.fingerprint, q) AND b.fingerprint = x.fingerprint
       AND NOT EXISTS (SELECT FROM page_fingerprint p
                        WHERE p.domain_id = %(domain_id)s AND p.fingerprint = x.fingerprint)
"""
BAND = """
    INSERT INTO fingerprint_band (domain_id, band, fingerprint)
    SELECT %(domain_id)s, fingerprint_band(x.fingerprint, q), x.fingerprint
      FROM unnest(%(fingerprints)s::bigint[]) AS x(fingerprint), generate_series(0, 3) AS q
    ON CONFLICT DO NOTHING
"""
ADVANCE = "UPDATE fingerprint_cursor SET event = %(event)s WHERE domain_id = %(domain_id)s"
# Pages only of the nearest fingerprints: a crowd has thousands of them, and each may have thousands of pages.
NEAR = """
    SELECT p.url, n.bits, p.leader IS NOT NULL
      FROM (SELECT DISTINCT distance_bits(b.fingerprint, a.fingerprint) AS bits, b.fingerprint
              FROM page_fingerprint a
             CROSS JOIN generate_series(0, 3) AS q
              JOIN fingerprint_band b
                ON b.domain_id = %(domain_id)s AND b.band = fingerprint_band(a.fingerprint, q)
             WHERE a.domain_id = %(domain_id)s AND a.key = %(key)s
               AND distance_bits(b.fingerprint, a.fingerprint) <= %(bits)s
             ORDER BY bits, b.fingerprint
             LIMIT %(most)s + 1) n
      JOIN LATERAL (SELECT key FROM page_fingerprint
                     WHERE domain_id = %(domain_id)s AND fingerprint = n.fingerprint AND key <> %(key)s
                     ORDER BY key LIMIT %(most)s) k ON true
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = k.key
     ORDER BY n.bits, n.fingerprint, octet_length(p.url), p.url
     LIMIT %(most)s
"""
IS_COMPARED = "SELECT FROM page_fingerprint WHERE domain_id = %(domain_id)s AND key = %(key)s"
COUNTS = "SELECT fingerprint, count(*) FROM page_fingerprint WHERE domain_id = %(domain_id)s GROUP BY fingerprint"
PAGES = """
    SELECT x.fingerprint, p.url, p.leader IS NOT NULL
      FROM unnest(%(fingerprints)s::bigint[]) WITH ORDINALITY AS x(fingerprint, n)
      JOIN LATERAL (SELECT key FROM page_fingerprint
                     WHERE domain_id = %(domain_id)s AND fingerprint = x.fingerprint
                     ORDER BY key LIMIT %(most)s) k ON true
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = k.key
     ORDER BY x.n, octet_length(p.url), p.url
     LIMIT %(most)s
"""
UNSIGNED = 2**64 - 1  # with which a BIGINT becomes a Fingerprint


@dataclass(frozen=True, slots=True)
class Near:
    """A page, and in how many bits of 64 its fingerprint differs from the given page's.

    shares_schedule: whether it shares the schedule of a page with the same text.
    """

    url: Url
    bits: int
    shares_schedule: bool = False


@dataclass(frozen=True, slots=True)
class Alike:
    """Pages of one domain that are near one of them, which comes first. pages: how many there are in all."""

    domain: str
    pages: int
    members: Sequence[Near]


async def fill(db: Database, domain: Domain, *, chunks: int | None = None) -> int:
    """Bring the fingerprints up to the domain's events; gives how many events were read.

    Each chunk of CHUNK events is a transaction, so it may end anywhere, and several may begin it at once.
    chunks: no more than so many.
    """
    done = 0
    for _ in count() if chunks is None else range(chunks):
        many = await _fill_chunk(db, domain.id)
        done += many
        if many < CHUNK:
            break
    return done


async def _fill_chunk(db: Database, domain_id: int) -> int:
    values: dict[str, Any] = {"domain_id": domain_id, "most": CHUNK, "least_bytes": LEAST_TEXT_BYTES}
    async with db.transaction() as connection:
        await connection.execute(BY_KEY)
        if await fetch_row(connection, STAY, values) is None:
            return 0
        after = await fetch_number(connection, CURSOR, values)
        events = await (await connection.execute(EVENTS, values | {"after": after}, binary=True)).fetchall()
        if events:
            keys = list(dict.fromkeys(key for _, key in events))
            await _renew(connection, values | {"keys": keys})
            await connection.execute(ADVANCE, values | {"event": events[-1][0]})
        return len(events)


async def _renew(connection: Connection, values: dict[str, Any]) -> None:
    """Write what the pages of these keys are now."""
    rows = await (await connection.execute(NOW, values, binary=True)).fetchall()
    now = values | {"keys": [key for key, _ in rows], "fingerprints": [fingerprint for _, fingerprint in rows]}
    left = await (await connection.execute(FORGET, now, binary=True)).fetchall()
    await connection.execute(REMEMBER, now, binary=True)
    gone = sorted({fingerprint for (fingerprint,) in left})
    await connection.execute(UNBAND, values | {"fingerprints": gone}, binary=True)
    come = sorted({fingerprint for _, fingerprint in rows if fingerprint is not None})
    await connection.execute(BAND, values | {"fingerprints": come}, binary=True)


async def near(db: Database, domain: Domain, key: PageKey, *, bits: int, most: int) -> list[Near] | None:
    """The pages that differ from this one in so many bits at most, the nearest first; None for one without fingerprint.

    bits: 0 to NEAR_BITS.  most: pages.  As of the last `fill`.
    """
    assert 0 <= bits <= NEAR_BITS, "four bands do not find more"
    async with db.transaction() as connection:
        await connection.execute(BY_KEY)
        values: dict[str, Any] = {"domain_id": domain.id, "key": key, "bits": bits, "most": most}
        rows = await fetch_rows(connection, NEAR, values)
        if not rows and await fetch_row(connection, IS_COMPARED, values) is None:
            return None
        return [Near(Url(url), bits, shares_schedule) for url, bits, shares_schedule in rows]


async def alike(db: Database, domain: Domain, *, bits: int, most: int, members: int) -> list[Alike]:
    """Groups of pages that say nearly the same, the largest first, as core/change/near_duplicates.py makes them.

    bits: from the first page of a group, 0 to NEAR_BITS.  most: groups.  members: pages of each.  As of the last
    `fill`. Reads all fingerprints of the domain, 16 bytes each.
    """
    async with db.transaction() as connection:
        cursor = await connection.execute(COUNTS, {"domain_id": domain.id}, binary=True)
        pages = {Fingerprint(number & UNSIGNED): many for number, many in await cursor.fetchall()}
    found = duplicate_groups(pages, tolerance_bits=bits)[:most]  # which takes its time, while nobody waits for us
    async with db.transaction() as connection:
        await connection.execute(BY_KEY)
        return [Alike(domain.authority, e.pages, await _members(connection, domain.id, e, members)) for e in found]


async def _members(connection: Connection, domain_id: int, group: DuplicateGroup, most: int) -> list[Near]:
    """The first pages of a group, by their distance from its leader, and of one fingerprint the shortest URL first."""
    bits = {to_signed(each): bits for each, bits in group.bits.items()}
    values = {"domain_id": domain_id, "fingerprints": list(bits)[:most], "most": most}
    rows = await fetch_rows(connection, PAGES, values)
    return [Near(Url(url), bits[number], shares_schedule) for number, url, shares_schedule in rows]
