"""Estimates of the space that versions take and that pruning would free, from a sample of the domain's pages.

Keys are hashes of URLs, so the pages with the lowest keys are a random sample, and the highest of these keys gives an
estimate of the number of pages. Source: Bar-Yossef, Jayram, Kumar, Sivakumar, Trevisan, "Counting distinct elements in
a data stream", RANDOM 2002.
"""

from typing import Any

from msgspec import Struct

from crawler.core.domain import Domain
from crawler.core.retention import DatedVersion, select_stored_versions
from crawler.store.database import PREFER_KEY_LOOKUPS, Database
from crawler.store.retention.versions import read_needed_versions
from crawler.store.rows import fetch_rows

SAMPLE_SIZE = 200  # pages; smaller domains are measured exactly
KEYS = 2**128  # number of possible keys
# The size of a body is divided among the versions that share it, of which up to a hundred are counted.
VERSIONS = """
    SELECT p.key, p.version, s.last_visit_at, v.number, v.at,
           pg_column_size(v.text) + pg_column_size(v.headers)
           + coalesce(pg_column_size(c.data)::float8
                      / (SELECT count(*) FROM (SELECT FROM snapshot o
                                                WHERE o.domain_id = %(domain_id)s AND o.body_digest = v.body_digest
                                                  AND o.is_stored LIMIT 100) sharing), 0)
      FROM (SELECT key, version FROM page WHERE domain_id = %(domain_id)s AND version > 0
             ORDER BY key LIMIT %(sample)s) p
      JOIN domain_state s ON s.domain_id = %(domain_id)s
      JOIN snapshot v ON v.domain_id = %(domain_id)s AND v.key = p.key AND v.is_stored
      LEFT JOIN content c ON c.domain_id = %(domain_id)s AND c.digest = v.body_digest
     ORDER BY p.key, v.number
"""


class SizeEstimate(Struct, frozen=True):
    """The bytes of a domain's texts, headers and bodies, and those that pruning by its settings would free.

    is_exact: all pages were read instead of a sample.
    """

    stored_bytes: float
    freeable_bytes: float
    is_exact: bool


async def estimate_size(db: Database, domain: Domain, *, read_until: int | None) -> SizeEstimate:
    """Estimate the space of a domain of any size from at most 200 of its pages, taking its quota into account.

    read_until: the lowest cursor of the readers of the change feed; None without readers.
    """
    values: dict[str, Any] = {"domain_id": domain.id, "sample": SAMPLE_SIZE}
    async with db.transaction() as connection:
        await connection.execute(PREFER_KEY_LOOKUPS)
        rows = await fetch_rows(connection, VERSIONS, values)
        keys = sorted({key for key, *_ in rows})
        needed = await read_needed_versions(connection, domain.id, keys, read_until=read_until)
    by_page: dict[bytes, list[tuple[Any, ...]]] = {}
    for key, *version in rows:
        by_page.setdefault(key, []).append(tuple(version))
    stored_total = freeable_total = newest_bytes = 0.0
    for key, versions in by_page.items():
        newest, now = versions[0][:2]
        past = [DatedVersion(number=number, at=at) for _, _, number, at, _ in versions]
        retained = select_stored_versions(past, domain.settings, now=now, needed=needed.get_versions(key) | {newest})
        stored_total += sum(size for *_, size in versions)
        freeable_total += sum(size for _, _, number, _, size in versions if number not in retained)
        newest_bytes += sum(size for _, _, number, _, size in versions if number == newest)
    is_exact, scale = len(keys) < SAMPLE_SIZE, 1.0
    if not is_exact:  # estimate the number of pages from the lowest keys
        scale = (SAMPLE_SIZE - 1) * KEYS / (int.from_bytes(keys[-1]) + 1) / len(keys)
    if domain.settings.quota is not None:
        excess = stored_total - max(newest_bytes, domain.settings.quota / scale)
        freeable_total = max(freeable_total, excess)
    return SizeEstimate(stored_bytes=scale * stored_total, freeable_bytes=scale * freeable_total, is_exact=is_exact)
