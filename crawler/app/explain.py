"""Explanations of URLs: whether and when a page is fetched and why, and what is known about its content."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.app.database import AppDatabase
from crawler.app.registration import format_not_registered, parse_typed_url, require_after_last_visit
from crawler.app.rules import describe_rule
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
from crawler.core.visit.state import State
from crawler.engine.parsing.parser_pool import DomainParser, ParserPool
from crawler.format import explanation as words
from crawler.format.explanation import format_change_rate, format_exclusion, format_scripts
from crawler.format.trust import describe_trust, format_conditional_request
from crawler.json_lines import get_field_values, pick_fields
from crawler.planner.page_value import Due, compute_chance_unchanged, compute_due, compute_visit_value
from crawler.plugins import add_plugin_defaults, load_plugins
from crawler.settings import Settings
from crawler.store import domains, record, report
from crawler.store.learned.domain_memory import read_mask
from crawler.store.report import AnnouncedDate, Explanation, FeedItem, ListReport, PageFacts


@dataclass(frozen=True, slots=True)
class UrlExplanation:
    """Everything that is known about a URL of a registered domain, with sentences for users.

    rules: the domain's rules, with the page score of plugins.
    exclusion: why it may not be fetched now; empty if it may.
    untracked: why it is not a page of the domain; empty if it is. The fields below are only set for a page.
    next: when it is fetched next and why.  change_rate: how often it changes.
    signals: its change signals, a line per source.  scripts: how its last visit handled its scripts.
    waits: why its domain is not being fetched now, unless nothing is due; empty without a reason.
    due: when it would be due by the current plan and rules.
    fresh: the probability that the stored version is current.
    value: the value of a visit now, in importance x days.
    shadow_price: the minimum value of a visit; None if unknown, or under another revisit policy than `value`.
    rate_interval: the 90% credible interval of the change rate, in changes per day.
    """

    url: Url
    domain: Domain
    known: Explanation
    rules: PageRules
    exclusion: str
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
    """A URL of an unregistered domain. reason: the message that its domain is not registered."""

    url: Url
    reason: str


async def explain_url(db: AppDatabase, text: str, *, at: datetime | None) -> UrlExplanation | UnknownUrl:
    """Explain the URL that a user typed. at: knowledge time; None for now. Raises BadInput."""
    url = parse_typed_url(text)
    domain = await domains.find_domain(db, get_authority(url))
    if domain is None:
        return UnknownUrl(url, await format_not_registered(db, get_authority(url)))
    if at is not None:
        await require_after_last_visit(db, [domain], at)
    return await explain_page(db, domain, url, at=at or datetime.now(UTC))


async def explain_for_json(db: AppDatabase, text: str, *, at: datetime | None = None) -> dict[str, object]:
    """Return all that is known about the URL that a user typed, for JSON. at: as in `explain_url`. Raises BadInput."""
    explanation = await explain_url(db, text, at=at)
    if isinstance(explanation, UnknownUrl) or explanation.known.page is None:
        return describe_untracked(explanation)
    return describe_explanation(explanation, explanation.known.page, await explain_details(db, explanation))


async def explain_page(db: AppDatabase, domain: Domain, url: Url, *, at: datetime) -> UrlExplanation:
    """Explain a URL of a domain at a time."""
    rules = PageRules(domain.settings.rules, load_plugins(db.settings.plugins).page_score)
    scope = make_page_scope(domain, db.settings)
    url = scope.to_domain_url(url)
    stored, exclusion = await _read_explanation(db, domain, url, scope, at=at)
    page, terms = stored.page, stored.terms
    if page is None:
        max_pages = domain.settings.max_pages or db.settings.max_pages
        untracked = words.format_untracked(url, stored, scope, exclusion=exclusion, max_pages=max_pages)
        return UrlExplanation(url, domain, stored, rules, exclusion=exclusion, untracked=untracked)
    due = compute_due(stored, page, rules)
    return UrlExplanation(
        url,
        domain,
        stored,
        rules,
        exclusion=exclusion,
        next=words.format_next_fetch(stored, page, today=due, exclusion=exclusion),
        change_rate=format_change_rate(page, stored.prior_source),
        signals=words.format_signals(stored, page) if page.version else "",
        scripts=format_scripts(stored),
        waits=await format_page_wait(db, domain, at=at),
        due=due,
        fresh=compute_chance_unchanged(stored, page),
        value=compute_visit_value(stored, page, rules),
        shadow_price=terms.shadow_price if terms and isinstance(terms.revisit, ValuePolicy) else None,
        rate_interval=compute_credible_interval(page.rate_estimate),
    )


async def explain_exclusion(db: AppDatabase, domain: Domain, url: Url, *, at: datetime) -> str:
    """Return why a URL of a domain may not be fetched now; empty if it may."""
    return (await _read_explanation(db, domain, url, make_page_scope(domain, db.settings), at=at))[1]


async def _read_explanation(
    db: AppDatabase, domain: Domain, url: Url, scope: Scope, *, at: datetime
) -> tuple[Explanation, str]:
    """Return what is known about a URL, and why it may not be fetched now."""
    defaults = add_plugin_defaults(db.settings.defaults, db.settings.plugins)
    stored = await report.explain_url(db, domain, url, at=at, defaults=defaults)
    return stored, format_exclusion(url, scope, stored.robots, agent=db.settings.user_agent)


def make_page_scope(domain: Domain, settings: Settings) -> Scope:
    """Return the scope of a domain, with the default depth if its settings have none, and the filters of plugins."""
    return domain.build_scope(max_depth=settings.max_depth, accepts=load_plugins(settings.plugins).accepts)


@dataclass(frozen=True, slots=True)
class ComparedContent:
    """How much of a page's last version is compared, and its last change.

    blocks, masked: the number of all blocks, and of blocks that are masked as a whole.
    words: the number of masked words in the other blocks.
    """

    blocks: int
    masked: int
    words: int
    last_change: FeedItem | None


@dataclass(frozen=True, slots=True)
class PageDetails:
    """The content of a page, and its relation to sitemaps and feeds.

    content: None if the body of its last version is not stored or cannot be parsed.  source: facts about the page as
    sitemap or feed; None for other pages.  dates: the dates that sitemaps and feeds give for the page.
    """

    content: ComparedContent | None
    source: ListReport | None
    dates: list[AnnouncedDate]


async def explain_details(db: AppDatabase, explanation: UrlExplanation) -> PageDetails:
    """Return how much of a page is compared, and what sitemaps and feeds contain about it."""
    domain, page, key = explanation.domain, explanation.known.page, compute_page_key(explanation.url)
    content = await _read_compared_content(db, domain, page) if page else None
    lists = await report.read_url_lists(db, domain, key=key)
    return PageDetails(content, lists[0] if lists else None, await report.list_announced_dates(db, domain, key))


async def _read_compared_content(db: AppDatabase, domain: Domain, page: PageFacts) -> ComparedContent | None:
    stored = await record.load_stored_body(db, domain.id, compute_page_key(page.url), page.version, text_digest=b"")
    if stored is None:
        return None
    response = Fetched(200, stored.body, len(stored.body), timedelta(0), stored.content_type)
    async with ParserPool(1, plugins=load_plugins(db.settings.plugins)) as parsers:
        parser = DomainParser(parsers, PageRules(domain.settings.rules))
        all_blocks = await parser.parse_blocks(response, page.url, view=FULL_VIEW)
        compared_blocks = await parser.parse_blocks(response, page.url)
    if all_blocks is None or compared_blocks is None:
        return None
    mask, view = await read_mask(db, domain.id), parser.build_view(page.url)
    blocks = explain_blocks(all_blocks, compared_blocks, mask, view=view)
    return ComparedContent(
        blocks=len(blocks),
        masked=sum(block.is_whole for block in blocks),
        words=sum(len(block.masked) for block in blocks if not block.is_whole),
        last_change=await report.read_last_change(db, domain, page.url),
    )


def format_next_request(page: PageFacts, known: Explanation) -> str:
    """Return how the next visit of a page requests it."""
    about = {"by_head": known.uses_head, "validator_check": known.is_validator_check}
    return format_conditional_request(
        page.validators, known.trust, template=page.template, suspected=known.suspected, **about
    )


def describe_untracked(explanation: UrlExplanation | UnknownUrl) -> dict[str, object]:
    """Return the explanation of a URL that is not a page for JSON."""
    if isinstance(explanation, UnknownUrl):
        reason, links = explanation.reason, {"links": 0, "linking_pages": ()}
    else:
        reason, links = explanation.untracked, pick_fields(explanation.known, "links", "linking_pages")
    return {"url": explanation.url, "tracked": False, "reason": reason, **links}


def describe_explanation(about: UrlExplanation, page: PageFacts, details: PageDetails) -> dict[str, object]:
    """Return the explanation of a page for JSON."""
    domain, stored = about.domain, about.known
    rates = {"rate_per_day": page.rate_estimate.rate_per_day, "rate_per_day_90": about.rate_interval}
    return {
        "url": page.url,
        "tracked": True,
        "domain": domain.authority,
        "next": about.next,
        **pick_fields(stored, "at", "waiting", "prior_source", "sources", "visits", "links", "linking_pages"),
        "excluded_now": about.exclusion,
        **pick_fields(about, "change_rate", "value", "shadow_price"),
        "revisit": domain.settings.revisit,
        "terms": stored.terms and get_field_values(stored.terms) | {"revisit": domain.settings.revisit},
        "due_today": about.due,
        "next_request": format_next_request(page, stored),
        "trust": describe_trust(stored.trust),
        "rules": [describe_rule(rule) for rule in domain.settings.rules if rule.matches(page.url)],
        "page": get_field_values(page) | rates,
        "orphan": stored.is_orphan,
        "content": details.content,
        "domain_wait": about.waits,
        "list": details.source,
        "dates": details.dates,
    }
