"""recrawl refresh and hint: pages become due now, or as soon as it pays when somebody says that they have changed."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated

from crawler.cli.lazy import registration, revisits, status
from crawler.cli.options import At, DomainName, Json, declare_argument, declare_option
from crawler.cli.output import print_json, say
from crawler.cli.session import DONE, PROBLEM, run_on_database, settings
from crawler.errors import BadInput
from crawler.format.values import format_count, format_instant
from crawler.times import format_typed_instant


def refresh(
    domain: DomainName,
    prefix: Annotated[str | None, declare_option("URL", "Only pages whose URL begins so; a path will do.")] = None,
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
    result = run_on_database(lambda db, _: revisits.request_refresh(db, domain, prefix=prefix or "", at=at))
    name, pages = result.domain.authority, result.pages
    # A run would live in the time of the clock.
    run_url = revisits.start_recrawl(settings(), result.domain, result.prefix) if at is None else None
    if as_json:
        print_json({"domain": name, "prefix": result.prefix, "pages": pages, "run": run_url, "not_now": result.wait})
        return
    when = "now" if at is None else f"at {format_instant(at)}"
    say(f"{format_count(pages, 'page')} under {result.prefix} {'is' if pages == 1 else 'are'} due {when}")
    if result.wait is not None and result.wait.reason.is_obstacle:
        say(f"They wait: {name} {status.format_wait(result.wait, result.domain, now=at or datetime.now(UTC))}")
    elif run_url:
        say(f"The running stack fetches them now: {run_url}")
    else:
        at_option = f" --at {format_typed_instant(at)}" if at is not None else ""
        say(f"Next: {result.command}{at_option} (until then other commands show their former times)")


MAX_LINE = 8192  # characters of a line; a page's URL has as many bytes at most


def hint(
    urls: Annotated[list[str], declare_argument("URL...|-", "Pages that have changed; - reads one a line from stdin.")],
    source: Annotated[
        str, declare_option("NAME", "Who says so: a CMS, IndexNow. Each source is measured by itself.")
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
    revisits.require_source(source)  # before standard input is read
    hinted, now = list(_parse_urls(urls)), at or datetime.now(UTC)
    result = run_on_database(lambda db, _: revisits.record_hints(db, hinted, source=source, at=now))
    if as_json:
        print_json({"source": source, "at": now, "taken": result.accepted, "refused": result.rejected})
    else:
        for authority, count in result.accepted.items():
            say(f"{authority}: {format_count(count, 'hint')} of {source} will be weighed by the next crawl")
        for reason, count in result.rejected.items():
            say(f"{format_count(count, 'hint')} refused: {reason.replace('_', ' ')}")
    return DONE if sum(result.accepted.values()) else PROBLEM


def _parse_urls(texts: Sequence[str]) -> "Iterator[revisits.Url]":
    for n, (prefix, text) in enumerate(_read_lines(texts)):
        if n >= revisits.MAX_HINTS:
            raise BadInput(f"more than {revisits.MAX_HINTS:,} URLs at a time")
        try:
            yield registration.parse_typed_url(text)
        except BadInput as error:
            raise BadInput(f"{prefix}{error}") from error


def _read_lines(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
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
