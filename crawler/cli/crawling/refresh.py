"""recrawl refresh and hint: request revisits, and report that pages may have changed."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from crawler.cli.lazy import registration, revisits, status
from crawler.cli.options import At, Json, argument, option, time_option
from crawler.cli.output import print_json, say
from crawler.cli.session import DONE, PROBLEM, run_on_database, settings
from crawler.errors import BadInput
from crawler.format.values import format_count, format_instant
from crawler.times import format_typed_instant


def refresh(
    domain: Annotated[
        str,
        argument(
            "DOMAIN|URL", "A registered domain, or a page's URL; with * at the end, all pages whose URL starts with it."
        ),
    ],
    at: At = None,
    as_json: Json = False,
) -> None:
    """Mark all pages of a domain, one page, or those whose URL starts with a prefix, as due now.

    A running local stack starts to fetch them now, unless the domain has to wait or --at is given. Otherwise, the next
    crawl fetches them.

    Examples:

        recrawl refresh docs.example.com
        recrawl refresh https://docs.example.com/guide/intro
        recrawl refresh 'https://docs.example.com/guide/*'
    """
    result = run_on_database(lambda db, _: revisits.request_refresh(db, domain, at=at))
    name, pages = result.domain.authority, result.pages
    # A run of the local stack uses the real time, not `at`.
    run_url = revisits.start_recrawl(settings(), result.domain, result.url) if at is None else None
    if as_json:
        print_json({"domain": name, "url": result.url, "pages": pages, "run": run_url, "wait": result.wait})
        return
    when = "now" if at is None else f"at {format_instant(at)}"
    say(f"{result.subject} due {when}")
    if result.wait is not None and result.wait.reason.is_obstacle:
        say(f"They wait: {name} {status.format_wait(result.wait, result.domain, now=at or datetime.now(UTC))}")
    elif run_url:
        say(f"The local stack is fetching them: {run_url}")
    else:
        at_option = f" --at {format_typed_instant(at)}" if at is not None else ""
        say(f"Next: {result.command}{at_option} (until then, other commands show the previous due times)")


MAX_LINE = 8192  # characters; a URL has at most 8192 bytes


def hint(
    urls: Annotated[
        list[str], argument("URL...|-", "URLs of pages that may have changed; - reads them from stdin, one per line.")
    ],
    source: Annotated[
        str, option("NAME", "The source of the hint, such as cms or indexnow. The accuracy of each source is measured.")
    ] = "push",
    at: Annotated[
        datetime | None, time_option("The time of the change: ISO 8601, default time zone UTC. Default: now.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Report that pages may have changed, without forcing a revisit.

    How much sooner the pages are revisited depends on how often earlier hints of this source were right in the domain.
    If the hints of a source miss few changes, pages without a hint are revisited later. URLs that are not stored yet
    are added as new pages. To force a revisit, use `recrawl refresh`.

    Examples:

        recrawl hint https://docs.example.com/guide/start
        my-cms --changed-urls | recrawl hint - --source my-cms
        recrawl hint https://docs.example.com/news --at 2026-03-01T08:00Z --json
    """
    revisits.require_source(source)  # before standard input is read
    hinted, now = list(_parse_urls(urls)), at or datetime.now(UTC)
    result = run_on_database(lambda db, _: revisits.record_hints(db, hinted, source=source, at=now))
    if as_json:
        print_json({"source": source, "at": now, "accepted": result.accepted, "rejected": result.rejected})
    else:
        for authority, count in result.accepted.items():
            say(f"{authority}: {format_count(count, 'hint')} from {source} accepted for the next crawl")
        for reason, count in result.rejected.items():
            say(f"{format_count(count, 'hint')} rejected: {reason.replace('_', ' ')}")
    return DONE if sum(result.accepted.values()) else PROBLEM


def _parse_urls(texts: Sequence[str]) -> "Iterator[revisits.Url]":
    for n, (prefix, text) in enumerate(_read_lines(texts)):
        if n >= revisits.MAX_HINTS:
            raise BadInput(f"more than {revisits.MAX_HINTS:,} URLs: split them into several calls")
        try:
            yield registration.parse_typed_url(text)
        except BadInput as error:
            raise BadInput(f"{prefix}{error}") from error


def _read_lines(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Iterate over the given URLs, each with its line number of standard input as a prefix for error messages."""
    for text in texts:
        if text != "-":
            yield "", text
            continue
        for number, line in enumerate(iter(partial(sys.stdin.readline, MAX_LINE + 2), ""), 1):
            if len(line) > MAX_LINE + 1:
                raise BadInput(f"line {number} is longer than {MAX_LINE:,} characters")
            if line.strip():
                yield f"line {number}: ", line.strip()
