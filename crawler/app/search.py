"""Search for pages of all domains by URL, title and text."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from crawler.app.database import AppDatabase
from crawler.app.delivery.exports import SearchHit, search_index
from crawler.app.pages import resolve_page
from crawler.core.http.urls import Url
from crawler.errors import BadInput, CrawlerError
from crawler.export.sqlite_index import is_searchable, search_titles
from crawler.runtime.machine import get_search_file
from crawler.store.report.page_list import FoundPage, find_page, find_pages

MAX_WORDS = 16
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A page that contains the search words. excerpt: the text around them; empty if only URL or title have them.

    heading: the headings above the excerpt.
    """

    url: Url
    domain: str
    title: str
    heading: str = ""
    excerpt: str = ""


@dataclass(frozen=True, slots=True)
class SearchFacts:
    """The results of a search: first the pages whose URL or title has the words, then those whose text has them.

    has_index: whether texts were searched.  problems: why a part of the search found nothing.
    """

    words: str
    named: tuple[SearchResult, ...] = ()
    texts: tuple[SearchResult, ...] = ()
    has_index: bool = True
    problems: tuple[str, ...] = ()


async def search_everywhere(db: AppDatabase, typed: str, *, max_count: int) -> SearchFacts:
    """Return up to max_count pages by URL and title, and as many by text, from the last synced index.

    URLs and titles are searched in the database; titles in the index if there is one, which is faster. Each of these
    searches is limited in time, and its problem is returned.
    """
    words = tuple(typed.split())
    if not words:
        return SearchFacts(typed)
    if len(words) > MAX_WORDS:
        return SearchFacts(typed, problems=(f"search for at most {MAX_WORDS} words",))
    problems: list[str] = []

    async def attempt(search: Coroutine[Any, Any, list[T]]) -> list[T]:
        try:
            return await search
        except CrawlerError as error:
            problems.append(str(error))
            return []

    file = await asyncio.to_thread(get_search_file, db.settings.home.resolve())
    has_index = await asyncio.to_thread(is_searchable, file)
    titles = _search_titles(file, words, max_count) if has_index else _find(db, words, max_count, in_titles=True)
    async with asyncio.TaskGroup() as tasks:
        exact = tasks.create_task(attempt(_find_exact(db, typed)))
        urls = tasks.create_task(attempt(_find(db, words, max_count, in_titles=False)))
        named = tasks.create_task(attempt(titles))
        hits = tasks.create_task(attempt(_search_texts(db, typed, max_count)))
    by_url = {each.url: each for each in chain(exact.result(), urls.result(), named.result())}
    texts: dict[Url, SearchResult] = {}
    for hit in hits.result():
        texts.setdefault(hit.url, SearchResult(hit.url, hit.domain, hit.title, hit.heading, hit.excerpt))
    shown = tuple(by_url.values())[:max_count]
    return SearchFacts(typed, shown, tuple(texts.values()), has_index, tuple(dict.fromkeys(problems)))


async def _find_exact(db: AppDatabase, typed: str) -> list[SearchResult]:
    """Return the page with this URL, if there is one."""
    try:
        domain, url = await resolve_page(db, typed)
    except BadInput:
        return []
    page = await find_page(db, domain, url)
    return [_make_result(page)] if page is not None else []


async def _find(db: AppDatabase, words: tuple[str, ...], max_count: int, *, in_titles: bool) -> list[SearchResult]:
    return list(map(_make_result, await find_pages(db, words, in_titles=in_titles, max_count=max_count)))


async def _search_titles(file: Path, words: tuple[str, ...], max_count: int) -> list[SearchResult]:
    found = await asyncio.to_thread(search_titles, file, words, max_count=max_count)
    return [SearchResult(*each) for each in found]


async def _search_texts(db: AppDatabase, typed: str, max_count: int) -> list[SearchHit]:
    return await search_index(db.settings.home.resolve(), typed, domain=None, max_count=max_count) or []


def _make_result(page: FoundPage) -> SearchResult:
    return SearchResult(page.url, page.domain, page.title)
