"""The change feed: events are numbered without gaps per domain, and the feed puts all domains' events in one order."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Index, UniqueConstraint
from sqlalchemy import text as sql

from models import columns
from models.columns import DomainTable, Table
from models.page import PARTITIONED


class Event(Table, table=True):
    """A change of a page, of the site's boilerplate or of what is deferred, a change signal, a report of
    failures, or a new value that a rule reads from a page.

    number: counted per domain from 1 without gaps.  change: see EventKind in crawler/store/report/feed.py.
    """

    __table_args__ = (
        CheckConstraint("number >= 1", name="event_number"),
        CheckConstraint(
            "change IN ('added', 'changed', 'moved', 'gone', 'excluded', 'restored', 'template', 'deferred', 'resumed',"
            " 'hint', 'failing', 'recovered', 'value')",
            name="event_change",
        ),
        Index("event_page", "domain_id", "key", "number"),
        Index("event_time", "at", "domain_id", "number"),
        Index("event_news", "at", "domain_id", "number", postgresql_where=sql("change <> 'added'")),
        PARTITIONED,
    )
    domain_id: int = columns.bigint(key=True)
    number: int = columns.bigint(key=True)
    at: datetime = columns.timestamptz()
    key: bytes = columns.bytea()
    url: str = columns.text()
    change: str = columns.text()
    version: int = columns.integer()
    distance_bits: int | None = columns.smallint(nullable=True)
    # parts: which of text, link, image, title and meta changed, separated by spaces. blocks: the first blocks that
    # changed, as [part, before, after].
    parts: str = columns.text(default="")
    blocks: list[list[str | None]] | None = columns.jsonb(nullable=True)
    # For a change of the boilerplate, the number of pages on which it was seen.
    pages: int | None = columns.integer(nullable=True, default=None)
    magnitude: float | None = columns.double(nullable=True)  # share of the page that changed, 0 to 1
    source: str | None = columns.text(nullable=True)  # for a hint: the source of the change signal
    reason: str | None = columns.text(nullable=True)  # for a page or a domain that is failing: why
    # For a value: {"name", "unit", "was", "now", "finding"}.
    value: dict[str, Any] | None = columns.jsonb(nullable=True)


class FailureRun(DomainTable, table=True):
    """Failures in a row of a page, or of the whole domain if the key is empty (crawler/store/failure_runs.py).

    since: the first of them.  is_reported: whether they were reported as an event.
    """

    key: bytes = columns.bytea(key=True)
    since: datetime = columns.timestamptz()
    is_reported: bool = columns.boolean()


class Feed(Table, table=True):
    """The events of all domains in one order. A cursor is a position in it. number: of the event in its domain."""

    __table_args__ = (UniqueConstraint("domain_id", "number", name="feed_once"),)
    position: int = columns.bigint(key=True)
    domain_id: int = columns.bigint()
    number: int = columns.bigint()
    appended_at: datetime = columns.timestamptz()


class FeedReader(Table, table=True):
    """A reader of the feed that keeps its cursor here, so that changes that it has not read are not deleted.

    position: the cursor.  domain_id: null for all domains.
    """

    __table_args__ = (CheckConstraint("position >= 0", name="feed_reader_position"),)
    name: str = columns.text(key=True)
    domain_id: int | None = columns.foreign_key("domain", nullable=True)
    position: int = columns.bigint(default="0")
    moved_at: datetime = columns.timestamptz(default=sql("now()"))
