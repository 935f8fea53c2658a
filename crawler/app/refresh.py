"""Refresh: make every page of a domain, or those under a prefix, due now."""

from dataclasses import dataclass
from datetime import UTC, datetime

from crawler.app.registration import domain_named, require_not_before_last_visit, url_of, url_prefix
from crawler.app.status import Wait, why_not_now
from crawler.core.domain import Domain
from crawler.core.http.urls import Url, path_and_query
from crawler.runtime.stack import running_stack
from crawler.settings import Settings
from crawler.store import domains, report
from crawler.store.database import Database


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """A request to fetch all pages under a prefix. pages: how many there are.  wait: why they are not fetched now."""

    domain: Domain
    prefix: Url
    pages: int
    wait: Wait | None = None

    @property
    def command(self) -> str:
        """The command that fetches what was requested: one page alone where it is one."""
        is_page = self.pages == 1 and not self.prefix.endswith("/")
        return f"recrawl crawl {self.prefix if is_page else self.domain.authority}"


async def refresh(
    db: Database, settings: Settings, name: str, *, prefix: str = "", at: datetime | None = None
) -> RefreshResult:
    """Make the pages of a domain due whose URLs begin with a prefix.

    name: a domain, or the URL of one of its pages, which stands for that page alone.  prefix: a path or a URL; empty
    for what the name says.  at: None for now.  Raises BadInput.
    """
    domain = await domain_named(db, name)
    await require_not_before_last_visit(db, [domain], at)
    url = url_of(name)
    wanted = url_prefix(domain, prefix or ("" if path_and_query(url) == "/" else url))
    pages = await report.pages_beneath(db, domain, wanted)
    instant = at or datetime.now(UTC)
    await domains.refresh(db, domain, prefix=wanted, at=instant)
    return RefreshResult(domain, wanted, pages, await why_not_now(db, domain, settings, at=instant))


def start_recrawl(settings: Settings, domain: Domain, prefix: Url) -> str | None:
    """Let the running stack fetch what is due under a prefix; return where to watch it, or None without a stack.

    Blocks while the Prefect server answers. Raises StackFailed where it does not.
    """
    stack = running_stack(settings)
    if stack is None:
        return None
    from crawler.runtime.prefect import runs  # noqa: PLC0415  prefect takes a second to import

    return runs.start_run(stack, "recrawl/recrawl", {"domain": domain.authority, "prefix": prefix}).url
