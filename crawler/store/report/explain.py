"""All that the store knows about one URL, tracked or not."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from psycopg.rows import dict_row

from crawler.core.budget import RequestKind
from crawler.core.change.change import Change
from crawler.core.domain import Domain
from crawler.core.freshness import Amounts, Belief, Defaults, Terms, Wanted
from crawler.core.http import NO_VALIDATORS, Url, Validators, key_of
from crawler.core.opic import ENDOWMENT, STEPS
from crawler.core.validators import NO_TRUST, Trust, Validator
from crawler.core.visit.visit import State
from crawler.store.database import Connection, Database
from crawler.store.hand_out import ScoringContext, scoring_context
from crawler.store.report.prior_source import PriorSource, prior_source
from crawler.store.report.reports import FRESHNESS, IMPORTANCE, POPULARITY, URL_SHARE, WEIGHT
from crawler.store.report.sources import SourceFacts, sources_measured

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
      FROM page p
      JOIN prior g ON g.domain_id = %(domain_id)s AND g.no = p.prior_no
      JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key
      JOIN domain_state s ON s.domain_id = %(domain_id)s
      LEFT JOIN cash c ON c.domain_id = %(domain_id)s AND c.key = p.key
      LEFT JOIN pool q ON q.domain_id = %(domain_id)s AND q.pool = c.pool
      LEFT JOIN url_list u ON u.domain_id = %(domain_id)s AND u.key = p.key
     WHERE p.domain_id = %(domain_id)s AND p.key = %(key)s
"""  # noqa: S608  only our own expressions are put in
VISITS = """
    SELECT at, answer, status, reason, change, rung, distance_bits, conditional, requests, received_bytes, saved_bytes,
           elapsed_ms, cash, expected, due_at, price, audit, amount,
           rendering, added_words, added_links
      FROM visits_of(%(domain_id)s, %(key)s) ORDER BY at DESC LIMIT %(most)s
"""
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
           {PAYS} AS pays, count(*) OVER () AS many, min(f.depth) OVER () AS nearest,
           count(*) FILTER (WHERE {STILL_LINKS}) OVER () AS still
      FROM page_links l
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = l.key
      JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = l.key
      JOIN domain_state s ON s.domain_id = %(domain_id)s
      LEFT JOIN cash c ON c.domain_id = %(domain_id)s AND c.key = l.key
      LEFT JOIN pool q ON q.domain_id = %(domain_id)s AND q.pool = c.pool
     WHERE l.domain_id = %(domain_id)s AND position(%(key)s IN l.targets) %% 16 = 1
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


class Waiting(StrEnum):
    """What waits in a domain's inbox for the next crawl and touches a URL."""

    SEED = "seed"
    REFRESH = "refresh"
    REREAD = "reread"  # a refresh that asks for the whole page, since its domain's settings have changed
    AUDIT = "audit"
    SIGNAL = "signal"
    REPRICE = "reprice"
    REORDER = "reorder"


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
        domain_now = (await _rows(connection, DOMAIN, values))[0]
        pages = await _rows(connection, PAGE, values)
        visits = await _rows(connection, VISITS, values | {"most": VISITS_SHOWN})
        linkers = await _rows(connection, LINKERS, values)
        leads = (await _rows(connection, LEADS_HERE, values))[0]
        waiting = await _rows(connection, WAITING, values)
        sources = await sources_measured(connection, domain)
        context = await scoring_context(connection, domain, at=at, defaults=defaults)
        page = _page(pages[0]) if pages else None
        source = (
            await prior_source(connection, domain, page.prior, no=page.prior_no, template=page.template)
            if page
            else None
        )
    return Explanation(
        at=domain_now["at"],
        page=page,
        prior_source=source,
        terms=_terms(page, context) if page and context else None,
        trust=context.trusts.get(page.prior_no, NO_TRUST) if page and context else NO_TRUST,
        suspected=context.suspected if context else frozenset(),
        by_head=_kind(page, context) is RequestKind.HEAD if page and context else False,
        challenge=context.is_challenge(page.prior_no) if page and context else False,
        visits=tuple(_look(row) for row in visits),
        links=linkers[0]["many"] if linkers else 0,
        still=linkers[0]["still"] if linkers else 0,
        redirects=leads["moved"],
        nearest=linkers[0]["nearest"] if linkers else None,
        linkers=tuple(
            Linker(Url(row["url"]), row["depth"], State(row["state"]), row["outlinks"], row["importance"], row["pays"])
            for row in linkers
        ),
        robots=domain_now["robots"],
        tracked=domain_now["tracked"],
        waiting=frozenset(Waiting(row["kind"]) for row in waiting),
        sources=tuple(sources),
    )


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


def _look(row: dict[str, Any]) -> PastVisit:
    return PastVisit(**row | {"change": Change(row["change"])})


async def _rows(connection: Connection, statement: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement.encode(), values)
        return await cursor.fetchall()
