"""The change feed: the newest changes, changes after a cursor, and changes as they are found."""

from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from msgspec.structs import replace

from crawler.app.database import AppDatabase
from crawler.app.pages import make_target_filter
from crawler.app.registration import find_domains, get_domain, require_after_last_visit
from crawler.app.tags import get_tag
from crawler.core.change.word_diff import diff_words, shorten_runs
from crawler.core.domain import Domain
from crawler.core.freshness.prior import derive_template
from crawler.core.http.urls import Url, compute_page_key, get_authority
from crawler.errors import StoreUnavailable
from crawler.format.kinds import NEWS
from crawler.store import report
from crawler.store.domains import find_domain, list_names
from crawler.store.report import BlockChange, ChangeFilter, EventKind, FeedItem

OnOutage = Callable[[StoreUnavailable], None]
ALL_KINDS = frozenset(EventKind)
NEWEST = ChangeFilter(kinds=NEWS)
NEWS_AND_ADDED = NEWS | {EventKind.ADDED}
CHANGES_PER_BATCH = 500
MAX_UNREAD = 1000
CHANGES_WITH_BLOCKS_PER_BATCH = 100  # each with up to 50 blocks of 500 characters before and 500 after


@dataclass(frozen=True, slots=True)
class ChangesQuery:
    """A query of the change feed.

    what: a domain, a page or a URL prefix; None for all domains.  domain: a domain, in place of `what`.
    tag: only domains with this tag.
    since: a cursor, a duration before now, or a time; None for all.  kinds: None for the default of each function.
    """

    what: str | None = None
    domain: str | None = None
    since: int | timedelta | datetime | None = None
    kinds: frozenset[EventKind] | None = None
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class NewestChanges:
    """The newest changes. counts: of all changes that match the query, by kind.  end: the cursor at the feed's end."""

    items: list[FeedItem]
    counts: Mapping[EventKind, int]
    end: int
    since: datetime | None
    at: datetime


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """Changes in the order of the feed.

    next_cursor: the cursor for the next call.  has_more: whether there may already be more changes.
    """

    items: list[FeedItem]
    next_cursor: int
    has_more: bool


async def list_changes(db: AppDatabase, query: ChangesQuery, *, max_count: int, at: datetime | None) -> NewestChanges:
    """Return the newest changes with their changed blocks. at: knowledge time; None for now.

    Without kinds, all kinds except added and hint are listed, and added pages are counted, too.
    Raises BadInput, CursorTooOld, CursorAhead.
    """
    instant = at or datetime.now(UTC)
    where = await make_change_filter(db, query, at=at)
    items = await report.list_newest_changes(db, replace(where, kinds=query.kinds or NEWS), max_count=max_count)
    counts = await report.count_changes(db, replace(where, kinds=query.kinds or NEWS_AND_ADDED))
    return NewestChanges(items, counts, end=await report.read_feed_end(db), since=where.since, at=instant)


async def read_changes(
    db: AppDatabase, query: ChangesQuery, *, max_count: int, blocks: bool, at: datetime | None = None
) -> ChangesPage:
    """Return changes in the order of the feed, by default of all kinds. Raises as `list_changes` does."""
    where = replace(await make_change_filter(db, query, at=at), kinds=query.kinds or ALL_KINDS)
    items, end = await report.read_feed_from(db, where, max_count=max_count + 1, with_blocks=blocks)
    more, shown = len(items) > max_count, items[:max_count]
    return ChangesPage(shown, shown[-1].position if more else end, more)


async def follow_changes(
    db: AppDatabase, query: ChangesQuery, *, from_now: bool, on_outage: OnOutage
) -> AsyncGenerator[FeedItem]:
    """Yield changes in the order of the feed as they are found, without end. Raises as `list_changes` does.

    from_now: skip changes found before.  on_outage: called when the database is unavailable, before the next attempt.
    """
    where = replace(await make_change_filter(db, query), kinds=query.kinds or ALL_KINDS)
    if from_now:
        where = replace(where, after=await report.read_feed_end(db))
    async with aclosing(iterate_changes(db, where, follow=True, on_outage=on_outage)) as items:
        async for item in items:
            yield item


async def iterate_changes(
    db: AppDatabase, where: ChangeFilter, *, follow: bool, on_outage: OnOutage | None = None
) -> AsyncGenerator[FeedItem]:
    """Yield the changes that match a filter, in the order of the feed. follow: continue with changes as they are found.

    on_outage: as in `follow_changes`; None to raise StoreUnavailable.  Raises CursorTooOld, CursorAhead.
    """
    async with report.listen_to_feed(db) as announced:
        while True:
            try:
                await report.append_to_feed(db, at=datetime.now(UTC))
                items, cursor = await report.read_feed_from(db, where, max_count=CHANGES_PER_BATCH, with_blocks=True)
            except StoreUnavailable as error:
                if on_outage is None:
                    raise
                on_outage(error)
                items, cursor = [], where.after
            for item in items:
                yield item
            where = replace(where, after=cursor)
            if not items and not follow:
                return
            if not items:
                await announced.wait()


async def read_newest_changes(
    db: AppDatabase,
    where: ChangeFilter = NEWEST,
    *,
    at: datetime,
    max_count: int,
    before: tuple[datetime, int] | None = None,
) -> list[FeedItem]:
    """Return the newest changes with their changed blocks. before: only changes older than this (time, position).

    Raises BadInput if a search by words takes long.
    """
    await report.append_to_feed(db, at=at)
    return await report.list_newest_changes(db, where, before=before, max_count=max_count)


async def read_changes_of_pages(
    db: AppDatabase, urls: Collection[Url], *, since: datetime, at: datetime
) -> dict[Url, FeedItem]:
    """Return the last change of each of these pages since a time, with its blocks. Ask for few pages."""
    await report.append_to_feed(db, at=at)
    items: list[FeedItem] = []
    for authority, group in groupby(sorted(urls), key=get_authority):
        if (domain := await find_domain(db, authority)) is None:
            continue
        for url in group:
            where = ChangeFilter(domain_id=domain.id, key=compute_page_key(url), kinds=NEWS_AND_ADDED, since=since)
            items += await report.list_newest_changes(db, where, max_count=1)
    return {item.url: item for item in items}


@dataclass(frozen=True, slots=True)
class UnreadChanges:
    """The changes after the last one that a reader knows. count: up to MAX_UNREAD.  end: the end of the feed."""

    count: int
    end: int

    @property
    def is_more(self) -> bool:
        """Return whether there are more than `count`."""
        return self.count > MAX_UNREAD - 1


async def count_unread_changes(db: AppDatabase, *, after: int, kinds: frozenset[EventKind] = NEWS) -> UnreadChanges:
    """Count the changes after a position; a position of another database counts as the start of the feed."""
    end = await report.read_feed_end(db)
    count = await report.count_unread(db, after=after if after <= end else 0, kinds=kinds, max_count=MAX_UNREAD)
    return UnreadChanges(count, end)


async def make_change_filter(db: AppDatabase, query: ChangesQuery, *, at: datetime | None = None) -> ChangeFilter:
    """Append new events to the feed; return the filter of a query, without its kinds. Raises as `list_changes` does."""
    if query.domain is not None:
        where = ChangeFilter(domain_id=(await get_domain(db, query.domain)).id)
    else:
        where = await make_target_filter(db, query.what) if query.what is not None else ChangeFilter()
    if query.tag is not None:
        where = replace(where, tag=(await get_tag(db, query.tag)).tag.name)
    if at is not None:
        selected = [each for each in await find_domains(db) if where.domain_id in {None, each.id}]
        await require_after_last_visit(db, selected, at)
    instant = at or datetime.now(UTC)
    await report.append_to_feed(db, at=instant)
    if isinstance(query.since, int):
        await report.require_stored(db, where.domain_id, since=query.since)
        return replace(where, after=query.since)
    return replace(where, since=instant - query.since if isinstance(query.since, timedelta) else query.since)


async def read_changes_within(
    db: AppDatabase, where: ChangeFilter, *, max_count: int, max_chars: int, at: datetime
) -> ChangesPage:
    """Return changes after the cursor of a filter, with their blocks, until a limit is reached.

    max_chars: the limit of all block texts together; the batch that exceeds this limit is still returned.
    """
    await report.append_to_feed(db, at=at)
    changes: list[FeedItem] = []
    chars = 0
    while True:
        batch = min(CHANGES_WITH_BLOCKS_PER_BATCH, max_count - len(changes))
        items, cursor = await report.read_feed_from(db, where, max_count=batch, with_blocks=True)
        changes += items
        chars += sum(len(side or "") for item in items for edit in item.blocks for side in (edit.before, edit.after))
        if len(items) < batch or len(changes) == max_count or chars > max_chars:
            return ChangesPage(changes, cursor, has_more=len(items) == batch)
        where = replace(where, after=cursor)
