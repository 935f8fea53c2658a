"""recrawl refresh: everything beneath a prefix becomes due now."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from crawler.cli.options import At, DomainName, Json
from crawler.cli.output import print_json, say
from crawler.cli.session import settings, with_database
from crawler.format.values import format_count, format_instant
from crawler.times import format_typed_instant


def refresh(
    domain: DomainName,
    prefix: Annotated[
        str | None, typer.Option(metavar="URL", help="Only pages whose URL begins so; a path will do.")
    ] = None,
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
    from crawler.app.revisits import refresh, start_recrawl
    from crawler.app.status import format_wait

    done = with_database(lambda db, _: refresh(db, domain, prefix=prefix or "", at=at))
    name, pages = done.domain.authority, done.pages
    # A run would live in the time of the clock.
    seen_at = start_recrawl(settings(), done.domain, done.prefix) if at is None else None
    if as_json:
        print_json({"domain": name, "prefix": done.prefix, "pages": pages, "run": seen_at, "not_now": done.wait})
        return
    when = "now" if at is None else f"at {format_instant(at)}"
    say(f"{format_count(pages, 'page')} under {done.prefix} {'is' if pages == 1 else 'are'} due {when}")
    if done.wait is not None and done.wait.reason.is_obstacle:
        say(f"They wait: {name} {format_wait(done.wait, done.domain, now=at or datetime.now(UTC))}")
    elif seen_at:
        say(f"The running stack fetches them now: {seen_at}")
    else:
        then = f" --at {format_typed_instant(at)}" if at is not None else ""
        say(f"Next: {done.command}{then} (until then other commands show their former times)")
