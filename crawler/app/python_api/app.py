"""The public Python API: the operations of recrawl on an open database, for asyncio and for blocking programs."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator
from contextlib import AsyncExitStack, ExitStack, aclosing, suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import Concatenate, ParamSpec, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal
from msgspec.structs import replace
from pydantic import SecretStr

from crawler.app.actor import ActorKind
from crawler.app.changes import ALL_KINDS, iterate_changes
from crawler.app.crawl import CrawlRequest, CrawlResult, crawl, find_targets
from crawler.app.database import AppDatabase, open_configured_database
from crawler.app.delivery.exports import search_pages
from crawler.app.domains import add_domains
from crawler.app.page_values import ValueReading, read_values
from crawler.app.pages import find_text, make_target_filter, resolve_page
from crawler.app.python_api.management import Management
from crawler.app.registration import find_domains, get_domain, parse_typed_url
from crawler.app.reports import measure_freshness
from crawler.app.revisits import request_refresh
from crawler.app.settings import make_changed_patch
from crawler.app.tags import add_tagged_names, find_tagged_domains, get_tag
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.errors import BadInput
from crawler.export.export import PageSource, RowKind
from crawler.export.sqlite_index import SearchHit
from crawler.settings import get_settings
from crawler.store import report
from crawler.store.report import ChangeFilter, DomainReport, EventKind, ExportedPage, FeedItem, PageVersion

DEFAULT_SETTINGS = DomainSettings()
WEEK = timedelta(days=7)
VERSIONS_PER_BATCH = 100


@dataclass(frozen=True, slots=True)
class App(Management):
    """An open recrawl database. Domains and pages are given as in the command: names, aliases or URLs.

    Methods raise BadInput for unusable arguments, StoreUnavailable if the database does not respond, and other
    CrawlerErrors; their messages can be shown to users. Several tasks may share an App.
    """

    _db: AppDatabase = field(repr=False)

    async def add(
        self,
        *names: str,
        settings: DomainSettings = DEFAULT_SETTINGS,
        tags: Collection[str] = (),
        offline: bool = False,
        at: datetime | None = None,
    ) -> list[Domain]:
        """Register domains and return them; registered ones stay unchanged. Roots are fetched unless `offline`.

        Raises BadInput. If a name is invalid, nothing is registered. If a domain cannot be registered for another
        reason, such as an unknown host, the others are registered nevertheless.
        """
        for name in names:
            parse_typed_url(name)  # register nothing if any of them is invalid
        unique_names = list(dict.fromkeys(names))
        patch, instant = make_changed_patch(settings), at or datetime.now(UTC)
        domains_by_name = {}
        for each in await add_domains(self._db, unique_names, patch, tags=list(tags), offline=offline, at=instant):
            if each.domain is None:
                raise BadInput(f"{each.name}: {each.error}")
            domains_by_name[each.name] = each.domain
        return [domains_by_name[name] for name in names]

    async def domains(self, *, tag: str | None = None) -> list[Domain]:
        """Return all registered domains, or those with a tag."""
        return await (find_domains(self._db) if tag is None else find_tagged_domains(self._db, tag))

    async def crawl(
        self,
        *names: str,
        pages: int | None = None,
        time_limit: timedelta | None = None,
        at: datetime | None = None,
        stop: asyncio.Event | None = None,
        tag: str | None = None,
    ) -> CrawlResult:
        """Crawl the given domains without pacing, or all domains at the pace of their budgets, until nothing is due.

        The page of a URL with a path is fetched even if it is not due. Domains must have been registered with `add`.
        Subscribers are not notified.
        pages, time_limit: limits of the crawl.  at: knowledge time (docs/theory-of-operation.md); None for now.
        stop: when it is set, requests in progress are finished and recorded, and no others are started.
        tag: also crawl the domains with this tag.
        """
        selected = await add_tagged_names(self._db, names, tag)
        targets, stop = await find_targets(self._db, selected, at=at), stop or asyncio.Event()
        request = CrawlRequest("python", at=at, max_pages=pages, time_limit=time_limit, stop=stop, notify=False)
        return await crawl(self._db, targets, replace(request, ignore_pace=bool(selected)))

    async def refresh(self, what: str, *, at: datetime | None = None) -> int:
        """Make all pages of a domain, or one page, due now. Return their number.

        what: a domain or URL; with * at the end, all pages whose URL starts with it.
        """
        return (await request_refresh(self._db, what, at=at)).pages

    async def changes(
        self,
        what: str | None = None,
        *,
        after: int = 0,
        since: datetime | None = None,
        kinds: Collection[EventKind] = ALL_KINDS,
        follow: bool = False,
        tag: str | None = None,
    ) -> AsyncGenerator[FeedItem]:
        """Iterate over changes in the order of the feed, each with its changed blocks.

        what: a domain, a page or a URL prefix; None for all.  after: a cursor: the position of the last change that was
        processed.  since: only changes found at or after this time.  follow: continue with changes as they are found,
        without end.  tag: only changes of domains with this tag.
        Raises CursorTooOld if changes after the cursor are no longer kept, and CursorAhead (a BadInput) if the cursor
        is beyond the end of the feed, so it belongs to another database.
        """
        where = await make_target_filter(self._db, what) if what is not None else ChangeFilter()
        tag_name = (await get_tag(self._db, tag)).tag.name if tag is not None else None
        change_filter = replace(where, after=after, since=since, kinds=frozenset(kinds), tag=tag_name)
        async with aclosing(iterate_changes(self._db, change_filter, follow=follow)) as items:
            async for item in items:
                yield item

    async def cursor(self) -> int:
        """Return the cursor at the end of the feed: `changes` after it yields what is found from now on."""
        await report.append_to_feed(self._db, at=datetime.now(UTC))
        return await report.read_feed_end(self._db)

    async def pages(self, domain: str, *, bodies: bool = False) -> AsyncGenerator[ExportedPage]:
        """Iterate over the fetched pages of a domain, each with its newest text. bodies: also with the raw body."""
        source = PageSource(self._db, await get_domain(self._db, domain), RowKind.PAGES, with_bodies=bodies)
        async for batch, _ in source.read_all():
            for page in batch:
                yield page

    async def text(
        self, url: str, *, version: int | None = None, at: datetime | None = None
    ) -> report.VersionContent | None:
        """Return a version of a page: the newest, the one with this number, or the newest at a time; None if missing.

        Its main text is `text`, and its body is `body`.
        """
        return (await find_text(self._db, url, number=version, at=at))[1]

    async def versions(self, url: str) -> AsyncGenerator[PageVersion]:
        """Iterate over the versions of a page, newest first."""
        domain, page_url = await resolve_page(self._db, url)
        before: int | None = None
        while batch := await report.list_versions(
            self._db, domain, page_url, max_count=VERSIONS_PER_BATCH, before=before
        ):
            for version in batch:
                yield version
            before = batch[-1].number

    async def values(self, url: str, *, name: str = "") -> AsyncGenerator[ValueReading]:
        """Iterate over the values that rules read from a page, newest first. name: of one value; "" for all."""
        before: str | None = ""
        while before is not None:
            _, batch, before = await read_values(self._db, url, name=name, before=before)
            for reading in batch:
                yield reading

    async def freshness(
        self, domain: str | None = None, *, window: timedelta = WEEK, at: datetime | None = None
    ) -> list[DomainReport]:
        """Return the freshness of one domain or all, with the costs within the window."""
        selected = await find_domains(self._db, domain)
        return await measure_freshness(self._db, selected, window=window, at=at or datetime.now(UTC))

    async def search(self, words: str, *, domain: str | None = None, max_count: int = 10) -> list[SearchHit]:
        """Return the sections of pages that contain these words, best first. domain: search only this domain.

        The full-text index in RECRAWL_HOME is synced first; the first search reads all pages.
        """
        return await search_pages(self._db, words, domain=domain, max_count=max_count)


P = ParamSpec("P")
T = TypeVar("T")


def _make_blocking(method: Callable[Concatenate[App, P], Awaitable[T]]) -> Callable[Concatenate["BlockingApp", P], T]:
    """Convert a coroutine method of App to a blocking method."""

    @wraps(method)
    def wait(self: "BlockingApp", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.portal.call(partial(method, self.app, *args, **kwargs))

    return wait


def _make_iterating(
    method: Callable[Concatenate[App, P], AsyncGenerator[T]],
) -> Callable[Concatenate["BlockingApp", P], Generator[T]]:
    """Convert an async generator method of App to a blocking generator method."""

    @wraps(method)
    def iterate(self: "BlockingApp", /, *args: P.args, **kwargs: P.kwargs) -> Generator[T]:
        items = method(self.app, *args, **kwargs)
        try:
            with suppress(StopAsyncIteration):
                while True:
                    yield self.portal.call(items.__anext__)
        finally:  # release the connection when the caller stops early
            with suppress(RuntimeError):  # the app was closed before
                self.portal.call(items.aclose)

    return iterate


@dataclass(frozen=True, slots=True)
class BlockingApp:
    """An App with blocking methods, which runs in its own thread. Several threads may share a BlockingApp."""

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
    values = _make_iterating(App.values)
    freshness = _make_blocking(App.freshness)
    search = _make_blocking(App.search)
    inspect = _make_blocking(App.inspect)
    set = _make_blocking(App.set)
    pause = _make_blocking(App.pause)
    resume = _make_blocking(App.resume)
    remove = _make_blocking(App.remove)
    reset_clock = _make_blocking(App.reset_clock)
    page_list = _make_blocking(App.page_list)
    act_on_pages = _make_blocking(App.act_on_pages)
    diff = _make_blocking(App.diff)
    import_text = _make_blocking(App.import_text)
    add_rule = _make_blocking(App.add_rule)
    remove_rule = _make_blocking(App.remove_rule)
    explain = _make_blocking(App.explain)
    try_page = _make_blocking(App.try_page)
    hint = _make_blocking(App.hint)
    subscriptions = _make_blocking(App.subscriptions)
    subscribe = _make_blocking(App.subscribe)
    change_subscription = _make_blocking(App.change_subscription)
    pause_subscription = _make_blocking(App.pause_subscription)
    resume_subscription = _make_blocking(App.resume_subscription)
    test_subscription = _make_blocking(App.test_subscription)
    unsubscribe = _make_blocking(App.unsubscribe)
    dead_letters = _make_blocking(App.dead_letters)
    redeliver = _make_blocking(App.redeliver)
    discard = _make_blocking(App.discard)
    users = _make_blocking(App.users)
    add_user = _make_blocking(App.add_user)
    change_user = _make_blocking(App.change_user)
    remove_user = _make_blocking(App.remove_user)
    actions = _make_blocking(App.actions)


class open_app:  # noqa: N801  used like a function
    """A context manager that opens recrawl. An empty or embedded database is migrated.

    database_url: a postgresql:// URL; None for RECRAWL_DATABASE_URL, else the embedded Postgres in `home`, which is
    started if needed.  home: None for RECRAWL_HOME.  All other settings are read from the environment
    (docs/settings.md). Raises StoreUnavailable if the database does not respond, and CrawlerError if its schema must
    be upgraded first.
    """

    def __init__(self, database_url: str | None = None, *, home: Path | str | None = None) -> None:
        settings = get_settings()
        if database_url is not None:
            settings = settings.model_copy(update={"database_url": SecretStr(database_url)})
        self._settings = settings if home is None else settings.model_copy(update={"home": Path(home)})
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
            # Each lease needs one connection to record visits and one to renew itself; four are for other methods.
            connections = 2 * self._settings.concurrent_domains + 4
            db = await stack.enter_async_context(
                open_configured_database(self._settings, connections=connections, actor_kind=ActorKind.PYTHON)
            )
            self._open_async = stack.pop_all()
        return App(db)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._open_async.__aexit__(kind, error, trace)
