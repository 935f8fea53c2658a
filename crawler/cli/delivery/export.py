"""recrawl export and sync: a domain's pages to a file, a folder or stdout, and an index of them kept in step."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Annotated
from urllib.parse import urlsplit, urlunsplit

from crawler.cli.lazy import exports
from crawler.cli.lazy import progress as bars
from crawler.cli.options import Json, argument, flag, option
from crawler.cli.output import out, print_json, print_json_line, remark, say, telling_of_cursors
from crawler.cli.session import Interrupts, with_database
from crawler.errors import BadInput
from crawler.format.values import format_count


def export(
    domain: Annotated[str, argument("DOMAIN", "A registered domain.")],
    form: Annotated[str, option("FORMAT", "jsonl, csv, parquet, markdown or warc.", "--format")] = "jsonl",
    to: Annotated[Path | None, option("PATH", "A file, or a folder for markdown, which needs it; else stdout.")] = None,
    since: Annotated[
        int | None, option("CURSOR", "Only what has changed since, and what went; 0 for everything.", min=0)
    ] = None,
    chunks: Annotated[
        bool, flag("--chunks", "Of jsonl and parquet: a row for each part of a page under a heading.")
    ] = False,
    versions: Annotated[
        bool, flag("--versions", "All versions of each page, also of those that are gone; not as markdown.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Take the pages of a domain: each with its newest text, or as its server sent it.

    jsonl, csv and parquet have a row for each page with its main text; with --chunks a row for each part, as Markdown,
    with an id that stays. markdown is a file for each page with what is known of it at its head. warc is what the
    servers sent, for archives. It ends with the cursor from which to go on: an export with --since brings what has
    changed, and tells what went (in a folder of markdown such files are removed).

    Examples:

        recrawl export docs.example.com > pages.jsonl
        recrawl export docs.example.com --format markdown --to notes
        recrawl export docs.example.com --chunks --since 4711
        recrawl export docs.example.com --format warc --to docs.warc.gz --versions
    """
    request = exports.ExportRequest(domain=domain, form=form, to=to, since=since, chunks=chunks, versions=versions)
    if request.format.is_binary and to is None and out().is_terminal:
        raise BadInput(f"{request.format} is nothing for a terminal: --to FILE")
    if as_json and to is None:
        raise BadInput("--json tells what was written, so that --to has to say where")

    async def work(db: "exports.Database", _: Interrupts) -> "exports.Exported":
        with bars.PagesWritten() as progress:
            return await exports.export_pages(
                db, request, open_stream=lambda: sys.stdout.buffer, at=datetime.now(UTC), on_progress=progress
            )

    with telling_of_cursors(as_json=as_json):
        done = with_database(work)
    if as_json:
        print_json({"domain": domain, "pages": done.pages, "next": done.cursor})
    else:
        noun = "version" if versions else "page"
        remark(f"{format_count(done.pages, noun)}; what changes from now on: {_next(request, done)}")


def _next(request: "exports.ExportRequest", done: "exports.Exported") -> str:
    given = [f"--format {request.form}"] if request.form != exports.Format.JSONL else []
    given += [f"--{request.what}"] if request.what is not exports.What.PAGES else []
    given += [f"--to {quote(str(request.to))}"] if request.to is not None and request.format.is_folder else []
    return " ".join(["recrawl export", request.domain, *given, f"--since {done.cursor}"])


def sync(
    target: Annotated[str, argument("FILE|URL", "An SQLite file, or postgresql://...; made where there is none.")],
    names: Annotated[list[str] | None, argument("[DOMAIN]...", "Registered domains; all where none is named.")] = None,
    anew: Annotated[bool, flag("--anew", "Read all pages, and take out what is not there.")] = False,
    follow: Annotated[
        bool, flag("--follow", "Go on: put what is found as it is found, until Ctrl-C.", short="-f")
    ] = False,
    as_json: Json = False,
) -> None:
    """Keep an index of the pages in step: a SQLite file for search by words, or tables in Postgres for embeddings.

    The first time all pages are put into it, in chunks by heading; later what has changed, and what went is taken out.
    The index has its own cursor, which it commits with the pages: whatever ends in between, nothing is missed. Any
    SQLite with FTS5 reads the file, also while it is written. In Postgres the schema recrawl_index has a row for each
    chunk with a column for its embedding, which stays as long as the chunk's text does (docs/export.md).

    With --follow it goes on until it is told to stop (Ctrl-C, SIGTERM: exit code 0), woken as the feed grows, and tells
    of each time that something was put or taken out; with --json each is a line.

    Examples:

        recrawl sync pages.sqlite
        recrawl sync docs.sqlite docs.example.com
        recrawl sync pages.sqlite --follow
        recrawl sync postgresql://search@localhost/search
        sqlite3 docs.sqlite "SELECT heading, text FROM chunk_text WHERE chunk_text MATCH 'pear' ORDER BY rank LIMIT 5"
    """

    def document(found: "exports.SyncRound") -> dict[str, object]:
        return {"index": _without_password(target), "domains": found.done, "forgotten": found.forgotten}

    async def tell_rounds(index: "exports.IndexSync") -> None:
        async for found in index.follow(anew=anew, on_outage=lambda error: remark(f"{error}; it is asked again")):
            print_json_line(document(found)) if as_json else _show(found)

    async def work(db: "exports.Database", interrupts: Interrupts) -> "exports.SyncRound | None":
        async with exports.open_index(db, target, names or (), progress=bars.PagesWritten) as index:
            if not follow:
                return await index.sync(anew=anew)
            await interrupts.or_stop(tell_rounds(index))
            return None

    found = with_database(work, patient=follow)
    if found is not None:
        print_json(document(found)) if as_json else _show(found)


def _show(found: "exports.SyncRound") -> None:
    for name, synced in found.done.items():
        how = "all pages read" if synced.is_anew else "what has changed"
        say(f"{name}: {format_count(synced.put, 'page')} put, {synced.removed:,} taken out ({how})")
    for name, removed in found.forgotten.items():
        say(f"{name}: {format_count(removed, 'page')} taken out; it is not registered any more")
    if not found.done and not found.forgotten:
        remark("No domain is registered: recrawl crawl URL")


def _without_password(target: str) -> str:
    parts = urlsplit(target)
    if not exports.is_database(target) or parts.password is None:
        return target
    return urlunsplit(parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", "@", 1)))
