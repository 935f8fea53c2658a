"""notify: tell those who have asked for it what has changed."""

from datetime import timedelta

from prefect import flow

from crawler.local.stack import crawl_database
from crawler.settings import settings
from crawler.store.database import open_database
from flows.ending import says_why
from flows.shift import instant
from flows.telling import tell

WITHIN = timedelta(minutes=4)  # the next run comes after five, and goes on with what a slow target has left


@flow(name="notify", flow_run_name="notify", persist_result=False)
@says_why
async def notify(at: str = "") -> dict[str, int]:
    """Tell what is due to those who have asked for it: new changes, digests, what a target has not taken before.

    Args:
        at: Knowledge time, such as 2026-01-31T12:00:00Z; empty for now.

    """
    chosen = settings()
    with crawl_database(chosen) as url:
        async with open_database(url) as db:
            done = await tell(db, chosen, at=instant(at), within=WITHIN)
    return {"changes": done.changes, "messages": done.messages, "failed": len(done.failed)}
