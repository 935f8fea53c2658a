"""Why a page was fetched or not, when it is next and why, and what is known of its content: for every surface."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.app.database import AppDatabase
from crawler.app.registration import format_not_registered, parse_typed_url, require_not_before_last_visit
from crawler.app.status import format_page_wait
from crawler.core.change.explain import explain_blocks
from crawler.core.domain import Domain
from crawler.core.freshness.estimates import compute_credible_interval
from crawler.core.freshness.policies import ValuePolicy
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Scope, Url, compute_page_key, get_authority
from crawler.core.opic.order import Order
from crawler.core.page.selectors import FULL_VIEW
from crawler.core.page_rules import PageRules
from crawler.core.visit.visit import State
from crawler.engine.parsing.parser_pool import DomainParser, ParserPool
from crawler.format.explanation import (
    format_change_rate,
    format_next_fetch,
    format_refusal,
    format_scripts,
    format_signals,
    format_untracked,
)
from crawler.planner.page_value import Due, compute_chance_unchanged, compute_due, compute_visit_value
from crawler.plugins import add_plugin_defaults, load_plugins
from crawler.settings import Settings
from crawler.store import domains, record, report
from crawler.store.learned.memories import read_mask
from crawler.store.report import AnnouncedDate, Explanation, FeedItem, ListReport, PageFacts


@dataclass(frozen=True, slots=True)
class UrlExplanation:
    """All that is known of a URL of a registered domain, with the sentences that every surface shows.

    untracked: why it is not one of the domain's pages; empty for one that is, and only then the rest says something.
    refused: why it may not be fetched now; empty if it may.  next: when it is fetched next and why.
    change_rate: how often it changes.  waits: why its domain is not being fetched now.
    due: when it would be due at today's price.  fresh: the chance that the stored version is what the server has.
    value: of a visit now, in importance x days.  shadow_price: that it has to be worth; None under another policy.
    rate_interval: changes a day, with a chance of 90%.  rules: of the domain, with the scores of plugins.
    """

    url: Url
    domain: Domain
    known: Explanation
    rules: PageRules
    refused: str
    untracked: str = ""
    next: str = ""
    change_rate: str = ""
    signals: str = ""
    scripts: str = ""
    waits: str = ""
    due: Due | None = None
    fresh: float | None = None
    value: float | None = None
    shadow_price: float | None = None
    rate_interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class UnknownUrl:
    """A URL of no registered domain. reason: says so."""

    url: Url
    reason: str


async def explain_url(db: AppDatabase, text: str, *, at: datetime | None) -> UrlExplanation | UnknownUrl:
    """Explain the URL that a user typed. at: knowledge time; None for now. Raises BadInput."""
    url = parse_typed_url(text)
    domain = await domains.find_domain(db, get_authority(url))
    if domain is None:
        return UnknownUrl(url, await format_not_registered(db, get_authority(url)))
    if at is not None:
        await require_not_before_last_visit(db, [domain], at)
    return await explain_page(db, domain, url, at=at or datetime.now(UTC))


async def explain_page(db: AppDatabase, domain: Domain, url: Url, *, at: datetime) -> UrlExplanation:
    """Explain a URL of a domain at an instant."""
    settings, rules = db.settings, PageRules(domain.settings.rules, load_plugins(db.settings.plugins).page_score)
    scope = make_page_scope(domain, settings)
    url = scope.to_domain_url(url)
    stored = await report.explain_url(
        db, domain, url, at=at, defaults=add_plugin_defaults(settings.defaults, settings.plugins)
    )
    refusal = format_refusal(url, scope, stored.robots, agent=settings.user_agent)
    page = stored.page
    if page is None:
        max_pages = domain.settings.max_pages or settings.max_pages
        untracked = format_untracked(url, stored, scope, refusal=refusal, max_pages=max_pages)
        return UrlExplanation(url, domain, stored, rules, refused=refusal, untracked=untracked)
    today = compute_due(stored, page, rules)
    return UrlExplanation(
        url,
        domain,
        stored,
        rules,
        refused=refusal,
        next=format_next_fetch(stored, page, today=today, refusal=refusal),
        change_rate=format_change_rate(page, stored.prior_source),
        signals=format_signals(stored, page) if page.version else "",
        scripts=format_scripts(stored),
        waits=await format_page_wait(db, domain, at=at),
        due=today,
        fresh=compute_chance_unchanged(stored, page),
        value=compute_visit_value(stored, page, rules),
        shadow_price=stored.terms.shadow_price
        if stored.terms and isinstance(stored.terms.revisit, ValuePolicy)
        else None,
        rate_interval=compute_credible_interval(page.belief),
    )


async def explain_refusal(db: AppDatabase, domain: Domain, url: Url, *, at: datetime) -> str:
    """Return why a URL of a domain may not be fetched now; empty if it may."""
    settings = db.settings
    stored = await report.explain_url(
        db, domain, url, at=at, defaults=add_plugin_defaults(settings.defaults, settings.plugins)
    )
    return format_refusal(url, make_page_scope(domain, settings), stored.robots, agent=settings.user_agent)


def make_page_scope(domain: Domain, settings: Settings) -> Scope:
    """Return which URLs are pages of a domain, with the depth that holds where its user set none."""
    return domain.build_scope(max_depth=settings.max_depth, accepts=load_plugins(settings.plugins).accepts)


@dataclass(frozen=True, slots=True)
class ComparedContent:
    """What is compared of a page's last version, and what its last change was.

    blocks: of the whole.  masked: of them, those of which nothing is compared.  words: masked in the others.
    """

    blocks: int
    masked: int
    words: int
    last_change: FeedItem | None


@dataclass(frozen=True, slots=True)
class PageDetails:
    """What an explanation says of a page's content and of lists.

    content: None if the body of its last version is not kept.  source: what it is as a sitemap or feed; None for
    other pages.  dates: that sitemaps and feeds gave it.
    """

    content: ComparedContent | None
    source: ListReport | None
    dates: list[AnnouncedDate]


async def explain_details(db: AppDatabase, explanation: UrlExplanation) -> PageDetails:
    """Return what is compared of a page, and what sitemaps and feeds say of it."""
    key = compute_page_key(explanation.url)
    page = explanation.known.page
    content = await _read_compared_content(db, explanation.domain, page) if page else None
    lists = await report.list_url_lists(db, explanation.domain, key=key)
    return PageDetails(
        content, lists[0] if lists else None, await report.list_announced_dates(db, explanation.domain, key)
    )


async def _read_compared_content(db: AppDatabase, domain: Domain, page: PageFacts) -> ComparedContent | None:
    stored_body = await record.load_stored_body(
        db, domain.id, compute_page_key(page.url), page.version, text_digest=b""
    )
    if stored_body is None:
        return None
    response = Fetched(200, stored_body.body, len(stored_body.body), timedelta(0), stored_body.content_type)
    async with ParserPool(1, inline_bodies=1, plugins=load_plugins(db.settings.plugins)) as parsers:
        parser = DomainParser(parsers, PageRules(domain.settings.rules))
        all_blocks, compared_blocks = (
            await parser.parse_blocks(response, page.url, view=FULL_VIEW),
            await parser.parse_blocks(response, page.url),
        )
    if all_blocks is None or compared_blocks is None:
        return None
    blocks = explain_blocks(
        all_blocks, compared_blocks, await read_mask(db, domain.id), view=parser.build_view(page.url)
    )
    return ComparedContent(
        blocks=len(blocks),
        masked=sum(block.is_whole for block in blocks),
        words=sum(len(block.masked) for block in blocks if not block.is_whole),
        last_change=await report.read_last_change(db, domain, page.url),
    )
