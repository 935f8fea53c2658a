"""Why a page was fetched or not, when it is next and why, and what is known of its content: for every surface."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.app.database import Database
from crawler.app.registration import not_registered, require_not_before_last_visit, url_of
from crawler.app.status import page_wait
from crawler.core.change.explain import explain_blocks
from crawler.core.domain import Domain
from crawler.core.freshness.estimates import credible_interval
from crawler.core.freshness.policies import PricePolicy
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Scope, Url, authority_of, key_of
from crawler.core.opic.order import Order
from crawler.core.page.selectors import WHOLE
from crawler.core.page_rules import PageRules
from crawler.core.visit.visit import State
from crawler.engine.parsing.parser_pool import DomainParser, ParserPool
from crawler.format.explanation import (
    format_change_rate,
    format_next,
    format_refusal,
    format_scripts,
    format_signals,
    format_untracked,
)
from crawler.planner.page_value import Due, chance_unchanged, due_today, value_now
from crawler.plugins import defaults_with, load
from crawler.settings import Settings
from crawler.store import domains, record, report
from crawler.store.learned.memories import mask_of
from crawler.store.report import Explanation, FeedItem, GivenDate, ListReport, PageFacts


@dataclass(frozen=True, slots=True)
class UrlExplanation:
    """All that is known of a URL of a registered domain, with the sentences that every surface shows.

    untracked: why it is not one of the domain's pages; empty for one that is, and only then the rest says something.
    refused: why it may not be fetched now; empty if it may.  next: when it is fetched next and why.
    change_rate: how often it changes.  waits: why its domain is not being fetched now.
    due: when it would be due at today's price.  fresh: the chance that the stored version is what the server has.
    value: of a visit now, in importance x days.  price: that it has to be worth; None under another policy.
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
    price: float | None = None
    rate_interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class UnknownUrl:
    """A URL of no registered domain. reason: says so."""

    url: Url
    reason: str


async def explain_url(db: Database, text: str, *, at: datetime | None) -> UrlExplanation | UnknownUrl:
    """Explain the URL that a user typed. at: knowledge time; None for now. Raises BadInput."""
    url = url_of(text)
    domain = await domains.find(db, authority_of(url))
    if domain is None:
        return UnknownUrl(url, await not_registered(db, authority_of(url)))
    if at is not None:
        await require_not_before_last_visit(db, [domain], at)
    return await explain_page(db, domain, url, at=at or datetime.now(UTC))


async def explain_page(db: Database, domain: Domain, url: Url, *, at: datetime) -> UrlExplanation:
    """Explain a URL of a domain at an instant."""
    settings, rules = db.settings, PageRules(domain.settings.rules, load(db.settings.plugins).page_score)
    scope = scope_of_pages(domain, settings)
    url = scope.home(url)
    known = await report.explain(db, domain, url, at=at, defaults=defaults_with(settings.defaults, settings.plugins))
    refusal = format_refusal(url, scope, known.robots, agent=settings.agent)
    page = known.page
    if page is None:
        max_pages = domain.settings.max_pages or settings.max_pages
        untracked = format_untracked(url, known, scope, refusal=refusal, max_pages=max_pages)
        return UrlExplanation(url, domain, known, rules, refused=refusal, untracked=untracked)
    today = due_today(known, page, rules)
    return UrlExplanation(
        url,
        domain,
        known,
        rules,
        refused=refusal,
        next=format_next(known, page, today=today, refusal=refusal),
        change_rate=format_change_rate(page, known.prior_source),
        signals=format_signals(known, page) if page.version else "",
        scripts=format_scripts(known),
        waits=await page_wait(db, domain, at=at),
        due=today,
        fresh=chance_unchanged(known, page),
        value=value_now(known, page, rules),
        price=known.terms.price if known.terms and isinstance(known.terms.revisit, PricePolicy) else None,
        rate_interval=credible_interval(page.belief),
    )


async def explain_refusal(db: Database, domain: Domain, url: Url, *, at: datetime) -> str:
    """Return why a URL of a domain may not be fetched now; empty if it may."""
    settings = db.settings
    known = await report.explain(db, domain, url, at=at, defaults=defaults_with(settings.defaults, settings.plugins))
    return format_refusal(url, scope_of_pages(domain, settings), known.robots, agent=settings.agent)


def scope_of_pages(domain: Domain, settings: Settings) -> Scope:
    """Return which URLs are pages of a domain, with the depth that holds where its user set none."""
    return domain.scope(max_depth=settings.max_depth, accepts=load(settings.plugins).accepts)


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
    dates: list[GivenDate]


async def explain_details(db: Database, explanation: UrlExplanation) -> PageDetails:
    """Return what is compared of a page, and what sitemaps and feeds say of it."""
    key = key_of(explanation.url)
    page = explanation.known.page
    content = await _compared_content(db, explanation.domain, page) if page else None
    lists = await report.lists_of(db, explanation.domain, key=key)
    return PageDetails(content, lists[0] if lists else None, await report.dates_given(db, explanation.domain, key))


async def _compared_content(db: Database, domain: Domain, page: PageFacts) -> ComparedContent | None:
    kept = await record.stored_body(db, domain.id, key_of(page.url), page.version, text_digest=b"")
    if kept is None:
        return None
    body = Fetched(200, kept.body, len(kept.body), timedelta(0), kept.content_type)
    async with ParserPool(1, few=1, plugins=load(db.settings.plugins)) as readers:
        parser = DomainParser(readers, PageRules(domain.settings.rules))
        whole, seen = await parser.blocks(body, page.url, view=WHOLE), await parser.blocks(body, page.url)
    if whole is None or seen is None:
        return None
    blocks = explain_blocks(whole, seen, await mask_of(db, domain.id), view=parser.view(page.url))
    return ComparedContent(
        blocks=len(blocks),
        masked=sum(block.is_whole for block in blocks),
        words=sum(len(block.masked) for block in blocks if not block.is_whole),
        last_change=await report.last_of(db, domain, page.url),
    )
