"""A page as a Target by its URL, for a look outside of the crawl."""

from crawler.core.domain import Domain
from crawler.core.freshness import PRIOR, Belief
from crawler.core.http import Url, key_of
from crawler.core.page import Version
from crawler.core.visit.visit import State, Target
from crawler.store.columns import from_signed
from crawler.store.database import Database

ONE = """
    SELECT f.state, f.depth, g.a + p.evidence_a, g.b + p.evidence_b, p.received_bytes, p.status, p.reason, p.failures,
           p.soft_errors, p.withheld_since, p.last_look_at, p.last_good_at,
           p.version, p.body_digest, p.text_digest, p.main_digest, p.shape_digest, p.fingerprint,
           p.is_rendered
      FROM page p
      JOIN frontier f ON f.domain_id = p.domain_id AND f.key = p.key
      JOIN prior g ON g.domain_id = p.domain_id AND g.no = p.prior_no
     WHERE p.domain_id = %s AND p.key = %s
"""


async def target_of(db: Database, domain: Domain, url: Url) -> Target:
    """The page of that URL without its links; one that was never seen if it is not known. No validators are sent."""
    key = key_of(url)
    async with db.transaction() as connection:
        row = await (await connection.execute(ONE, (domain.id, key))).fetchone()
    if row is None:
        return Target(key=key, url=url, depth=0, state=State.NEW, belief=PRIOR)
    state, depth, a, b, received_bytes, status, reason, failures, soft_errors, *rest = row
    withheld_since, last_look_at, last_good_at, *said = rest
    number, body, text, main, shape, bits, is_rendered = said
    return Target(
        key=key,
        url=url,
        depth=depth,
        state=State(state),
        belief=Belief(a, b),
        received_bytes=received_bytes,
        version=Version(
            number=number,
            body_digest=body,
            text_digest=text,
            main_digest=main,
            shape_digest=shape,
            fingerprint=from_signed(bits),
            is_rendered=is_rendered,
        )
        if number
        else None,
        status=status,
        reason=reason,
        failures=failures,
        soft_errors=soft_errors,
        withheld_since=withheld_since,
        last_look_at=last_look_at,
        last_good_at=last_good_at,
    )
