"""Pages in forms that other programs read: exported once, or kept in step in an index, which is searched by words."""

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
from crawler.extras import require_extra
from crawler.runtime.machine import get_search_file
from crawler.store import report

OnProgress = Callable[[int], None]  # called with the pages so far


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """An export as a user asks for it. to: None for a stream.  since: a cursor of the feed, or None for all pages."""

    domain: str
    form: str
    to: Path | None
    since: int | None
    chunks: bool
    versions: bool = False

    @property
    def what(self) -> RowKind:
        return RowKind.CHUNKS if self.chunks else RowKind.VERSIONS if self.versions else RowKind.PAGES

    @property
    def format(self) -> Format:
        """The format, of which all that is asked for can be had. Raises BadInput."""
        try:
            form = Format(self.form.lower())
        except ValueError as error:
            raise BadInput(f"{self.form} is no format: {', '.join(Format)}") from error
        if self.chunks and not form.has_chunks:
            raise BadInput(f"{form} has no chunks: they are rows of jsonl or parquet")
        if self.versions and (self.chunks or form.is_folder):
            reason = "chunks are of the newest version" if self.chunks else f"{form} has one file for each page"
            raise BadInput(f"{reason}: --versions is for rows and records of pages")
        if form.is_folder and self.to is None:
            raise BadInput(
                f"{form} is a folder with a file for each page, which stdout cannot hold: name it with --to FOLDER"
            )
        if self.to is not None and self.to.exists() and self.to.is_dir() != form.is_folder:
            problem = f"{self.to} is there and no folder" if form.is_folder else f"{self.to} is a folder: --to FILE"
            raise BadInput(problem)
        return form


async def export_pages(
    db: AppDatabase,
    request: ExportRequest,
    *,
    open_stream: Callable[[], BinaryIO],
    at: datetime,
    on_progress: OnProgress,
) -> ExportResult:
    """Write the pages of a domain to a file, to a folder, or, without `to`, to a stream.

    open_stream: called only for a stream.  Raises BadInput, CursorAhead, CursorTooOld.
    """
    form = request.format
    domain = await get_domain(db, request.domain)
    await report.append_to_feed(db, at=at)
    end = await report.read_feed_end(db)
    if request.since is not None and request.since > end:
        raise CursorAhead(since=request.since, end=end)
    with _open_destination(request.to, form) if request.to is not None else nullcontext(open_stream()) as to:
        return await export(db, domain, form, to, since=request.since, row_kind=request.what, on_progress=on_progress)


@contextmanager
def _open_destination(to: Path, form: Format) -> Iterator[Path | BinaryIO]:
    """Open what is written to. A file is there when it is whole, and not before."""
    is_special = to.exists() and not to.is_dir() and not to.is_file()  # a pipe, or /dev/null, which has to stay one
    part = to if form.is_folder or is_special else to.with_name(f".{to.name}.{os.getpid()}.part")
    try:
        if form.is_folder:
            yield to
            return
        with part.open("wb") as file:
            yield file
            file.flush()
            if not is_special:
                os.fsync(file.fileno())  # else a power cut may leave a name without what it names
        if not is_special:
            part.replace(to)
    except OSError as error:
        raise CrawlerError(f"{to} cannot be written: {error.strerror or error}") from error
    finally:
        if part != to:
            part.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class SyncRound:
    """What one round did, by domain. forgotten: pages taken out of domains that are not registered any more."""

    synced: dict[str, SyncResult]
    forgotten: dict[str, int]

    @property
    def has_changes(self) -> bool:
        """Whether the index is another one now."""
        return bool(self.forgotten) or any(each.put or each.removed for each in self.synced.values())


@asynccontextmanager
async def open_index(
    db: AppDatabase,
    target: str,
    names: Collection[str] = (),
    *,
    progress: Callable[[], AbstractContextManager[OnProgress]] = lambda: nullcontext(lambda _: None),
) -> AsyncIterator["IndexSync"]:
    """Open an index of the pages, a SQLite file or the URL of a Postgres database, until the block ends.

    names: of domains; empty for all.  progress: opened for each round.  Raises BadInput, MissingExtra.
    """
    require_extra("markdown", "A search index")
    selected = {(await get_domain(db, name)).authority for name in names}
    async with open_in_thread(PostgresIndex(target) if is_database_url(target) else SqliteIndex(Path(target))) as (
        index,
        thread,
    ):
        yield IndexSync(db, index, thread, selected, progress)


@dataclass(slots=True)
class IndexSync:
    """Brings one index in step, again and again. names: of the domains; empty for all.

    last_feed_end: where the feed ended when the last round began; None before the first.
    """

    db: AppDatabase
    index: PageIndex
    thread: Executor
    names: Collection[str]
    progress: Callable[[], AbstractContextManager[OnProgress]]
    last_feed_end: int | None = field(default=None, init=False)

    async def sync(self, *, anew: bool = False) -> SyncRound:
        """Put what has changed since the round before into the index; the first looks at every domain.

        anew: read all pages.  A round that is cancelled ends between two commits, and the next one goes on from there.
        """
        await report.append_to_feed(self.db, at=datetime.now(UTC))
        end = await report.read_feed_end(self.db)
        all_domains = await find_domains(self.db)
        to_sync = await self._select_changed(
            [each for each in all_domains if not self.names or each.authority in self.names], end
        )
        synced: dict[str, SyncResult] = {}
        with self.progress() as on_progress:
            for each in to_sync:
                synced[each.authority] = await sync(
                    self.db, each, self.index, anew=anew, on_progress=on_progress, thread=self.thread
                )
        gone = set(await call_in_thread(self.thread, self.index.list_domains)) - {
            each.authority for each in all_domains
        }
        forgotten = {name: await call_in_thread(self.thread, self.index.remove_domain, name) for name in sorted(gone)}
        self.last_feed_end = end
        return SyncRound(synced, forgotten)

    async def follow(self, *, anew: bool, on_outage: Callable[[StoreUnavailable], None]) -> AsyncGenerator[SyncRound]:
        """Go on without an end; give the first round, and those that changed the index. anew: in the first one."""
        is_first = True
        async with report.listen_to_feed(self.db) as announced:
            while True:
                try:
                    result = await self.sync(anew=anew)
                except StoreUnavailable as error:
                    on_outage(error)
                else:
                    if is_first or result.has_changes:
                        yield result
                    anew = is_first = False
                await announced.wait()

    async def _select_changed(self, candidates: list[Domain], end: int) -> list[Domain]:
        """Return the domains, of some, that the feed has told of since the last round."""
        if self.last_feed_end is None or end < self.last_feed_end:  # the first round, or another copy of the database
            return candidates
        changed_ids = (
            await report.find_changed_domains(self.db, after=self.last_feed_end)
            if end > self.last_feed_end
            else frozenset()
        )
        return [each for each in candidates if each.id in changed_ids]


def is_database_url(target: str) -> bool:
    """Whether an index is in Postgres."""
    return target.startswith(("postgresql://", "postgres://"))


async def search_pages(db: AppDatabase, words: str, *, domain: str | None, max_count: int) -> list[SearchHit]:
    """Return the parts of pages that say the words, as the store has them now. domain: of that one alone.

    The index is brought in step before, by what has changed since the last search; the first one reads all pages. The
    event loop goes on meanwhile. Raises BadInput for words that nothing can be searched for by, before that.
    """
    only = (await get_domain(db, domain)).authority if domain is not None else None
    require_words(words)
    file = await asyncio.to_thread(get_search_file, db.settings.home.resolve())
    async with open_index(db, str(file), [only] if only is not None else []) as index:
        await index.sync()
    return await asyncio.to_thread(search, file, words, domain=only, max_count=max_count)


async def search_index(home: Path, words: str, *, domain: str | None, max_count: int) -> list[SearchHit] | None:
    """Return the parts of pages that say the words, by the index as it was synced last; None if there is none yet."""
    file = get_search_file(home)
    if not await asyncio.to_thread(is_searchable, file):
        return None
    return await asyncio.to_thread(search, file, words, domain=domain, max_count=max_count)
