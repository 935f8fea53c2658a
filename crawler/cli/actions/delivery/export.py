"""recrawl export, a domain's pages to a file, a folder or stdout; recrawl sync, an index kept in step."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import BinaryIO
from urllib.parse import urlsplit, urlunsplit

from crawler.cli.cursors import told_if_useless
from crawler.cli.exits import DONE
from crawler.cli.output import out, print_json, remark, say
from crawler.cli.progress import PagesWritten
from crawler.cli.session import Interrupts, with_database
from crawler.cli.values import counted
from crawler.errors import BadInput, CrawlerError, CursorAhead
from crawler.export import Exported, Format, PostgresIndex, SqliteIndex, Synced, What, called, in_thread
from crawler.export import export as write_pages
from crawler.export import sync as bring_in_step
from crawler.register import domain_named
from crawler.store import domains, report
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
        remark(f"{counted(done.pages, noun)}; what changes from now on: {_next(asked, done)}")
    return DONE


def sync_index(target: str, names: Sequence[str], *, anew: bool, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> tuple[dict[str, Synced], dict[str, int]]:
        every = [listed.domain for listed in await domains.every(db)]
        wanted = [await domain_named(db, name) for name in names] or every
        await report.stamp_feed(db, at=datetime.now(UTC))
        async with in_thread(_index(target)) as (index, thread):
            done: dict[str, Synced] = {}
            with PagesWritten() as progress:
                for each in wanted:
                    done[each.authority] = await bring_in_step(
                        db, each, index, anew=anew, progress=progress.advance, thread=thread
                    )
            gone = set(await called(thread, index.domains)) - {each.authority for each in every}
            forgotten = {name: await called(thread, index.forget, name) for name in sorted(gone)}
        return done, forgotten

    done, forgotten = with_database(work)
    if as_json:
        print_json({"index": _shown_target(target), "domains": done, "forgotten": forgotten})
        return DONE
    for name, synced in done.items():
        how = "all pages read" if synced.is_anew else "what has changed"
        say(f"{name}: {counted(synced.put, 'page')} put, {synced.removed:,} taken out ({how})")
    for name, removed in forgotten.items():
        say(f"{name}: {counted(removed, 'page')} taken out; it is not registered any more")
    if not done and not forgotten:
        remark("No domain is registered: recrawl crawl URL")
    return DONE


def _index(target: str) -> SqliteIndex | PostgresIndex:
    return PostgresIndex(target) if _is_database(target) else SqliteIndex(Path(target))


def _is_database(target: str) -> bool:
    return target.startswith(("postgresql://", "postgres://"))


def _shown_target(target: str) -> str:
    """The index without a password."""
    parts = urlsplit(target)
    if not _is_database(target) or parts.password is None:
        return target
    return urlunsplit(parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", "@", 1)))


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
        raise BadInput(f"{form} is a folder of files: --to FOLDER")
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
