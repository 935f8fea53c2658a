"""recrawl refresh: everything beneath a prefix becomes due now."""

from dataclasses import dataclass
from datetime import UTC, datetime

from crawler.app import Wait, why_not_now
from crawler.app.registration import domain_named, require_not_before_last_visit, url_of, url_prefix
from crawler.app.status import format_wait
from crawler.cli.exits import DONE
from crawler.cli.output import print_json, say
from crawler.cli.session import Interrupts, with_database
from crawler.core.domain import Domain
from crawler.core.http import Url, path_and_query
from crawler.format.values import format_count, format_instant
from crawler.runtime.stack import running_stack
from crawler.settings import settings
from crawler.store import domains, report
from crawler.store.database import Database
from crawler.times import format_typed_instant


@dataclass(frozen=True, slots=True)
class RefreshAsked:
    """A request to fetch all pages under a prefix. pages: how many there are.  wait: why not at once."""

    domain: Domain
    prefix: Url
    pages: int
    wait: Wait | None = None


def refresh(text: str, *, prefix: str, at: datetime | None, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> RefreshAsked:
        domain = await domain_named(db, text)
        return await ask_for_refresh(db, domain, prefix or _page_in(text), at=at)

    asked = with_database(work)
    name, pages = asked.domain.authority, asked.pages
    seen_at = start_run(asked) if at is None else None  # a run would live in the time of the clock
    if as_json:
        print_json({"domain": name, "prefix": asked.prefix, "pages": pages, "run": seen_at, "not_now": asked.wait})
        return DONE
    say(f"{format_count(pages, 'page')} under {asked.prefix} {'is' if pages == 1 else 'are'} due {_shown_when(at)}")
    then = f" --at {format_typed_instant(at)}" if at is not None else ""
    if asked.wait is not None and asked.wait.reason.is_obstacle:
        say(f"They wait: {name} {format_wait(asked.wait, asked.domain, now=at or datetime.now(UTC))}")
    elif seen_at:
        say(f"The running stack fetches them now: {seen_at}")
    else:
        say(f"Next: {command_for(asked)}{then} (until then other commands show their former times)")
    return DONE


async def ask_for_refresh(db: Database, domain: Domain, prefix: str, *, at: datetime | None) -> RefreshAsked:
    """Ask that every page of the domain whose URL begins so becomes due. prefix: a path, a URL, or empty for all.

    at: None for now.  Raises BadInput.
    """
    await require_not_before_last_visit(db, [domain], at)
    wanted = url_prefix(domain, prefix)
    pages = await report.pages_beneath(db, domain, wanted)
    instant = at or datetime.now(UTC)
    await domains.refresh(db, domain, prefix=wanted, at=instant)
    return RefreshAsked(domain, wanted, pages, await why_not_now(db, domain, settings(), at=instant))


def start_run(asked: RefreshAsked) -> str | None:
    """Let the running stack begin at once; where that can be watched, or None without a stack."""
    stack = running_stack(settings())
    if stack is None:
        return None
    from crawler.runtime.prefect.runs import start_recrawl

    return start_recrawl(stack, domain=asked.domain.authority, prefix=asked.prefix)


def command_for(asked: RefreshAsked) -> str:
    """The command that looks at what was asked for, and at one page alone where it was one."""
    is_page = asked.pages == 1 and not asked.prefix.endswith("/")
    return f"recrawl crawl {asked.prefix if is_page else asked.domain.authority}"


def _page_in(text: str) -> str:
    """The URL that was typed, if it is of a page and not of a whole domain; else an empty string."""
    url = url_of(text)
    return "" if path_and_query(url) == "/" else url


def _shown_when(at: datetime | None) -> str:
    return "now" if at is None else f"at {format_instant(at)}"
