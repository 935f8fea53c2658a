"""Search by words, in the index of `recrawl sync` that is kept in RECRAWL_HOME for whoever searches."""

import asyncio
from pathlib import Path

from crawler.app.delivery.exports import open_index
from crawler.core.domain import Domain
from crawler.export import SearchHit, is_searchable, require_words, search
from crawler.runtime.machine import search_file
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
    async with open_index(db, str(file), [only.authority] if only is not None else []) as index:
        await index.sync()
    return await asyncio.to_thread(search, file, words, domain=only.authority if only is not None else None, most=most)


async def search_index(home: Path, words: str, *, domain: str | None, most: int) -> list[SearchHit] | None:
    """Return the parts of pages that say the words, by the index as it was synced last; None if there is none yet."""
    file = search_file(home)
    if not await asyncio.to_thread(is_searchable, file):
        return None
    return await asyncio.to_thread(search, file, words, domain=domain, most=most)
