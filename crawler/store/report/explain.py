"""All that the store knows about one URL, tracked or not."""

from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

from crawler.core.budget.cost import RequestKind
from crawler.core.change.change import Change
from crawler.core.domain import Domain
from crawler.core.freshness.estimates import PRIOR, Amounts, Belief
from crawler.core.freshness.prior import ALL_KINDS, ELSEWHERE, site_kind
from crawler.core.freshness.terms import Defaults, Terms, Wanted
from crawler.core.http.response import NO_VALIDATORS, Validators
from crawler.core.http.urls import Url, key_of
from crawler.core.opic.opic import ENDOWMENT
from crawler.core.opic.order import STEPS
from crawler.core.validators import NO_TRUST, Trust, Validator
from crawler.core.visit.visit import State
from crawler.store.database import Connection, Database
from crawler.store.domains import kind_prior
from crawler.store.hand_out import ScoringContext, scoring_context
from crawler.store.report.lists import SourceFacts, signal_sources
from crawler.store.report.reports import (
    FRESHNESS,
    IMPORTANCE,
    PAGE_TABLES,
    POPULARITY,
    RANKED_TABLES,
    URL_SHARE,
    WEIGHT,
)
from crawler.store.rows import fetch_dicts, fetch_number, fetch_rows, fetch_values

VISITS_SHOWN = 10
LINKS_SHOWN = 10


ORDER = "(SELECT o.discovery_order FROM domain o WHERE o.id = %(domain_id)s)"


def _across(page: str, pool: str) -> str:
    """A new page's place in the order over both pools: its rank, which is of its net, moved by the pool's dividend.

    Where the order is not by cash it is the rank alone.
    """
    return f"""
        CASE WHEN {ORDER} IN ('breadth', 'depth') THEN {page}.rank
             ELSE ({page}.rank + {STEPS} * (1 - {URL_SHARE}) * {pool}.dividend / {ENDOWMENT}::float8)
                  * CASE WHEN {page}.favoured AND {ORDER} = 'opic'
                         THEN (SELECT o.favour_by FROM domain o WHERE o.id = %(domain_id)s) ELSE 1 END END
    """  # noqa: S608  only our own expressions are put in


PAGE = f"""
    SELECT p.url, f.state, f.due_at, f.wanted, f.depth, f.rank, f.favoured, f.url_score,
           coalesce(u.worth, {IMPORTANCE}) AS importance,
           look_importance(coalesce(u.worth, {WEIGHT}, 1), f.state = 'new', p.announces, g.first_looks, g.novelty)
               AS look_importance, p.announces, {POPULARITY} AS popularity, {FRESHNESS} AS freshness,
           c.net + q.dividend AS cash, c.history, c.clock, s.coins - s.dormant AS circulating, s.clock AS domain_clock,
           g.a + p.evidence_a AS belief_a, g.b + p.evidence_b AS belief_b, g.a AS prior_a, g.b AS prior_b,
           p.amount_total, p.amount_changes, g.amount AS group_amount,
           p.signals, activity_ahead(s.activity_at, s.activity_ahead, p.last_good_at) AS activity_ahead,
           g.template, g.held_until IS NOT NULL AS is_template_held,
           p.prior_no, p.etag, p.last_modified, p.status, p.reason, p.failures, p.withheld_since, p.visits, p.changes,
           p.first_seen_at, p.last_look_at, p.last_good_at, p.last_change_at, p.version, p.is_rendered,
           p.received_bytes, u.key IS NOT NULL AND p.version > 0 AS is_list,
           (SELECT t.url FROM page t WHERE t.domain_id = %(domain_id)s AND t.key = p.moved_to) AS moved_to,
           (SELECT t.url FROM page t WHERE t.domain_id = %(domain_id)s AND t.key = p.leader) AS leader,
           (SELECT count(*) FROM page t WHERE t.domain_id = %(domain_id)s AND t.leader = p.key) AS riders,
           (SELECT n.title FROM snapshot n
             WHERE n.domain_id = %(domain_id)s AND n.key = p.key AND n.number = p.version) AS title,
           (SELECT octet_length(l.targets) / 16 FROM page_links l
             WHERE l.domain_id = %(domain_id)s AND l.key = p.key) AS outlinks,
           CASE WHEN f.state = 'new' THEN
               (SELECT count(*)
                  FROM frontier b
                  JOIN pool o ON o.domain_id = %(domain_id)s AND o.pool = CASE WHEN b.favoured THEN 2 ELSE 0 END
                 WHERE b.domain_id = %(domain_id)s AND b.state = 'new' AND b.due_at IS NULL
                   AND ({_across("b", "o")}, f.key) > ({_across("f", "q")}, b.key)) END
               AS ahead
      FROM {PAGE_TABLES}
     WHERE p.domain_id = %(domain_id)s AND p.key = %(key)s
"""  # noqa: S608  only our own expressions are put in
# What a page passes on along each of its links, in importance.
PAYS = f"""
    {POPULARITY} * (
        SELECT coalesce((1 - o.reserve_share) * o.internal_links
                        / nullif(o.internal_links * (octet_length(l.targets) / 16)
                                 + o.external_links * (SELECT coalesce(sum(n), 0)
                                                         FROM unnest(l.external_link_counts) n), 0), 0)
          FROM domain o WHERE o.id = %(domain_id)s)
"""  # noqa: S608  only our own expressions are put in
# A page that is gone links to nothing, nor does one that has moved, once its new place was read.
STILL_LINKS = """
    f.state NOT IN ('gone', 'moved')
    OR f.state = 'moved' AND EXISTS (SELECT FROM page h
                                      WHERE h.domain_id = %(domain_id)s AND h.key = p.moved_to AND h.version = 0)
"""
# A scan of all links of the domain: only people ask this. Keys are 16 bytes, so another place is another key.
LINKERS = f"""
    SELECT p.url, f.depth, f.state, octet_length(l.targets) / 16 AS outlinks, {IMPORTANCE} AS importance,
           {PAYS} AS pays, count(*) OVER () AS links, min(f.depth) OVER () AS nearest,
           count(*) FILTER (WHERE {STILL_LINKS}) OVER () AS still
      FROM page_links l CROSS JOIN {RANKED_TABLES}
     WHERE l.domain_id = %(domain_id)s AND position(%(key)s IN l.targets) %% 16 = 1
       AND p.domain_id = %(domain_id)s AND p.key = l.key
     ORDER BY {PAYS} DESC NULLS LAST, p.url LIMIT %(most)s
"""  # noqa: S608  the same
LEADS_HERE = """
    SELECT count(*) AS moved FROM page WHERE domain_id = %(domain_id)s AND moved_to = %(key)s
"""
# What others left for the domain's holder and touches this URL. A row under way is done with keys up to `after`.
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
# Pages that the last plan may have learnt from; a scan of the domain's pages: only people ask this.
LOOKED_AT = """
    SELECT count(*) FILTER (WHERE p.prior_no = %(no)s), count(*)
      FROM domain_plan l
      JOIN page p ON p.domain_id = %(domain_id)s AND (p.evidence_a > 0 OR p.evidence_b > 0)
                 AND p.first_seen_at <= l.planned_at
     WHERE l.domain_id = %(domain_id)s
"""


class Waiting(StrEnum):
    """What waits in a domain's inbox for the next crawl and touches a URL."""

    SEED = "seed"
    REFRESH = "refresh"
    REREAD = "reread"  # a refresh that asks for the whole page, since its domain's settings have changed
    AUDIT = "audit"
    SIGNAL = "signal"
    REPRICE = "reprice"
    REORDER = "reorder"


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


@dataclass(frozen=True, slots=True)
class PageFacts:
    """A tracked page.

    prior, template: what the pages of its group say about it, and which group that is.
    amounts, group_amount: how much its changes have changed, and what its group makes expect.
    cash, history, clocks, circulating: coins; cash, history and clock are None outside the economy.
    look_importance: of a look at it, with what it announces.  announces: new pages that a change of it brings, by what
    such pages turned out to be worth.
    popularity, url_score: what links and what the URL make of importance; a mixed order weighs both.
    is_template_held: new pages of its group are held back, since such pages have said nothing new of late.
    withheld_since: since when other content is not accepted, as it may stand in place of the page.
    leader: whose schedule it shares.  riders: how many share its own.
    signals: of change since its last good look, by the number of their source.
    activity_ahead: days by which the site's activity has gone ahead of the calendar since then.
    is_list: it was read as a sitemap or a feed.
    outlinks: None if never read.  ahead: of a new page, how many new pages come before it.
    """

    url: Url
    state: State
    due_at: datetime | None
    wanted: Wanted
    depth: int
    rank: int
    favoured: bool
    url_score: float
    importance: float | None
    look_importance: float
    announces: float
    popularity: float | None
    freshness: float | None
    cash: int | None
    history: float | None
    clock: float | None
    circulating: int
    domain_clock: float
    belief: Belief
    prior: Belief
    amounts: Amounts
    group_amount: float
    template: str
    is_template_held: bool
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
    last_look_at: datetime | None
    last_good_at: datetime | None
    last_change_at: datetime | None
    version: int
    is_rendered: bool
    received_bytes: int
    moved_to: Url | None
    leader: Url | None
    riders: int
    signals: tuple[int, ...]
    activity_ahead: float
    is_list: bool
    title: str | None
    outlinks: int | None
    ahead: int | None

    @property
    def held(self) -> Validators:
        """The validators of the page's last good answer."""
        return Validators(self.etag, self.last_modified) if self.version else NO_VALIDATORS


@dataclass(frozen=True, slots=True)
class PastVisit:
    """One of the last visits. requests: all that it took, the page's own and others; bytes are of all of them.

    cash: coins that it settled.  expected: the chance that was given for a change.
    price: importance x days that it had to be worth.  audit: it was one of a random sample.
    amount: the part of the page that changed, 0 to 1.  rendering: why it was rendered, or was not, or what became of
    it.  added_words, added_links: by its scripts.  rung, rendering: of Rung, RenderChoice and RenderFailure, or a word
    of another version of recrawl.
    """

    at: datetime
    answer: str
    status: int | None
    reason: str
    change: Change
    rung: str
    distance_bits: int | None
    conditional: bool
    requests: int
    received_bytes: int
    saved_bytes: int
    elapsed_ms: int
    cash: int
    expected: float | None
    due_at: datetime | None
    price: float | None
    audit: bool
    amount: float | None
    rendering: str
    added_words: int | None
    added_links: int | None


VISITS = f"""
    SELECT {", ".join(each.name for each in fields(PastVisit))}
      FROM visits_of(%(domain_id)s, %(key)s) ORDER BY at DESC LIMIT %(most)s
"""  # noqa: S608  only our own names are put in


@dataclass(frozen=True, slots=True)
class Linker:
    """A page that links here. pays: what it passes on along each link, in importance (the domain's mean is 1)."""

    url: Url
    depth: int
    state: State
    outlinks: int
    importance: float | None
    pays: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that is known of a URL within its domain.

    page: None for one that is not tracked.  links, linkers: how many pages link here, and those that pay it most.
    still: how many of them are still there.  redirects: pages that moved here, or may have.
    nearest: the least depth of a page that links here.  tracked: pages of the domain, whatever became of them.
    prior_source: what the page's prior comes from; None for one that is not tracked.
    terms: what holds for its next look, at today's price.  trust: how far its group's validators can be believed.
    suspected: validators that have lied in every group that was tested.
    waiting: what the next crawl is to apply to it, by the domain's inbox; nothing else here knows of that yet.
    sources: of change signals about pages of the domain, by their numbers.
    by_head: its length and date are asked for first.  challenge: its validators are put to the test, if it is the next.
    """

    at: datetime
    page: PageFacts | None
    prior_source: PriorSource | None
    terms: Terms | None
    trust: Trust
    suspected: frozenset[Validator]
    by_head: bool
    challenge: bool
    visits: tuple[PastVisit, ...]
    links: int
    still: int
    redirects: int
    nearest: int | None
    linkers: tuple[Linker, ...]
    robots: bytes | None
    tracked: int
    waiting: frozenset[Waiting]
    sources: tuple[SourceFacts, ...]

    @property
    def is_orphan(self) -> bool:
        """Whether a page that was found by a link is left without any, by what its parents said when last read.

        It is kept, and looked at as before: a page may live on though nobody links to it. A parent that is not
        modified, was not looked at or could not be had says nothing, and takes no link back.
        """
        page = self.page
        is_found = page is not None and page.state is State.KNOWN and page.depth > 0
        return is_found and self.still == 0 and self.redirects == 0


async def explain(db: Database, domain: Domain, url: Url, *, at: datetime, defaults: Defaults) -> Explanation:
    """Everything about a URL of the domain, under the name that the domain gives it."""
    values = {"domain_id": domain.id, "key": key_of(url), "url": url, "at": at, "most": LINKS_SHOWN}
    async with db.transaction() as connection:
        (domain_now,) = await fetch_dicts(connection, DOMAIN, values)
        pages = await fetch_dicts(connection, PAGE, values)
        visits = await fetch_values(connection, PastVisit, VISITS, values | {"most": VISITS_SHOWN})
        linkers = await fetch_dicts(connection, LINKERS, values)
        redirects = await fetch_number(connection, LEADS_HERE, values)
        waiting = await fetch_rows(connection, WAITING, values)
        sources = await signal_sources(connection, domain)
        context = await scoring_context(connection, domain, at=at, defaults=defaults)
        page = _page(pages[0]) if pages else None
        source = await _find_prior_source(connection, domain, page) if page else None
    return Explanation(
        **domain_now,
        page=page,
        prior_source=source,
        terms=_terms(page, context) if page and context else None,
        trust=context.trusts.get(page.prior_no, NO_TRUST) if page and context else NO_TRUST,
        suspected=context.suspected if context else frozenset(),
        by_head=_kind(page, context) is RequestKind.HEAD if page and context else False,
        challenge=context.is_challenge(page.prior_no) if page and context else False,
        visits=tuple(visits),
        links=linkers[0]["links"] if linkers else 0,
        still=linkers[0]["still"] if linkers else 0,
        redirects=redirects,
        nearest=linkers[0]["nearest"] if linkers else None,
        linkers=tuple(
            Linker(Url(row["url"]), row["depth"], State(row["state"]), row["outlinks"], row["importance"], row["pays"])
            for row in linkers
        ),
        waiting=frozenset(Waiting(kind) for (kind,) in waiting),
        sources=tuple(sources),
    )


async def _find_prior_source(connection: Connection, domain: Domain, page: PageFacts) -> PriorSource:
    """Return the smallest group around a page of which any page was looked at again: its prior comes from there."""
    kind = site_kind(domain.authority)
    ((of_template, of_domain),) = await fetch_rows(connection, LOOKED_AT, {"domain_id": domain.id, "no": page.prior_no})
    if of_template and page.template != ELSEWHERE:
        return PriorSource(PriorLevel.TEMPLATE, kind, of_template, 1)
    if of_domain:
        return PriorSource(PriorLevel.DOMAIN, kind, of_domain, 1)
    learnt = await kind_prior(connection, kind)
    if page.prior == PRIOR or not learnt.domains:
        return PriorSource(PriorLevel.NOTHING, kind, 0, 0)
    level = PriorLevel.ALL if learnt.kind == ALL_KINDS else PriorLevel.KIND
    return PriorSource(level, kind, round(learnt.pages), learnt.domains)


def _terms(page: PageFacts, context: ScoringContext) -> Terms:
    return context.terms(
        page.url, prior=page.prior, amount=page.group_amount, kind=_kind(page, context), is_list=page.is_list
    )


def _kind(page: PageFacts, context: ScoringContext) -> RequestKind:
    """How it is asked for."""
    if not page.version:
        return RequestKind.FULL
    return context.kind(page.held, page.prior_no, body_bytes=page.received_bytes, is_rendered=page.is_rendered)


def _page(row: dict[str, Any]) -> PageFacts:
    belief = Belief(row.pop("belief_a"), row.pop("belief_b"))
    prior = Belief(row.pop("prior_a"), row.pop("prior_b"))
    kinds = {"state": State(row["state"]), "wanted": Wanted(row["wanted"]), "signals": tuple(row["signals"])}
    amounts = Amounts(row.pop("amount_total"), row.pop("amount_changes"))
    return PageFacts(**row | kinds | {"belief": belief, "prior": prior, "amounts": amounts})
