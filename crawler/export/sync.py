"""An index of pages kept in step with the store: what came and changed is put into it, what went is taken out.

The index keeps the cursor of the change feed itself, and commits it with what it was told up to there. So it does not
matter when either side ends: what was not committed is told again, and putting a page twice is putting it once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from crawler.core.domain import Domain
from crawler.core.http import PageKey
from crawler.errors import CursorTooOld
from crawler.store import report
from crawler.store.database import Database
from crawler.store.report import TakenPage

PAGES_AT_ONCE = 20  # with their bodies; a commit each


class Index(Protocol):
    """What keeps pages elsewhere. Each verb is one transaction of its own."""

    def cursor(self, domain: str) -> int | None:
        """Where the last sync of a domain ended; None where none did."""
        ...

    def put(self, domain: str, pages: Sequence[TakenPage], *, cursor: int | None) -> int:
        """Take pages in, and those out that are not there any more; gives how many went. cursor: kept with them."""
        ...

    def begin_anew(self, domain: str) -> None:
        """From now on count which pages of a domain are put."""
        ...

    def end_anew(self, domain: str, *, cursor: int) -> int:
        """Take out the pages that were not put since then, and keep the cursor; gives how many went."""
        ...


@dataclass(frozen=True, slots=True)
class Synced:
    """What a sync did. put, removed: pages.  is_anew: all pages were read, not those that changed alone."""

    put: int
    removed: int
    cursor: int
    is_anew: bool


async def sync(
    db: Database, domain: Domain, index: Index, *, progress: Callable[[int], None] = lambda _: None
) -> Synced:
    """Bring an index to where a domain's feed ends. The first time, or with a useless cursor, all is read.

    progress: called with the pages so far.
    """
    until = await report.end_of_feed(db)
    since = index.cursor(domain.authority)
    if since is None or since > until:  # of another database, or of an older copy of this one
        return await _anew(db, domain, index, until=until, progress=progress)
    pages, removed = 0, 0
    while since < until:
        try:
            batch, since = await report.changed_pages_to_take(
                db, domain, after=since, until=until, most=PAGES_AT_ONCE, bodies=True
            )
        except CursorTooOld:
            return await _anew(db, domain, index, until=until, progress=progress)
        removed += index.put(domain.authority, batch, cursor=since)
        pages += sum(page.is_there for page in batch)
        progress(pages)
    return Synced(put=pages, removed=removed, cursor=until, is_anew=False)


async def _anew(db: Database, domain: Domain, index: Index, *, until: int, progress: Callable[[int], None]) -> Synced:
    index.begin_anew(domain.authority)
    pages, key = 0, PageKey(b"")
    while batch := await report.pages_to_take(db, domain, after=key, most=PAGES_AT_ONCE, bodies=True):
        index.put(domain.authority, batch, cursor=None)
        pages, key = pages + len(batch), batch[-1].key
        progress(pages)
    removed = index.end_anew(domain.authority, cursor=until)
    return Synced(put=pages, removed=removed, cursor=until, is_anew=True)
