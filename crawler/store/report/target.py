"""A page as the Target of a fetch outside a crawl."""

from crawler.core.domain import Domain
from crawler.core.freshness.estimates import PRIOR, RateEstimate
from crawler.core.http.urls import Url, compute_page_key
from crawler.core.page.snapshot import Version
from crawler.core.visit.state import State
from crawler.core.visit.visit import Target
from crawler.store.database import Database
from crawler.store.rows import decode_fingerprint, fetch_dict

TARGET_PAGE = """
    SELECT f.state, f.depth, g.a + p.rate_a AS a, g.b + p.rate_b AS b, p.received_bytes, p.status, p.reason,
           p.failures, p.soft_errors, p.withheld_since, p.last_visit_at, p.last_good_at,
           p.version AS number, p.body_digest, p.text_digest, p.main_digest, p.shape_digest, p.fingerprint,
           p.is_rendered
      FROM page p
      JOIN frontier f ON f.domain_id = p.domain_id AND f.key = p.key
      JOIN prior g ON g.domain_id = p.domain_id AND g.no = p.prior_no
     WHERE p.domain_id = %(domain_id)s AND p.key = %(key)s
"""
VERSION_COLUMNS = ("number", "body_digest", "text_digest", "main_digest", "shape_digest", "is_rendered")


async def read_target(db: Database, domain: Domain, url: Url) -> Target:
    """Return the page of a URL as a target without links and validators.

    If there is no such page, return an unfetched one.
    """
    key = compute_page_key(url)
    row = await fetch_dict(db, TARGET_PAGE, {"domain_id": domain.id, "key": key})
    if row is None:
        return Target(key=key, url=url, depth=0, state=State.UNFETCHED, rate_estimate=PRIOR)
    version_values = {name: row.pop(name) for name in VERSION_COLUMNS}
    version = Version(**version_values, fingerprint=decode_fingerprint(row.pop("fingerprint")))
    row |= {"state": State(row["state"]), "rate_estimate": RateEstimate(row.pop("a"), row.pop("b"))}
    return Target(key, url, version=version if version.number else None, **row)
