"""The change feed: events are numbered without gaps per domain, and the feed puts all domains' events in one order."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Column, DateTime, Index, UniqueConstraint
from sqlalchemy import text as sql
from sqlmodel import Field

from models.columns import Table, bigint, bytea, double, foreign_key, integer, jsonb, smallint, text, timestamptz
from models.page import HASH_BY_DOMAIN


class Event(Table, table=True):
    """A change of a page, of the site's boilerplate or of what is deferred. Numbered per domain from 1 without gaps."""

    __table_args__ = (
        CheckConstraint("number >= 1", name="event_number"),
        CheckConstraint(
            "change IN ('added', 'changed', 'moved', 'gone', 'excluded', 'restored', 'template', 'deferred', 'resumed',"
            " 'hint')",
            name="event_change",
        ),
        Index("event_page", "domain_id", "key", "number"),
        Index("event_time", "at", "domain_id", "number"),
        Index("event_news", "at", "domain_id", "number", postgresql_where=sql("change <> 'added'")),
        {"postgresql_partition_by": HASH_BY_DOMAIN},
    )
    domain_id: int = Field(sa_column=bigint(key=True))
    number: int = Field(sa_column=bigint(key=True))
    at: datetime = Field(sa_column=timestamptz())
    key: bytes = Field(sa_column=bytea())
    url: str = Field(sa_column=text())
    change: str = Field(sa_column=text())
    version: int = Field(sa_column=integer())
    distance_bits: int | None = Field(sa_column=smallint(nullable=True))
    # parts: what changed, of text, link, image, title, meta. blocks: the first that changed, as [part, before, after].
    parts: str = Field(sa_column=text(default=""))
    blocks: list[list[str | None]] | None = Field(sa_column=jsonb(nullable=True))
    # For a change of the boilerplate, the number of pages on which it was seen.
    pages: int | None = Field(sa_column=integer(nullable=True, default=None))
    magnitude: float | None = Field(sa_column=double(nullable=True))  # share of the page that changed, 0 to 1
    source: str | None = Field(sa_column=text(nullable=True))  # for a hint: who gave it


class Feed(Table, table=True):
    """The events of all domains in one order. A cursor is a position in it."""

    __table_args__ = (UniqueConstraint("domain_id", "number", name="feed_once"),)
    position: int = Field(sa_column=bigint(key=True))
    domain_id: int = Field(sa_column=bigint())
    number: int = Field(sa_column=bigint())
    appended_at: datetime = Field(sa_column=timestamptz())


class FeedReader(Table, table=True):
    """A reader that keeps its cursor here. Changes after it are not deleted. domain_id: null for all domains."""

    __table_args__ = (CheckConstraint("position >= 0", name="feed_reader_position"),)
    name: str = Field(sa_column=text(key=True))
    domain_id: int | None = Field(sa_column=foreign_key("domain", nullable=True))
    position: int = Field(sa_column=bigint(default="0"))
    moved_at: datetime = Field(sa_column=Column(DateTime(timezone=True), nullable=False, server_default=sql("now()")))
