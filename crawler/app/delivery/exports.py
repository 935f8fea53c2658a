"""Exports of pages in several formats, and search indexes that are kept in sync with the pages."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from crawler.app.database import AppDatabase
from crawler.app.registration import find_domains, get_domain
from crawler.core.domain import Domain
from crawler.errors import BadInput, CrawlerError, CursorAhead, StoreUnavailable
from crawler.export.export import ExportResult, Format, RowKind, export
from crawler.export.page_index import PageIndex, SyncResult, call_in_thread, open_in_thread, sync
from crawler.export.postgres_index import PostgresIndex
from crawler.export.rows import format_cell
from crawler.export.sqlite_index import SearchHit, SqliteIndex, is_searchable, require_words, search
from crawler.runtime.machine import get_search_file
from crawler.store import report

OnProgress = Callable[[int], None]  # called with the number of pages so far
OpenProgress = Callable[[], AbstractContextManager[OnProgress]]  # called for each sync
OpenStream = Callable[[], BinaryIO]


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The options of an export. to: None for a stream.  since: a cursor; None for all.

    format_name: the name of a Format as typed; `format` is the parsed one.
    """

    domain: str
    format_name: str
    to: Path | None
    since: int | None
    chunks: bool
    versions: bool = False

    @property
    def row_kind(self) -> RowKind:
        """Return what a row of the export is."""
        return RowKind.CHUNKS if self.chunks else RowKind.VERSIONS if self.versions else RowKind.PAGES

    @property
    def format(self) -> Format:
        """Return the format. Raises BadInput if it is unknown or does not fit the other options and the path."""
        try:
            form = Format(self.format_name.lower())
        except ValueError as error:
            raise BadInput(f"{self.format_name} is not a format: use one of {', '.join(Format)}") from error
        if self.chunks and not form.has_chunks:
            raise BadInput(f"{form} does not support --chunks: use jsonl or parquet")
        if self.versions and (self.chunks or form.is_folder):
            raise BadInput(f"--versions cannot be combined with {'--chunks' if self.chunks else f'--format {form}'}")
        if form.is_folder and self.to is None:
            raise BadInput(f"{form} writes a file per page, so it cannot be written to stdout: use --to FOLDER")
        if self.to is not None and self.to.exists() and self.to.is_dir() != form.is_folder:
            problem = f"{self.to} is not a folder" if form.is_folder else f"{self.to} is a folder: use --to FILE"
            raise BadInput(problem)
        return form


async def export_pages(
    db: AppDatabase, request: ExportRequest, *, open_stream: OpenStream, at: datetime, on_progress: OnProgress
) -> ExportResult:
    """Write the pages of a domain to a file or folder, or to a stream if `request.to` is None.

    open_stream: opens the stream; only called if needed.  Raises BadInput, CursorAhead, CursorTooOld, MissingExtra, and
    CrawlerError if the destination cannot be written.
    """
    form = request.format
    domain = await get_domain(db, request.domain)
    await report.append_to_feed(db, at=at)
    end = await report.read_feed_end(db)
    if request.since is not None and request.since > end:
        raise CursorAhead(since=request.since, end=end)
    with _open_destination(request.to, form) if request.to is not None else nullcontext(open_stream()) as to:
        kind = request.row_kind
        return await export(db, domain, form, to, since=request.since, row_kind=kind, on_progress=on_progress)


@contextmanager
def _open_destination(to: Path, form: Format) -> Iterator[Path | BinaryIO]:
    """Open the destination. A regular file appears under its name only when it is complete."""
    is_special = to.exists() and not to.is_dir() and not to.is_file()  # a pipe or /dev/null must not be replaced
    part = to if form.is_folder or is_special else to.with_name(f".{to.name}.{os.getpid()}.part")
    try:
        if form.is_folder:
            yield to
            return
        with part.open("wb") as file:
            yield file
            file.flush()
            if not is_special:
                os.fsync(file.fileno())  # else a power failure may leave an empty file under this name
        if not is_special:
            part.replace(to)
    except OSError as error:
        raise CrawlerError(f"{to} cannot be written: {error.strerror or error}") from error
    finally:
        if part != to:
            part.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class SyncRound:
    """The result of one sync, by domain. unregistered: the numbers of deleted pages of domains no longer registered."""

    synced: dict[str, SyncResult]
    unregistered: dict[str, int]

    @property
    def has_changes(self) -> bool:
        """Return whether the index changed."""
        return bool(self.unregistered) or any(each.put or each.removed for each in self.synced.values())


@asynccontextmanager
async def open_index(
    db: AppDatabase,
    target: str,
    names: Collection[str] = (),
    *,
    progress: OpenProgress = lambda: nullcontext(lambda _: None),
) -> AsyncIterator["IndexSync"]:
    """Open an index of the pages for the duration of the block.

    names: of domains; empty for all.  progress: opened for each sync.  Raises BadInput, and CrawlerError if the index
    cannot be opened.
    """
    selected = {(await get_domain(db, name)).authority for name in names}
    opened = PostgresIndex(target) if is_database_url(target) else SqliteIndex(Path(target))
    async with open_in_thread(opened) as (index, thread):
        yield IndexSync(db, index, thread, selected, progress)


@dataclass(slots=True)
class IndexSync:
    """An open index that can be synced repeatedly. names: domains; empty for all.

    last_feed_end: the end of the feed at the start of the last sync; None before the first.
    """

    db: AppDatabase
    index: PageIndex
    thread: Executor
    names: Collection[str]
    progress: OpenProgress
    last_feed_end: int | None = field(default=None, init=False)

    async def sync(self, *, full: bool = False) -> SyncRound:
        """Apply the changes since the last sync to the index. Later syncs than the first check only changed domains.

        full: read all pages of the checked domains again.  A canceled sync is continued from its last commit.
        """
        await report.append_to_feed(self.db, at=datetime.now(UTC))
        end = await report.read_feed_end(self.db)
        registered = {each.authority: each for each in await find_domains(self.db)}
        selected = [each for name, each in registered.items() if not self.names or name in self.names]
        index, thread = self.index, self.thread
        synced: dict[str, SyncResult] = {}
        with self.progress() as on_progress:
            for each in await self._select_changed(selected, end):
                result = await sync(self.db, each, index, full=full, on_progress=on_progress, thread=thread)
                synced[each.authority] = result
        gone = set(await call_in_thread(thread, index.list_domains)) - registered.keys()
        unregistered = {name: await call_in_thread(thread, index.remove_domain, name) for name in sorted(gone)}
        self.last_feed_end = end
        return SyncRound(synced, unregistered)

    async def follow(self, *, full: bool, on_outage: Callable[[StoreUnavailable], None]) -> AsyncGenerator[SyncRound]:
        """Sync whenever the feed grows, without end. Yield the first result and those with changes.

        full: read all pages again in the first sync.  on_outage: called when the database is unavailable.
        """
        is_first = True
        async with report.listen_to_feed(self.db) as announced:
            while True:
                try:
                    result = await self.sync(full=full)
                except StoreUnavailable as error:
                    on_outage(error)
                else:
                    if is_first or result.has_changes:
                        yield result
                    full = is_first = False
                await announced.wait()

    async def _select_changed(self, candidates: list[Domain], end: int) -> list[Domain]:
        """Return those domains that have entries in the feed since the last sync; all before the first."""
        if self.last_feed_end is None or end < self.last_feed_end:  # the first sync, or a restored database
            return candidates
        if end == self.last_feed_end:
            return []
        changed_ids = await report.find_changed_domains(self.db, after=self.last_feed_end)
        return [each for each in candidates if each.id in changed_ids]


def is_database_url(target: str) -> bool:
    """Return whether the target of an index is a Postgres URL."""
    return target.startswith(("postgresql://", "postgres://"))


async def search_pages(db: AppDatabase, words: str, *, domain: str | None, max_count: int) -> list[SearchHit]:
    """Sync the index of this RECRAWL_HOME and return the sections of pages that contain the words.

    domain: search only this domain.  The first search reads all pages. Does not block the event loop.
    Raises BadInput before the sync if there are no words or too many.
    """
    only = (await get_domain(db, domain)).authority if domain is not None else None
    require_words(words)
    file = await asyncio.to_thread(get_search_file, db.settings.home.resolve())
    async with open_index(db, str(file), [only] if only is not None else []) as index:
        await index.sync()
    return await asyncio.to_thread(search, file, words, domain=only, max_count=max_count)


async def search_index(home: Path, words: str, *, domain: str | None, max_count: int) -> list[SearchHit] | None:
    """Return the sections of pages that contain the words, from the last synced index; None if there is none yet."""
    file = get_search_file(home)
    if not await asyncio.to_thread(is_searchable, file):
        return None
    return await asyncio.to_thread(search, file, words, domain=domain, max_count=max_count)
