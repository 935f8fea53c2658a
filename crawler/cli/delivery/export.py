"""recrawl export and sync: a domain's pages to a file, a folder or stdout, and an index of them kept in step."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Annotated
from urllib.parse import urlsplit, urlunsplit

from crawler.cli.lazy import exports
from crawler.cli.lazy import progress as bars
from crawler.cli.options import Json, declare_argument, declare_flag, declare_option
from crawler.cli.output import get_stdout, print_json, print_json_line, remark, report_cursor_errors, say
from crawler.cli.session import Interrupts, run_on_database
from crawler.errors import BadInput
from crawler.format.values import format_count


def export(
    domain: Annotated[str, declare_argument("DOMAIN", "A registered domain.")],
    form: Annotated[str, declare_option("FORMAT", "jsonl, csv, parquet, markdown or warc.", "--format")] = "jsonl",
    to: Annotated[
        Path | None, declare_option("PATH", "A file, or a folder for markdown, which needs it; else stdout.")
    ] = None,
    since: Annotated[
        int | None, declare_option("CURSOR", "Only what has changed since, and what went; 0 for everything.", min=0)
    ] = None,
    chunks: Annotated[
        bool, declare_flag("--chunks", "Of jsonl and parquet: a row for each part of a page under a heading.")
    ] = False,
    versions: Annotated[
        bool, declare_flag("--versions", "All versions of each page, also of those that are gone; not as markdown.")
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
    if request.format.is_binary and to is None and get_stdout().is_terminal:
        raise BadInput(f"{request.format} is nothing for a terminal: --to FILE")
    if as_json and to is None:
        raise BadInput("--json tells what was written, so that --to has to say where")

    async def work(db: "exports.AppDatabase", _: Interrupts) -> "exports.ExportResult":
        with bars.ExportProgress() as progress:
            return await exports.export_pages(
                db, request, open_stream=lambda: sys.stdout.buffer, at=datetime.now(UTC), on_progress=progress
            )

    with report_cursor_errors(as_json=as_json):
        exported = run_on_database(work)
    if as_json:
        print_json({"domain": domain, "pages": exported.pages, "next": exported.cursor})
    else:
        noun = "version" if versions else "page"
        remark(
            f"{format_count(exported.pages, noun)}; what changes from now on: {_format_next_command(request, exported)}"
        )


def _format_next_command(request: "exports.ExportRequest", exported: "exports.ExportResult") -> str:
    arguments = [f"--format {request.form}"] if request.form != exports.Format.JSONL else []
    arguments += [f"--{request.what}"] if request.what is not exports.RowKind.PAGES else []
    arguments += [f"--to {quote(str(request.to))}"] if request.to is not None and request.format.is_folder else []
    return " ".join(["recrawl export", request.domain, *arguments, f"--since {exported.cursor}"])


def sync(
    target: Annotated[
        str, declare_argument("FILE|URL", "An SQLite file, or postgresql://...; made where there is none.")
    ],
    names: Annotated[
        list[str] | None, declare_argument("[DOMAIN]...", "Registered domains; all where none is named.")
    ] = None,
    full: Annotated[bool, declare_flag("--full", "Read all pages, and take out what is not there.")] = False,
    follow: Annotated[
        bool, declare_flag("--follow", "Go on: put what is found as it is found, until Ctrl-C.", short="-f")
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

    def describe_result(result: "exports.SyncRound") -> dict[str, object]:
        return {"index": _strip_password(target), "domains": result.synced, "forgotten": result.forgotten}

    async def print_results(index: "exports.IndexSync") -> None:
        async for result in index.follow(anew=full, on_outage=lambda error: remark(f"{error}; it is asked again")):
            print_json_line(describe_result(result)) if as_json else _show_result(result)

    async def work(db: "exports.AppDatabase", interrupts: Interrupts) -> "exports.SyncRound | None":
        async with exports.open_index(db, target, names or (), progress=bars.ExportProgress) as index:
            if not follow:
                return await index.sync(anew=full)
            await interrupts.run_until_stop(print_results(index))
            return None

    result = run_on_database(work, patient=follow)
    if result is not None:
        print_json(describe_result(result)) if as_json else _show_result(result)


def _show_result(result: "exports.SyncRound") -> None:
    for name, synced in result.synced.items():
        how = "all pages read" if synced.is_anew else "what has changed"
        say(f"{name}: {format_count(synced.put, 'page')} put, {synced.removed:,} taken out ({how})")
    for name, removed in result.forgotten.items():
        say(f"{name}: {format_count(removed, 'page')} taken out; it is not registered any more")
    if not result.synced and not result.forgotten:
        remark("No domain is registered: recrawl crawl URL")


def _strip_password(target: str) -> str:
    parts = urlsplit(target)
    if not exports.is_database_url(target) or parts.password is None:
        return target
    return urlunsplit(parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", "@", 1)))
