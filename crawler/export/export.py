"""One domain's pages from the store to a writer, in batches of bounded size."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Protocol

from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey
from crawler.errors import CrawlerError
from crawler.store import report
from crawler.store.database import Database
from crawler.store.report import TakenPage, VersionKey

PAGES_AT_ONCE = 200  # with bodies of up to ten megabytes each, though few are larger than a hundredth of that
BODIES_AT_ONCE = 20


class Format(StrEnum):
    """A form in which pages are taken."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    MARKDOWN = "markdown"
    WARC = "warc"

    @property
    def is_folder(self) -> bool:
        """Whether it has a file for each page, and so no place for several versions of one."""
        return self is Format.MARKDOWN

    @property
    def is_binary(self) -> bool:
        """Whether a terminal could not show it."""
        return self in {Format.PARQUET, Format.WARC}

    @property
    def has_chunks(self) -> bool:
        """Whether it can have a row for each chunk."""
        return self in {Format.JSONL, Format.PARQUET}


class What(StrEnum):
    """What a row, or a record, of an export is about."""

    PAGES = "pages"
    CHUNKS = "chunks"
    VERSIONS = "versions"


@dataclass(frozen=True, slots=True)
class Source:
    """The pages of a domain to be written. bodies: with them."""

    db: Database
    domain: Domain
    what: What
    bodies: bool

    @property
    def most(self) -> int:
        """How many are in memory at a time."""
        return BODIES_AT_ONCE if self.bodies else PAGES_AT_ONCE

    async def all(self) -> AsyncIterator[tuple[list[TakenPage], None]]:
        """All pages, or versions, by key; there is no cursor between them."""
        if self.what is What.VERSIONS:
            place: VersionKey | None = report.FIRST_VERSION
            while place is not None:
                batch, place = await report.versions_to_take(
                    self.db, self.domain, after=place, most=self.most, bodies=self.bodies
                )
                yield batch, None
            return
        key = PageKey(b"")
        while batch := await report.pages_to_take(self.db, self.domain, after=key, most=self.most, bodies=self.bodies):
            yield batch, None
            key = batch[-1].key

    async def changed(self, *, after: int, until: int) -> AsyncIterator[tuple[list[TakenPage], int]]:
        """The pages, or versions, of which the feed tells between two cursors, in its order, each time
        with the cursor behind them. Raises CursorTooOld.
        """
        versions = self.what is What.VERSIONS
        while after < until:
            batch, after = await report.changes_to_take(
                self.db, self.domain, after=after, until=until, most=self.most, bodies=self.bodies, versions=versions
            )
            yield batch, after


WITH_BODIES = frozenset({Format.MARKDOWN, Format.WARC})


@dataclass(frozen=True, slots=True)
class Exported:
    """What was exported. cursor: of the feed, from which the next export goes on."""

    pages: int
    cursor: int


class PageWriter(Protocol):
    """Takes pages one after the other."""

    def write(self, page: TakenPage) -> None: ...

    def close(self) -> None: ...


async def export(
    db: Database,
    domain: Domain,
    form: Format,
    to: Path | BinaryIO,
    *,
    since: int | None = None,
    what: What = What.PAGES,
    progress: Callable[[int], None] = lambda _: None,
) -> Exported:
    """Write the newest version of each page that is there; with `since` of those alone that changed after that cursor.

    to: a folder for a format of files, else a binary stream.  what: a row for each page, for each part of it under a
    heading, or for each version of any page.  progress: called with the pages so far.
    With `since`, pages that went are told, too, so that a copy follows; of versions those are told that came.
    Raises CursorTooOld for a cursor that is older than what the feed keeps; with 0 all pages are written instead.
    What changes while it is written is written, or comes after the cursor, or both.  Raises CrawlerError where what
    writes the format is not installed.
    """
    until = await report.end_of_feed(db)
    if since == 0 and await report.forgotten_until(db, domain.id):
        since = None  # whoever has nothing misses nothing: the pages that are there are all of it
    source = Source(db=db, domain=domain, what=what, bodies=what is What.CHUNKS or form in WITH_BODIES)
    writer = await _open_writer(source, form, to, is_whole=not since)
    pages = 0
    async for batch, _ in source.all() if since is None else source.changed(after=since, until=until):
        for page in batch:
            writer.write(page)
        pages += len(batch)
        progress(pages)
    writer.close()
    return Exported(pages, until)


async def _open_writer(source: Source, form: Format, to: Path | BinaryIO, *, is_whole: bool) -> PageWriter:
    """Open what writes a format. Each is imported when it is wanted: its library takes longer to load than all else."""
    authority, in_chunks = source.domain.authority, source.what is What.CHUNKS
    if isinstance(to, Path):
        from crawler.export.markdown import MarkdownFolder

        return MarkdownFolder(to, authority=authority, is_whole=is_whole)
    match form:
        case Format.JSONL:
            from crawler.export.rows import JsonLines

            return JsonLines(to, in_chunks=in_chunks)
        case Format.CSV:
            from crawler.export.rows import Csv

            return Csv(to)
        case Format.WARC:
            from crawler.export.warc import Warc

            of_versions = source.what is What.VERSIONS
            shared = await report.shared_digests(source.db, source.domain, of_versions=of_versions)
            return Warc(to, shared=shared, name=f"{authority}.warc.gz")
        case Format.PARQUET:
            try:
                from crawler.export.parquet import Parquet
            except ImportError as error:
                raise CrawlerError(
                    "Parquet needs pyarrow, which is not installed: make setup-extras EXTRAS=parquet installs it in a"
                    " checkout; build an image with --build-arg EXTRAS=parquet"
                ) from error
            return Parquet(to, in_chunks=in_chunks)
        case Format.MARKDOWN:
            raise ValueError("Markdown is written to a folder")
