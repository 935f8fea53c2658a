"""The store, open: what can be asked of it and done with it, for asyncio."""

import asyncio
from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta

from crawler.api.search import searched
from crawler.app.registration import authority_in, domain_named, require_not_before_last_visit
from crawler.cli.actions.crawls.dead_leases import free_dead_leases
from crawler.cli.actions.crawls.refresh import ask_for_refresh
from crawler.cli.actions.domains.register import register_all
from crawler.cli.settings_options import SettingsPatch
from crawler.cli.which_page import changes_of, page_named
from crawler.clock import Clock
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http import PageKey
from crawler.engine import CrawlLimits, ShiftResult, holder_name, open_resources, run_shift, settle_memory
from crawler.errors import BadInput
from crawler.export import SearchHit
from crawler.plugins import load
from crawler.runtime.secrets import secrets_of
from crawler.settings import Settings
from crawler.store import domains, report
from crawler.store.database import Database
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
EVERY_KIND = frozenset(EventKind)
WEEK = timedelta(days=7)
CHANGES_AT_ONCE = 500
PAGES_AT_ONCE, BODIES_AT_ONCE = 200, 20
VERSIONS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Store:
    """An open store. Names of domains and pages are taken as the command takes them: names, aliases, URLs.

    What raises: BadInput where what was given cannot be used, StoreUnavailable where the database is silent, and other
    CrawlerErrors; each message is a sentence for people. Several tasks may use one Store.
    """

    _db: Database = field(repr=False)
    _settings: Settings = field(repr=False)

    async def add(
        self, *names: str, settings: DomainSettings = USUAL_SETTINGS, offline: bool = False, at: datetime | None = None
    ) -> list[Domain]:
        """Register what each name or URL names; their roots are asked, unless offline. Those that are known stay.

        Raises BadInput for the first one that cannot be; the others are registered all the same.
        """
        given = {each.name: getattr(settings, each.name) for each in fields(settings)}
        usual = {each.name: getattr(USUAL_SETTINGS, each.name) for each in fields(settings)}
        patch = SettingsPatch({name: value for name, value in given.items() if value != usual[name]})
        known = {name: await domains.find(self._db, authority_in(name)) for name in names}
        new = [name for name in dict.fromkeys(names) if known[name] is None]
        added = await register_all(self._db, new, patch, offline=offline, at=at or datetime.now(UTC))
        wrong = next((each for each in added if each.domain is None), None)
        if wrong is not None:
            raise BadInput(f"{wrong.text}: {wrong.error}")
        found = known | {each.text: each.domain for each in added}
        return [domain for name in names if (domain := found[name]) is not None]

    async def domains(self) -> list[Domain]:
        """All that are registered."""
        return [each.domain for each in await domains.every(self._db)]

    async def crawl(
        self,
        *names: str,
        pages: int | None = None,
        time_limit: timedelta | None = None,
        at: datetime | None = None,
        stop: asyncio.Event | None = None,
    ) -> ShiftResult:
        """Look at what is due in these domains, or in all where none is named, until nothing is due any more.

        pages, time_limit: at most so many looks, so long.  at: knowledge time (docs/theory-of-operation.md).
        stop: when it is set, what is under way is recorded, and no more begun. `add` registers domains before.
        """
        only = [await domain_named(self._db, name) for name in names] if names else None
        if at is not None:
            await require_not_before_last_visit(self._db, only or await self.domains(), at)
        used = self._settings.model_copy(update={"pace": False}) if names else self._settings
        load(used.plugins)
        if used.database_url is None:
            await free_dead_leases(self._db)
        async with open_resources(used, find_secret=secrets_of(used)) as webs:
            settle_memory()
            return await run_shift(
                self._db,
                webs,
                settings=used,
                clock=Clock.at(at),
                holder=holder_name("python"),
                only=only,
                limits=CrawlLimits(pages, time_limit, stop or asyncio.Event()),
            )

    async def refresh(self, what: str, *, at: datetime | None = None) -> int:
        """Make a page, or all pages beneath a URL, due at once; gives how many there are."""
        domain, url = await page_named(self._db, what)
        return (await ask_for_refresh(self._db, domain, url, at=at)).pages

    async def changes(
        self,
        what: str | None = None,
        *,
        after: int = 0,
        since: datetime | None = None,
        kinds: Collection[EventKind] = EVERY_KIND,
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
        async with report.announcements(self._db) as announced:
            while True:
                await report.stamp_feed(self._db, at=datetime.now(UTC))
                items, cursor = await report.read_on(self._db, wanted, most=CHANGES_AT_ONCE, blocks=True)
                for item in items:
                    yield item
                wanted = replace(wanted, after=cursor)
                if items:
                    continue
                if not follow:
                    return
                await announced.wait()

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
        wanted = [await domain_named(self._db, domain)] if domain is not None else await self.domains()
        instant = at or datetime.now(UTC)
        found = [await report.domain_report(self._db, each, at=instant, window=window) for each in wanted]
        return [each for each in found if each is not None]

    async def search(self, words: str, *, domain: str | None = None, most: int = 10) -> list[SearchHit]:
        """The parts of pages that say these words, the best first; domain: of that one alone.

        Words are searched for in a full-text index in RECRAWL_HOME, which is brought in step before: the first time all
        pages are read for it.
        """
        only = await domain_named(self._db, domain) if domain is not None else None
        return await searched(self._db, self._settings.home.resolve(), words, only=only, most=most)
