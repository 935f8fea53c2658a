"""Atom feeds of changes, and the addresses by which feed readers get them."""

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b

from crawler.app.changes import ChangesQuery, find_changes
from crawler.app.database import Database
from crawler.app.pages import page_named
from crawler.app.registration import domain_named, url_prefix
from crawler.format.kinds import NEWS, parse_kinds
from crawler.notify.atom import AtomScope, atom_feed
from crawler.runtime.keys.feeds import (
    FEED,
    FeedAddress,
    FeedWanted,
    address_named,
    addresses_of,
    linked_path,
    may_read,
    revoke_address,
    revoke_all_addresses,
)
from crawler.runtime.keys.own_keys import own_origins
from crawler.runtime.pages import USUAL_PORT, pages_origin
from crawler.store import report
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


@dataclass(frozen=True, slots=True)
class GivenFeed:
    """An address of a feed that was given out. is_served: whether somebody answers there now."""

    name: str
    url: str
    is_served: bool


async def write_feed(
    db: Database, query: ChangesQuery, *, most: int = MOST_ENTRIES, at: datetime | None = None
) -> bytes:
    """Return the newest changes of a query as a document, for a file. Raises BadInput, CursorTooOld, CursorAhead."""
    where = replace(await find_changes(db, query, at=at), kinds=query.kinds or NEWS)
    scope = AtomScope(name=query.what or query.domain or "", origin=pages_origin(db.settings.home.resolve()))
    return await _document(db, where, scope, most=most, at=at or datetime.now(UTC))


async def read_feed(db: Database, wanted: FeedWanted, *, address: str, origin: str, at: datetime) -> FeedDocument:
    """Return the newest changes of a feed. address: its own.  origin: of the pages, for links. Raises BadInput."""
    domain = await domain_named(db, wanted.domain) if wanted.domain else None
    prefix = url_prefix(domain, wanted.prefix) if domain is not None and wanted.prefix else wanted.prefix
    kinds = parse_kinds(wanted.kinds) if wanted.kinds else NEWS
    await report.stamp_feed(db, at=at)
    where = ChangeFilter(domain_id=domain.id if domain is not None else None, prefix=prefix, kinds=kinds)
    name = prefix or (domain.authority if domain is not None else "")
    # An empty feed is as old as the day, so that whoever asks often is told that it is unchanged.
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    scope = AtomScope(name=name, address=address, origin=origin)
    return FeedDocument(await _document(db, where, scope, most=MOST_ENTRIES, at=day))


async def _document(db: Database, where: ChangeFilter, scope: AtomScope, *, most: int, at: datetime) -> bytes:
    items = await report.newest_changes(db, where, most=most)
    return await asyncio.to_thread(atom_feed, items, scope, at=at)  # words of a thousand blocks differ


async def give_feed(db: Database, what: str | None, *, kinds: str, name: str | None, at: datetime) -> GivenFeed:
    """Return the address of a feed, made where there is none of that name. Raises BadInput.

    what: a domain, or what URLs begin with; None for all.  name: None for what it is of.
    """
    wanted = FeedWanted(kinds=kinds)
    if what is not None:
        domain, url = await page_named(db, what)
        wanted = FeedWanted(domain=domain.authority, prefix=url if url != domain.root else "", kinds=kinds)
    home = db.settings.home.resolve()
    origin = pages_origin(home)
    found: FeedAddress = address_named(home, name if name is not None else wanted.label, wanted, at=at)
    return GivenFeed(found.name, (origin or own_origins(USUAL_PORT)[0]) + found.path, origin is not None)
