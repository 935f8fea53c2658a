"""recrawl refresh: everything beneath a prefix becomes due now."""

from datetime import UTC, datetime

from crawler.app.refresh import refresh as refresh_pages
from crawler.app.refresh import start_recrawl
from crawler.app.status import format_wait
from crawler.cli.exits import DONE
from crawler.cli.output import print_json, say
from crawler.cli.session import with_database
from crawler.format.values import format_count, format_instant
from crawler.settings import settings
from crawler.times import format_typed_instant


def refresh(text: str, *, prefix: str, at: datetime | None, as_json: bool) -> int:
    used = settings()
    done = with_database(lambda db, _: refresh_pages(db, used, text, prefix=prefix, at=at))
    name, pages = done.domain.authority, done.pages
    # A run would live in the time of the clock.
    seen_at = start_recrawl(used, done.domain, done.prefix) if at is None else None
    if as_json:
        print_json({"domain": name, "prefix": done.prefix, "pages": pages, "run": seen_at, "not_now": done.wait})
        return DONE
    when = "now" if at is None else f"at {format_instant(at)}"
    say(f"{format_count(pages, 'page')} under {done.prefix} {'is' if pages == 1 else 'are'} due {when}")
    if done.wait is not None and done.wait.reason.is_obstacle:
        say(f"They wait: {name} {format_wait(done.wait, done.domain, now=at or datetime.now(UTC))}")
    elif seen_at:
        say(f"The running stack fetches them now: {seen_at}")
    else:
        then = f" --at {format_typed_instant(at)}" if at is not None else ""
        say(f"Next: {done.command}{then} (until then other commands show their former times)")
    return DONE
