"""How far a domain's validators can be believed, by group of pages: read, counted at a hand-out, learnt at a record."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

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
from crawler.store.rows import excluded, fetch_rows, fetch_values, to_columns, unnest

GET = "SELECT prior_no, revisits, challenges, stats FROM domain_trust WHERE domain_id = %s"
COUNT = f"""
    INSERT INTO domain_trust (domain_id, prior_no, revisits)
    SELECT %(domain_id)s, * FROM {unnest("prior_no smallint, revisits int")}
    ON CONFLICT (domain_id, prior_no) DO UPDATE SET revisits = domain_trust.revisits + excluded.revisits
"""  # noqa: S608  only our own columns are put in
TRUST_COLUMNS = "prior_no smallint, revisits int, challenges int, stats jsonb"
PUT = f"""
    INSERT INTO domain_trust (domain_id, prior_no, revisits, challenges, stats)
    SELECT %(domain_id)s, * FROM {unnest(TRUST_COLUMNS)}
    ON CONFLICT (domain_id, prior_no) DO UPDATE SET {excluded(("revisits", "challenges", "stats"))}
"""  # noqa: S608  likewise
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
    found = await fetch_rows(connection, GET, (domain_id,))
    return {
        no: Trust(revisits, challenges, {Validator(kind): ValidatorStats(**each) for kind, each in stats.items()})
        for no, revisits, challenges, stats in found
    }


async def count_revisits(connection: Connection, domain_id: int, groups: Iterable[int]) -> None:
    """Count pages with validators that are handed out. groups: of each of them, once for each page."""
    counts = Counter(groups)
    if counts:
        counts[WHOLE_DOMAIN] = counts.total()
        values = {"domain_id": domain_id, "prior_no": list(counts), "revisits": list(counts.values())}
        await connection.execute(COUNT, values)


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
        stats = ({kind.value: asdict(each) for kind, each in trust.stats.items()} for trust in news.values())
        rows = [
            (no, trust.revisits, trust.challenges, Jsonb(each))
            for (no, trust), each in zip(news.items(), stats, strict=True)
        ]
        await connection.execute(PUT, to_columns(TRUST_COLUMNS, rows) | {"domain_id": domain_id})


async def trust_rows(db: Database, domain: Domain) -> list[TrustRow]:
    """The rating of each group's validators, for a report."""
    return await fetch_values(db, TrustRow, RATINGS, (domain.id,))
