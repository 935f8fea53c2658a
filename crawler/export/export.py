"""Export of the pages of one domain to a writer, in batches of bounded size."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import BinaryIO, Protocol

from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey
from crawler.extras import require_extra
from crawler.store import report
from crawler.store.database import Database
from crawler.store.report import ExportedPage, VersionKey


class Format(StrEnum):
    """A format of exported pages."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    MARKDOWN = "markdown"
    WARC = "warc"

    @property
    def is_folder(self) -> bool:
        """Return whether the format has a file per page, and so only one version of each page."""
        return self is Format.MARKDOWN

    @property
    def is_binary(self) -> bool:
        """Return whether the format is unreadable in a terminal."""
        return self in {Format.PARQUET, Format.WARC}

    @property
    def has_chunks(self) -> bool:
        """Return whether the format can have a row per chunk."""
        return self in {Format.JSONL, Format.PARQUET}


class RowKind(StrEnum):
    """What one row or record of an export describes."""

    PAGES = "pages"
    CHUNKS = "chunks"
    VERSIONS = "versions"


@dataclass(frozen=True, slots=True)
class PageSource:
    """A reader of the pages of a domain. row_kind: VERSIONS for all versions, another kind for the newest ones."""

    db: Database
    domain: Domain
    row_kind: RowKind
    with_bodies: bool

    @property
    def batch_size(self) -> int:
        """Return the number of pages or versions that are read at once."""
        # Bodies may have ten megabytes each, though few exceed a hundredth of that.
        return 20 if self.with_bodies else 200

    async def read_all(self) -> AsyncIterator[tuple[list[ExportedPage], None]]:
        """Yield batches of all pages or versions in the order of their keys, without cursors."""
        count, with_bodies = self.batch_size, self.with_bodies
        if self.row_kind is RowKind.VERSIONS:
            read_versions = partial(report.read_versions_to_export, self.db, self.domain, with_bodies=with_bodies)
            version_key: VersionKey | None = report.FIRST_VERSION
            while version_key is not None:
                batch, version_key = await read_versions(after=version_key, max_count=count)
                yield batch, None
            return
        read_pages = partial(report.read_pages_to_export, self.db, self.domain, with_bodies=with_bodies)
        key = PageKey(b"")
        while batch := await read_pages(after=key, max_count=count):
            yield batch, None
            key = batch[-1].key

    async def read_changed(self, *, after: int, until: int) -> AsyncIterator[tuple[list[ExportedPage], int]]:
        """Yield batches of the pages or versions that changed between two cursors of the feed, in its order.

        Each batch comes with the cursor after it. Raises CursorTooOld.
        """
        has_versions, count = self.row_kind is RowKind.VERSIONS, self.batch_size
        read = partial(report.read_changes_to_export, self.db, self.domain, with_bodies=self.with_bodies)
        while after < until:
            batch, after = await read(after=after, until=until, max_count=count, with_versions=has_versions)
            yield batch, after


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The result of an export. cursor: the feed cursor from which the next export continues."""

    pages: int
    cursor: int


class PageWriter(Protocol):
    """A writer of pages in one format."""

    def write(self, page: ExportedPage) -> None: ...

    def close(self) -> None: ...


async def export(
    db: Database,
    domain: Domain,
    output_format: Format,
    to: Path | BinaryIO,
    *,
    since: int | None = None,
    row_kind: RowKind = RowKind.PAGES,
    on_progress: Callable[[int], None] = lambda _: None,
) -> ExportResult:
    """Write the newest version of each fetched page, or only the changes after the cursor `since`.

    to: a folder for Markdown, else a binary stream.  since: a cursor of the feed; None or 0 for all pages. With a
    cursor, removed pages are written too, so that a copy can delete them; of the versions, only new ones are written.
    on_progress: is called with the number of pages so far.

    A change during the export is included, or comes after the returned cursor, or both. Raises CursorTooOld if changes
    after the cursor are no longer stored, and MissingExtra.
    """
    until = await report.read_feed_end(db)
    if since == 0 and await report.read_forgotten_until(db, domain.id):
        since = None  # a first export needs no old changes: it can read all pages instead
    with_bodies = row_kind is RowKind.CHUNKS or output_format in {Format.MARKDOWN, Format.WARC}
    source = PageSource(db, domain, row_kind, with_bodies=with_bodies)
    writer = await _open_writer(source, output_format, to, is_full_export=not since)
    pages = 0
    async for batch, _ in source.read_all() if since is None else source.read_changed(after=since, until=until):
        for page in batch:
            writer.write(page)
        pages += len(batch)
        on_progress(pages)
    writer.close()
    return ExportResult(pages, until)


async def _open_writer(
    source: PageSource, output_format: Format, to: Path | BinaryIO, *, is_full_export: bool
) -> PageWriter:
    """Open the writer of a format. Each is imported on demand, because most of their libraries are slow to import."""
    authority, in_chunks = source.domain.authority, source.row_kind is RowKind.CHUNKS
    if isinstance(to, Path):
        from crawler.export.markdown import MarkdownFolder

        return MarkdownFolder(to, authority=authority, is_full_export=is_full_export)
    match output_format:
        case Format.JSONL:
            from crawler.export.rows import JsonLines

            return JsonLines(to, in_chunks=in_chunks)
        case Format.CSV:
            from crawler.export.rows import Csv

            return Csv(to)
        case Format.WARC:
            from crawler.export.warc import Warc

            has_versions = source.row_kind is RowKind.VERSIONS
            shared = await report.read_shared_digests(source.db, source.domain, include_versions=has_versions)
            return Warc(to, shared=shared, name=f"{authority}.warc.gz")
        case Format.PARQUET:
            require_extra("parquet", "Parquet")
            from crawler.export.parquet import Parquet

            return Parquet(to, in_chunks=in_chunks)
        case Format.MARKDOWN:
            raise ValueError("Markdown is written to a folder")
