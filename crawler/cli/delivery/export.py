"""recrawl export and sync: export the pages of a domain, and keep a search index of them up to date."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Annotated
from urllib.parse import urlsplit

from crawler.cli.lazy import exports
from crawler.cli.lazy import progress as bars
from crawler.cli.options import Json, argument, flag, option
from crawler.cli.output import get_stdout, print_json, print_json_line, remark, report_cursor_errors, say
from crawler.cli.session import Interrupts, run_on_database
from crawler.errors import BadInput
from crawler.format.values import format_count


def export(
    domain: Annotated[str, argument("DOMAIN", "A registered domain.")],
    form: Annotated[str, option("FORMAT", "The format: jsonl, csv, parquet, markdown or warc.", "--format")] = "jsonl",
    to: Annotated[Path | None, option("PATH", "The file to write. markdown needs a folder. Default: stdout.")] = None,
    since: Annotated[
        int | None, option("CURSOR", "Export only pages that changed or were removed after this cursor; 0: all.", min=0)
    ] = None,
    chunks: Annotated[
        bool, flag("--chunks", "Write a row per section of a page instead of per page (jsonl and parquet).")
    ] = False,
    versions: Annotated[
        bool, flag("--versions", "Export all versions of all pages, gone pages too. Not with markdown or --chunks.")
    ] = False,
    as_json: Annotated[bool, flag("--json", "Print a summary with the cursor as JSON to stdout; needs --to.")] = False,
) -> None:
    """Export the pages of a domain.

    jsonl, csv and parquet have a row per page with its main text. With --chunks, jsonl and parquet have a row per
    section, as Markdown, with a stable ID. markdown writes a file per page, with metadata in its front matter. warc
    contains the responses as the servers sent them, for archives.

    The command prints a cursor to stderr. Pass it to --since to export only later changes, including removed pages. In
    a markdown folder, the files of removed pages are deleted.

    Examples:

        recrawl export docs.example.com > pages.jsonl
        recrawl export docs.example.com --format markdown --to notes
        recrawl export docs.example.com --chunks --since 4711
        recrawl export docs.example.com --format warc --to docs.warc.gz --versions
    """
    request = exports.ExportRequest(
        domain=domain, format_name=form, to=to, since=since, chunks=chunks, versions=versions
    )
    if request.format.is_binary and to is None and get_stdout().is_terminal:
        raise BadInput(f"{request.format} is binary and cannot be written to a terminal: use --to FILE")
    if as_json and to is None:
        raise BadInput("--json prints a summary to stdout: use --to PATH for the pages")

    async def work(db: "exports.AppDatabase", _: Interrupts) -> "exports.ExportResult":
        with bars.ExportProgress() as progress:
            now, open_stream = datetime.now(UTC), lambda: sys.stdout.buffer
            return await exports.export_pages(db, request, open_stream=open_stream, at=now, on_progress=progress)

    with report_cursor_errors(as_json=as_json):
        exported = run_on_database(work)
    if as_json:
        print_json({"domain": domain, "pages": exported.pages, "next": exported.cursor})
    else:
        count = format_count(exported.pages, "version" if versions else "page")
        remark(f"{count} exported; next changes: {_format_next_command(request, exported)}")


def _format_next_command(request: "exports.ExportRequest", exported: "exports.ExportResult") -> str:
    arguments = [f"--format {request.format_name}"] if request.format_name != exports.Format.JSONL else []
    arguments += [f"--{request.row_kind}"] if request.row_kind is not exports.RowKind.PAGES else []
    if request.to is not None and request.format.is_folder:
        arguments.append(f"--to {quote(str(request.to))}")
    elif request.format.is_binary:
        arguments.append("--to FILE")  # not the same file, which would be replaced
    return " ".join(["recrawl export", request.domain, *arguments, f"--since {exported.cursor}"])


def sync(
    target: Annotated[str, argument("FILE|URL", "A SQLite file or a postgresql:// URL. Created if it does not exist.")],
    names: Annotated[list[str] | None, argument("[DOMAIN]...", "Registered domains. Default: all domains.")] = None,
    full: Annotated[
        bool, flag("--full", "Read all pages again, and delete from the index what no longer exists.")
    ] = False,
    follow: Annotated[
        bool, flag("--follow", "Keep running and apply changes as they are found, until Ctrl-C.", short="-f")
    ] = False,
    as_json: Json = False,
) -> None:
    """Keep a search index of the pages up to date, in SQLite (full-text search) or Postgres (embeddings).

    The first run adds all pages, in chunks by heading. Later runs apply only changes and delete removed pages. The
    index stores its cursor in the same transaction as the pages, so an interrupted run misses nothing.

    Any SQLite with FTS5 can read the file, even while it is written. In Postgres, the table recrawl_index.chunk has a
    row per chunk with a column for its embedding, which is kept as long as its text is unchanged (docs/export.md).

    With --follow, the command runs until Ctrl-C or SIGTERM (exit code 0) and prints a line for each update, or a JSON
    document per line with --json.

    Examples:

        recrawl sync pages.sqlite
        recrawl sync docs.sqlite docs.example.com
        recrawl sync pages.sqlite --follow
        recrawl sync postgresql://search@localhost/search
        sqlite3 docs.sqlite "SELECT heading, text FROM chunk_text WHERE chunk_text MATCH 'pear' ORDER BY rank LIMIT 5"
    """

    def describe_result(result: "exports.SyncRound") -> dict[str, object]:
        return {"index": _strip_password(target), "domains": result.synced, "unregistered": result.unregistered}

    async def print_results(index: "exports.IndexSync") -> None:
        async for result in index.follow(full=full, on_outage=lambda error: remark(f"{error}; trying again")):
            print_json_line(describe_result(result)) if as_json else _show_result(result)

    async def work(db: "exports.AppDatabase", interrupts: Interrupts) -> "exports.SyncRound | None":
        async with exports.open_index(db, target, names or (), progress=bars.ExportProgress) as index:
            if not follow:
                return await index.sync(full=full)
            await interrupts.run_until_stop(print_results(index))
            return None

    result = run_on_database(work, patient=follow)
    if result is not None:
        print_json(describe_result(result)) if as_json else _show_result(result)


def _show_result(result: "exports.SyncRound") -> None:
    for name, synced in result.synced.items():
        how = "all pages read" if synced.is_anew else "changes only"
        say(f"{name}: {format_count(synced.put, 'page')} written, {synced.removed:,} deleted ({how})")
    for name, removed in result.unregistered.items():
        say(f"{name}: {format_count(removed, 'page')} deleted; the domain is no longer registered")
    if not result.synced and not result.unregistered:
        remark("No domain is registered. Run recrawl crawl URL")


def _strip_password(target: str) -> str:
    parts = urlsplit(target)
    if not exports.is_database_url(target) or parts.password is None:
        return target
    return parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", "@", 1)).geturl()
