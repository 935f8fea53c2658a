"""recrawl sync: an index of the pages brought in step once, or kept so while the feed grows."""

from typing import Annotated
from urllib.parse import urlsplit, urlunsplit

from crawler.cli.lazy import exports, progress
from crawler.cli.options import Json, argument, flag
from crawler.cli.output import print_json, print_json_line, remark, say
from crawler.cli.session import Interrupts, with_database
from crawler.format.values import format_count


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
        async with exports.open_index(db, target, names or (), progress=progress.PagesWritten) as index:
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
