"""The public Python API: the verbs of recrawl on one open database, for asyncio and for programs that block."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator
from contextlib import AsyncExitStack, ExitStack, aclosing, suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import Concatenate, ParamSpec, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal
from pydantic import SecretStr

from crawler.app.changes import ALL_KINDS, iterate_changes
from crawler.app.crawl import CrawlRequest, CrawlResult, crawl, find_targets
from crawler.app.database import AppDatabase, open_configured_database
from crawler.app.delivery.exports import search_pages
from crawler.app.domains import add_domains
from crawler.app.pages import find_text, make_target_filter, resolve_page
from crawler.app.registration import find_domains, get_domain, parse_typed_url
from crawler.app.reports import measure_freshness
from crawler.app.revisits import request_refresh
from crawler.app.settings import SettingsPatch
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.errors import BadInput
from crawler.export.export import PageSource, RowKind
from crawler.export.sqlite_index import SearchHit
from crawler.settings import Settings, get_settings
from crawler.store import report
from crawler.store.report import (
    ChangeFilter,
    DomainReport,
    EventKind,
    ExportedPage,
    FeedItem,
    PageVersion,
    VersionContent,
)

DEFAULT_SETTINGS = DomainSettings()
WEEK = timedelta(days=7)
VERSIONS_PER_BATCH = 100


@dataclass(frozen=True, slots=True)
class App:
    """recrawl, open. Names of domains and pages are taken as the command takes them: names, aliases, URLs.

    Raises BadInput where what was given cannot be used, StoreUnavailable where the database is silent, and other
    CrawlerErrors; each message is a sentence for people. Several tasks may use one App.
    """

    _db: AppDatabase = field(repr=False)

    async def add(
        self,
        *names: str,
        settings: DomainSettings = DEFAULT_SETTINGS,
        offline: bool = False,
        at: datetime | None = None,
    ) -> list[Domain]:
        """Register what each name or URL names; their roots are asked, unless offline. Those that are known stay.

        Raises BadInput for the first one that cannot be; the others are registered all the same.
        """
        values = {each.name: getattr(settings, each.name) for each in fields(settings)}
        patch = SettingsPatch(
            {name: value for name, value in values.items() if value != getattr(DEFAULT_SETTINGS, name)}
        )
        for name in names:
            parse_typed_url(name)  # nothing is registered while any of them is none
        unique_names = list(dict.fromkeys(names))
        added = await add_domains(self._db, unique_names, patch, offline=offline, at=at or datetime.now(UTC))
        failed = next((each for each in added if each.domain is None), None)
        if failed is not None:
            raise BadInput(f"{failed.name}: {failed.error}")
        domains_by_name = {each.name: each.domain for each in added if each.domain is not None}
        return [domains_by_name[name] for name in names]

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
        return (await request_refresh(self._db, what, at=at)).pages

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
        where = await make_target_filter(self._db, what) if what is not None else ChangeFilter()
        change_filter = replace(where, after=after, since=since, kinds=frozenset(kinds))
        async with aclosing(iterate_changes(self._db, change_filter, follow=follow)) as items:
            async for item in items:
                yield item

    async def cursor(self) -> int:
        """Where the feed ends now: `changes` after it brings what is found from now on."""
        await report.append_to_feed(self._db, at=datetime.now(UTC))
        return await report.read_feed_end(self._db)

    async def pages(self, domain: str, *, bodies: bool = False) -> AsyncGenerator[ExportedPage]:
        """The pages of a domain that are there, each with its newest text. bodies: and with what its server sent."""
        source = PageSource(self._db, await get_domain(self._db, domain), RowKind.PAGES, with_bodies=bodies)
        async for batch, _ in source.read_all():
            for page in batch:
                yield page

    async def text(self, url: str, *, version: int | None = None, at: datetime | None = None) -> VersionContent | None:
        """What a page said: its newest version, the one of that number, or the newest at an instant; None without one.

        Its main text is `text`, its body `body`.
        """
        return (await find_text(self._db, url, number=version, at=at))[1]

    async def versions(self, url: str) -> AsyncGenerator[PageVersion]:
        """The versions of a page, the newest first."""
        domain, home = await resolve_page(self._db, url)
        before: int | None = None
        while batch := await report.list_versions(self._db, domain, home, max_count=VERSIONS_PER_BATCH, before=before):
            for version in batch:
                yield version
            before = batch[-1].number

    async def freshness(
        self, domain: str | None = None, *, window: timedelta = WEEK, at: datetime | None = None
    ) -> list[DomainReport]:
        """How fresh a domain is, or all of them, and what that took within the window."""
        selected = await find_domains(self._db, domain)
        return await measure_freshness(self._db, selected, window=window, at=at or datetime.now(UTC))

    async def search(self, words: str, *, domain: str | None = None, max_count: int = 10) -> list[SearchHit]:
        """The parts of pages that say these words, the best first; domain: of that one alone.

        Words are searched for in a full-text index in RECRAWL_HOME, which is brought in step before: the first time all
        pages are read for it.
        """
        return await search_pages(self._db, words, domain=domain, max_count=max_count)


P = ParamSpec("P")
T = TypeVar("T")


def _make_blocking(method: Callable[Concatenate[App, P], Awaitable[T]]) -> Callable[Concatenate["BlockingApp", P], T]:
    """Return the verb of App as one that waits for what it gives."""

    @wraps(method)
    def wait(self: "BlockingApp", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.portal.call(partial(method, self.app, *args, **kwargs))

    return wait


def _make_iterating(
    method: Callable[Concatenate[App, P], AsyncGenerator[T]],
) -> Callable[Concatenate["BlockingApp", P], Generator[T]]:
    """Return the verb of App as one that gives one item after the other."""

    @wraps(method)
    def iterate(self: "BlockingApp", /, *args: P.args, **kwargs: P.kwargs) -> Generator[T]:
        items = method(self.app, *args, **kwargs)
        try:
            while True:
                try:
                    yield self.portal.call(items.__anext__)
                except StopAsyncIteration:
                    return
        finally:  # what is held for the next item is let go when nobody wants it any more
            with suppress(RuntimeError):  # the app was closed before, and with it whatever was held
                self.portal.call(items.aclose)

    return iterate


@dataclass(frozen=True, slots=True)
class BlockingApp:
    """recrawl, open, with verbs that wait for what App does, in a thread of its own; several threads may use it."""

    app: App = field(repr=False)
    portal: BlockingPortal = field(repr=False)

    add = _make_blocking(App.add)
    domains = _make_blocking(App.domains)
    crawl = _make_blocking(App.crawl)
    refresh = _make_blocking(App.refresh)
    changes = _make_iterating(App.changes)
    cursor = _make_blocking(App.cursor)
    pages = _make_iterating(App.pages)
    text = _make_blocking(App.text)
    versions = _make_iterating(App.versions)
    freshness = _make_blocking(App.freshness)
    search = _make_blocking(App.search)


class open_app:  # noqa: N801  it is called, and stands between `with` and `as`
    """Open recrawl with these settings until the block ends; its database is migrated if it is empty or embedded.

    database_url: postgresql://...; None for RECRAWL_DATABASE_URL, or else the Postgres that lives in `home`, which is
    started where it does not run.  home: None for RECRAWL_HOME.  All else is read from the environment
    (docs/settings.md). Raises StoreUnavailable where nothing answers, CrawlerError for a database that
    another recrawl has to migrate.
    """

    def __init__(self, database_url: str | None = None, *, home: Path | str | None = None) -> None:
        self._settings = _make_settings(database_url, home)
        self._open = ExitStack()
        self._open_async = AsyncExitStack()

    def __enter__(self) -> BlockingApp:
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal(name="recrawl"))
            app = stack.enter_context(portal.wrap_async_context_manager(self))
            self._open = stack.pop_all()
        return BlockingApp(app, portal)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._open.__exit__(kind, error, trace)

    async def __aenter__(self) -> App:
        async with AsyncExitStack() as stack:
            # Every lease needs one connection for its records and one for its renewals, and some are for other verbs.
            connections = 2 * self._settings.concurrent_domains + 4
            db = await stack.enter_async_context(open_configured_database(self._settings, connections=connections))
            self._open_async = stack.pop_all()
        return App(db)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._open_async.__aexit__(kind, error, trace)


def _make_settings(database_url: str | None, home: Path | str | None) -> Settings:
    overrides: dict[str, object] = {}
    if database_url is not None:
        overrides["database_url"] = SecretStr(database_url)
    if home is not None:
        overrides["home"] = Path(home)
    return get_settings().model_copy(update=overrides)
