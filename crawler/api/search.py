"""Search by words, in the index of `recrawl sync` that is kept in RECRAWL_HOME for whoever searches."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from crawler.core.domain import Domain
from crawler.export import SearchHit, SqliteIndex, search, sync
from crawler.local.search_index import search_file
from crawler.store import domains, report
from crawler.store.database import Database


async def searched(
    db: Database, home: Path, words: str, *, only: Domain | None = None, most: int = 10
) -> list[SearchHit]:
    """The parts of pages that say the words, as the store has them now. only: of one domain.

    The index is brought in step before, by what has changed since the last search; the first one reads all pages.
    """
    file = await asyncio.to_thread(search_file, home)
    every = [each.domain for each in await domains.every(db)]
    await report.stamp_feed(db, at=datetime.now(UTC))
    with SqliteIndex(file) as index:
        for each in [only] if only is not None else every:
            await sync(db, each, index)
        for name in set(index.domains()) - {each.authority for each in every}:
            index.forget(name)
    return await asyncio.to_thread(search, file, words, domain=only.authority if only is not None else None, most=most)
