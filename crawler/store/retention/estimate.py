"""What a domain's versions take, and what its settings would free, told from a sample of its pages.

Keys are hashes of URLs, so that the pages with the lowest keys are a sample like any other, and how far up they reach
tells how many pages there are. Source: Bar-Yossef, Jayram, Kumar, Sivakumar, Trevisan, "Counting distinct elements in a
data stream", RANDOM 2002.
"""

from dataclasses import dataclass
from typing import Any

from crawler.core.domain import Domain
from crawler.core.retention import DatedVersion, select_stored_versions
from crawler.store.database import PREFER_KEY_LOOKUPS, Database
from crawler.store.retention.versions import read_needed_versions
from crawler.store.rows import fetch_rows

SAMPLE_SIZE = 200  # pages; a domain with fewer is told exactly
KEYS = 2**128
# A body is counted for each version that says it by a part: as many as say it, of which a hundred are counted.
VERSIONS = """
    SELECT p.key, p.version, s.last_visit_at, v.number, v.at,
           pg_column_size(v.text) + pg_column_size(v.headers)
           + coalesce(pg_column_size(c.data)::float8
                      / (SELECT count(*) FROM (SELECT FROM snapshot o
                                                WHERE o.domain_id = %(domain_id)s AND o.body_digest = v.body_digest
                                                  AND o.is_stored LIMIT 100) said), 0)
      FROM (SELECT key, version FROM page WHERE domain_id = %(domain_id)s AND version > 0
             ORDER BY key LIMIT %(sample)s) p
      JOIN domain_state s ON s.domain_id = %(domain_id)s
      JOIN snapshot v ON v.domain_id = %(domain_id)s AND v.key = p.key AND v.is_stored
      LEFT JOIN content c ON c.domain_id = %(domain_id)s AND c.digest = v.body_digest
     ORDER BY p.key, v.number
"""


@dataclass(frozen=True, slots=True)
class SizeEstimate:
    """What the texts and bodies of a domain take, and what of it pruning would free by the settings, in bytes.

    is_exact: all pages were read, and no sample of them.
    """

    stored_bytes: float
    freeable_bytes: float
    is_exact: bool


async def estimate_size(db: Database, domain: Domain, *, read_until: int | None) -> SizeEstimate:
    """What a domain takes, and would take by its settings; however large it is, by reading 200 of its pages.

    read_until: the lowest cursor of whoever must read all changes. The quota is taken into account.
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
    scale = _estimate_pages(keys) / len(keys) if keys else 1.0
    if domain.settings.quota is not None:
        freeable_total = max(
            freeable_total, min(stored_total - newest_bytes, stored_total - domain.settings.quota / scale)
        )
    return SizeEstimate(
        stored_bytes=scale * stored_total, freeable_bytes=scale * freeable_total, is_exact=len(keys) < SAMPLE_SIZE
    )


def _estimate_pages(keys: list[bytes]) -> float:
    """How many pages a domain has whose lowest keys are these: all, or as many as reach so far up."""
    if len(keys) < SAMPLE_SIZE:
        return float(len(keys))
    return (SAMPLE_SIZE - 1) * KEYS / (int.from_bytes(keys[-1]) + 1)
