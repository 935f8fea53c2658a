"""The list of a domain's pages, and actions on several of its pages at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import assert_never

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
from crawler.errors import BadInput, name_field
from crawler.store import domains as store
from crawler.store.domain_settings import merge_layers
from crawler.store.report import ALL, FAILING, RENDERED
from crawler.store.report.expressions import list_tracked
from crawler.store.report.page_list import ListedPage, PageListPart, PageOrder, PageQuery, list_pages

LISTS = (ALL, FAILING, *(each.value for each in PageCategory if each is not PageCategory.UNREAD_LIST), RENDERED)
MAX_SELECTED = 200  # pages of one action
BOOST_WEIGHT = 4.0  # as the default of --boost-factor


class PageAction(StrEnum):
    """An action on several pages of a domain."""

    RECRAWL = "recrawl"  # make them due now
    BOOST = "boost"  # multiply their importance by BOOST_WEIGHT, by a rule for each
    ONCE = "once"  # revisit them only on request, by a rule for each
    EXCLUDE = "exclude"  # add them to the excluded patterns of the domain


@dataclass(frozen=True, slots=True)
class PageActionResult:
    """The result of an action on pages. domain: as it is now.  pages: how many.  recrawl: of the action RECRAWL."""

    domain: Domain
    pages: int
    recrawl: RefreshResult | None = None


async def list_domain_pages(
    db: AppDatabase, domain: Domain, query: PageQuery, *, max_count: int, at: datetime
) -> PageListPart:
    """Return a part of the list of a domain's pages (see `store.report.page_list`). Raises BadInput."""
    if query.which not in LISTS:
        raise BadInput(f"{query.which[:40]!r} is not a list of pages: use one of {', '.join(LISTS)}")
    return await list_pages(db, domain, query, max_count=max_count, at=at)


@recorded("act on pages", "action", "urls")
async def act_on_pages(
    db: AppDatabase, domain: Domain, action: PageAction, urls: Sequence[str], *, at: datetime
) -> PageActionResult:
    """Do something with up to MAX_SELECTED pages of a domain. Raises BadInput."""
    if not 0 < len(urls) <= MAX_SELECTED:
        raise BadInput(f"select 1 to {MAX_SELECTED} pages", field="urls")
    with name_field("urls"):
        selected = list(dict.fromkeys(parse_prefix(domain, url) for url in urls))
    patterns = list(map(rules.make_page_pattern, selected))
    match action:
        case PageAction.RECRAWL:
            return PageActionResult(domain, len(selected), await _recrawl_pages(db, domain, selected, at=at))
        case PageAction.BOOST:
            domain = await rules.add_terms(db, domain, patterns, at=at, weight=BOOST_WEIGHT)
        case PageAction.ONCE:
            domain = await rules.add_terms(db, domain, patterns, at=at, once=True)
        case PageAction.EXCLUDE:
            domain = await _exclude(db, domain, patterns, at=at)
        case _:
            assert_never(action)
    return PageActionResult(domain, len(selected))


async def _recrawl_pages(db: AppDatabase, domain: Domain, selected: Sequence[Url], *, at: datetime) -> RefreshResult:
    """Make pages of a domain due now, and start a run that fetches them if a local stack runs. Raises BadInput."""
    tracked = await list_tracked(db, domain, selected)
    if unknown := next((url for url in selected if url not in tracked), None):
        message = f"{unknown} is not a page that may be fetched: recrawl explain {unknown} says why"
        raise BadInput(message, field="urls")
    await store.add_seeds(db, domain, selected, at=at)
    wait = await find_wait(db, domain, at=at)
    run_url = await try_to_recrawl(db, domain, path="")  # the pages are due already
    url = selected[0] if len(selected) == 1 else f"{domain.root}*"
    return RefreshResult(domain, url, len(selected), wait, run_url=run_url)


async def _exclude(db: AppDatabase, domain: Domain, patterns: Sequence[str], *, at: datetime) -> Domain:
    def exclude(layers: LayeredSettings) -> LayeredSettings:
        return layers.set_own({"exclude": tuple(dict.fromkeys([*merge_layers(layers).exclude, *patterns]))})

    return await store.update_settings(db, domain, exclude, at=at)
