"""recrawl export: a domain's pages to a file, a folder or stdout."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import BinaryIO

from crawler.app.registration import domain_named
from crawler.cli.cursors import told_if_useless
from crawler.cli.exits import DONE
from crawler.cli.output import out, print_json, remark
from crawler.cli.progress import PagesWritten
from crawler.cli.session import Interrupts, with_database
from crawler.errors import BadInput, CrawlerError, CursorAhead
from crawler.export import Exported, Format, What
from crawler.export import export as write_pages
from crawler.format.values import format_count
from crawler.store import report
from crawler.store.database import Database


@dataclass(frozen=True, slots=True)
class ExportAsked:
    """What a person asks for. to: None for stdout.  since: a cursor of the feed, or None for all pages."""

    domain: str
    form: str
    to: Path | None
    since: int | None
    chunks: bool
    versions: bool = False

    @property
    def what(self) -> What:
        return What.CHUNKS if self.chunks else What.VERSIONS if self.versions else What.PAGES


def export(asked: ExportAsked, *, as_json: bool) -> int:
    form = _form(asked)
    if as_json and asked.to is None:
        raise BadInput("--json tells what was written, so that --to has to say where")

    async def work(db: Database, _: Interrupts) -> Exported:
        domain = await domain_named(db, asked.domain)
        await report.stamp_feed(db, at=datetime.now(UTC))
        end = await report.end_of_feed(db)
        if asked.since is not None and asked.since > end:
            raise CursorAhead(since=asked.since, end=end)
        with PagesWritten() as progress, _destination(asked.to, form) as to:
            return await write_pages(
                db, domain, form, to, since=asked.since, what=asked.what, progress=progress.advance
            )

    with told_if_useless(as_json=as_json):
        done = with_database(work)
    if as_json:
        print_json({"domain": asked.domain, "pages": done.pages, "next": done.cursor})
    else:
        noun = "version" if asked.versions else "page"
        remark(f"{format_count(done.pages, noun)}; what changes from now on: {_next(asked, done)}")
    return DONE


def _form(asked: ExportAsked) -> Format:
    try:
        form = Format(asked.form.lower())
    except ValueError as error:
        raise BadInput(f"{asked.form} is no format: {', '.join(Format)}") from error
    if asked.chunks and not form.has_chunks:
        raise BadInput(f"{form} has no chunks: they are rows of jsonl or parquet")
    if asked.versions and (asked.chunks or not form.has_versions):
        why = "chunks are of the newest version" if asked.chunks else f"{form} has one file for each page"
        raise BadInput(f"{why}: --versions is for rows and records of pages")
    if form.is_folder and asked.to is None:
        raise BadInput(
            f"{form} is a folder with a file for each page, which stdout cannot hold: name it with --to FOLDER"
        )
    if asked.to is not None and asked.to.exists() and asked.to.is_dir() != form.is_folder:
        raise BadInput(f"{asked.to} is there and no folder" if form.is_folder else f"{asked.to} is a folder: --to FILE")
    if form.is_binary and asked.to is None and out().is_terminal:
        raise BadInput(f"{form} is nothing for a terminal: --to FILE")
    return form


@contextmanager
def _destination(to: Path | None, form: Format) -> Iterator[Path | BinaryIO]:
    """Where it is written. A file is there when it is whole, and not before."""
    if to is None:
        yield sys.stdout.buffer
        return
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


def _next(asked: ExportAsked, done: Exported) -> str:
    given = [f"--format {asked.form}"] if asked.form != Format.JSONL else []
    given += [f"--{asked.what}"] if asked.what is not What.PAGES else []
    given += [f"--to {quote(str(asked.to))}"] if asked.to is not None and Format(asked.form.lower()).is_folder else []
    return " ".join(["recrawl export", asked.domain, *given, f"--since {done.cursor}"])
