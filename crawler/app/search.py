"""Search by words, in the index of `recrawl sync` that is kept in RECRAWL_HOME for whoever searches."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from crawler.core.domain import Domain
from crawler.export import SearchHit, SqliteIndex, called, in_thread, require_words, search, sync
from crawler.runtime.search_index import search_file
from crawler.store import domains, report
from crawler.store.database import Database


async def search_pages(
    db: Database, home: Path, words: str, *, only: Domain | None = None, most: int = 10
) -> list[SearchHit]:
    """Return the parts of pages that say the words, as the store has them now. only: of one domain.

    The index is brought in step before, by what has changed since the last search; the first one reads all pages. The
    event loop goes on meanwhile. Raises BadInput for words that nothing can be searched for by, before that.
    """
    require_words(words)
    file = await asyncio.to_thread(search_file, home)
    await _bring_in_step(db, file, only=only)
    return await asyncio.to_thread(search, file, words, domain=only.authority if only is not None else None, most=most)


async def _bring_in_step(db: Database, file: Path, *, only: Domain | None) -> None:
    every = [each.domain for each in await domains.every(db)]
    await report.stamp_feed(db, at=datetime.now(UTC))
    async with in_thread(SqliteIndex(file)) as (index, thread):
        for each in [only] if only is not None else every:
            await sync(db, each, index, thread=thread)
        known = {each.authority for each in every}
        for name in await called(thread, index.domains):
            if name not in known:
                await called(thread, index.forget, name)
