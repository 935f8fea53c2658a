"""recrawl: a domain, or what lies under a prefix of it, now."""

from prefect import State, flow
from prefect.runtime import flow_run
from prefect.states import Completed

from crawler.app.crawl import Targets
from crawler.app.database import open_database_of
from crawler.app.refresh import refresh
from crawler.settings import settings
from flows.ending import says_why
from flows.shift import instant, run


def _name() -> str:
    domain, prefix = flow_run.parameters.get("domain", ""), flow_run.parameters.get("prefix", "")
    is_all = prefix in {"", "/", *(f"{scheme}://{domain}/" for scheme in ("http", "https"))}
    return " ".join(filter(None, ("recrawl", domain, "" if is_all else prefix)))


@flow(name="recrawl", flow_run_name=_name, persist_result=False)
@says_why
async def recrawl(domain: str, prefix: str = "", at: str = "") -> State[dict[str, object]]:
    """Make every page of a domain due now, or those under a prefix, and look at them.

    Args:
        domain: A registered domain, such as docs.example.com.
        prefix: What the pages' URLs begin with: a path such as /blog/ or a whole URL; empty for all of the domain.
        at: Knowledge time, such as 2026-01-31T12:00:00Z; empty for now.

    """
    chosen = settings()
    when = instant(at)
    async with open_database_of(chosen) as db:
        refreshed = await refresh(db, chosen, domain, prefix=prefix, at=when)
        done, message = await run(db, chosen, Targets([refreshed.domain]), at=when)
        return Completed(data=done, message=message)
