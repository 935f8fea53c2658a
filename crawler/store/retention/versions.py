"""Retention of versions: old versions are thinned, that is, their texts, headers and bodies are deleted, not the rows.

A body is stored once for all versions that share it, so it is deleted with the last of them. A chunk is one
transaction, which locks the row of the domain like recording does, so no new version can use a body that is being
deleted.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from msgspec import Struct

from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey
from crawler.core.retention import DatedVersion, select_stored_versions
from crawler.store.database import PREFER_KEY_LOOKUPS, Connection, Database
from crawler.store.rows import fetch_number, fetch_row, fetch_rows

Last = TypeVar("Last")

PAGES_CHUNK = 200  # pages checked at a time
BODIES_CHUNK = 500  # bodies checked in one transaction of a sweep
THIN_CHUNK = 500  # versions thinned in one transaction, while the domain is locked
OLDEST_CHUNK = 5_000  # versions checked at a time for a quota

# The stored versions of pages that have more versions than are kept regardless of age.
STORED_VERSIONS = """
    SELECT p.key, p.version, s.last_visit_at,
           array(SELECT v.number FROM snapshot v
                  WHERE v.domain_id = %(domain_id)s AND v.key = p.key AND v.is_stored ORDER BY v.number),
           array(SELECT v.at FROM snapshot v
                  WHERE v.domain_id = %(domain_id)s AND v.key = p.key AND v.is_stored ORDER BY v.number)
      FROM (SELECT key, version FROM page
             WHERE domain_id = %(domain_id)s AND key > %(after)s AND version > %(versions)s
             ORDER BY key LIMIT %(most)s) p
      JOIN domain_state s ON s.domain_id = %(domain_id)s
     ORDER BY p.key
"""
# The versions of changes that are not yet in the feed or that a reader has not read yet.
NEEDED_VERSIONS = """
    SELECT e.key, e.version, e.number <= s.stamped_event
      FROM event e JOIN domain_state s ON s.domain_id = %(domain_id)s
     WHERE e.domain_id = %(domain_id)s AND e.key = ANY(%(keys)s) AND e.version > 0
       AND (e.number > s.stamped_event
            OR EXISTS (SELECT FROM feed f WHERE f.domain_id = %(domain_id)s AND f.number = e.number
                                            AND f.position > %(read_until)s))
"""
# The compressed size of the texts of a version.
TEXTS_SIZE = """pg_column_size(v.text) + coalesce(pg_column_size(v.content), 0) + pg_column_size(v.meta)
           + pg_column_size(v.headers)"""
# The oldest versions first, without the newest of each page, with their compressed size. There is no index by time, so
# each chunk reads all versions of the domain: chunks are large, and sizes are read for the chosen versions only.
OLDEST = f"""
    SELECT v.key, v.number, v.at, {TEXTS_SIZE} + coalesce(pg_column_size(c.data), 0)
      FROM (SELECT v.key, v.number, v.at
              FROM snapshot v
              JOIN page p ON p.domain_id = %(domain_id)s AND p.key = v.key
             WHERE v.domain_id = %(domain_id)s AND v.is_stored AND v.number < p.version
               AND (v.at, v.key, v.number) > (%(at)s, %(key)s, %(number)s)
             ORDER BY v.at, v.key, v.number LIMIT %(most)s) o
      JOIN snapshot v ON v.domain_id = %(domain_id)s AND v.key = o.key AND v.number = o.number
      LEFT JOIN content c ON c.domain_id = %(domain_id)s AND c.digest = v.body_digest
     ORDER BY v.at, v.key, v.number
"""  # noqa: S608  only our own expression is inserted
SIZE = f"""
    SELECT (SELECT coalesce(sum({TEXTS_SIZE}), 0)
              FROM snapshot v WHERE v.domain_id = %(domain_id)s AND v.is_stored)
         + (SELECT coalesce(sum(pg_column_size(data)), 0) FROM content WHERE domain_id = %(domain_id)s)
"""  # noqa: S608  the same
LOCK = "SELECT FROM domain_state WHERE domain_id = %(domain_id)s FOR NO KEY UPDATE"
CHOSEN = "unnest(%(keys)s::bytea[], %(numbers)s::int[]) AS x(key, number)"
# The newest version of each page is kept, even if it became the newest after the versions were chosen.
THIN = f"""
    UPDATE snapshot v SET text = '', content = NULL, content_ranges = '{{}}', line_ranges = '{{}}', meta = '{{}}',
           headers = '', is_stored = false
      FROM {CHOSEN}
      JOIN snapshot o ON o.domain_id = %(domain_id)s AND o.key = x.key AND o.number = x.number
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = x.key AND p.version > x.number
     WHERE v.domain_id = %(domain_id)s AND v.key = x.key AND v.number = x.number AND v.is_stored
 RETURNING v.body_digest, {TEXTS_SIZE.replace("v.", "o.")}
"""  # noqa: S608  only our own expression is inserted
UNREFERENCED = """
    c.domain_id = %(domain_id)s AND c.digest = ANY(%(digests)s)
    AND NOT EXISTS (SELECT FROM snapshot v
                     WHERE v.domain_id = %(domain_id)s AND v.body_digest = c.digest AND v.is_stored)
"""
LOST = f"SELECT digest FROM content c WHERE {UNREFERENCED}"  # noqa: S608  the same
SWEEP = f"DELETE FROM content c WHERE {UNREFERENCED} RETURNING pg_column_size(c.data)"  # noqa: S608  the same
PREVIEW_THINNING = f"""
    WITH chosen AS MATERIALIZED (
        SELECT v.body_digest, {TEXTS_SIZE} AS size
          FROM {CHOSEN}
          JOIN snapshot v ON v.domain_id = %(domain_id)s AND v.key = x.key AND v.number = x.number AND v.is_stored),
    bodies AS MATERIALIZED (SELECT body_digest, count(*) AS versions FROM chosen GROUP BY body_digest)
    SELECT (SELECT count(*) FROM chosen), (SELECT coalesce(sum(size), 0) FROM chosen), count(c.digest),
           coalesce(sum(pg_column_size(c.data)), 0)
      FROM bodies
      JOIN content c ON c.domain_id = %(domain_id)s AND c.digest = bodies.body_digest
     WHERE bodies.versions = (SELECT count(*) FROM snapshot v
                               WHERE v.domain_id = %(domain_id)s AND v.body_digest = bodies.body_digest
                                 AND v.is_stored)
"""  # noqa: S608  the same
DIGESTS = """
    SELECT digest FROM content WHERE domain_id = %(domain_id)s AND digest > %(after)s ORDER BY digest LIMIT %(most)s
"""


class ThinResult(Struct, frozen=True):
    """What was or would be deleted: the texts of versions, bodies that no version uses, and the compressed bytes."""

    versions: int = 0
    bodies: int = 0
    freed_bytes: int = 0

    def __add__(self, other: "ThinResult") -> "ThinResult":
        freed_bytes = self.freed_bytes + other.freed_bytes
        return ThinResult(self.versions + other.versions, self.bodies + other.bodies, freed_bytes)


class NeededVersions(Struct, frozen=True):
    """Versions that are still needed for changes, by page.

    unread: their changes are in the feed, but a reader has not read them.  unpublished: not yet in the feed.
    """

    unread: Mapping[bytes, set[int]]
    unpublished: Mapping[bytes, set[int]]

    def get_versions(self, key: bytes) -> set[int]:
        """Return the needed versions of a page."""
        return self.unread.get(key, set()) | self.unpublished.get(key, set())


class VersionRef(Struct, frozen=True):
    """One version of a page. size: compressed bytes of its text, headers and body; 0 if not read."""

    key: PageKey
    number: int
    at: datetime
    size: int = 0


class ThinChoice(Struct, Generic[Last], frozen=True):
    """Versions that may be thinned.

    deferred_count: the number of further versions that are kept only because a reader has not read their changes.
    last: the last page or version checked, from which to continue; None at the end.
    """

    versions: Sequence[VersionRef]
    deferred_count: int
    last: Last | None


async def find_versions_to_thin(
    db: Database, domain: Domain, *, after: PageKey, read_until: int | None
) -> ThinChoice[PageKey]:
    """Return the versions to thin among the next pages of a domain.

    after: continue after the page with this key.  read_until: the lowest cursor of the readers of changes; None
    without readers.
    """
    settings = domain.settings
    values = {"domain_id": domain.id, "after": after, "versions": settings.keep_versions, "most": PAGES_CHUNK}
    async with db.transaction() as connection:
        await connection.execute(PREFER_KEY_LOOKUPS)
        rows = await fetch_rows(connection, STORED_VERSIONS, values)
        needed = await read_needed_versions(connection, domain.id, [key for key, *_ in rows], read_until=read_until)
    chosen: list[VersionRef] = []
    deferred_count = 0
    for key, newest, now, numbers, instants in rows:
        past = [DatedVersion(number=number, at=at) for number, at in zip(numbers, instants, strict=True)]
        retained = select_stored_versions(past, settings, now=now, needed=needed.get_versions(key) | {newest})
        if key in needed.unread:
            unpublished = needed.unpublished.get(key, set()) | {newest}
            deferred_count += len(retained - select_stored_versions(past, settings, now=now, needed=unpublished))
        chosen += [VersionRef(key=key, number=each.number, at=each.at) for each in past if each.number not in retained]
    return ThinChoice(chosen, deferred_count, PageKey(rows[-1][0]) if rows else None)


async def find_oldest_versions(
    db: Database, domain: Domain, *, after: VersionRef | None, read_until: int | None
) -> ThinChoice[VersionRef]:
    """Return the next versions of a domain to thin for its quota, the oldest first, never a page's newest.

    after: continue after this version.  read_until: as in `find_versions_to_thin`.
    """
    last = after or VersionRef(PageKey(b""), 0, datetime.min.replace(tzinfo=domain.registered_at.tzinfo))
    values = {"domain_id": domain.id, "most": OLDEST_CHUNK, "at": last.at, "key": last.key, "number": last.number}
    async with db.transaction() as connection:
        candidates = [VersionRef(*row) for row in await fetch_rows(connection, OLDEST, values)]
        keys = [each.key for each in candidates]
        needed = await read_needed_versions(connection, domain.id, keys, read_until=read_until)
    free = [each for each in candidates if each.number not in needed.get_versions(each.key)]
    unread = (each for each in candidates if each.number in needed.unread.get(each.key, ()))
    deferred_count = sum(each.number not in needed.unpublished.get(each.key, ()) for each in unread)
    return ThinChoice(free, deferred_count, candidates[-1] if candidates else None)


async def thin_versions(db: Database, domain: Domain, versions: Sequence[VersionRef]) -> ThinResult:
    """Delete the texts and headers of versions, and the bodies that no other version uses.

    Locks the domain for THIN_CHUNK versions at a time.
    """
    result = ThinResult()
    for first in range(0, len(versions), THIN_CHUNK):
        values = _build_choice_params(domain, versions[first : first + THIN_CHUNK])
        async with db.transaction() as connection:
            await connection.execute(PREFER_KEY_LOOKUPS)
            await connection.execute(LOCK, values)
            gone = await fetch_rows(connection, THIN, values)
            swept = await fetch_rows(connection, SWEEP, values | {"digests": list({digest for digest, _ in gone})})
        freed_bytes = sum(size for _, size in gone) + sum(size for (size,) in swept)
        result += ThinResult(versions=len(gone), bodies=len(swept), freed_bytes=freed_bytes)
    return result


async def preview_thinning(db: Database, domain: Domain, versions: Sequence[VersionRef]) -> ThinResult:
    """Return at least what `thin_versions` would delete: a body counts only if all versions with it are thinned."""
    if not versions:
        return ThinResult()
    row = await fetch_row(db, PREVIEW_THINNING, _build_choice_params(domain, versions))
    return ThinResult(versions=row[0], bodies=row[2], freed_bytes=int(row[1] + row[3])) if row else ThinResult()


async def sweep_bodies(db: Database, domain: Domain, *, after: bytes) -> tuple[ThinResult, bytes | None]:
    """Delete unused bodies of a domain, in the order of their digests.

    Check BODIES_CHUNK bodies after the digest `after`. Return what was deleted, and the last digest checked (None at
    the end).
    """
    values: dict[str, Any] = {"domain_id": domain.id, "after": after, "most": BODIES_CHUNK}
    async with db.transaction() as connection:
        await connection.execute(PREFER_KEY_LOOKUPS)
        digests = [digest for (digest,) in await fetch_rows(connection, DIGESTS, values)]
        lost = [digest for (digest,) in await fetch_rows(connection, LOST, values | {"digests": digests})]
    swept = []
    if lost:  # rare, so the domain is usually not locked
        async with db.transaction() as connection:
            await connection.execute(PREFER_KEY_LOOKUPS)
            await connection.execute(LOCK, values)
            swept = await fetch_rows(connection, SWEEP, values | {"digests": lost})
    return ThinResult(bodies=len(swept), freed_bytes=sum(size for (size,) in swept)), digests[-1] if digests else None


async def compute_stored_bytes(db: Database, domain: Domain) -> int:
    """Return the compressed size of a domain's texts, headers and bodies, in bytes."""
    return await fetch_number(db, SIZE, {"domain_id": domain.id})


async def read_needed_versions(
    connection: Connection, domain_id: int, keys: Iterable[bytes], *, read_until: int | None
) -> NeededVersions:
    """Return the versions of changes that are unread or not in the feed yet, and the version before each.

    read_until: the lowest cursor of the readers of changes; None without readers.
    """
    until = 2**62 if read_until is None else read_until
    values = {"domain_id": domain_id, "keys": list(set(keys)), "read_until": until}
    unread: dict[bytes, set[int]] = {}
    unpublished: dict[bytes, set[int]] = {}
    for key, version, is_published in await fetch_rows(connection, NEEDED_VERSIONS, values):
        (unread if is_published else unpublished).setdefault(key, set()).update({version, version - 1})
    return NeededVersions(unread, unpublished)


def _build_choice_params(domain: Domain, versions: Sequence[VersionRef]) -> dict[str, Any]:
    keys, numbers = [name.key for name in versions], [name.number for name in versions]
    return {"domain_id": domain.id, "keys": keys, "numbers": numbers}
