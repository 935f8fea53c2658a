"""The addresses of the API: what each takes and gives, and how it asks the store."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from crawler.app.registration import domain_named
from crawler.app.find_pages import changes_of, page_named
from crawler.core.http import PageKey
from crawler.export import SearchHit, is_searchable, require_words, search
from crawler.runtime.search_index import search_file
from crawler.server.api import parameters as given
from crawler.server.api.parameters import QueryParameter
from crawler.server.api.problems import Problem
from crawler.server.api.values import DomainItem, PageItem, PageText
from crawler.store import domains, report
from crawler.store.database import Database
from crawler.store.report import ChangeFilter, DomainReport, FeedItem, PageVersion

MOST_CHANGES, MOST_PAGES, MOST_TEXTS, MOST_VERSIONS, MOST_HITS = 1000, 500, 50, 500, 50
MOST_CHARS = 4 << 20  # of texts in one answer, after the first
CHANGES_AT_ONCE = 100  # read from the store: of each at most 50 blocks of 500 characters, twice
WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: the store, the home of the server, knowledge time, and the values of its parameters.

    want_index: has the index of searches brought in step, and says what kept it from that last time.
    """

    db: Database
    home: Path
    at: datetime
    values: Mapping[str, Any]
    want_index: Callable[[], str]


@dataclass(frozen=True, slots=True)
class ListedItems:
    """Items, and the cursor from which to go on; None at the end."""

    items: Sequence[object]
    next: str | None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address. item: the class of its items, or of its one answer.  is_list: whether it gives many."""

    path: str
    summary: str
    parameters: tuple[QueryParameter, ...]
    item: type
    answer: Callable[[Asked], Awaitable[ListedItems | object]]
    is_list: bool = True

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


async def _domains(asked: Asked) -> ListedItems:
    return ListedItems([DomainItem.of(each.domain) for each in await domains.every(asked.db)], None)


async def _changes(asked: Asked) -> ListedItems:
    what, most = asked.values["what"], asked.values["limit"]
    where = await changes_of(asked.db, what) if what is not None else ChangeFilter()
    wanted = replace(where, after=asked.values["after"], kinds=asked.values["kind"], since=asked.values["since"])
    await report.stamp_feed(asked.db, at=asked.at)
    items, cursor = await _within_chars(asked.db, wanted, most=most)
    return ListedItems(items, str(cursor))  # also at the end: more will come


async def _within_chars(db: Database, wanted: ChangeFilter, *, most: int) -> tuple[list[FeedItem], int]:
    """So many changes, or fewer where their blocks say much, and the cursor from which to go on."""
    found: list[FeedItem] = []
    chars = 0
    while True:
        batch = min(CHANGES_AT_ONCE, most - len(found))
        items, cursor = await report.read_on(db, wanted, most=batch, blocks=True)
        found += items
        chars += sum(len(side or "") for item in items for edit in item.blocks for side in (edit.was, edit.now))
        if len(items) < batch or len(found) == most or chars > MOST_CHARS:
            return found, cursor
        wanted = replace(wanted, after=cursor)


async def _pages(asked: Asked) -> ListedItems:
    domain, with_text = await domain_named(asked.db, asked.values["domain"]), asked.values["text"]
    most = min(asked.values["limit"], MOST_TEXTS) if with_text else asked.values["limit"]
    batch = await report.pages_to_take(asked.db, domain, after=PageKey(asked.values["after"]), most=most)
    chars, shown = 0, 0
    for page in batch:
        chars += len(page.text) if with_text else 0
        if shown and chars > MOST_CHARS:
            break
        shown += 1
    is_last = shown == len(batch) < most
    cursor = None if is_last or not batch else batch[shown - 1].key.hex()
    return ListedItems([PageItem.of(page, with_text=with_text) for page in batch[:shown]], cursor)


async def _text(asked: Asked) -> PageText:
    domain, url = await page_named(asked.db, asked.values["url"])
    found = await report.version_of(asked.db, domain, url, number=asked.values["version"], at=asked.values["at"])
    if found is None:
        raise Problem(404, f"no such version of {url} is kept")
    if not found.version.is_kept:
        raise Problem(404, f"version {found.version.number} of {url} was thinned out: its text is not kept")
    return PageText.of(found)


async def _versions(asked: Asked) -> ListedItems:
    domain, url = await page_named(asked.db, asked.values["url"])
    most = asked.values["limit"]
    found = await report.versions_of(asked.db, domain, url, most=most, before=asked.values["before"])
    return ListedItems(found, str(found[-1].number) if len(found) == most and found[-1].number > 1 else None)


async def _freshness(asked: Asked) -> ListedItems:
    name = asked.values["domain"]
    wanted = [await domain_named(asked.db, name)] if name is not None else await _first_domains(asked)
    found = [
        await report.domain_report(asked.db, each, at=asked.at, window=WEEK, kept_for=report.HOWEVER_OLD)
        for each in wanted[: asked.values["limit"]]
    ]
    more = wanted[asked.values["limit"] - 1].authority if len(wanted) > asked.values["limit"] else None
    return ListedItems([each for each in found if each is not None], more)


async def _first_domains(asked: Asked) -> list[Any]:
    every = sorted((each.domain for each in await domains.every(asked.db)), key=lambda domain: domain.authority)
    return [domain for domain in every if domain.authority > (asked.values["after"] or "")]


async def _search(asked: Asked) -> ListedItems:
    file = search_file(asked.home)
    require_words(asked.values["q"])
    trouble = asked.want_index()
    if not await asyncio.to_thread(is_searchable, file):
        why = f"there is no index to search ({trouble})" if trouble else "the index to search is being made"
        raise Problem(503, f"{why}: ask again", {"retry-after": "5"})
    domain = asked.values["domain"]
    only = (await domain_named(asked.db, domain)).authority if domain is not None else None
    hits = await asyncio.to_thread(search, file, asked.values["q"], domain=only, most=asked.values["limit"])
    return ListedItems(hits, None)


ROOT = "/api/v1"
URL = given.text("url", "The page.", required=True)
ENDPOINTS = (
    Endpoint(f"{ROOT}/domains", "The registered domains.", (), DomainItem, _domains),
    Endpoint(
        f"{ROOT}/changes",
        "What changed, in the order of the feed. The cursor is kept by whoever asks: go on with after=next.",
        (
            given.text("what", "A domain, a page, or a URL that pages lie beneath; all where it is left out."),
            given.number("after", "The cursor: only what stands behind it in the feed.", default=0),
            given.instant("since", "Found at or after that instant, ISO 8601."),
            given.kinds(),
            given.limit(MOST_CHANGES, default=100),
        ),
        FeedItem,
        _changes,
    ),
    Endpoint(
        f"{ROOT}/pages",
        "The pages of a domain that are there, by key; with their texts some dozens at a time.",
        (
            given.text("domain", "A registered domain.", required=True),
            given.place("after", "The cursor: `next` of the answer before."),
            given.yes_or_no("text", "With the main text of each."),
            given.limit(MOST_PAGES, default=100),
        ),
        PageItem,
        _pages,
    ),
    Endpoint(
        f"{ROOT}/text",
        "What a page said: its newest version, the one of a number, or the newest at an instant.",
        (
            URL,
            given.QueryParameter(
                "version",
                "Its number.",
                {"type": "integer", "minimum": 1, "maximum": given.MOST_VERSION},
                given.number("version", "", least=1, most=given.MOST_VERSION).read,
            ),
            given.instant("at", "ISO 8601."),
        ),
        PageText,
        _text,
        is_list=False,
    ),
    Endpoint(
        f"{ROOT}/versions",
        "The versions of a page, the newest first.",
        (
            URL,
            given.QueryParameter(
                "before",
                "The cursor: `next` of the answer before.",
                {"type": "integer", "minimum": 1, "maximum": given.MOST_VERSION},
                given.number("before", "", least=1, most=given.MOST_VERSION).read,
            ),
            given.limit(MOST_VERSIONS, default=100),
        ),
        PageVersion,
        _versions,
    ),
    Endpoint(
        f"{ROOT}/freshness",
        "How fresh a domain is, or each of them, and what that took within a week.",
        (
            given.text("domain", "A registered domain; all where it is left out."),
            given.text("after", "The cursor: `next` of the answer before."),
            given.limit(50, default=20),
        ),
        DomainReport,
        _freshness,
    ),
    Endpoint(
        f"{ROOT}/search",
        "The parts of pages that say these words, the best first, as they were a minute ago or at the search before.",
        (
            given.text(
                "q", "Words, all of which are to be said; a * at the end of one stands for any ending.", required=True
            ),
            given.text("domain", "Of that one alone."),
            given.limit(MOST_HITS, default=10),
        ),
        SearchHit,
        _search,
    ),
)
