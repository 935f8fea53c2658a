"""The state of this installation: the local stack, workers, notifications, database, search index and versions."""

import asyncio
import platform
from collections.abc import Sequence
from dataclasses import dataclass

from crawler import __version__
from crawler.app.database import AppDatabase
from crawler.app.page_reader import describe_page_reader
from crawler.export.sqlite_index import IndexState, read_index_state
from crawler.plugins import list_plugins
from crawler.plugins.loading import PluginStatus
from crawler.runtime.machine import get_search_file
from crawler.runtime.stack import StackPart, is_without_worker, read_status
from crawler.store import report
from crawler.store.report.gauges import DatabaseSize, read_database_size
from crawler.store.subscriptions import list_subscriptions

MAX_TABLES = 8
PATIENCE_S = 2.0  # for a Prefect server that hangs; the web UI must not wait for it


@dataclass(frozen=True, slots=True)
class Health:
    """The state of stack, workers and notifications in short.

    stopped, hanging: the parts of the local stack that do not run, and those that do not respond.
    lacks_worker: due pages wait because no worker runs.
    holders: the workers that crawl now.  subscriptions, waiting, failing, dead: notifications, changes that wait,
    subscriptions whose target fails, and messages given up.
    """

    stopped: tuple[str, ...]
    hanging: tuple[str, ...]
    lacks_worker: bool
    holders: tuple[str, ...]
    subscriptions: int
    waiting: int
    failing: int
    dead: int


@dataclass(frozen=True, slots=True)
class SystemFacts:
    """The state of this installation. index: None while there is no search index.  reader: which page reader runs."""

    parts: Sequence[StackPart]
    health: Health
    database: DatabaseSize
    index: IndexState | None
    reader: str
    versions: Sequence[tuple[str, str]]
    plugins: Sequence[PluginStatus]


async def read_health(db: AppDatabase) -> Health:
    """Return the state of stack, workers and notifications in short."""
    return await _summarize_health(db, await _read_status(db))


async def _read_status(db: AppDatabase) -> Sequence[StackPart]:
    return await asyncio.to_thread(read_status, db.settings, patience_s=PATIENCE_S)


async def _summarize_health(db: AppDatabase, parts: Sequence[StackPart]) -> Health:
    subscriptions = await list_subscriptions(db)
    return Health(
        stopped=tuple(part.name for part in parts if not part.is_running and not part.is_hanging),
        hanging=tuple(part.name for part in parts if part.is_hanging),
        lacks_worker=await asyncio.to_thread(is_without_worker, db.settings),
        holders=tuple(sorted(await report.list_holders(db))),
        subscriptions=len(subscriptions),
        waiting=sum(each.waiting for each in subscriptions),
        failing=sum(bool(each.failures or each.unknown) and each.paused_at is None for each in subscriptions),
        dead=sum(each.dead for each in subscriptions),
    )


async def read_system(db: AppDatabase) -> SystemFacts:
    """Return the state of this installation."""
    parts = await _read_status(db)
    database = await read_database_size(db, max_tables=MAX_TABLES)
    file = get_search_file(db.settings.home.resolve())
    return SystemFacts(
        parts=parts,
        health=await _summarize_health(db, parts),
        database=database,
        index=await asyncio.to_thread(read_index_state, file),
        reader=describe_page_reader(),
        versions=(
            ("recrawl", __version__),
            ("Python", platform.python_version()),
            ("Postgres", database.version),
            ("System", f"{platform.system()} {platform.release()}, {platform.machine()}"),
        ),
        plugins=list_plugins(db.settings.plugins),
    )
