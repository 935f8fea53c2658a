"""The weights of discovery and revisits of a domain: they determine the share of requests of each."""

import pytest
from msgspec.structs import replace

from crawler.core.domain import Domain
from crawler.core.opic.order import Ordering
from crawler.core.visit.state import State
from crawler.store import domains
from crawler.store.database import Database
from tests.store.conftest import START
from tests.store.frontier.test_overdue import DAY, NOW
from tests.store.made_up import take, targets
from tests.store.populated import Bulk, add

SLOTS = 40
KNOWN, NEW = Bulk(200, a=4.0, b=40.0), Bulk(200, first=1000)
MAKE_DUE = "UPDATE frontier SET due_at = %s WHERE domain_id = %s AND key = ANY(%s)"
MAKE_NEW = """
    WITH fresh AS (UPDATE page SET version = 0, visits = 0, last_good_at = NULL, last_visit_at = NULL
                    WHERE domain_id = %(domain)s AND key = ANY(%(keys)s))
    UPDATE frontier SET state = 'unfetched', due_at = NULL, rank = 8 WHERE domain_id = %(domain)s AND key =
    ANY(%(keys)s)
"""


@pytest.mark.parametrize(
    ("weights", "new"),
    [((10, 0), range(40, 41)), ((0, 10), range(1)), ((3, 1), range(26, 41)), ((1, 3), range(15))],
)
async def test_discovery_and_revisits_share_requests_by_weight(
    db: Database, domain: Domain, weights: tuple[float, float], new: range
) -> None:
    ordering = Ordering(discovery_weight=weights[0], revisit_weight=weights[1])
    await domains.change_settings(db, domain, replace(domain.settings, ordering=ordering), at=START)
    known = await add(db, domain, KNOWN, at=START)
    unfetched = await add(db, domain, NEW, at=START)
    async with db.transaction() as connection:
        await connection.execute(MAKE_DUE, (NOW - DAY, domain.id, known))
        await connection.execute(MAKE_NEW, {"domain": domain.id, "keys": unfetched})
    lease = await take(db, NOW)
    async with db.transaction() as connection:  # the root, which would come first with any weights
        await connection.execute("DELETE FROM frontier WHERE request_reason <> 0")

    handed = await targets(db, lease, NOW, most=SLOTS)

    assert len(handed) == SLOTS
    assert sum(target.state is State.UNFETCHED for target in handed) in new
