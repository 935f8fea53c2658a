"""The verbs of the API: what each takes, what it gives, and how it reads the store."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from fastapi import HTTPException, Query
from pydantic import BeforeValidator

from crawler import times
from crawler.app.pages import changes_of, page_named
from crawler.app.registration import domain_named
from crawler.core.http import PageKey
from crawler.export import SearchHit, is_searchable, require_words, search
from crawler.format.kinds import parse_kinds
from crawler.runtime.search_index import search_file
from crawler.server.api.values import DomainItem, Items, PageItem, PageText, row
from crawler.store import domains, report
from crawler.store.database import Database
from crawler.store.report import ChangeFilter, DomainReport, EventKind, FeedItem, PageVersion

MAX_CHANGES, MAX_PAGES, MAX_TEXTS, MAX_VERSIONS, MAX_HITS, MAX_REPORTS = 1000, 500, 50, 500, 50, 50
MAX_CHARS = 4 << 20  # of texts in one answer, after the first
MAX_CURSOR, MAX_VERSION = 2**63 - 1, 2**31 - 1
CHANGES_AT_ONCE = 100  # read from the store: of each at most 50 blocks of 500 characters, twice
WEEK = timedelta(days=7)


def _parse_instant(text: str) -> datetime:
    return times.instant(text.replace(" ", "+"))  # a plus that was not escaped


def _text(description: str) -> Any:
    return Query(max_length=8192, description=description)


def _limit(most: int, note: str = "") -> Any:
    return Query(ge=1, le=most, description=f"How many at most.{note}")


Instant = Annotated[datetime, BeforeValidator(_parse_instant)]
CURSOR = "The cursor: `next` of the answer before."
PAGE = _text("The page.")


@dataclass(frozen=True, slots=True)
class Api:
    """The verbs over one store. Each is an address of its name, described by its docstring and annotations.

    home: of the tokens and the search index.  now: knowledge time.  want_index: has the search index brought up to
    date, and returns what prevented that the last time.
    """

    db: Database
    home: Path
    now: Callable[[], datetime]
    want_index: Callable[[], str]

    async def domains(self) -> Items[DomainItem]:
        """List the registered domains."""
        found = [each.domain for each in await domains.every(self.db)]
        return Items(
            [row(DomainItem, each, domain=each.authority, aliases=sorted(each.aliases)) for each in found], None
        )

    async def changes(
        self,
        *,
        what: Annotated[str | None, _text("A domain, a page, or a URL that pages lie beneath.")] = None,
        after: Annotated[int, Query(ge=0, le=MAX_CURSOR, description="The cursor: only what stands behind it.")] = 0,
        since: Annotated[Instant | None, Query(description="Found at or after that instant, ISO 8601.")] = None,
        kind: Annotated[
            str | None,
            Query(description="Only of these kinds, with commas between: new, changed, gone, as the command has them."),
        ] = None,
        limit: Annotated[int, _limit(MAX_CHANGES)] = 100,
    ) -> Items[FeedItem]:
        """List changes in the order of the feed. `next` is never null: keep it, and ask again with it as `after`."""
        where = await changes_of(self.db, what) if what is not None else ChangeFilter()
        kinds = parse_kinds(kind) if kind is not None else frozenset(EventKind)
        wanted = replace(where, after=after, kinds=kinds, since=since)
        await report.stamp_feed(self.db, at=self.now())
        found: list[FeedItem] = []
        chars = 0
        while True:
            batch = min(CHANGES_AT_ONCE, limit - len(found))
            items, cursor = await report.read_on(self.db, wanted, most=batch, blocks=True)
            found += items
            chars += sum(len(side or "") for item in items for edit in item.blocks for side in (edit.was, edit.now))
            if len(items) < batch or len(found) == limit or chars > MAX_CHARS:
                return Items(found, str(cursor))  # also at the end: more will come
            wanted = replace(wanted, after=cursor)

    async def pages(
        self,
        *,
        domain: Annotated[str, _text("A registered domain.")],
        after: Annotated[str, Query(pattern="^([0-9a-f]{2})*$", description=CURSOR)] = "",
        text: Annotated[bool, Query(description="With the main text of each.")] = False,
        limit: Annotated[int, _limit(MAX_PAGES, f" With texts at most {MAX_TEXTS}.")] = 100,
    ) -> Items[PageItem]:
        """List the pages of a domain that are there, by key."""
        found, most = await domain_named(self.db, domain), min(limit, MAX_TEXTS) if text else limit
        batch = await report.pages_to_take(self.db, found, after=PageKey(bytes.fromhex(after)), most=most)
        chars, shown = 0, 0
        for page in batch:
            chars += len(page.text) if text else 0
            if shown and chars > MAX_CHARS:
                break
            shown += 1
        is_last = shown == len(batch) < most
        cursor = None if is_last or not batch else batch[shown - 1].key.hex()
        rows = [
            row(
                PageItem,
                page,
                digest=page.digest.hex() if page.digest is not None else None,
                text=page.text if text else None,
            )
            for page in batch[:shown]
        ]
        return Items(rows, cursor)

    async def text(
        self,
        *,
        url: Annotated[str, PAGE],
        version: Annotated[int | None, Query(ge=1, le=MAX_VERSION, description="The number of a version.")] = None,
        at: Annotated[Instant | None, Query(description="The newest version at that instant, ISO 8601.")] = None,
    ) -> PageText:
        """Return what a page said: its newest version, the one of a number, or the newest at an instant."""
        domain, own_url = await page_named(self.db, url)
        found = await report.version_of(self.db, domain, own_url, number=version, at=at)
        if found is None:
            raise HTTPException(404, f"no such version of {own_url} is kept")
        kept = found.version
        if not kept.is_kept:
            raise HTTPException(404, f"version {kept.number} of {own_url} was thinned out: its text is not kept")
        return row(
            PageText,
            kept,
            url=found.url,
            state=found.state,
            version=kept.number,
            version_at=kept.at,
            text=found.text,
        )

    async def versions(
        self,
        *,
        url: Annotated[str, PAGE],
        before: Annotated[int | None, Query(ge=1, le=MAX_VERSION, description=CURSOR)] = None,
        limit: Annotated[int, _limit(MAX_VERSIONS)] = 100,
    ) -> Items[PageVersion]:
        """List the versions of a page, the newest first."""
        domain, own_url = await page_named(self.db, url)
        found = await report.versions_of(self.db, domain, own_url, most=limit, before=before)
        return Items(found, str(found[-1].number) if len(found) == limit and found[-1].number > 1 else None)

    async def freshness(
        self,
        *,
        domain: Annotated[str | None, _text("A registered domain; else all.")] = None,
        after: Annotated[str, _text(CURSOR)] = "",
        limit: Annotated[int, _limit(MAX_REPORTS)] = 20,
    ) -> Items[DomainReport]:
        """Report how fresh a domain is, or each of them, and what that took within a week."""
        if domain is not None:
            wanted = [await domain_named(self.db, domain)]
        else:
            every = sorted((each.domain for each in await domains.every(self.db)), key=lambda each: each.authority)
            wanted = [each for each in every if each.authority > after]
        found = [
            await report.domain_report(self.db, each, at=self.now(), window=WEEK, kept_for=report.HOWEVER_OLD)
            for each in wanted[:limit]
        ]
        more = wanted[limit - 1].authority if len(wanted) > limit else None
        return Items([each for each in found if each is not None], more)

    async def search(
        self,
        *,
        q: Annotated[
            str,
            _text("Words that all have to occur; a * at the end of one is any ending."),
        ],
        domain: Annotated[str | None, _text("Only of this domain.")] = None,
        limit: Annotated[int, _limit(MAX_HITS)] = 10,
    ) -> Items[SearchHit]:
        """Find the parts of pages that say words, the best first, as they were a minute ago or at the search before."""
        file = search_file(self.home)
        require_words(q)
        trouble = self.want_index()
        if not await asyncio.to_thread(is_searchable, file):
            why = f"there is no index to search ({trouble})" if trouble else "the index to search is being made"
            raise HTTPException(503, f"{why}: ask again", {"retry-after": "5"})
        only = (await domain_named(self.db, domain)).authority if domain is not None else None
        return Items(await asyncio.to_thread(search, file, q, domain=only, most=limit), None)
