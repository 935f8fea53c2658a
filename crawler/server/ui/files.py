"""The web UI as static files: the home page, the changes, the domains and some of their pages, without forms."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from crawler.app.changes import NEWEST, AppDatabase, FeedItem, read_newest_changes
from crawler.app.overview import DomainFacts, DomainQuery, examine_domain, list_domains
from crawler.app.pages import Domain, Url, VersionsQuery
from crawler.app.running.serving import open_parsers
from crawler.errors import CrawlerError
from crawler.server.ui.change_and_url_pages import ChangeFacts, ChangeListQuery, load_url_facts
from crawler.server.ui.domain_tabs import (
    Tab,
    describe_freshness,
    describe_rules,
    describe_settings,
    describe_traffic,
    group_by_page,
)
from crawler.server.ui.fields import GROUPS
from crawler.server.ui.links import UiLinks
from crawler.server.ui.render import render_changes_page, render_domain_page, render_overview_page, render_url_page

MAX_CHANGES = 200  # changes in changes.html
MAX_DOMAIN_CHANGES = 5  # changes on the page of a domain; the home page has twice as many
MAX_PAGES = 200  # pages of a domain that get a file: recently changed, likely stale, failing, gone ...


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The written files. index: the home page.  files: their number."""

    index: Path
    files: int


async def write_pages(db: AppDatabase, domains: Sequence[Domain], folder: Path, *, at: datetime) -> WriteResult:
    """Write the web UI of these domains to a folder. Raises CrawlerError if a file cannot be written."""
    all_facts = [facts for domain in domains if (facts := await examine_domain(db, domain, at=at)) is not None]
    items = {}
    for facts in all_facts:
        only = replace(NEWEST, domain_id=facts.head.domain.id)
        newest = await read_newest_changes(db, only, at=at, max_count=MAX_CHANGES)
        items[facts.head.domain.id] = newest
    pages = {facts.head.domain.id: _select_pages(facts, items[facts.head.domain.id]) for facts in all_facts}
    links = UiLinks(frozenset(url for urls in pages.values() for url in urls))
    _make_folder(folder)
    async with open_parsers(db.settings) as parsers:
        for facts in all_facts:
            domain = facts.head.domain
            text = _render_domain(facts, items[domain.id][:MAX_DOMAIN_CHANGES], links)
            _write_file(folder / links.domain(domain.authority), text)
            for url in pages[domain.id]:
                page_facts = await load_url_facts(db, domain, url, VersionsQuery(), parsers=parsers, at=at)
                _write_file(folder / links.page(url), render_url_page(page_facts, links=links))
    all_items = sorted(chain.from_iterable(items.values()), key=lambda item: item.page_cursor, reverse=True)
    changes = ChangeFacts(at=at, query=ChangeListQuery(), names=(), items=tuple(all_items[:MAX_CHANGES]), more="")
    _write_file(folder / links.changes(), render_changes_page(changes, links=links))
    query = DomainQuery(only=[facts.head.domain.id for facts in all_facts])
    home = await list_domains(db, query, max_count=len(all_facts), at=at)
    text = render_overview_page(home, all_items[: 2 * MAX_DOMAIN_CHANGES], links=links)
    index = _write_file(folder / links.home(), text)
    return WriteResult(index=index, files=2 + len(all_facts) + sum(map(len, pages.values())))


def _render_domain(facts: DomainFacts, items: Sequence[FeedItem], links: UiLinks) -> str:
    """Render all parts of the page of a domain into one file."""
    domain = facts.head.domain
    context = describe_freshness(facts.freshness, links) | describe_traffic(facts.traffic) | describe_rules(domain)
    context |= describe_settings(domain, next(iter(GROUPS)))
    context |= {"changed_pages": group_by_page(items), "groups": facts.groups, "near_duplicates": facts.near_duplicates}
    return render_domain_page(facts.head, list(Tab), links=links, part=None, read_until=None, **context)


def _select_pages(facts: DomainFacts, items: Iterable[FeedItem]) -> list[Url]:
    """Return the pages of a domain that get a file."""
    urls = [item.url for item in items]
    urls += [stale_page.page.url for stale_page in facts.freshness.stale_pages]
    urls += [page.url for group in facts.groups for page in group.pages]
    return list(dict.fromkeys(urls))[:MAX_PAGES]


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CrawlerError(f"{folder} cannot be created: {error.strerror}") from error


def _write_file(file: Path, text: str) -> Path:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CrawlerError(f"{file} cannot be written: {error.strerror}") from error
    return file
