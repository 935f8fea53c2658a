"""recrawl refresh: everything beneath a prefix becomes due now."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from crawler.cli.exits import DONE
from crawler.cli.options import At, DomainName, Json
from crawler.cli.values import counted, shown_instant
from crawler.times import typed_instant

if TYPE_CHECKING:
    from crawler.cli.session import Interrupts
    from crawler.core.domain import Domain
    from crawler.core.http import Url
    from crawler.store.database import Database


def refresh(
    domain: DomainName,
    prefix: Annotated[
        str | None, typer.Option(metavar="URL", help="Only pages whose URL begins so; a path will do.")
    ] = None,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Make every page of a domain due now. A running stack begins at once, else the next crawl does.

    Examples:

        recrawl refresh docs.example.com
        recrawl refresh docs.example.com --prefix /guide/
    """
    from crawler.cli.output import print_json, say
    from crawler.cli.session import with_database
    from crawler.register import domain_named, require_not_before_last_visit, url_prefix
    from crawler.store import domains, report

    async def work(db: "Database", _: "Interrupts") -> tuple["Domain", "Url", int]:
        found = await domain_named(db, domain)
        await require_not_before_last_visit(db, [found], at)
        wanted = url_prefix(found, prefix or "")
        pages = await report.pages_beneath(db, found, wanted)
        await domains.refresh(db, found, prefix=wanted, at=at or datetime.now(UTC))
        return found, wanted, pages

    found, wanted, pages = with_database(work)
    seen_at = _start_run(found, wanted) if at is None else None  # a run would live in the time of the clock
    if as_json:
        print_json({"domain": found.authority, "prefix": wanted, "pages": pages, "run": seen_at})
        return DONE
    say(f"{counted(pages, 'page')} under {wanted} {'is' if pages == 1 else 'are'} due {_shown_when(at)}")
    then = f" --at {typed_instant(at)}" if at is not None else ""
    if seen_at:
        say(f"The running stack crawls them: {seen_at}")
    else:
        say(f"Next: recrawl crawl {found.authority}{then} (until then other commands show their former times)")
    return DONE


def _shown_when(at: datetime | None) -> str:
    return "now" if at is None else f"at {shown_instant(at)}"


def _start_run(domain: "Domain", prefix: "Url") -> str | None:
    """Let the running stack begin at once; where that can be watched, or None without a stack."""
    from crawler.local.stack import running_stack
    from crawler.settings import settings

    stack = running_stack(settings())
    if stack is None:
        return None
    from crawler.local.runs import start_recrawl

    return start_recrawl(stack, domain=domain.authority, prefix=prefix)
