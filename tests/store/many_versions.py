"""A synthetic domain whose pages change from day to day, visited without a web server."""

import asyncio
import random
from datetime import datetime, timedelta

from crawler.core.domain import Domain, Lease
from crawler.store import claim, domains, record, report
from crawler.store.database import Database
from tests.store.conftest import START
from tests.store.made_up import TERM, html, key, look, status, targets

DAY = timedelta(days=1)
PAGES = 4  # besides the root, which does not change


def words_of(page: int, day: int) -> str:
    """Return a page's text on a day. Every tenth day, page 2 has yesterday's text of page 1, and page 3 is restored."""
    if page == 2 and day % 10 == 0:
        page, day = 1, day - 1
    if page == 3:
        day %= 6
    if page == PAGES:
        day = 0
    own = random.Random(f"{page} {day}")
    return " ".join("".join(own.choices("abdeghiklmnoprstu", k=7)) for _ in range(400))


async def taken(db: Database, at: datetime) -> Lease:
    """Claim the domain like a crawl run does: another process may lock its row for a moment."""
    while (lease := await claim.claim(db, at=at, holder="test", term=TERM)) is None:
        await asyncio.sleep(0)
    while await record.drain_inbox(db, lease, at=at):
        pass
    return lease


async def live(db: Database, domain: Domain, days: range, *, gone: int | None = None) -> None:
    """Visit every page once on each of these days. gone: the number of a page that is gone."""
    numbers = {key(domain, n): n for n in range(PAGES + 1)}
    for day in days:
        at = START + day * DAY
        await domains.request_refresh(db, domain, prefix=domain.root, at=at)
        lease = await taken(db, at)
        seen: set[int] = set()
        while batch := [target for target in await targets(db, lease, at) if numbers[target.key] not in seen]:
            visits = []
            for target in batch:
                n = numbers[target.key]
                seen.add(n)
                links = range(1, PAGES + 1) if n == 0 else ()
                words = "the way to all of it" if n == 0 else words_of(n, day)
                answer = status(410) if n == gone else html(domain, links, words=words)
                visits.append(look(target, answer, at, domain))
            await record.record_visits(db, lease, record.Batch(visits, max_pages=100))
        await claim.release(db, lease, at=at)
    await report.append_to_feed(db, at=START + days.stop * DAY)
