"""crawl: a shift over everything that is due."""

from prefect import State, flow
from prefect.runtime import flow_run
from prefect.states import Completed

from crawler.app.crawl import find_targets
from crawler.app.database import open_database_of
from crawler.settings import settings
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
    async with open_database_of(chosen) as db:
        targets = await find_targets(db, [domain] if domain else [], at=instant(at), only_due=True)
        done, message = await run(db, chosen, targets, at=instant(at), pages=pages or None)
        return Completed(data=done, message=message)
