"""recrawl refresh and hint: pages become due now, or as soon as it pays when somebody says that they have changed."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated

from crawler.cli.lazy import registration, revisits, status
from crawler.cli.options import At, DomainName, Json, argument, option
from crawler.cli.output import print_json, say
from crawler.cli.session import DONE, PROBLEM, settings, with_database
from crawler.errors import BadInput
from crawler.format.values import format_count, format_instant
from crawler.times import format_typed_instant


def refresh(
    domain: DomainName,
    prefix: Annotated[str | None, option("URL", "Only pages whose URL begins so; a path will do.")] = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Make every page of a domain due now, or the page that a URL names. A running stack begins at once, else the
    next crawl does.

    Examples:

        recrawl refresh docs.example.com
        recrawl refresh docs.example.com --prefix /guide/
        recrawl refresh https://docs.example.com/guide/intro
    """
    done = with_database(lambda db, _: revisits.refresh(db, domain, prefix=prefix or "", at=at))
    name, pages = done.domain.authority, done.pages
    # A run would live in the time of the clock.
    seen_at = revisits.start_recrawl(settings(), done.domain, done.prefix) if at is None else None
    if as_json:
        print_json({"domain": name, "prefix": done.prefix, "pages": pages, "run": seen_at, "not_now": done.wait})
        return
    when = "now" if at is None else f"at {format_instant(at)}"
    say(f"{format_count(pages, 'page')} under {done.prefix} {'is' if pages == 1 else 'are'} due {when}")
    if done.wait is not None and done.wait.reason.is_obstacle:
        say(f"They wait: {name} {status.format_wait(done.wait, done.domain, now=at or datetime.now(UTC))}")
    elif seen_at:
        say(f"The running stack fetches them now: {seen_at}")
    else:
        then = f" --at {format_typed_instant(at)}" if at is not None else ""
        say(f"Next: {done.command}{then} (until then other commands show their former times)")


MAX_LINE = 8192  # characters of a line; a page's URL has as many bytes at most


def hint(
    urls: Annotated[list[str], argument("URL...|-", "Pages that have changed; - reads one a line from stdin.")],
    source: Annotated[str, option("NAME", "Who says so: a CMS, IndexNow. Each source is measured by itself.")] = "push",
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
    revisits.require_source(source)  # before standard input is read
    wanted, now = list(_urls(urls)), at or datetime.now(UTC)
    found = with_database(lambda db, _: revisits.leave_hints(db, wanted, source=source, at=now))
    if as_json:
        print_json({"source": source, "at": now, "taken": found.taken, "refused": found.refused})
    else:
        for authority, many in found.taken.items():
            say(f"{authority}: {format_count(many, 'hint')} of {source} will be weighed by the next crawl")
        for reason, many in found.refused.items():
            say(f"{format_count(many, 'hint')} refused: {reason.replace('_', ' ')}")
    return DONE if sum(found.taken.values()) else PROBLEM


def _urls(texts: Sequence[str]) -> "Iterator[revisits.Url]":
    for n, (place, text) in enumerate(_lines(texts)):
        if n >= revisits.MAX_HINTS:
            raise BadInput(f"more than {revisits.MAX_HINTS:,} URLs at a time")
        try:
            yield registration.url_of(text)
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
