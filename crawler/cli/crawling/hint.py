"""recrawl hint: somebody says that pages have changed; it is weighed by what such hints turned out to be worth."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.options import At, Json
from crawler.cli.output import print_json, say
from crawler.cli.session import with_database
from crawler.errors import BadInput
from crawler.format.values import format_count

if TYPE_CHECKING:
    from crawler.app.revisits import Url

MAX_LINE = 8192  # characters of a line; a page's URL has as many bytes at most


def hint(
    urls: Annotated[
        list[str], typer.Argument(metavar="URL...|-", help="Pages that have changed; - reads one a line from stdin.")
    ],
    source: Annotated[
        str, typer.Option(metavar="NAME", help="Who says so: a CMS, IndexNow. Each source is measured by itself.")
    ] = "push",
    at: At = None,
    as_json: Json = False,
) -> int:
    """Say that pages have changed, without ordering a look at them.

    A hint is weighed: pages are looked at sooner by as much as hints of this source have proved to be worth in their
    domain, and later where it says nothing and has never missed a change. To order looks, see recrawl refresh.
    Pages that are not known yet are found by it. --at is when they changed.

    Examples:

        recrawl hint https://docs.example.com/guide/start
        my-cms --changed-urls | recrawl hint - --source my-cms
        recrawl hint https://docs.example.com/news --at 2026-03-01T08:00Z --json
    """
    from crawler.app.revisits import leave_hints, require_source

    require_source(source)  # before standard input is read
    wanted, now = list(_urls(urls)), at or datetime.now(UTC)
    found = with_database(lambda db, _: leave_hints(db, wanted, source=source, at=now))
    if as_json:
        print_json({"source": source, "at": now, "taken": found.taken, "refused": found.refused})
    else:
        for authority, many in found.taken.items():
            say(f"{authority}: {format_count(many, 'hint')} of {source} will be weighed by the next crawl")
        for reason, many in found.refused.items():
            say(f"{format_count(many, 'hint')} refused: {reason.replace('_', ' ')}")
    return DONE if sum(found.taken.values()) else PROBLEM


def _urls(texts: Sequence[str]) -> "Iterator[Url]":
    from crawler.app.registration import url_of
    from crawler.app.revisits import MAX_HINTS

    for n, (place, text) in enumerate(_lines(texts)):
        if n >= MAX_HINTS:
            raise BadInput(f"more than {MAX_HINTS:,} URLs at a time")
        try:
            yield url_of(text)
        except BadInput as error:
            raise BadInput(f"{place}{error}") from error


def _lines(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each URL as it was given, with the place to name it by: the line of standard input."""
    for text in texts:
        if text != "-":
            yield "", text
            continue
        number = 0
        while line := sys.stdin.readline(MAX_LINE + 2):
            number += 1
            if len(line) > MAX_LINE + 1:
                raise BadInput(f"line {number}: longer than {MAX_LINE} characters")
            if line.strip():
                yield f"line {number}: ", line.strip()
