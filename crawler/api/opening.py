"""How programs open the store: for asyncio by `async with`, or by `with` as a store whose verbs wait."""

from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from types import TracebackType

from anyio.from_thread import start_blocking_portal
from pydantic import SecretStr

from crawler.api.blocking import BlockingStore
from crawler.api.store import Store
from crawler.runtime.stack import crawl_database
from crawler.settings import Settings, settings
from crawler.store.database import open_database


class open_store:  # noqa: N801  it is called, and stands between `with` and `as`
    """The store of these settings, open until the block ends; migrated first if it is empty or our own.

    database_url: postgresql://...; None for RECRAWL_DATABASE_URL, or else the Postgres that lives in `home`, which is
    started where it does not run.  home: None for RECRAWL_HOME.  All else is read from the environment
    (docs/settings.md). Raises StoreUnavailable where nothing answers, CrawlerError for a database that an other recrawl
    has to migrate.
    """

    def __init__(self, database_url: str | None = None, *, home: Path | str | None = None) -> None:
        self._used = _used(database_url, home)
        self._open = ExitStack()
        self._open_async = AsyncExitStack()

    def __enter__(self) -> BlockingStore:
        with ExitStack() as opened:
            portal = opened.enter_context(start_blocking_portal(name="recrawl"))
            store = opened.enter_context(portal.wrap_async_context_manager(self))
            self._open = opened.pop_all()
        return BlockingStore(store, portal)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._open.__exit__(kind, error, trace)

    async def __aenter__(self) -> Store:
        async with AsyncExitStack() as opened:
            url = opened.enter_context(crawl_database(self._used))
            db = await opened.enter_async_context(open_database(url, connections=_connections(self._used)))
            self._open_async = opened.pop_all()
        return Store(db, self._used)

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


def _connections(used: Settings) -> int:
    """Every lease needs one for its records and one for its renewals, and some are for those who ask."""
    return 2 * used.leases_at_once + 4
