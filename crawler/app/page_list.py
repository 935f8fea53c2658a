"""The list of a domain's pages, and actions on several of its pages at once."""

from collections.abc import Sequence
from datetime import datetime

from crawler.app import rules
from crawler.app.action_log import recorded
from crawler.app.database import AppDatabase
from crawler.app.registration import parse_prefix
from crawler.app.revisits import RefreshResult, try_to_recrawl
from crawler.app.status import find_wait
from crawler.core.domain import Domain
from crawler.core.http.urls import Url
from crawler.core.tags import LayeredSettings
from crawler.core.visit.state import PageCategory
from crawler.errors import BadInput
from crawler.store import domains as store
from crawler.store.domain_settings import merge_layers
from crawler.store.report import ALL, FAILING, RENDERED
from crawler.store.report.page_list import ListedPage, PageListPart, PageOrder, PageQuery, list_pages

LISTS = (ALL, FAILING, *(each.value for each in PageCategory if each is not PageCategory.UNREAD_LIST), RENDERED)
MAX_SELECTED = 200  # pages of one action
BOOST_WEIGHT = 4.0  # as the default of --boost-factor


async def list_domain_pages(
    db: AppDatabase, domain: Domain, query: PageQuery, *, max_count: int, at: datetime
) -> PageListPart:
    """Return a part of the list of a domain's pages (see `store.report.page_list`). Raises BadInput."""
    if query.which not in LISTS:
        raise BadInput(f"{query.which[:40]!r} is not a list of pages: use one of {', '.join(LISTS)}")
    return await list_pages(db, domain, query, max_count=max_count, at=at)


@recorded("recrawl", "urls")
async def recrawl_pages(db: AppDatabase, domain: Domain, urls: Sequence[str], *, at: datetime) -> RefreshResult:
    """Make pages of a domain due now, and start a run that fetches them if a local stack runs. Raises BadInput."""
    selected = _parse_selected(domain, urls)
    await store.add_seeds(db, domain, selected, at=at)
    wait = await find_wait(db, domain, at=at)
    run_url = await try_to_recrawl(db, domain, path="")  # the pages are due already
    url = selected[0] if len(selected) == 1 else f"{domain.root}*"
    return RefreshResult(domain, url, len(selected), wait, run_url=run_url)


@recorded("boost pages")
async def boost_pages(db: AppDatabase, domain: Domain, urls: Sequence[str], *, at: datetime) -> Domain:
    """Multiply the importance of pages by BOOST_WEIGHT, with a rule for each. Raises BadInput."""
    return await rules.add_terms(db, domain, _list_patterns(domain, urls), at=at, weight=BOOST_WEIGHT)


@recorded("stop revisits")
async def stop_revisits(db: AppDatabase, domain: Domain, urls: Sequence[str], *, at: datetime) -> Domain:
    """Revisit pages only on request, with a rule for each. Raises BadInput."""
    return await rules.add_terms(db, domain, _list_patterns(domain, urls), at=at, once=True)


@recorded("exclude pages")
async def exclude_pages(db: AppDatabase, domain: Domain, urls: Sequence[str], *, at: datetime) -> Domain:
    """Add pages to the excluded patterns of a domain. Raises BadInput."""
    patterns = _list_patterns(domain, urls)

    def exclude(layers: LayeredSettings) -> LayeredSettings:
        return layers.set_own({"exclude": tuple(dict.fromkeys([*merge_layers(layers).exclude, *patterns]))})

    return await store.update_settings(db, domain, exclude, at=at)


def _list_patterns(domain: Domain, urls: Sequence[str]) -> list[str]:
    return list(map(rules.make_page_pattern, _parse_selected(domain, urls)))


def _parse_selected(domain: Domain, urls: Sequence[str]) -> list[Url]:
    if not 0 < len(urls) <= MAX_SELECTED:
        raise BadInput(f"select 1 to {MAX_SELECTED} pages")
    return list(dict.fromkeys(parse_prefix(domain, url) for url in urls))
