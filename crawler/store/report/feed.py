"""The change feed: every domain's events in one order, for any number of readers with cursors."""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey, Url, compute_page_key
from crawler.core.page.outline import BlockKind
from crawler.errors import CursorAhead, CursorTooOld
from crawler.store.database import Connection, Database
from crawler.store.rows import fetch_dicts, fetch_number, fetch_row, fetch_rows

FEED_LOCK = 0x66656564  # "feed": one stamper at a time
CHANNEL = "recrawl_changes"

# Positions are counted, not drawn from a sequence: no gaps, and a dump and restore goes on where it ended.
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
# Whoever waits for changes is told once for all that were appended, when they can be read: where the feed ends now.
NOTIFY_LISTENERS = "SELECT pg_notify(%(channel)s, max(position)::text) FROM feed"
CHUNK = 10_000
EVENT = """
    e.at, e.url, e.change, e.version, e.distance_bits, e.magnitude, e.parts, e.pages, e.source,
    CASE WHEN %(blocks)s THEN e.blocks END AS blocks
"""
# From the events or from the feed, whichever the conditions are about: each row is looked up on the other side by its
# key. Left to itself the planner reads all of both (OFFSET 0 keeps it from that).
BY_EVENT = f"""
    SELECT e.domain_id, e.key, f.position, {EVENT}
      FROM event e
     CROSS JOIN LATERAL (SELECT f.position FROM feed f
                          WHERE f.domain_id = e.domain_id AND f.number = e.number OFFSET 0) f
"""  # noqa: S608  only our own expressions are put in
BY_FEED = f"""
    SELECT e.domain_id, e.key, f.position, {EVENT}
      FROM feed f
     CROSS JOIN LATERAL (SELECT * FROM event e
                          WHERE e.domain_id = f.domain_id AND e.number = f.number OFFSET 0) e
"""  # noqa: S608  the same
# Titles and importance are looked up for the rows that are shown, row by row: joins would read whole partitions.
FEED_ITEMS = """
    WITH found AS MATERIALIZED ({found})
    SELECT e.position, d.authority AS domain, e.at, e.url, e.change, e.version, e.distance_bits, e.magnitude, e.parts,
           e.pages, e.blocks, e.source,
           coalesce((SELECT s.title FROM snapshot s
                      WHERE s.domain_id = e.domain_id AND s.key = e.key AND s.number = e.version), '') AS title,
           (SELECT r.importance FROM report_page r WHERE r.domain_id = e.domain_id AND r.key = e.key) AS importance,
           CASE WHEN e.change = 'moved' THEN
               (SELECT t.url FROM page t
                 WHERE t.domain_id = e.domain_id
                   AND t.key = (SELECT p.moved_to FROM page p WHERE p.domain_id = e.domain_id AND p.key = e.key)) END
               AS moved_to
      FROM found e
      JOIN domain d ON d.id = e.domain_id
     ORDER BY {order}
"""
COUNT = "SELECT e.change, count(*) FROM event e JOIN feed f ON f.domain_id = e.domain_id AND f.number = e.number"
LAST_CHANGE = f"""
    SELECT e.domain_id, e.key, 0 AS position, {EVENT}
      FROM event e
     WHERE e.domain_id = %(domain_id)s AND e.key = %(key)s AND e.change = 'changed' ORDER BY e.number DESC LIMIT 1
"""  # noqa: S608  the same


FORGOTTEN = """
    SELECT coalesce(max(s.forgotten_until), 0), (SELECT authority FROM domain WHERE id = %(domain_id)s),
           (SELECT coalesce(max(position), 0) FROM feed)
      FROM domain_state s
     WHERE %(domain_id)s::bigint IS NULL OR s.domain_id = %(domain_id)s
"""


# A copy of a database is another one as soon as it goes on by itself: restored elsewhere it has another server or
# number, recovered up to an instant another timeline. A domain that was registered anew has another number, too.
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
    EXCLUDED = "excluded"  # it may not be fetched any more: by robots.txt, or by the domain's scope
    RESTORED = "restored"
    TEMPLATE = "template"  # the site changed a block of nearly all its pages: one event, at its root
    DEFERRED = "deferred"  # pages like this one say nothing new: no more of them are fetched but one a day
    RESUMED = "resumed"  # and now they do again
    HINT = "hint"  # somebody says that the page has changed; nobody has looked yet


@dataclass(frozen=True, slots=True)
class BlockChange:
    """One block that changed. before, after: its text, cut where it is long; None for a block that came or went."""

    part: BlockKind
    before: str | None
    after: str | None


ALL_KINDS = frozenset(EventKind)


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes are wanted. domain_id, key: of one domain, or one page of it.  prefix: of their URLs.

    since: found at or after this knowledge time.  after: behind this position of the feed.  until: not behind this one;
    then the feed is read in its own order, whatever else is asked, so that a piece of it costs as much as it is long.
    """

    domain_id: int | None = None
    key: PageKey | None = None
    prefix: str = ""
    kinds: frozenset[EventKind] = ALL_KINDS
    since: datetime | None = None
    after: int = 0
    until: int | None = None

    @property
    def conditions(self) -> list[str]:
        """Conditions in SQL on an event e and its place f in the feed; only what is asked for, for the planner."""
        needed_by_condition = {
            "e.domain_id = %(domain_id)s": self.domain_id is not None,
            "e.key = %(key)s": self.key is not None,
            "starts_with(e.url, %(prefix)s)": bool(self.prefix),
            "e.change = ANY(%(kinds)s)": self.kinds != ALL_KINDS,
            "e.change <> 'added'": EventKind.ADDED not in self.kinds,  # said once more as the index event_news has it
            "e.at >= %(since)s": self.since is not None,
            "f.position > %(after)s": self.after > 0 or self.until is not None,
            "f.position <= %(until)s": self.until is not None,
        }
        return [condition for condition, is_wanted in needed_by_condition.items() if is_wanted]

    @property
    def uses_event_index(self) -> bool:
        """Whether an index of events finds what is wanted, rather than the feed's own order."""
        if self.until is not None:
            return False
        # Behind a cursor stands what came since: little, whereas of all events most are news.
        is_news = self.since is not None or EventKind.ADDED not in self.kinds
        return self.key is not None or (is_news and not self.after)

    @property
    def values(self) -> dict[str, Any]:
        """The parameters of the conditions."""
        return asdict(self) | {"kinds": [kind.value for kind in self.kinds]}


EVERY_CHANGE = ChangeFilter()


@dataclass(frozen=True, slots=True)
class FeedItem:
    """One change. position: the cursor from which to read on.

    magnitude: the part of the page that changed, 0 to 1; None where nobody can tell.
    parts: what changed: text, link, image, title, meta; empty where the blocks were not compared.
    blocks: the first blocks that changed, if they were asked for.  pages: of a change of the boilerplate, on how many
    pages it had been seen.  source: of a hint, who gave it.
    title: of the version that it brought, or of the last one.  importance: of the page now, the domain's mean is 1;
    None outside the economy.  moved_to: where a page that moved is now, as far as that is a page of the domain.
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
    title: str = ""
    importance: float | None = None
    moved_to: Url | None = None

    @property
    def page_cursor(self) -> tuple[datetime, int]:
        """Its place among the newest changes, from which `newest_changes` reads on."""
        return self.at, self.position


async def append_to_feed(db: Database, *, at: datetime, only: Collection[int] | None = None) -> int:
    """Append all recorded events to the feed, in one order; gives how many. One stamper works at a time.

    only: those of these domains, by number. Who listens on CHANNEL is told once for each transaction.
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
    """The changes that are wanted, in the feed's order. with_blocks: with those that changed.

    Raises what `require_stored` does where `wanted.after` is a cursor; 0 is the beginning of what is kept.
    """
    source = BY_EVENT if change_filter.uses_event_index else BY_FEED
    statement = f"{source} WHERE {_join_conditions(change_filter.conditions)} ORDER BY f.position LIMIT %(most)s"
    items = await _fetch_items(
        db, statement, "e.position", change_filter.values | {"most": max_count, "blocks": with_blocks}
    )
    if change_filter.after:  # asked afterwards: what was kept then was kept when it was read
        await require_stored(db, change_filter.domain_id, since=change_filter.after)
    return items


async def read_feed_from(
    db: Database, change_filter: ChangeFilter = EVERY_CHANGE, *, max_count: int = 1000, with_blocks: bool = False
) -> tuple[list[FeedItem], int]:
    """The changes that `read_feed` gives, and the cursor from which to go on.

    It lies behind all that was read, wanted or not: else who waits for something rare would read all that came since
    its last change again each time, until the feed has forgotten what stands behind its cursor.
    """
    end = await read_feed_end(db)  # before: positions become visible in their order, so that all up to it is seen below
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
    """Return the changes in the feed with the blocks that changed, the newest first.

    before: only those after this place, `FeedItem.place` of the last one shown (keyset paging).
    """
    conditions = change_filter.conditions
    if before is not None:
        conditions += ["e.at <= %(before_at)s", "(e.at, f.position) < (%(before_at)s, %(before_position)s)"]
    at, position = before or (None, None)
    values = {"before_at": at, "before_position": position, "most": max_count, "blocks": True}
    statement = f"{BY_EVENT} WHERE {_join_conditions(conditions)} ORDER BY e.at DESC, f.position DESC LIMIT %(most)s"
    return await _fetch_items(db, statement, "e.at DESC, e.position DESC", change_filter.values | values)


async def count_changes(db: Database, change_filter: ChangeFilter = EVERY_CHANGE) -> dict[EventKind, int]:
    """How many changes of each kind there are in the feed."""
    rows = await fetch_rows(
        db, f"{COUNT} WHERE {_join_conditions(change_filter.conditions)} GROUP BY e.change", change_filter.values
    )
    return {EventKind(change): count for change, count in rows}


async def read_forgotten_until(db: Database, domain_id: int | None) -> int:
    """The last position of a change that the feed has forgotten, of a domain or of any; 0 for none."""
    return (await _read_forgotten(db, domain_id))[0]


async def require_stored(executor: Connection | Database, domain_id: int | None, *, since: int) -> None:
    """Raise CursorTooOld where changes after a cursor are not kept any more, so that reading on would miss them.

    And CursorAhead for one beyond the end of the feed, which this feed cannot have given. Within a transaction it is
    called after what was read: nothing went in between.
    """
    until, authority, end = await _read_forgotten(executor, domain_id)
    if since > end:
        raise CursorAhead(since=since, end=end)
    if since < until:
        raise CursorTooOld(since=since, stored_from=until, domain=authority)


async def _read_forgotten(executor: Connection | Database, domain_id: int | None) -> tuple[int, str | None, int]:
    """Up to which position, the name of the domain that was asked about, and where the feed ends."""
    row = await fetch_row(executor, FORGOTTEN, {"domain_id": domain_id})
    assert row is not None, "an aggregate has a row"
    return int(row[0]), row[1], int(row[2])


async def read_feed_end(db: Database) -> int:
    """The cursor behind all changes that the feed has; 0 while it is empty."""
    return await fetch_number(db, "SELECT coalesce(max(position), 0) FROM feed", {})


async def find_changed_domains(db: Database, *, after: int) -> frozenset[int]:
    """The numbers of the domains that have changes in the feed behind a cursor."""
    rows = await fetch_rows(db, "SELECT DISTINCT domain_id FROM feed WHERE position > %(after)s", {"after": after})
    return frozenset(number for (number,) in rows)


async def read_feed_source(db: Database, domain: Domain) -> str:
    """What tells the feed of a domain from that of any other database, or registration: a cursor is of one source."""
    row = await fetch_row(db, SOURCE, {"domain_id": domain.id})
    assert row is not None
    return str(row[0])


async def read_last_change(db: Database, domain: Domain, url: Url) -> FeedItem | None:
    """The last change of a page, with the blocks that changed, whether the feed has it yet or not (position 0)."""
    values = {"domain_id": domain.id, "key": compute_page_key(url), "blocks": True}
    items = await _fetch_items(db, LAST_CHANGE, "e.position", values)
    return items[0] if items else None


def _join_conditions(conditions: list[str]) -> str:
    return " AND ".join(conditions) or "true"


async def _fetch_items(db: Database, events_query: str, order: str, values: dict[str, Any]) -> list[FeedItem]:
    return [
        _build_item(row) for row in await fetch_dicts(db, FEED_ITEMS.format(found=events_query, order=order), values)
    ]


def _build_item(row: dict[str, Any]) -> FeedItem:
    special = {
        "change": EventKind(row["change"]),
        "parts": tuple(map(BlockKind, row["parts"].split())),
        "blocks": tuple(
            BlockChange(part=BlockKind(part), before=was, after=now) for part, was, now in row["blocks"] or ()
        ),
    }
    return FeedItem(**row | special)
