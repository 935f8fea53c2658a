"""recrawl export: a domain's pages to a file, a folder or stdout."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Annotated

from crawler.cli.lazy import exports
from crawler.cli.lazy import progress as bars
from crawler.cli.options import Json, argument, flag, option
from crawler.cli.output import out, print_json, remark, telling_of_cursors
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
