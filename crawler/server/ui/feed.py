"""The Atom feed of changes, for whoever has its address or has entered."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b

from crawler.app.registration import domain_named, url_prefix
from crawler.format.kinds import NEWS, parse_kinds
from crawler.notify import AtomScope, atom_feed
from crawler.runtime.keys.feeds import FeedWanted
from crawler.store import report
from crawler.store.database import Database
from crawler.store.report import ChangeFilter

MOST_ENTRIES = 100


@dataclass(frozen=True, slots=True)
class FeedDocument:
    """A feed as it is sent. etag: changes with it (RFC 9110, 8.8.3)."""

    body: bytes

    @property
    def etag(self) -> str:
        return f'"{blake2b(self.body, digest_size=16).hexdigest()}"'

    def is_known(self, if_none_match: str) -> bool:
        """Whether a reader has it already."""
        return self.etag in {each.strip().removeprefix("W/") for each in if_none_match.split(",")}


async def feed_document(db: Database, wanted: FeedWanted, *, address: str, origin: str, at: datetime) -> FeedDocument:
    """The newest changes of a feed. address: its own.  origin: of the pages, for links. Raises BadInput."""
    domain = await domain_named(db, wanted.domain) if wanted.domain else None
    prefix = url_prefix(domain, wanted.prefix) if domain is not None and wanted.prefix else wanted.prefix
    kinds = parse_kinds(wanted.kinds) if wanted.kinds else NEWS
    await report.stamp_feed(db, at=at)
    only = ChangeFilter(domain_id=domain.id if domain is not None else None, prefix=prefix, kinds=kinds)
    items = await report.newest_changes(db, only, most=MOST_ENTRIES, blocks=True)
    name = prefix or (domain.authority if domain is not None else "")
    # An empty feed is as old as the day, so that whoever asks often is told that it is unchanged.
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    scope = AtomScope(name=name, address=address, origin=origin)
    return FeedDocument(await asyncio.to_thread(atom_feed, items, scope, at=day))  # words of a thousand blocks differ
