"""The change feed: the events of all domains in one order, for any number of readers with cursors."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey, Url, compute_page_key
from crawler.core.page.block import BlockKind
from crawler.errors import CursorAhead, CursorTooOld
from crawler.store.database import Connection, Database
from crawler.store.report.limited_search import build_patterns, limit_search
from crawler.store.rows import Executor, fetch_dicts, fetch_number, fetch_row, fetch_rows

FEED_LOCK = 0x66656564  # "feed": one process appends at a time
CHANNEL = "recrawl_changes"

# Positions are counted, not taken from a sequence: appending leaves no gaps, and a restored dump continues at its end.
APPEND_EVENTS = """
    WITH fresh AS (
        SELECT e.domain_id, e.number
          FROM domain_state s
          JOIN LATERAL (SELECT * FROM event e
                         WHERE e.domain_id = s.domain_id AND e.number > s.stamped_event
                         ORDER BY e.number LIMIT %(most)s) e ON true
         WHERE s.next_event > s.stamped_event + 1
           AND (%(only)s::bigint[] IS NULL OR s.domain_id = ANY(%(only)s::bigint[]))
         ORDER BY e.domain_id, e.number LIMIT %(most)s),
    appended AS (
        INSERT INTO feed (position, domain_id, number, appended_at)
        SELECT coalesce((SELECT max(position) FROM feed), 0) + row_number() OVER (ORDER BY domain_id, number),
               domain_id, number, %(at)s
          FROM fresh RETURNING domain_id, number)
    UPDATE domain_state s SET stamped_event = greatest(s.stamped_event, a.number)
      FROM (SELECT domain_id, max(number) AS number, count(*) AS many FROM appended GROUP BY domain_id) a
     WHERE s.domain_id = a.domain_id
 RETURNING a.many
"""
# Sent once per transaction, on commit, with the new end of the feed.
NOTIFY_LISTENERS = "SELECT pg_notify(%(channel)s, max(position)::text) FROM feed"
CHUNK = 10_000
EVENT = """
    e.at, e.url, e.change, e.version, e.distance_bits, e.magnitude, e.parts, e.pages, e.source, e.reason, e.value,
    CASE WHEN %(blocks)s THEN e.blocks END AS blocks
"""
# Depending on the conditions, a query starts from the events or from the feed, and looks up each row in the other table
# by key. Without OFFSET 0, Postgres reads both tables in full.
BY_EVENT = f"""
    SELECT e.domain_id, e.key, f.position, {EVENT} FROM event e
     CROSS JOIN LATERAL (SELECT f.position FROM feed f
                          WHERE f.domain_id = e.domain_id AND f.number = e.number OFFSET 0) f
"""  # noqa: S608  only our own expressions are inserted
BY_FEED = f"""
    SELECT e.domain_id, e.key, f.position, {EVENT} FROM feed f
     CROSS JOIN LATERAL (SELECT * FROM event e
                          WHERE e.domain_id = f.domain_id AND e.number = f.number OFFSET 0) e
"""  # noqa: S608  the same
# Titles and importance are looked up row by row for the rows found: joins would read whole partitions.
FEED_ITEMS = """
    WITH found AS MATERIALIZED ({found})
    SELECT e.position, d.authority AS domain, e.at, e.url, e.change, e.version, e.distance_bits, e.magnitude, e.parts,
           e.pages, e.blocks, e.source, e.reason, e.value,
           coalesce((SELECT s.title FROM snapshot s
                      WHERE s.domain_id = e.domain_id AND s.key = e.key AND s.number = e.version), '') AS title,
           (SELECT r.importance FROM report_page r WHERE r.domain_id = e.domain_id AND r.key = e.key) AS importance,
           CASE WHEN e.change = 'moved' THEN
               (SELECT t.url FROM page t
                 WHERE t.domain_id = e.domain_id
                   AND t.key = (SELECT p.moved_to FROM page p WHERE p.domain_id = e.domain_id AND p.key = e.key)) END
               AS moved_to
      FROM found e JOIN domain d ON d.id = e.domain_id ORDER BY {order}
"""
COUNT = "SELECT e.change, count(*) FROM event e JOIN feed f ON f.domain_id = e.domain_id AND f.number = e.number"
UNREAD = """
    SELECT count(*) FROM (
        SELECT FROM (SELECT domain_id, number FROM feed WHERE position > %(after)s
                      ORDER BY position DESC LIMIT %(most)s) f
         CROSS JOIN LATERAL (SELECT change FROM event e
                              WHERE e.domain_id = f.domain_id AND e.number = f.number OFFSET 0) e
         WHERE e.change = ANY(%(kinds)s) LIMIT %(limit)s) n
"""
LAST_CHANGE = f"""
    SELECT e.domain_id, e.key, 0 AS position, {EVENT} FROM event e
     WHERE e.domain_id = %(domain_id)s AND e.key = %(key)s AND e.change = 'changed' ORDER BY e.number DESC LIMIT 1
"""  # noqa: S608  the same


FORGOTTEN = """
    SELECT coalesce(max(s.forgotten_until), 0), (SELECT authority FROM domain WHERE id = %(domain_id)s),
           (SELECT coalesce(max(position), 0) FROM feed)
      FROM domain_state s
     WHERE %(domain_id)s::bigint IS NULL OR s.domain_id = %(domain_id)s
"""


# A copy of a database is a different source once it continues on its own: a restored dump has another server or
# database id, a point-in-time recovery another timeline. A domain that is registered again has another number.
SOURCE = """
    SELECT format('%%s/%%s/%%s/%%s', s.system_identifier, c.timeline_id, d.oid, %(domain_id)s::bigint)
      FROM pg_control_system() s, pg_control_checkpoint() c, pg_database d WHERE d.datname = current_database()
"""


class EventKind(StrEnum):
    """The kind of an event."""

    ADDED = "added"
    CHANGED = "changed"
    MOVED = "moved"
    GONE = "gone"
    EXCLUDED = "excluded"  # robots.txt or the scope of the domain now excludes the page
    RESTORED = "restored"
    TEMPLATE = "template"  # the site changed a block of nearly all its pages: one event, for the root
    DEFERRED = "deferred"  # unfetched pages like this one have hardly any new text (crawler trap): one a day is fetched
    RESUMED = "resumed"  # such pages are fetched again
    HINT = "hint"  # a change signal says that the page has changed; it has not been visited yet
    FAILING = "failing"  # the page keeps failing; with version 0, the whole domain is suspended
    RECOVERED = "recovered"  # the page or the domain responds again
    VALUE = "value"  # a value that a rule reads from the page differs


@dataclass(frozen=True, slots=True)
class BlockChange:
    """One block that changed. before, after: its text, truncated; None where the block was added or removed."""

    part: BlockKind
    before: str | None
    after: str | None


ALL_KINDS = frozenset(EventKind)


class ChangeFilter(Struct, frozen=True):
    """A selection of changes: of one domain or page, with a prefix of the URL, of some kinds, with some words.

    key: of the page.  tag: of domains; None for all.  since: changes found at or after this time.  after: changes after
    this position.  until: changes up to this position. With `until`, the cost is proportional to the number of
    positions in the range.  words: parts of the URL or of the changed blocks, all of which must occur.
    """

    domain_id: int | None = None
    tag: str | None = None
    key: PageKey | None = None
    prefix: str = ""
    kinds: frozenset[EventKind] = ALL_KINDS
    since: datetime | None = None
    after: int = 0
    until: int | None = None
    words: tuple[str, ...] = ()

    @property
    def conditions(self) -> list[str]:
        """Return the SQL conditions on an event e and its row f in the feed, without those that are always true."""
        needed_by_condition = {
            "e.domain_id = %(domain_id)s": self.domain_id is not None,
            "EXISTS (SELECT FROM domain_tag g WHERE g.domain_id = e.domain_id AND g.tag = %(tag)s)": self.tag
            is not None,
            "e.key = %(key)s": self.key is not None,
            "starts_with(e.url, %(prefix)s)": bool(self.prefix),
            "e.change = ANY(%(kinds)s)": self.kinds != ALL_KINDS,
            "e.change <> 'added'": EventKind.ADDED not in self.kinds,  # for Postgres to use the index event_news
            "e.at >= %(since)s": self.since is not None,
            "f.position > %(after)s": self.after > 0 or self.until is not None,
            "f.position <= %(until)s": self.until is not None,
            "concat_ws(' ', e.url, e.blocks) ILIKE ALL(%(words)s)": bool(self.words),
        }
        return [condition for condition, is_wanted in needed_by_condition.items() if is_wanted]

    @property
    def uses_event_index(self) -> bool:
        """Return whether to search by an index of events rather than in the order of the feed."""
        if self.until is not None:
            return False
        # Few changes follow a cursor, so the feed is read from there.
        is_news = self.since is not None or EventKind.ADDED not in self.kinds
        return self.key is not None or (is_news and not self.after)

    @property
    def values(self) -> dict[str, Any]:
        """Return the parameters of the conditions."""
        return asdict(self) | {"kinds": [kind.value for kind in self.kinds], "words": build_patterns(self.words)}


EVERY_CHANGE = ChangeFilter()


@dataclass(frozen=True, slots=True)
class FeedItem:
    """One change. position: its position in the feed, the cursor for reading on.

    at: when it was found.  version: the number of the page's newest version after the change; 0 for TEMPLATE, DEFERRED
    and RESUMED, and for FAILING and RECOVERED of a whole domain.  distance_bits: the SimHash distance of the two
    versions.  magnitude: the share of the page that changed, 0 to 1; None if unknown.
    parts: which of text, link, image, title and meta changed; empty if the blocks were not compared.
    blocks: the first blocks that changed, if requested.  pages: for a change of the template, the number of pages it
    was seen on.  source: for a hint, the source of the change signal.  reason: for FAILING, why the last visit failed.
    value: for VALUE, its name and unit, the last number before (was), the number (now) or why there is none (finding).
    title: of that version; empty without one.  importance: the current importance of the page (mean of the domain: 1);
    None outside the OPIC economy.  moved_to: the page that a moved page redirects to, if it is a page of the domain.
    """

    position: int
    domain: str
    at: datetime
    url: Url
    change: EventKind
    version: int
    distance_bits: int | None
    magnitude: float | None
    parts: tuple[BlockKind, ...] = ()
    blocks: tuple[BlockChange, ...] = ()
    pages: int | None = None
    source: str | None = None
    reason: str | None = None
    value: Mapping[str, Any] | None = None
    title: str = ""
    importance: float | None = None
    moved_to: Url | None = None

    @property
    def is_about_domain(self) -> bool:
        """Return whether the whole domain is failing or has recovered, and not one page."""
        return self.change in {EventKind.FAILING, EventKind.RECOVERED} and not self.version

    @property
    def page_cursor(self) -> tuple[datetime, int]:
        """Return the place of the change among the newest ones, from which `list_newest_changes` continues."""
        return self.at, self.position


async def append_to_feed(db: Database, *, at: datetime, only: Collection[int] | None = None) -> int:
    """Append all recorded events to the feed, in one order, and return their number. One process appends at a time.

    Listeners on CHANNEL are notified once per transaction.  only: the ids of the domains whose events to append.
    """
    total, chosen = 0, list(only) if only is not None else None
    while True:
        async with db.transaction() as connection:
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (FEED_LOCK,))
            cursor = await connection.execute(APPEND_EVENTS, {"at": at, "most": CHUNK, "only": chosen})
            appended = sum(int(row[0]) for row in await cursor.fetchall())
            if appended:
                await connection.execute(NOTIFY_LISTENERS, {"channel": CHANNEL})
        total += appended
        if appended < CHUNK:
            return total


async def read_feed(
    db: Database, change_filter: ChangeFilter = EVERY_CHANGE, *, max_count: int = 1000, with_blocks: bool = False
) -> list[FeedItem]:
    """Return the selected changes in the order of the feed. with_blocks: include the blocks that changed.

    Raise CursorTooOld or CursorAhead (see `require_stored`) if `change_filter.after` is an invalid cursor; 0 starts at
    the oldest stored change.
    """
    source = BY_EVENT if change_filter.uses_event_index else BY_FEED
    statement = f"{source} WHERE {_join_conditions(change_filter.conditions)} ORDER BY f.position LIMIT %(most)s"
    values = change_filter.values | {"most": max_count, "blocks": with_blocks}
    items = await _fetch_items(db, statement, "e.position", values)
    if change_filter.after:  # checked afterwards: what is stored now was also stored when it was read
        await require_stored(db, change_filter.domain_id, since=change_filter.after)
    return items


async def read_feed_from(
    db: Database, change_filter: ChangeFilter = EVERY_CHANGE, *, max_count: int = 1000, with_blocks: bool = False
) -> tuple[list[FeedItem], int]:
    """Return the changes that `read_feed` returns, and the cursor from which to continue.

    The cursor is after everything that was read, selected or not. Otherwise, a reader that waits for a rare change
    would read everything since its last change again each time, until the changes after its cursor are deleted.
    """
    end = await read_feed_end(db)  # read first: positions become visible in order, so all up to it are read below
    items = await read_feed(db, change_filter, max_count=max_count, with_blocks=with_blocks)
    last = items[-1].position if items else change_filter.after
    return items, last if len(items) >= max_count else max(last, end)


async def list_newest_changes(
    db: Database,
    change_filter: ChangeFilter = EVERY_CHANGE,
    *,
    before: tuple[datetime, int] | None = None,
    max_count: int = 100,
) -> list[FeedItem]:
    """Return the selected changes with the blocks that changed, the newest first.

    before: continue after this place, the `FeedItem.page_cursor` of the last change shown (keyset paging).
    Raise BadInput if a search by words takes long.
    """
    conditions = change_filter.conditions
    if before is not None:
        conditions += ["e.at <= %(before_at)s", "(e.at, f.position) < (%(before_at)s, %(before_position)s)"]
    at, position = before or (None, None)
    values = {"before_at": at, "before_position": position, "most": max_count, "blocks": True}
    statement = f"{BY_EVENT} WHERE {_join_conditions(conditions)} ORDER BY e.at DESC, f.position DESC LIMIT %(most)s"
    order, values = "e.at DESC, e.position DESC", change_filter.values | values
    if not change_filter.words:
        return await _fetch_items(db, statement, order, values)
    async with db.transaction() as connection, limit_search(connection, remedy="choose a domain or a shorter period"):
        return await _fetch_items(connection, statement, order, values)


async def count_changes(db: Database, change_filter: ChangeFilter = EVERY_CHANGE) -> dict[EventKind, int]:
    """Return the number of changes of each kind in the feed."""
    statement = f"{COUNT} WHERE {_join_conditions(change_filter.conditions)} GROUP BY e.change"
    rows = await fetch_rows(db, statement, change_filter.values)
    return {EventKind(change): count for change, count in rows}


async def count_unread(db: Database, *, after: int, kinds: Collection[EventKind], max_count: int) -> int:
    """Return the number of changes of these kinds after a position, among the newest 10 * max_count of the feed."""
    values = {"after": after, "kinds": [kind.value for kind in kinds], "most": 10 * max_count, "limit": max_count}
    return await fetch_number(db, UNREAD, values)


async def read_forgotten_until(db: Database, domain_id: int | None) -> int:
    """Return the last position of a deleted change of a domain (None: of any domain); 0 for none."""
    return (await _read_forgotten(db, domain_id))[0]


async def require_stored(executor: Connection | Database, domain_id: int | None, *, since: int) -> None:
    """Raise CursorTooOld if changes after a cursor were deleted: reading on would miss them.

    Raise CursorAhead for a cursor beyond the end of the feed: it is not from this feed. Within a transaction, call this
    after reading, because the deletion could happen between the two.
    """
    until, authority, end = await _read_forgotten(executor, domain_id)
    if since > end:
        raise CursorAhead(since=since, end=end)
    if since < until:
        raise CursorTooOld(since=since, stored_from=until, domain=authority)


async def _read_forgotten(executor: Connection | Database, domain_id: int | None) -> tuple[int, str | None, int]:
    """Return the last deleted position, the name of the domain (None for all), and the end of the feed."""
    row = await fetch_row(executor, FORGOTTEN, {"domain_id": domain_id})
    assert row is not None, "an aggregate has a row"
    return int(row[0]), row[1], int(row[2])


async def read_feed_end(db: Database) -> int:
    """Return the cursor after all changes of the feed; 0 while it is empty."""
    return await fetch_number(db, "SELECT coalesce(max(position), 0) FROM feed", {})


async def find_changed_domains(db: Database, *, after: int) -> frozenset[int]:
    """Return the ids of the domains that have changes after a cursor."""
    rows = await fetch_rows(db, "SELECT DISTINCT domain_id FROM feed WHERE position > %(after)s", {"after": after})
    return frozenset(number for (number,) in rows)


async def read_feed_source(db: Database, domain: Domain) -> str:
    """Return an identifier of the domain's feed, unique to this database and registration. Cursors belong to it."""
    row = await fetch_row(db, SOURCE, {"domain_id": domain.id})
    assert row is not None
    return str(row[0])


async def read_last_change(db: Database, domain: Domain, url: Url) -> FeedItem | None:
    """Return the last CHANGED event of a page with its blocks, or None. Its position is 0, in the feed or not."""
    values = {"domain_id": domain.id, "key": compute_page_key(url), "blocks": True}
    return next(iter(await _fetch_items(db, LAST_CHANGE, "e.position", values)), None)


def _join_conditions(conditions: list[str]) -> str:
    return " AND ".join(conditions) or "true"


async def _fetch_items(executor: Executor, events_query: str, order: str, values: dict[str, Any]) -> list[FeedItem]:
    rows = await fetch_dicts(executor, FEED_ITEMS.format(found=events_query, order=order), values)
    for row in rows:
        blocks = tuple(BlockChange(BlockKind(part), was, now) for part, was, now in row["blocks"] or ())
        row |= {"change": EventKind(row["change"]), "parts": tuple(map(BlockKind, row["parts"].split()))}
        row["blocks"] = blocks
    return [FeedItem(**row) for row in rows]
