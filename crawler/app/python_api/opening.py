"""Open recrawl for a program: with `async with` for asyncio, or with `with` for verbs that block."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import Concatenate, ParamSpec, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal
from pydantic import SecretStr

from crawler.app.database import open_database_of
from crawler.app.python_api.app import App
from crawler.settings import Settings, settings

P = ParamSpec("P")
T = TypeVar("T")


def _wait_for(verb: Callable[Concatenate[App, P], Awaitable[T]]) -> Callable[Concatenate["BlockingApp", P], T]:
    """Return the verb of App as one that waits for what it gives."""

    @wraps(verb)
    def wait(self: "BlockingApp", /, *given: P.args, **named: P.kwargs) -> T:
        return self.portal.call(partial(verb, self.app, *given, **named))

    return wait


def _iterate(
    verb: Callable[Concatenate[App, P], AsyncGenerator[T]],
) -> Callable[Concatenate["BlockingApp", P], Generator[T]]:
    """Return the verb of App as one that gives one item after the other."""

    @wraps(verb)
    def iterate(self: "BlockingApp", /, *given: P.args, **named: P.kwargs) -> Generator[T]:
        items = verb(self.app, *given, **named)
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

    add = _wait_for(App.add)
    domains = _wait_for(App.domains)
    crawl = _wait_for(App.crawl)
    refresh = _wait_for(App.refresh)
    changes = _iterate(App.changes)
    cursor = _wait_for(App.cursor)
    pages = _iterate(App.pages)
    text = _wait_for(App.text)
    versions = _iterate(App.versions)
    freshness = _wait_for(App.freshness)
    search = _wait_for(App.search)


class open_app:  # noqa: N801  it is called, and stands between `with` and `as`
    """Open recrawl with these settings until the block ends; its database is migrated if it is empty or embedded.

    database_url: postgresql://...; None for RECRAWL_DATABASE_URL, or else the Postgres that lives in `home`, which is
    started where it does not run.  home: None for RECRAWL_HOME.  All else is read from the environment
    (docs/settings.md). Raises StoreUnavailable where nothing answers, CrawlerError for a database that
    another recrawl has to migrate.
    """

    def __init__(self, database_url: str | None = None, *, home: Path | str | None = None) -> None:
        self._used = _used(database_url, home)
        self._open = ExitStack()
        self._open_async = AsyncExitStack()

    def __enter__(self) -> BlockingApp:
        with ExitStack() as opened:
            portal = opened.enter_context(start_blocking_portal(name="recrawl"))
            app = opened.enter_context(portal.wrap_async_context_manager(self))
            self._open = opened.pop_all()
        return BlockingApp(app, portal)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._open.__exit__(kind, error, trace)

    async def __aenter__(self) -> App:
        async with AsyncExitStack() as opened:
            # Every lease needs one connection for its records and one for its renewals, and some are for other verbs.
            connections = 2 * self._used.leases_at_once + 4
            db = await opened.enter_async_context(open_database_of(self._used, connections=connections))
            self._open_async = opened.pop_all()
        return App(db)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._open_async.__aexit__(kind, error, trace)


def _used(database_url: str | None, home: Path | str | None) -> Settings:
    given: dict[str, object] = {}
    if database_url is not None:
        given["database_url"] = SecretStr(database_url)
    if home is not None:
        given["home"] = Path(home)
    return settings().model_copy(update=given)
