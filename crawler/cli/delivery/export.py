"""recrawl export and recrawl sync: their options and their help."""

from pathlib import Path
from typing import Annotated

import typer

from crawler.cli.options import Json


def export(
    domain: Annotated[str, typer.Argument(metavar="DOMAIN", help="A registered domain.")],
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="jsonl, csv, parquet, markdown or warc.")
    ] = "jsonl",
    to: Annotated[
        Path | None, typer.Option(metavar="PATH", help="A file, or a folder for markdown, which needs it; else stdout.")
    ] = None,
    since: Annotated[
        int | None,
        typer.Option(min=0, metavar="CURSOR", help="Only what has changed since, and what went; 0 for everything."),
    ] = None,
    chunks: Annotated[
        bool, typer.Option("--chunks", help="Of jsonl and parquet: a row for each part of a page under a heading.")
    ] = False,
    versions: Annotated[
        bool,
        typer.Option("--versions", help="All versions of each page, also of those that are gone; not as markdown."),
    ] = False,
    as_json: Json = False,
) -> int:
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
    from crawler.cli.delivery import export_output

    request = export_output.ExportRequest(
        domain=domain, form=form, to=to, since=since, chunks=chunks, versions=versions
    )
    return export_output.export(request, as_json=as_json)


def sync(
    target: Annotated[
        str, typer.Argument(metavar="FILE|URL", help="An SQLite file, or postgresql://...; made where there is none.")
    ],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[DOMAIN]...", help="Registered domains; all where none is named.")
    ] = None,
    anew: Annotated[bool, typer.Option("--anew", help="Read all pages, and take out what is not there.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on: put what is found as it is found, until Ctrl-C.")
    ] = False,
    as_json: Json = False,
) -> int:
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
    from crawler.cli.delivery import sync_output

    return sync_output.sync_index(target, names or (), anew=anew, follow=follow, as_json=as_json)
