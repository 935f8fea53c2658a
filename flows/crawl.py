"""crawl: a shift over everything that is due."""

from prefect import State, flow
from prefect.runtime import flow_run
from prefect.states import Completed

from crawler.app.registration import domain_named, require_not_before_last_visit
from crawler.runtime.stack import crawl_database
from crawler.settings import settings
from crawler.store.database import open_database
from flows.ending import says_why
from flows.shift import instant, run


def _name() -> str:
    domain = flow_run.parameters.get("domain")
    return f"crawl {domain}" if domain else "crawl all that is due"


@flow(name="crawl", flow_run_name=_name, persist_result=False)
@says_why
async def crawl(domain: str = "", pages: int = 0, at: str = "") -> State[dict[str, object]]:
    """Look at the pages that are due, and at those that were never fetched, the most valuable first.

    Args:
        domain: Only this domain, such as docs.example.com; empty for all that are registered.
        pages: At most so many pages; 0 for as many as are due.
        at: Knowledge time, such as 2026-01-31T12:00:00Z; empty for now.

    """
    chosen = settings()
    with crawl_database(chosen) as url:
        async with open_database(url) as db:
            only = [await domain_named(db, domain)] if domain else None
            await require_not_before_last_visit(db, only or (), instant(at))
            done, message = await run(db, chosen, only=only, at=instant(at), pages=pages or None)
            return Completed(data=done, message=message)
