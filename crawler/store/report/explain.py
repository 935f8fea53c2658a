"""Everything that the store knows about one URL, whether or not it is a page of the domain."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from crawler.core.budget.cost import RequestKind
from crawler.core.change.change import Change
from crawler.core.domain import Domain
from crawler.core.freshness.estimates import PRIOR, ChangeMagnitudes, RateEstimate
from crawler.core.freshness.prior import ALL_KINDS, OTHER_TEMPLATES, classify_site
from crawler.core.freshness.visit_terms import CrawlDefaults, RequestReason, VisitTerms
from crawler.core.http.response import NO_VALIDATORS, Validators
from crawler.core.http.urls import Url, compute_page_key
from crawler.core.opic.opic import ENDOWMENT
from crawler.core.opic.order import RANK_STEPS
from crawler.core.validator_trust import NO_TRUST, Validator, ValidatorTrust
from crawler.core.visit.state import State
from crawler.store.database import Connection, Database
from crawler.store.domains import read_kind_prior
from crawler.store.frontier import ScoringContext, read_scoring_context
from crawler.store.report.expressions import (
    FRESHNESS,
    IMPORTANCE,
    PAGE_TABLES,
    POPULARITY,
    RANKED_TABLES,
    URL_SHARE,
    WEIGHT,
)
from crawler.store.report.url_lists import SourceReport, list_signal_sources
from crawler.store.rows import fetch_dicts, fetch_number, fetch_rows, fetch_values

MAX_VISITS = 10
MAX_LINKS = 10


ORDER = "(SELECT o.discovery_order FROM domain o WHERE o.id = %(domain_id)s)"


def _build_order_expression(page: str, pool: str) -> str:
    """Return an SQL expression by which the unfetched pages of both pools are ordered, highest first.

    page, pool: SQL aliases of tables frontier and pool. The rank contains only the net cash, so the dividend of the
    pool is added. Orders without cash use the rank alone.
    """
    return f"""
        CASE WHEN {ORDER} IN ('breadth', 'depth') THEN {page}.rank
             ELSE ({page}.rank + {RANK_STEPS} * (1 - {URL_SHARE}) * {pool}.dividend / {ENDOWMENT}::float8)
                  * CASE WHEN {page}.boosted AND {ORDER} = 'opic'
                         THEN (SELECT o.boost_factor FROM domain o WHERE o.id = %(domain_id)s) ELSE 1 END END
    """  # noqa: S608  only our own expressions are inserted


PAGE = f"""
    SELECT p.url, f.state, f.due_at, f.request_reason, f.depth, f.rank, f.boosted, f.url_score,
           coalesce(u.value, {IMPORTANCE}) AS importance,
           visit_importance(coalesce(u.value, {WEIGHT}, 1), f.state = 'unfetched', p.announces, g.first_visits,
                            g.novelty) AS visit_importance,
           p.announces, {POPULARITY} AS popularity, {FRESHNESS} AS freshness, c.net + q.dividend AS cash, c.history,
           c.clock, s.total_cash - s.dormant AS circulating, s.clock AS domain_clock, g.a + p.rate_a AS rate_a,
           g.b + p.rate_b AS rate_b, g.a AS prior_a, g.b AS prior_b, p.magnitude_total, p.magnitude_changes,
           g.magnitude AS group_magnitude, p.signals,
           activity_ahead(s.activity_at, s.activity_ahead, p.last_good_at) AS activity_ahead,
           g.template, g.deferred_until IS NOT NULL AS is_template_deferred,
           p.prior_no, p.etag, p.last_modified, p.status, p.reason, p.failures, p.withheld_since, p.visits, p.changes,
           p.first_seen_at, p.last_visit_at, p.last_good_at, p.last_change_at, p.version, p.is_rendered,
           p.received_bytes, u.key IS NOT NULL AND p.version > 0 AS is_list,
           (SELECT t.url FROM page t WHERE t.domain_id = %(domain_id)s AND t.key = p.moved_to) AS moved_to,
           (SELECT t.url FROM page t WHERE t.domain_id = %(domain_id)s AND t.key = p.canonical) AS canonical,
           (SELECT count(*) FROM page t WHERE t.domain_id = %(domain_id)s AND t.canonical = p.key) AS duplicates,
           (SELECT n.title FROM snapshot n
             WHERE n.domain_id = %(domain_id)s AND n.key = p.key AND n.number = p.version) AS title,
           (SELECT octet_length(l.targets) / 16 FROM page_links l
             WHERE l.domain_id = %(domain_id)s AND l.key = p.key) AS outlinks,
           CASE WHEN f.state = 'unfetched' THEN
               (SELECT count(*)
                  FROM frontier b
                  JOIN pool o ON o.domain_id = %(domain_id)s AND o.pool = CASE WHEN b.boosted THEN 2 ELSE 0 END
                 WHERE b.domain_id = %(domain_id)s AND b.state = 'unfetched' AND b.due_at IS NULL
                   AND ({_build_order_expression("b", "o")}, f.key) > ({_build_order_expression("f", "q")}, b.key)) END
               AS ahead
      FROM {PAGE_TABLES}
     WHERE p.domain_id = %(domain_id)s AND p.key = %(key)s
"""  # noqa: S608  only our own expressions are inserted
# The importance that a page passes on along each of its links.
PASSED_IMPORTANCE = f"""
    {POPULARITY} * (
        SELECT coalesce((1 - o.virtual_page_share) * o.internal_link_weight
                        / nullif(o.internal_link_weight * (octet_length(l.targets) / 16)
                                 + o.external_link_weight * (SELECT coalesce(sum(n), 0)
                                                         FROM unnest(l.external_link_counts) n), 0), 0)
          FROM domain o WHERE o.id = %(domain_id)s)
"""  # noqa: S608  only our own expressions are inserted
# Gone pages link to nothing. A moved page does so only until the page that it moved to has been read.
STILL_LINKS = """
    f.state NOT IN ('gone', 'moved')
    OR f.state = 'moved' AND EXISTS (SELECT FROM page h
                                      WHERE h.domain_id = %(domain_id)s AND h.key = p.moved_to AND h.version = 0)
"""
# Scans all links of the domain; run only on a user's request. Keys have 16 bytes: matches at other offsets are chance.
LINKING_PAGES = f"""
    SELECT p.url, f.depth, f.state, octet_length(l.targets) / 16 AS outlinks, {IMPORTANCE} AS importance,
           {PASSED_IMPORTANCE} AS pays, count(*) OVER () AS links, min(f.depth) OVER () AS nearest,
           count(*) FILTER (WHERE {STILL_LINKS}) OVER () AS still
      FROM page_links l CROSS JOIN {RANKED_TABLES}
     WHERE l.domain_id = %(domain_id)s AND position(%(key)s IN l.targets) %% 16 = 1
       AND p.domain_id = %(domain_id)s AND p.key = l.key
     ORDER BY {PASSED_IMPORTANCE} DESC NULLS LAST, p.url LIMIT %(most)s
"""  # noqa: S608  the same
COUNT_REDIRECTS = "SELECT count(*) AS moved FROM page WHERE domain_id = %(domain_id)s AND moved_to = %(key)s"
# Rows of the inbox that concern this URL. A row that is partly applied is done with keys up to `after`.
WAITING = """
    SELECT DISTINCT CASE WHEN payload->'full' = 'true' THEN 'reread' ELSE kind END AS kind
      FROM inbox
     WHERE domain_id = %(domain_id)s AND coalesce(decode(payload->>'after', 'hex') < %(key)s, true)
       AND CASE kind WHEN 'refresh' THEN starts_with(%(url)s, payload->>'prefix')
                     WHEN 'seed' THEN payload->'urls' ? %(url)s
                     WHEN 'signal' THEN jsonb_path_exists(payload, '$.signals[*][0] ? (@ == $url)',
                                                          jsonb_build_object('url', %(url)s::text))
                     WHEN 'audit' THEN payload->'keys' ? encode(%(key)s, 'hex')
                     ELSE kind IN ('reprice', 'reorder') END
"""
DOMAIN = """
    SELECT greatest(%(at)s::timestamptz, s.last_visit_at) AS at, r.body AS robots, s.tracked
      FROM domain_state s LEFT JOIN robots r ON r.domain_id = s.domain_id
     WHERE s.domain_id = %(domain_id)s
"""
# Pages that the last plan may have learned from. Scans the pages of the domain; run only on a user's request.
COUNT_VISITED = """
    SELECT count(*) FILTER (WHERE p.prior_no = %(no)s), count(*)
      FROM domain_plan l
      JOIN page p ON p.domain_id = %(domain_id)s AND (p.rate_a > 0 OR p.rate_b > 0)
                 AND p.first_seen_at <= l.planned_at
     WHERE l.domain_id = %(domain_id)s
"""


class InboxKind(StrEnum):
    """A kind of request that waits in a domain's inbox for the next crawl and concerns a URL."""

    SEED = "seed"
    REFRESH = "refresh"
    REREAD = "reread"  # a refresh with a full recrawl, because settings of the domain have changed
    AUDIT = "audit"
    SIGNAL = "signal"
    REPRICE = "reprice"  # recompute the due times of all pages
    REORDER = "reorder"  # recompute the ranks of all unfetched pages


class PriorLevel(StrEnum):
    """The pages from which a prior was mainly learned."""

    TEMPLATE = "template"
    DOMAIN = "domain"
    KIND = "kind"  # of site
    ALL = "all"  # all domains
    NOTHING = "nothing"  # the built-in prior


class PriorSource(Struct, frozen=True):
    """The origin of a page's prior.

    kind: the kind of the domain's site, empty for none.  pages, domains: the number of revisited pages and of domains
    at this level.
    """

    level: PriorLevel
    kind: str
    pages: int
    domains: int


class PageFacts(Struct, frozen=True):
    """The facts of a page of the domain.

    rate_estimate: its current change-rate estimate.  template, prior, prior_no: its group, and the prior of this group.
    magnitudes, group_magnitude: the magnitudes of its changes, and the expected magnitude in its group.
    cash, history, clock, domain_clock, circulating: in units of cash (core/opic/opic.py); the first three are None
    outside the OPIC economy.  rank: in the discovery order.
    visit_importance: the importance of a visit, with the pages that it announces.  announces: the mean number of new
    pages that a change announces, each weighted by its expected share of new text.
    popularity, url_score: the parts of importance from links and from the URL; only a mixed order uses the latter.
    is_template_deferred: unfetched pages of its group are deferred because such pages brought hardly anything new.
    withheld_since: since when new content is withheld as a possible soft error.
    canonical: the page whose schedule it shares.  duplicates: the number of pages that share its schedule.
    signals: counts of change signals since its last successful visit, by source number.
    activity_ahead: days by which the site activity has run ahead of the calendar since that visit.
    is_list: it was read as a URL list.
    outlinks: the number of distinct links within the domain; None if the page was never read.  ahead: for an unfetched
    page, the number of pages before it in the discovery order.
    """

    url: Url
    state: State
    due_at: datetime | None
    request_reason: RequestReason
    depth: int
    rank: int
    boosted: bool
    url_score: float
    importance: float | None
    visit_importance: float
    announces: float
    popularity: float | None
    freshness: float | None
    cash: int | None
    history: float | None
    clock: float | None
    circulating: int
    domain_clock: float
    rate_estimate: RateEstimate
    prior: RateEstimate
    magnitudes: ChangeMagnitudes
    group_magnitude: float
    template: str
    is_template_deferred: bool
    prior_no: int
    etag: str | None
    last_modified: str | None
    status: int | None
    reason: str
    failures: int
    withheld_since: datetime | None
    visits: int
    changes: int
    first_seen_at: datetime
    last_visit_at: datetime | None
    last_good_at: datetime | None
    last_change_at: datetime | None
    version: int
    is_rendered: bool
    received_bytes: int
    moved_to: Url | None
    canonical: Url | None
    duplicates: int
    signals: tuple[int, ...]
    activity_ahead: float
    is_list: bool
    title: str | None
    outlinks: int | None
    ahead: int | None

    @property
    def validators(self) -> Validators:
        """Return the validators of the page's last successful visit."""
        return Validators(self.etag, self.last_modified) if self.version else NO_VALIDATORS


class PastVisit(Struct, frozen=True):
    """One of the last visits. requests, received_bytes: including those for other URLs, such as redirects.

    cash: the cash that it distributed.  expected: the predicted probability of a change.
    shadow_price: the minimum value of the visit, in importance x days.  audit: it was one of a random sample.
    magnitude: the share of the page that changed, 0 to 1.  rendering: why it was rendered or not, or how that ended.
    added_words, added_links: added by its scripts.  evidence, rendering: strings, because another version of recrawl
    may have written a value that the enumerations do not have.
    """

    at: datetime
    outcome: str
    status: int | None
    reason: str
    change: Change
    evidence: str
    distance_bits: int | None
    conditional: bool
    requests: int
    received_bytes: int
    saved_bytes: int
    elapsed_ms: int
    cash: int
    expected: float | None
    due_at: datetime | None
    shadow_price: float | None
    audit: bool
    magnitude: float | None
    rendering: str
    added_words: int | None
    added_links: int | None


VISITS = f"""
    SELECT {", ".join(PastVisit.__struct_fields__)}
      FROM visits_of(%(domain_id)s, %(key)s) ORDER BY at DESC LIMIT %(most)s
"""  # noqa: S608  only our own names are inserted


class LinkingPage(Struct, frozen=True):
    """A page that links to the URL.

    passed_importance: the importance that it passes on along each link (mean of the domain: 1).
    """

    url: Url
    depth: int
    state: State
    outlinks: int
    importance: float | None
    passed_importance: float | None


class Explanation(Struct, frozen=True):
    """Everything that is known about a URL within its domain.

    page: None if the URL is not a page of the domain.  links, linking_pages: the number of pages that link to the URL,
    and those that pass on the most importance.  remaining_links: the number of linking pages that satisfy STILL_LINKS.
    redirects: the number of pages that moved here.
    nearest_depth: the minimum depth of the linking pages.  tracked: the number of pages of the domain in any state.
    prior_source: the origin of the page's prior; None without a page.
    terms: the terms of its next visit, at the current shadow price.  trust: the reliability of its group's validators.
    suspected: validators that lied in every group in which a change tested them.
    waiting: requests in the domain's inbox that concern the page; no other field includes their effects.
    sources: the domain's sources of change signals, by number.
    uses_head: a HEAD request is sent first.  is_validator_check: the page's next visit is a validator check, if it is
    also the next one of the group and of the domain.
    """

    at: datetime
    page: PageFacts | None
    prior_source: PriorSource | None
    suspected: frozenset[Validator]
    visits: tuple[PastVisit, ...]
    links: int
    remaining_links: int
    redirects: int
    nearest_depth: int | None
    linking_pages: tuple[LinkingPage, ...]
    robots: bytes | None
    tracked: int
    waiting: frozenset[InboxKind]
    sources: tuple[SourceReport, ...]
    terms: VisitTerms | None = None
    trust: ValidatorTrust = NO_TRUST
    uses_head: bool = False
    is_validator_check: bool = False

    @property
    def is_orphan(self) -> bool:
        """Return whether the page is fetched and no seed, and no link or redirect to it is left.

        Such a page is kept and revisited as before, because it may still exist. A link counts until a visit to the
        linking page finds that it was removed, or that the linking page is gone or has moved.
        """
        page = self.page
        is_fetched = page is not None and page.state is State.FETCHED and page.depth > 0
        return is_fetched and self.remaining_links == 0 and self.redirects == 0


async def explain_url(db: Database, domain: Domain, url: Url, *, at: datetime, defaults: CrawlDefaults) -> Explanation:
    """Return everything that is known about a URL of the domain. url: normalized for the domain."""
    values = {"domain_id": domain.id, "key": compute_page_key(url), "url": url, "at": at, "most": MAX_LINKS}
    async with db.transaction() as connection:
        (domain_row,) = await fetch_dicts(connection, DOMAIN, values)
        pages = await fetch_dicts(connection, PAGE, values)
        visits = await fetch_values(connection, PastVisit, VISITS, values | {"most": MAX_VISITS})
        linking_rows = await fetch_dicts(connection, LINKING_PAGES, values)
        redirects = await fetch_number(connection, COUNT_REDIRECTS, values)
        waiting = await fetch_rows(connection, WAITING, values)
        sources = await list_signal_sources(connection, domain)
        context = await read_scoring_context(connection, domain, at=at, defaults=defaults)
        page = _build_page(pages[0]) if pages else None
        prior_source = await _find_prior_source(connection, domain, page) if page else None
    totals: dict[str, Any] = linking_rows[0] if linking_rows else {"links": 0, "still": 0, "nearest": None}
    return Explanation(
        **domain_row,
        page=page,
        prior_source=prior_source,
        suspected=context.suspected if context else frozenset(),
        visits=tuple(visits),
        links=totals["links"],
        remaining_links=totals["still"],
        redirects=redirects,
        nearest_depth=totals["nearest"],
        linking_pages=tuple(
            LinkingPage(row["url"], row["depth"], State(row["state"]), row["outlinks"], row["importance"], row["pays"])
            for row in linking_rows
        ),
        waiting=frozenset(InboxKind(kind) for (kind,) in waiting),
        sources=tuple(sources),
        **_explain_next_visit(page, context) if page and context else {},
    )


async def _find_prior_source(connection: Connection, domain: Domain, page: PageFacts) -> PriorSource:
    """Return the narrowest level with revisited pages: the page's prior was mainly learned from these."""
    kind = classify_site(domain.authority)
    values = {"domain_id": domain.id, "no": page.prior_no}
    ((template_pages, domain_pages),) = await fetch_rows(connection, COUNT_VISITED, values)
    if template_pages and page.template != OTHER_TEMPLATES:
        return PriorSource(PriorLevel.TEMPLATE, kind, template_pages, 1)
    if domain_pages:
        return PriorSource(PriorLevel.DOMAIN, kind, domain_pages, 1)
    learned = await read_kind_prior(connection, kind)
    if page.prior == PRIOR or not learned.domains:
        return PriorSource(PriorLevel.NOTHING, kind, 0, 0)
    level = PriorLevel.ALL if learned.kind == ALL_KINDS else PriorLevel.KIND
    return PriorSource(level, kind, round(learned.pages), learned.domains)


def _explain_next_visit(page: PageFacts, context: ScoringContext) -> dict[str, Any]:
    """Return the fields of an Explanation about the page's next visit."""
    kind, group = RequestKind.FULL, page.prior_no
    if page.version:
        kind = context.choose_request_kind(
            page.validators, group, body_bytes=page.received_bytes, is_rendered=page.is_rendered
        )
    magnitude, is_list = page.group_magnitude, page.is_list
    return {
        "terms": context.build_terms(page.url, prior=page.prior, magnitude=magnitude, kind=kind, is_list=is_list),
        "trust": context.trusts.get(group, NO_TRUST),
        "uses_head": kind is RequestKind.HEAD,
        "is_validator_check": context.is_check_due(group),
    }


def _build_page(row: dict[str, Any]) -> PageFacts:
    row["rate_estimate"] = RateEstimate(row.pop("rate_a"), row.pop("rate_b"))
    row["prior"] = RateEstimate(row.pop("prior_a"), row.pop("prior_b"))
    row["magnitudes"] = ChangeMagnitudes(row.pop("magnitude_total"), row.pop("magnitude_changes"))
    kinds = {"state": State(row["state"]), "request_reason": RequestReason(row["request_reason"])}
    return PageFacts(**row | kinds | {"signals": tuple(row["signals"])})
