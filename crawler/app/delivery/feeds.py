"""Atom feeds of changes, and their secret addresses for feed readers."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b

from msgspec.structs import replace

from crawler.app.action_log import describe_action, recorded
from crawler.app.changes import ChangesQuery, make_change_filter
from crawler.app.database import AppDatabase
from crawler.app.pages import resolve_page
from crawler.app.registration import get_domain, parse_prefix
from crawler.app.tags import get_tag
from crawler.errors import BadInput
from crawler.format.kinds import NEWS, parse_kinds
from crawler.notify.atom import AtomScope, render_atom_feed
from crawler.runtime.keys import feeds as addresses
from crawler.runtime.keys.feeds import FEED_PATH, FeedAddress, FeedSelection, build_linked_path, may_read
from crawler.runtime.keys.home_keys import list_own_origins
from crawler.runtime.web_ui import DEFAULT_PORT, find_web_ui_origin
from crawler.store import report
from crawler.store.report import ChangeFilter

MAX_ENTRIES = 100


@dataclass(frozen=True, slots=True)
class FeedDocument:
    """A rendered feed with its ETag (RFC 9110, section 8.8.3)."""

    body: bytes

    @property
    def etag(self) -> str:
        return f'"{blake2b(self.body, digest_size=16).hexdigest()}"'

    def is_not_modified(self, if_none_match: str) -> bool:
        """Return whether the client's If-None-Match header contains the ETag of this feed."""
        return self.etag in {each.strip().removeprefix("W/") for each in if_none_match.split(",")}


@dataclass(frozen=True, slots=True)
class IssuedFeed:
    """The address of a feed. is_served: whether a server is running there now."""

    name: str
    url: str
    is_served: bool


async def render_feed(
    db: AppDatabase, query: ChangesQuery, *, max_entries: int = MAX_ENTRIES, at: datetime | None = None
) -> bytes:
    """Return the newest changes of a query as an Atom document. Raises BadInput, CursorTooOld, CursorAhead."""
    where = replace(await make_change_filter(db, query, at=at), kinds=query.kinds or NEWS)
    name = query.what or query.domain or (f"tag {query.tag}" if query.tag else "")
    scope = AtomScope(name=name, origin=find_web_ui_origin(db.settings.home.resolve()))
    return await _render(db, where, scope, max_entries=max_entries, at=at or datetime.now(UTC))


async def read_feed(db: AppDatabase, chosen: FeedSelection, *, address: str, origin: str, at: datetime) -> FeedDocument:
    """Return the newest changes of a feed. address: its URL.  origin: for links to the web UI.  Raises BadInput."""
    domain = await get_domain(db, chosen.domain) if chosen.domain else None
    prefix = parse_prefix(domain, chosen.prefix) if domain is not None and chosen.prefix else chosen.prefix
    kinds = parse_kinds(chosen.kinds) if chosen.kinds else NEWS
    await report.append_to_feed(db, at=at)
    tag = chosen.tag or None  # of a removed tag, the feed is empty
    where = ChangeFilter(domain_id=domain.id if domain is not None else None, tag=tag, prefix=prefix, kinds=kinds)
    name = prefix or (domain.authority if domain is not None else f"tag {tag}" if tag else "")
    # An empty feed is dated to the start of the day, so its ETag does not change with every request.
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    scope = AtomScope(name=name, address=address, origin=origin)
    return FeedDocument(await _render(db, where, scope, max_entries=MAX_ENTRIES, at=day))


async def _render(db: AppDatabase, where: ChangeFilter, scope: AtomScope, *, max_entries: int, at: datetime) -> bytes:
    items = await report.list_newest_changes(db, where, max_count=max_entries)
    # Computing word differences of many blocks is slow.
    return await asyncio.to_thread(render_atom_feed, items, scope, at=at)


@recorded("add feed address")
async def issue_feed(
    db: AppDatabase, what: str | None, *, kinds: str, name: str | None, tag: str | None = None, at: datetime
) -> IssuedFeed:
    """Return the address of a feed, and create it if there is none with this name. Raises BadInput.

    what: a domain or a URL prefix; None for all.  tag: of the domains; None for all.  name: None for a name derived
    from the feed.
    """
    chosen = FeedSelection(kinds=kinds, tag=(await get_tag(db, tag)).tag.name if tag else "")
    if tag and what is not None:
        raise BadInput("name either a tag, or a domain or URL prefix")
    if what is not None:
        domain, url = await resolve_page(db, what)
        chosen = FeedSelection(domain=domain.authority, prefix=url if url != domain.root else "", kinds=kinds)
    home = db.settings.home.resolve()
    origin = find_web_ui_origin(home)
    address: FeedAddress = addresses.ensure_address(home, name if name is not None else chosen.label, chosen, at=at)
    describe_action(object=address.name, is_change=address.created_at == at)
    return IssuedFeed(address.name, (origin or list_own_origins(DEFAULT_PORT)[0]) + address.path, origin is not None)


@recorded("revoke feed address")
async def revoke_feed(db: AppDatabase, name: str) -> None:
    """Revoke the address of this name. Raises BadInput if there is none."""
    await asyncio.to_thread(addresses.revoke_address, db.settings.home.resolve(), name)


@recorded("revoke all feed addresses")
async def revoke_all_feeds(db: AppDatabase) -> int:
    """Revoke all addresses; return their number."""
    return await asyncio.to_thread(addresses.revoke_all_addresses, db.settings.home.resolve())
