"""The tables of subscriptions, of pending notifications and of the messages that carry them. They hold no secrets."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, Column, Index
from sqlalchemy import text as sql
from sqlalchemy.types import Uuid
from sqlmodel import Field

from models.columns import (
    Table,
    bigint,
    boolean,
    bytea,
    double,
    foreign_key,
    identity,
    integer,
    jsonb,
    text,
    text_array,
    timestamptz,
)


class Subscription(Table, table=True):
    """A subscription to changes. target, secret: references to secrets, never their values.

    position: the feed is read up to here.  failures: consecutive failures of the target.
    """

    __table_args__ = (
        CheckConstraint("condition IN ('', 'appears', 'goes', 'below', 'above')", name="subscription_condition"),
        CheckConstraint("(condition IN ('below', 'above')) = (bound IS NOT NULL)", name="subscription_bound"),
        CheckConstraint("position >= 0 AND failures >= 0", name="subscription_counts"),
        CheckConstraint("(paused_at IS NULL) = (pause_position IS NULL)", name="subscription_paused"),
        CheckConstraint("max_bytes > 0", name="subscription_size"),
    )
    id: int = Field(sa_column=identity())
    target: str = Field(sa_column=text())
    secret: str = Field(sa_column=text(default=""))
    seal: str = Field(sa_column=text(default=""))  # for a command: signature of the local user who set it
    allow_private: bool = Field(sa_column=boolean())
    domain_id: int | None = Field(sa_column=foreign_key("domain", nullable=True))
    pattern: str = Field(sa_column=text(default=""))
    kinds: list[str] = Field(sa_column=text_array())
    place: str = Field(sa_column=text(default=""))
    condition: str = Field(sa_column=text(default=""))
    condition_text: str = Field(sa_column=text(default=""))
    bound: float | None = Field(sa_column=double(nullable=True))
    digest: str = Field(sa_column=text(default=""))
    quiet: str = Field(sa_column=text(default=""))
    zone: str = Field(sa_column=text(default="UTC"))
    created_at: datetime = Field(sa_column=timestamptz())
    position: int = Field(sa_column=bigint())
    failures: int = Field(sa_column=integer(default="0"))
    failing_since: datetime | None = Field(sa_column=timestamptz(nullable=True))
    resume_at: datetime | None = Field(sa_column=timestamptz(nullable=True))
    last_error: str = Field(sa_column=text(default=""))
    delivered: int = Field(sa_column=bigint(default="0"))  # changes
    delivered_at: datetime | None = Field(sa_column=timestamptz(nullable=True))
    paused_at: datetime | None = Field(sa_column=timestamptz(nullable=True))
    pause_position: int | None = Field(sa_column=bigint(nullable=True))  # end of the feed at that time
    max_bytes: int = Field(sa_column=integer(default="262144"))  # maximum size of a message to a webhook or a program


class Message(Table, table=True):
    """A message that is not delivered yet; deleted on delivery. token: identifies it to the receiver over all tries."""

    __table_args__ = (
        CheckConstraint("state IN ('waiting', 'dead')", name="message_state"),
        Index("message_next", "subscription_id", "tries", "id", postgresql_where=sql("state = 'waiting'")),
    )
    id: int = Field(sa_column=identity())
    subscription_id: int = Field(sa_column=foreign_key("subscription"))
    token: UUID = Field(sa_column=Column(Uuid, nullable=False, unique=True))
    state: str = Field(sa_column=text(default="waiting"))
    created_at: datetime = Field(sa_column=timestamptz())
    tries: int = Field(sa_column=integer(default="0"))
    next_try_at: datetime = Field(sa_column=timestamptz())
    last_error: str = Field(sa_column=text(default=""))


class Notice(Table, table=True):
    """A pending notification: a change for one subscription, in no message yet or in one not delivered yet."""

    __table_args__ = (
        Index("notice_message", "message_id", "position"),
        Index("notice_page", "subscription_id", "domain_id", "key", "message_id"),
        Index("notice_due", "subscription_id", "due_at", postgresql_where=sql("message_id IS NULL")),
    )
    subscription_id: int = Field(sa_column=foreign_key("subscription", key=True))
    position: int = Field(sa_column=bigint(key=True))
    domain_id: int = Field(sa_column=bigint())
    key: bytes = Field(sa_column=bytea())
    due_at: datetime = Field(sa_column=timestamptz())
    is_grouped: bool = Field(sa_column=boolean())
    content: dict[str, Any] = Field(sa_column=jsonb())
    message_id: int | None = Field(sa_column=foreign_key("message", nullable=True))
