"""The change feed: gapless per domain where it is recorded, and in one order where it is read."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Column, DateTime, Index, UniqueConstraint
from sqlalchemy import text as sql
from sqlmodel import Field

from models.columns import Table, big, count, document, instant, octets, real, reference, small, text
from models.page import HASHED


class Event(Table, table=True):
    """One change of a page, of the site's boilerplate or of what is held back; numbered from 1 without gaps."""

    __table_args__ = (
        CheckConstraint("number >= 1", name="event_number"),
        CheckConstraint(
            "change IN ('first', 'changed', 'moved', 'gone', 'refused', 'back', 'boilerplate', 'held_back', 'let_go',"
            " 'hint')",
            name="event_change",
        ),
        Index("event_page", "domain_id", "key", "number"),
        Index("event_time", "at", "domain_id", "number"),
        Index("event_news", "at", "domain_id", "number", postgresql_where=sql("change <> 'first'")),
        {"postgresql_partition_by": HASHED},
    )
    domain_id: int = Field(sa_column=big(key=True))
    number: int = Field(sa_column=big(key=True))
    at: datetime = Field(sa_column=instant())
    key: bytes = Field(sa_column=octets())
    url: str = Field(sa_column=text())
    change: str = Field(sa_column=text())
    version: int = Field(sa_column=count())
    distance_bits: int | None = Field(sa_column=small(nullable=True))
    # What changed: text, link, image, title, meta; and the first blocks that did, as [part, before, after].
    parts: str = Field(sa_column=text(default=""))
    blocks: list[list[str | None]] | None = Field(sa_column=document(nullable=True))
    # Of a change of the boilerplate, on how many pages it was seen.
    pages: int | None = Field(sa_column=count(nullable=True, default=None))
    amount: float | None = Field(sa_column=real(nullable=True))  # the part of the page that changed, 0 to 1
    source: str | None = Field(sa_column=text(nullable=True))  # of a hint: who gave it


class Feed(Table, table=True):
    """All domains' events in one order. A cursor is a position here."""

    __table_args__ = (UniqueConstraint("domain_id", "number", name="feed_once"),)
    position: int = Field(sa_column=big(key=True))
    domain_id: int = Field(sa_column=big())
    number: int = Field(sa_column=big())
    appended_at: datetime = Field(sa_column=instant())


class FeedReader(Table, table=True):
    """Who reads the feed and keeps a cursor here, after which nothing is forgotten. domain_id: null for all domains."""

    __table_args__ = (CheckConstraint("position >= 0", name="feed_reader_position"),)
    name: str = Field(sa_column=text(key=True))
    domain_id: int | None = Field(sa_column=reference("domain", nullable=True))
    position: int = Field(sa_column=big(default="0"))
    moved_at: datetime = Field(sa_column=Column(DateTime(timezone=True), nullable=False, server_default=sql("now()")))
