"""Open recrawl for a program: with `async with` for asyncio, or with `with` for verbs that block."""

from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from types import TracebackType

from anyio.from_thread import start_blocking_portal
from pydantic import SecretStr

from crawler.app.database import open_database_of
from crawler.app.python_api.app import App
from crawler.app.python_api.blocking import BlockingApp
from crawler.settings import Settings, settings


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
        return App(db, self._used)

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
