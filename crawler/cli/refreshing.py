"""recrawl refresh: everything beneath a prefix becomes due now."""

from datetime import UTC, datetime

from crawler.cli.exits import DONE
from crawler.cli.output import print_json, say
from crawler.cli.session import Interrupts, with_database
from crawler.cli.values import counted
from crawler.core.domain import Domain
from crawler.core.http import Url
from crawler.local.stack import running_stack
from crawler.register import domain_named, require_not_before_last_visit, url_prefix
from crawler.settings import settings
from crawler.store import domains, report
from crawler.store.database import Database


def refresh(text: str, *, prefix: str | None, at: datetime | None, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> tuple[Domain, Url, int]:
        domain = await domain_named(db, text)
        await require_not_before_last_visit(db, [domain], at)
        wanted = url_prefix(domain, prefix or "")
        pages = await report.pages_beneath(db, domain, wanted)
        await domains.refresh(db, domain, prefix=wanted, at=at or datetime.now(UTC))
        return domain, wanted, pages

    domain, wanted, pages = with_database(work)
    seen_at = _start_run(domain, wanted)
    if as_json:
        print_json({"domain": domain.authority, "prefix": wanted, "pages": pages, "run": seen_at})
        return DONE
    say(f"{counted(pages, 'page')} under {wanted} {'is' if pages == 1 else 'are'} due now")
    say(f"The running stack crawls them: {seen_at}" if seen_at else f"Next: recrawl crawl {domain.authority}")
    return DONE


def _start_run(domain: Domain, prefix: Url) -> str | None:
    """Let the running stack begin at once; where that can be watched, or None without a stack."""
    stack = running_stack(settings())
    if stack is None:
        return None
    from crawler.local.runs import start_recrawl

    return start_recrawl(stack, domain=domain.authority, prefix=prefix)
