"""Estimated sizes of domains, compared with the actual ones."""

import pytest
from msgspec.structs import replace

from crawler.core.domain import Domain
from crawler.prune import enforce_quota, estimate_pruning, prune_domain
from crawler.store import domains
from crawler.store.database import Database
from crawler.store.retention import versions
from tests.engine.crawls import rows
from tests.prune.test_prune import NOW, keep
from tests.store.conftest import START
from tests.store.many_versions import DAY, PAGES, live
from tests.store.populated import Bulk, add

# Four versions of each page with different lengths, two of which share a body.
FILL = """
    WITH pages AS (
        UPDATE page SET version = 4 WHERE domain_id = %(id)s AND version > 0 RETURNING domain_id, key),
    versions AS (
        INSERT INTO snapshot (domain_id, key, number, at, title, language, content_type, text, body_digest, text_digest,
                              main_digest, fingerprint)
        SELECT p.domain_id, p.key, n, %(at)s::timestamptz + n * interval '1 day', '', 'en', 'text/html',
               (SELECT string_agg(md5(p.key::text || n || w), ' ')
                  FROM generate_series(1, 1 + get_byte(p.key, 15) %% 16) w),
               decode(md5(p.key::text || n / 2), 'hex'), decode(md5(p.key::text || n), 'hex'), '', 1
          FROM pages p CROSS JOIN generate_series(1, 4) n RETURNING domain_id, body_digest)
    INSERT INTO content (domain_id, digest, encoding, body_bytes, data)
    SELECT v.domain_id, v.body_digest, 'identity', 1920,
           (SELECT string_agg(sha256(v.body_digest || w::text::bytea), '') FROM generate_series(1, 60) w)
      FROM (SELECT DISTINCT domain_id, body_digest FROM versions) v
"""


@pytest.mark.soak
async def test_two_hundred_pages_give_the_approximate_size_of_a_large_domain(db: Database, domain: Domain) -> None:
    domain = await keep(db, domain, keep_versions=1, keep_daily=DAY, keep_weekly=DAY, keep_monthly=DAY)
    await add(db, domain, Bulk(1500), at=START)
    async with db.transaction() as connection:
        await connection.execute(FILL, {"id": domain.id, "at": START})
        await connection.execute(
            "UPDATE domain_state SET last_visit_at = %s WHERE domain_id = %s", (START + 90 * DAY, domain.id)
        )

    found = await estimate_pruning(db, domain)
    takes = await versions.compute_stored_bytes(db, domain)
    done = await prune_domain(db, domain, at=NOW)

    assert not found.is_exact
    assert abs(found.stored_bytes - takes) < takes / 5
    assert abs(found.freeable_bytes - done.freed_bytes) < done.freed_bytes / 4


@pytest.mark.soak
async def test_a_small_domain_is_measured_exactly_and_pruning_frees_the_estimate(db: Database, domain: Domain) -> None:
    domain = await keep(db, domain)
    await live(db, domain, range(45))

    found = await estimate_pruning(db, domain)
    takes = await versions.compute_stored_bytes(db, domain)
    done = await prune_domain(db, domain, at=NOW)

    assert found.is_exact
    assert abs(found.stored_bytes - takes) < takes / 100
    assert abs(found.freeable_bytes - done.freed_bytes) < done.freed_bytes / 20
    assert (await estimate_pruning(db, domain)).freeable_bytes == 0


async def test_only_a_domain_beyond_its_quota_is_pruned(db: Database, domain: Domain) -> None:
    domain = await keep(db, domain, keep_versions=1000)
    await live(db, domain, range(16))
    takes = await versions.compute_stored_bytes(db, domain)
    assert await enforce_quota(db, domain) is None
    roomy = await domains.change_settings(db, domain, replace(domain.settings, quota=takes), at=START)
    assert await enforce_quota(db, roomy) is None
    narrow = await domains.change_settings(db, domain, replace(domain.settings, quota=takes // 2), at=START)
    told = await estimate_pruning(db, narrow)
    assert abs(told.freeable_bytes - takes / 2) < takes / 50

    done = await enforce_quota(db, narrow)

    assert done is not None
    assert done.excess_bytes == 0
    assert takes // 3 < done.stored_bytes == await versions.compute_stored_bytes(db, domain) <= takes // 2
    assert await enforce_quota(db, narrow) is None
    tiny = await domains.change_settings(db, domain, replace(domain.settings, quota=1), at=START)
    done = await enforce_quota(db, tiny)
    assert done is not None
    assert done.excess_bytes == done.stored_bytes - 1 > 0
    assert await rows(db, "SELECT count(*) FROM snapshot WHERE is_stored") == [(PAGES + 1,)]
