"""A domain of any size after a month of crawling: two thirds of its pages are fetched, at all change rates, some due.

The domain is written with SQL alone: a million pages take half a minute. Cash is conserved. The tables are vacuumed, as
autovacuum does within a month: otherwise the first reader would set hint bits on all rows, which no claim in a real
domain does.
"""

from datetime import datetime, timedelta

from crawler.core.domain import Lease
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.core.opic.opic import ENDOWMENT
from crawler.core.opic.order import RANK_STEPS
from crawler.store import claim, domains, record
from crawler.store.database import Database

TERM = timedelta(hours=1)
# All values depend on the number of the page. Keys only have to be 16 bytes, distributed like hashes.
PAGES = """
    INSERT INTO page (domain_id, key, url, first_seen_at, etag, received_bytes, rate_a, rate_b, status, visits,
                      last_visit_at, last_good_at, version, body_digest, text_digest, main_digest, shape_digest,
                      fingerprint)
    SELECT %(id)s, decode(md5(n::text), 'hex'), %(root)s || 's' || n %% 40 || '/p' || n, %(at)s,
           CASE WHEN known THEN '"v' || n || '"' END, 20000, CASE WHEN known THEN n %% 7 / 2.0 ELSE 0 END,
           CASE WHEN known THEN 1 + n %% 211 ELSE 0 END, CASE WHEN known THEN 200 END, known::int * 3,
           CASE WHEN known THEN seen END, CASE WHEN known THEN seen END, known::int, digest, digest, digest, digest, n
      FROM (SELECT n, n %% 3 > 0 AS known, CASE WHEN n %% 3 > 0 THEN decode(md5('b' || n), 'hex') END AS digest,
                   %(at)s::timestamptz - (n * 7919::bigint %% 30011) / 1000.0 * interval '1 day' AS seen
              FROM generate_series(1, %(pages)s) n) x
"""
FRONTIER = """
    INSERT INTO frontier (domain_id, key, state, rank, depth, due_at)
    SELECT %(id)s, decode(md5(n::text), 'hex'), CASE WHEN n %% 3 > 0 THEN 'fetched' ELSE 'unfetched' END,
           CASE WHEN n %% 3 > 0 THEN 0 ELSE 1 + n %% (2 * %(steps)s - 1) END, 3,
           CASE WHEN n %% 3 > 0
                THEN %(at)s::timestamptz + ((n * 6101::bigint %% 30013) / 1000.0 - 1) * interval '1 day' END
      FROM generate_series(1, %(pages)s) n
"""
CASH = """
    INSERT INTO cash (domain_id, key, pool, net, history, clock)
    SELECT %(id)s, decode(md5(n::text), 'hex'), (n %% 3 > 0)::int,
           (1 + n %% (2 * %(steps)s - 1)) * (%(endowment)s / %(steps)s), (n %% 997) * %(endowment)s::float8, 0
      FROM generate_series(1, %(pages)s) n
"""
LINKS = """
    INSERT INTO page_links (domain_id, key, targets, external_domains, external_link_counts)
    SELECT %(id)s, decode(md5(n::text), 'hex'), decode(repeat(md5((n / 2 + 1)::text), 30), 'hex'), '{}', '{}'
      FROM generate_series(1, %(pages)s) n WHERE n %% 3 > 0
"""
ACCOUNT = """
    UPDATE domain_state SET tracked = tracked + %(pages)s, dormant = dormant - (SELECT sum(net) FROM cash
                            WHERE domain_id = %(id)s AND octet_length(key) = 16 AND clock = 0 AND history >= 0)
     WHERE domain_id = %(id)s
"""
POOLS = """
    UPDATE pool SET pages = pages + x.many
      FROM (SELECT pool, count(*) AS many FROM cash WHERE domain_id = %(id)s AND history >= 0 GROUP BY pool) x
     WHERE domain_id = %(id)s AND pool.pool = x.pool
"""


async def aged(db: Database, name: str, *, pages: int, at: datetime) -> Lease:
    """Register a domain, add its pages, and lease it."""
    domain = await domains.register(db, Authority(name), scheme="http", domain_settings=DomainSettings(), at=at)
    lease = await claim.claim(db, at=at, holder="bench", term=TERM, only=[domain])
    assert lease is not None
    while await record.drain_inbox(db, lease, at=at):
        pass
    values = {
        "id": domain.id,
        "root": domain.root,
        "at": at,
        "pages": pages,
        "steps": RANK_STEPS,
        "endowment": ENDOWMENT,
    }
    for statement in (PAGES, FRONTIER, CASH, LINKS, ACCOUNT, POOLS):
        async with db.transaction() as connection:
            await connection.execute(statement.encode(), values)
    async with db.pool.connection() as connection:
        await connection.set_autocommit(True)  # VACUUM cannot run in a transaction
        await connection.execute("VACUUM (ANALYZE) page, frontier, cash, page_links")
        await connection.set_autocommit(False)
    return lease
