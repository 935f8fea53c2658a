"""Near duplicates within a domain: an index of fingerprints, filled from the domain's events and read by bands.

A *band* is a quarter of a fingerprint: fingerprints that differ in at most three bits share a band. Visits do not write
the index. The hourly plan, pruning, or a query for duplicates continues to fill it where the last run ended.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any

from msgspec import Struct

from crawler.core.change.near_duplicates import MIN_TEXT_BYTES, NEAR_BITS, group_duplicates
from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey, Url
from crawler.core.page.fingerprint import Fingerprint
from crawler.store.database import PREFER_KEY_LOOKUPS, Connection, Database
from crawler.store.rows import encode_fingerprint, fetch_number, fetch_row, fetch_rows

CHUNK = 5_000  # events in one transaction
# Waits for a deletion of the domain, or makes it wait, but does not conflict with the recording of visits.
LOCK_DOMAIN = "SELECT FROM domain_state WHERE domain_id = %(domain_id)s FOR KEY SHARE"
# Another process that fills the same domain waits at this row.
CURSOR = """
    INSERT INTO fingerprint_cursor AS c (domain_id) VALUES (%(domain_id)s)
    ON CONFLICT (domain_id) DO UPDATE SET event = c.event
 RETURNING event
"""
# Events are numbered while the domain's row is locked, so all events before a visible one are visible, too.
EVENTS = """
    SELECT number, key FROM event WHERE domain_id = %(domain_id)s AND number > %(after)s ORDER BY number LIMIT %(most)s
"""
# The current state of the pages, whatever the event was. octet_length does not decompress the text.
CURRENT_FINGERPRINTS = """
    SELECT x.key, p.fingerprint
      FROM unnest(%(keys)s::bytea[]) AS x(key)
      LEFT JOIN (page p
                 JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key AND f.state NOT IN ('gone', 'moved')
                 JOIN snapshot s ON s.domain_id = %(domain_id)s AND s.key = p.key AND s.number = p.version
                                AND octet_length(s.text) >= %(least_bytes)s)
        ON p.domain_id = %(domain_id)s AND p.key = x.key
"""
DELETE_FINGERPRINTS = """
    DELETE FROM page_fingerprint p
     USING unnest(%(keys)s::bytea[], %(fingerprints)s::bigint[]) AS x(key, fingerprint)
     WHERE p.domain_id = %(domain_id)s AND p.key = x.key AND p.fingerprint IS DISTINCT FROM x.fingerprint
 RETURNING p.fingerprint
"""
INSERT_FINGERPRINTS = """
    INSERT INTO page_fingerprint (domain_id, key, fingerprint)
    SELECT %(domain_id)s, x.key, x.fingerprint
      FROM unnest(%(keys)s::bytea[], %(fingerprints)s::bigint[]) AS x(key, fingerprint)
     WHERE x.fingerprint IS NOT NULL
    ON CONFLICT (domain_id, key) DO NOTHING
"""
DELETE_BANDS = """
    DELETE FROM fingerprint_band b
     USING unnest(%(fingerprints)s::bigint[]) AS x(fingerprint), generate_series(0, 3) AS q
     WHERE b.domain_id = %(domain_id)s AND b.band = fingerprint_band(x.fingerprint, q) AND b.fingerprint = x.fingerprint
       AND NOT EXISTS (SELECT FROM page_fingerprint p
                        WHERE p.domain_id = %(domain_id)s AND p.fingerprint = x.fingerprint)
"""
INSERT_BANDS = """
    INSERT INTO fingerprint_band (domain_id, band, fingerprint)
    SELECT %(domain_id)s, fingerprint_band(x.fingerprint, q), x.fingerprint
      FROM unnest(%(fingerprints)s::bigint[]) AS x(fingerprint), generate_series(0, 3) AS q
    ON CONFLICT DO NOTHING
"""
ADVANCE = "UPDATE fingerprint_cursor SET event = %(event)s WHERE domain_id = %(domain_id)s"
# Reads pages of the nearest fingerprints only: there may be thousands of fingerprints with thousands of pages each.
NEAR_DUPLICATES = """
    SELECT p.url, n.bits, p.canonical IS NOT NULL
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
    SELECT x.fingerprint, p.url, p.canonical IS NOT NULL
      FROM unnest(%(fingerprints)s::bigint[]) WITH ORDINALITY AS x(fingerprint, n)
      JOIN LATERAL (SELECT key FROM page_fingerprint
                     WHERE domain_id = %(domain_id)s AND fingerprint = x.fingerprint
                     ORDER BY key LIMIT %(most)s) k ON true
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = k.key
     ORDER BY x.n, octet_length(p.url), p.url
     LIMIT %(most)s
"""
UNSIGNED = 2**64 - 1  # mask that turns a BIGINT into a Fingerprint


class NearDuplicate(Struct, frozen=True):
    """A near duplicate of a given page. bits: how many of the 64 bits of their fingerprints differ.

    shares_schedule: whether the near duplicate shares the schedule of a page with the same text.
    """

    url: Url
    bits: int
    shares_schedule: bool = False


class NearDuplicateGroup(Struct, frozen=True):
    """Pages of a domain that are near duplicates of the first member.

    domain: its name.  pages: the number of pages in the group.  members: some of these pages.
    """

    domain: str
    pages: int
    members: Sequence[NearDuplicate]


async def fill_fingerprints(db: Database, domain: Domain, *, max_chunks: int | None = None) -> int:
    """Update the index up to the domain's last event and return the number of events read.

    Each chunk of CHUNK events is one transaction: a run may stop at any time, and several may run concurrently.
    """
    total = 0
    for _ in count() if max_chunks is None else range(max_chunks):
        event_count = await _fill_chunk(db, domain.id)
        total += event_count
        if event_count < CHUNK:
            break
    return total


async def _fill_chunk(db: Database, domain_id: int) -> int:
    values: dict[str, Any] = {"domain_id": domain_id, "most": CHUNK, "least_bytes": MIN_TEXT_BYTES}
    async with db.transaction() as connection:
        await connection.execute(PREFER_KEY_LOOKUPS)
        if await fetch_row(connection, LOCK_DOMAIN, values) is None:
            return 0
        after = await fetch_number(connection, CURSOR, values)
        events = await fetch_rows(connection, EVENTS, values | {"after": after}, binary=True)
        if events:
            keys = list(dict.fromkeys(key for _, key in events))
            await _update_fingerprints(connection, values | {"keys": keys})
            await connection.execute(ADVANCE, values | {"event": events[-1][0]})
        return len(events)


async def _update_fingerprints(connection: Connection, values: dict[str, Any]) -> None:
    """Store the current fingerprints of the pages with these keys."""
    rows = await fetch_rows(connection, CURRENT_FINGERPRINTS, values, binary=True)
    now = values | {"keys": [key for key, _ in rows], "fingerprints": [fingerprint for _, fingerprint in rows]}
    removed = await fetch_rows(connection, DELETE_FINGERPRINTS, now, binary=True)
    await connection.execute(INSERT_FINGERPRINTS, now, binary=True)
    gone = sorted({fingerprint for (fingerprint,) in removed})
    await connection.execute(DELETE_BANDS, values | {"fingerprints": gone}, binary=True)
    added = sorted({fingerprint for _, fingerprint in rows if fingerprint is not None})
    await connection.execute(INSERT_BANDS, values | {"fingerprints": added}, binary=True)


async def find_near_duplicates(
    db: Database, domain: Domain, key: PageKey, *, bits: int, max_pages: int
) -> list[NearDuplicate] | None:
    """Return the near duplicates of a page, the nearest first, or None if it has no fingerprint.

    Results are as of the last `fill_fingerprints`.  bits: the maximum distance, 0 to NEAR_BITS.
    """
    assert 0 <= bits <= NEAR_BITS, "four bands do not find more"
    async with db.transaction() as connection:
        await connection.execute(PREFER_KEY_LOOKUPS)
        values: dict[str, Any] = {"domain_id": domain.id, "key": key, "bits": bits, "most": max_pages}
        rows = await fetch_rows(connection, NEAR_DUPLICATES, values)
        if not rows and await fetch_row(connection, IS_COMPARED, values) is None:
            return None
        return [NearDuplicate(Url(url), bits, shares_schedule) for url, bits, shares_schedule in rows]


async def find_near_duplicate_groups(
    db: Database, domain: Domain, *, bits: int, max_groups: int, max_members: int
) -> list[NearDuplicateGroup]:
    """Return the groups of near duplicates, the largest first, as built by core/change/near_duplicates.py.

    Results are as of the last `fill_fingerprints`. Reads all fingerprints of the domain, 16 bytes each.
    bits: the maximum distance from the first page of a group, 0 to NEAR_BITS.  max_members: the number of pages of each
    group to return.
    """
    counts = await fetch_rows(db, COUNTS, {"domain_id": domain.id}, binary=True)
    pages = {Fingerprint(number & UNSIGNED): page_count for number, page_count in counts}
    # This takes long, so it runs between two transactions.
    groups = group_duplicates(pages, tolerance_bits=bits)[:max_groups]
    async with db.transaction() as connection:
        await connection.execute(PREFER_KEY_LOOKUPS)
        found = []
        for group in groups:  # its first pages, by distance from the first one and then by length of the URL
            distances = {encode_fingerprint(each): bits for each, bits in group.distances.items()}
            values = {"domain_id": domain.id, "fingerprints": list(distances)[:max_members], "most": max_members}
            rows = await fetch_rows(connection, PAGES, values)
            members = [NearDuplicate(Url(url), distances[number], shares) for number, url, shares in rows]
            found.append(NearDuplicateGroup(domain.authority, group.pages, members))
        return found
