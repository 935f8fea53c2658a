"""The public Python API for asyncio: the verbs of recrawl on one open database."""

import asyncio
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta

from crawler.app.changes import ALL_KINDS, iterate_changes
from crawler.app.crawl import CrawlRequest, CrawlResult, crawl, find_targets
from crawler.app.database import Database
from crawler.app.delivery.exports import search_pages
from crawler.app.domains import add_domains
from crawler.app.pages import changes_of, page_named
from crawler.app.registration import domain_named, find_domains, url_of
from crawler.app.reports import measure_freshness
from crawler.app.revisits import refresh
from crawler.app.settings import SettingsPatch
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import PageKey
from crawler.errors import BadInput
from crawler.export.sqlite_index import SearchHit
from crawler.store import report
from crawler.store.report import (
    ChangeFilter,
    DomainReport,
    EventKind,
    FeedItem,
    PageVersion,
    TakenPage,
    VersionContent,
)

USUAL_SETTINGS = DomainSettings()
WEEK = timedelta(days=7)
PAGES_AT_ONCE, BODIES_AT_ONCE = 200, 20
VERSIONS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class App:
    """recrawl, open. Names of domains and pages are taken as the command takes them: names, aliases, URLs.

    Raises BadInput where what was given cannot be used, StoreUnavailable where the database is silent, and other
    CrawlerErrors; each message is a sentence for people. Several tasks may use one App.
    """

    _db: Database = field(repr=False)

    async def add(
        self, *names: str, settings: DomainSettings = USUAL_SETTINGS, offline: bool = False, at: datetime | None = None
    ) -> list[Domain]:
        """Register what each name or URL names; their roots are asked, unless offline. Those that are known stay.

        Raises BadInput for the first one that cannot be; the others are registered all the same.
        """
        given = {each.name: getattr(settings, each.name) for each in fields(settings)}
        usual = {each.name: getattr(USUAL_SETTINGS, each.name) for each in fields(settings)}
        patch = SettingsPatch({name: value for name, value in given.items() if value != usual[name]})
        for name in names:
            url_of(name)  # nothing is registered while any of them is none
        wanted = list(dict.fromkeys(names))
        added = await add_domains(self._db, wanted, patch, offline=offline, at=at or datetime.now(UTC))
        wrong = next((each for each in added if each.domain is None), None)
        if wrong is not None:
            raise BadInput(f"{wrong.name}: {wrong.error}")
        found = {each.name: each.domain for each in added if each.domain is not None}
        return [found[name] for name in names]

    async def domains(self) -> list[Domain]:
        """All that are registered."""
        return await find_domains(self._db)

    async def crawl(
        self,
        *names: str,
        pages: int | None = None,
        time_limit: timedelta | None = None,
        at: datetime | None = None,
        stop: asyncio.Event | None = None,
    ) -> CrawlResult:
        """Fetch what is due in these domains, or in all where none is named, until nothing is due any more.

        The page of a URL with a path is fetched whether it is due or not.  pages, time_limit: at most so many, so long.
        at: knowledge time (docs/theory-of-operation.md).  stop: when it is set, what is under way is recorded, and
        nothing else begins. Domains have to be registered by `add`. Subscribers are not notified.
        """
        targets = await find_targets(self._db, names, at=at)
        request = CrawlRequest(
            role="python",
            at=at,
            max_pages=pages,
            time_limit=time_limit,
            stop=stop or asyncio.Event(),
            ignore_pace=bool(names),
            notify=False,
        )
        return await crawl(self._db, targets, request)

    async def refresh(self, what: str, *, at: datetime | None = None) -> int:
        """Make a page, or all pages beneath a URL, due at once; gives how many there are."""
        return (await refresh(self._db, what, at=at)).pages

    async def changes(
        self,
        what: str | None = None,
        *,
        after: int = 0,
        since: datetime | None = None,
        kinds: Collection[EventKind] = ALL_KINDS,
        follow: bool = False,
    ) -> AsyncGenerator[FeedItem]:
        """What changed, in the order of the feed, with the blocks that did.

        what: of a domain, a page, or what lies beneath a URL; None for all.  after: a cursor, the position of the last
        one that was taken.  since: found at or after that instant.  follow: go on with what is found from now on,
        without an end.
        Raises CursorTooOld where changes after the cursor are not kept any more, and CursorAhead, a BadInput, for one
        beyond the end of the feed, which is of another database.
        """
        where = await changes_of(self._db, what) if what is not None else ChangeFilter()
        wanted = replace(where, after=after, since=since, kinds=frozenset(kinds))
        async with aclosing(iterate_changes(self._db, wanted, follow=follow)) as items:
            async for item in items:
                yield item

    async def cursor(self) -> int:
        """Where the feed ends now: `changes` after it brings what is found from now on."""
        await report.stamp_feed(self._db, at=datetime.now(UTC))
        return await report.end_of_feed(self._db)

    async def pages(self, domain: str, *, bodies: bool = False) -> AsyncGenerator[TakenPage]:
        """The pages of a domain that are there, each with its newest text. bodies: and with what its server sent."""
        found, most, after = await domain_named(self._db, domain), BODIES_AT_ONCE if bodies else PAGES_AT_ONCE, b""
        while batch := await report.pages_to_take(self._db, found, after=PageKey(after), most=most, bodies=bodies):
            for page in batch:
                yield page
            after = batch[-1].key

    async def text(self, url: str, *, version: int | None = None, at: datetime | None = None) -> VersionContent | None:
        """What a page said: its newest version, the one of that number, or the newest at an instant; None without one.

        Its main text is `text`, its body `body`.
        """
        domain, home = await page_named(self._db, url)
        return await report.version_of(self._db, domain, home, number=version, at=at)

    async def versions(self, url: str) -> AsyncGenerator[PageVersion]:
        """The versions of a page, the newest first."""
        domain, home = await page_named(self._db, url)
        before: int | None = None
        while batch := await report.versions_of(self._db, domain, home, most=VERSIONS_AT_ONCE, before=before):
            for version in batch:
                yield version
            before = batch[-1].number

    async def freshness(
        self, domain: str | None = None, *, window: timedelta = WEEK, at: datetime | None = None
    ) -> list[DomainReport]:
        """How fresh a domain is, or all of them, and what that took within the window."""
        wanted = await find_domains(self._db, domain)
        return await measure_freshness(self._db, wanted, window=window, at=at or datetime.now(UTC))

    async def search(self, words: str, *, domain: str | None = None, most: int = 10) -> list[SearchHit]:
        """The parts of pages that say these words, the best first; domain: of that one alone.

        Words are searched for in a full-text index in RECRAWL_HOME, which is brought in step before: the first time all
        pages are read for it.
        """
        return await search_pages(self._db, words, domain=domain, most=most)
