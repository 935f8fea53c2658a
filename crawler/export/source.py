"""What is exported, from the store in batches: the pages of a domain or all their versions, whole or since a cursor."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum

from crawler.core.domain import Domain
from crawler.core.http import PageKey
from crawler.store import report
from crawler.store.database import Database
from crawler.store.report import TakenPage, VersionKey

PAGES_AT_ONCE = 200  # with bodies of up to ten megabytes each, though few are larger than a hundredth of that
BODIES_AT_ONCE = 20


class What(StrEnum):
    """What a row, or a record, of an export is about."""

    PAGES = "pages"
    CHUNKS = "chunks"
    VERSIONS = "versions"


@dataclass(frozen=True, slots=True)
class Source:
    """The pages of a domain to be written. bodies: with them."""

    db: Database
    domain: Domain
    what: What
    bodies: bool

    @property
    def most(self) -> int:
        """How many are in memory at a time."""
        return BODIES_AT_ONCE if self.bodies else PAGES_AT_ONCE

    async def all(self) -> AsyncIterator[list[TakenPage]]:
        """All pages, or versions, by key."""
        if self.what is What.VERSIONS:
            place: VersionKey | None = report.FIRST_VERSION
            while place is not None:
                batch, place = await report.versions_to_take(
                    self.db, self.domain, after=place, most=self.most, bodies=self.bodies
                )
                yield batch
            return
        key = PageKey(b"")
        while batch := await report.pages_to_take(self.db, self.domain, after=key, most=self.most, bodies=self.bodies):
            yield batch
            key = batch[-1].key

    async def changed(self, *, after: int, until: int) -> AsyncIterator[list[TakenPage]]:
        """The pages, or versions, of which the feed tells between two cursors, in its order."""
        take = report.new_versions_to_take if self.what is What.VERSIONS else report.changed_pages_to_take
        while after < until:
            batch, after = await take(
                self.db, self.domain, after=after, until=until, most=self.most, bodies=self.bodies
            )
            yield batch
