"""recrawl hint: read URLs, and leave the hints for whoever crawls their domains next."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from crawler.app.database import Database
from crawler.app.hints import MAX_HINTS, TakenHints, Url, leave_hints, require_source
from crawler.app.registration import url_of
from crawler.cli.output import print_json, say
from crawler.cli.session import Interrupts, with_database
from crawler.errors import BadInput
from crawler.format.values import format_count

MAX_LINE = 8192  # characters of a line; a page's URL has as many bytes at most


def hint(texts: Sequence[str], *, source: str, at: datetime | None, as_json: bool) -> int:
    """Leave the hints; gives how many were taken. Raises BadInput for what is no URL or no name of a source."""
    require_source(source)  # before standard input is read
    urls = list(_urls(texts))
    now = at or datetime.now(UTC)

    async def work(db: Database, _: Interrupts) -> TakenHints:
        return await leave_hints(db, urls, source=source, at=now)

    found = with_database(work)
    total = sum(found.taken.values())
    if as_json:
        print_json({"source": source, "at": now, "taken": found.taken, "refused": found.refused})
        return total
    for authority, many in found.taken.items():
        say(f"{authority}: {format_count(many, 'hint')} of {source} will be weighed by the next crawl")
    for reason, many in found.refused.items():
        say(f"{format_count(many, 'hint')} refused: {reason.replace('_', ' ')}")
    return total


def _urls(texts: Sequence[str]) -> Iterator[Url]:
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
