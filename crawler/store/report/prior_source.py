"""Where the prior of a page comes from: the smallest group around it of which any page was looked at again."""

from dataclasses import dataclass
from enum import StrEnum

from crawler.core.domain import Domain
from crawler.core.freshness import ALL_KINDS, ELSEWHERE, PRIOR, Belief, site_kind
from crawler.store.database import Connection
from crawler.store.domains import kind_prior

# Pages that the last plan may have learnt from; a scan of the domain's pages: only people ask this.
LOOKED_AT = """
    SELECT count(*) FILTER (WHERE p.prior_no = %(no)s), count(*)
      FROM domain_plan l
      JOIN page p ON p.domain_id = %(domain_id)s AND (p.evidence_a > 0 OR p.evidence_b > 0)
                 AND p.first_seen_at <= l.planned_at
     WHERE l.domain_id = %(domain_id)s
"""


class PriorLevel(StrEnum):
    """The group that a prior was mostly learnt from."""

    TEMPLATE = "template"
    DOMAIN = "domain"
    KIND = "kind"  # of site
    ALL = "all"  # domains
    NOTHING = "nothing"  # was known of any


@dataclass(frozen=True, slots=True)
class PriorSource:
    """What a page's prior comes from.

    kind: of the domain's site, empty for none.  pages, domains: that the level has, of those that were looked at again.
    """

    level: PriorLevel
    kind: str
    pages: int
    domains: int


async def prior_source(connection: Connection, domain: Domain, prior: Belief, *, no: int, template: str) -> PriorSource:
    """Where a prior of the domain comes from. no, template: of its group."""
    kind = site_kind(domain.authority)
    row = await (await connection.execute(LOOKED_AT, {"domain_id": domain.id, "no": no})).fetchone()
    assert row is not None
    of_template, of_domain = row
    if of_template and template != ELSEWHERE:
        return PriorSource(PriorLevel.TEMPLATE, kind, of_template, 1)
    if of_domain:
        return PriorSource(PriorLevel.DOMAIN, kind, of_domain, 1)
    learnt = await kind_prior(connection, kind)
    if prior == PRIOR or not learnt.domains:
        return PriorSource(PriorLevel.NOTHING, kind, 0, 0)
    level = PriorLevel.ALL if learnt.kind == ALL_KINDS else PriorLevel.KIND
    return PriorSource(level, kind, round(learnt.pages), learnt.domains)
