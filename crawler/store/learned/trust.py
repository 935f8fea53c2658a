"""How far a domain's validators can be believed, by group of pages: read, counted at a hand-out, learnt at a record."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from crawler.core.domain import Domain
from crawler.core.validators import (
    NO_TRUST,
    WHOLE_DOMAIN,
    Trust,
    Validator,
    ValidatorStats,
    domain_trust_after,
    trust_after,
)
from crawler.core.visit.visit import Visit
from crawler.store.database import Connection, Database

GET = "SELECT prior_no, revisits, challenges, stats FROM domain_trust WHERE domain_id = %s"
COUNT = """
    INSERT INTO domain_trust (domain_id, prior_no, revisits)
    SELECT %(domain_id)s, * FROM unnest(%(groups)s::smallint[], %(revisits)s::int[])
    ON CONFLICT (domain_id, prior_no) DO UPDATE SET revisits = domain_trust.revisits + excluded.revisits
"""
PUT = """
    INSERT INTO domain_trust (domain_id, prior_no, revisits, challenges, stats)
    SELECT %(domain_id)s, *
      FROM unnest(%(groups)s::smallint[], %(revisits)s::int[], %(challenges)s::int[], %(stats)s::jsonb[])
    ON CONFLICT (domain_id, prior_no) DO UPDATE
       SET revisits = excluded.revisits, challenges = excluded.challenges, stats = excluded.stats
"""
RATINGS = """
    SELECT template, validator, rating, changes_seen, missed, unchanged, flapped, challenges FROM report_trust
     WHERE domain_id = %s ORDER BY template, validator
"""

Trusts = Mapping[int, Trust]  # by the number of the group; WHOLE has the domain's revisits


@dataclass(frozen=True, slots=True)
class TrustRow:
    """A row of report_trust, which says what its columns mean."""

    template: str
    validator: Validator
    rating: str
    changes_seen: float
    missed: float
    unchanged: float
    flapped: float
    challenges: int


async def trusts_of(connection: Connection, domain_id: int) -> Trusts:
    """The trust of each group in which something was learnt, by the group's number."""
    found = await (await connection.execute(GET, (domain_id,))).fetchall()
    return {no: Trust(revisits, challenges, _stats(stats)) for no, revisits, challenges, stats in found}


async def count_revisits(connection: Connection, domain_id: int, groups: Iterable[int]) -> None:
    """Count pages with validators that are handed out. groups: of each of them, once for each page."""
    counts = Counter(groups)
    if counts:
        counts[WHOLE_DOMAIN] = counts.total()
        await connection.execute(
            COUNT, {"domain_id": domain_id, "groups": list(counts), "revisits": list(counts.values())}
        )


async def learn_of(connection: Connection, domain_id: int, visits: Sequence[Visit]) -> None:
    """Take in what a batch of visits says of the groups' validators."""
    before = await trusts_of(connection, domain_id)
    after = dict(before)
    for visit in visits:
        trust = after.get(visit.target.group, NO_TRUST)
        after[visit.target.group] = trust_after(trust, visit)
        after[WHOLE_DOMAIN] = domain_trust_after(after.get(WHOLE_DOMAIN, NO_TRUST), visit, trust)
    news = {no: trust for no, trust in after.items() if trust != before.get(no, NO_TRUST)}
    if news:
        await connection.execute(
            PUT,
            {
                "domain_id": domain_id,
                "groups": list(news),
                "revisits": [trust.revisits for trust in news.values()],
                "challenges": [trust.challenges for trust in news.values()],
                "stats": [Jsonb(_plain(trust)) for trust in news.values()],
            },
        )


async def trust_rows(db: Database, domain: Domain) -> list[TrustRow]:
    """The rating of each group's validators, for a report."""
    async with db.transaction() as connection, connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(RATINGS, (domain.id,))
        return [TrustRow(**row | {"validator": Validator(row["validator"])}) for row in await cursor.fetchall()]


def _stats(stored: dict[str, Any]) -> dict[Validator, ValidatorStats]:
    return {Validator(kind): ValidatorStats(**figures) for kind, figures in stored.items()}


def _plain(trust: Trust) -> dict[str, Any]:
    return {kind.value: asdict(record) for kind, record in trust.stats.items()}
