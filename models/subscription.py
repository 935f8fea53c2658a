"""The tables of subscriptions, of pending notifications and of the messages that carry them. They hold no secrets."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, Text
from sqlalchemy import text as sql
from sqlmodel import Field

from models import columns
from models.columns import Table


class Subscription(Table, table=True):
    """A subscription to changes. For the options, see SubscriptionOptions in crawler/store/subscriptions.py.

    target: a URL, a command, or a reference to one of them.  secret: a reference, never the secret itself.
    position: the feed is read up to here.  failures: consecutive failures of the target.
    """

    __table_args__ = (
        CheckConstraint(
            "condition IN ('', 'appears', 'goes', 'below', 'above', 'differs')", name="subscription_condition"
        ),
        CheckConstraint(
            "(condition IN ('below', 'above', 'differs')) = (bound IS NOT NULL)", name="subscription_bound"
        ),
        CheckConstraint("position >= 0 AND failures >= 0", name="subscription_counts"),
        CheckConstraint("(paused_at IS NULL) = (pause_position IS NULL)", name="subscription_paused"),
        CheckConstraint("min_magnitude > 0 AND min_magnitude < 1", name="subscription_magnitude"),
        CheckConstraint("max_bytes > 0", name="subscription_size"),
    )
    id: int = columns.identity()
    target: str = columns.text()
    secret: str = columns.text(default="")
    signature: str = columns.text(default="")  # for a command: signature of the local user who set it
    allow_private: bool = columns.boolean()
    domain_id: int | None = columns.foreign_key("domain", nullable=True)
    tag: str | None = Field(sa_column=Column(Text, ForeignKey("tag.name"), nullable=True))  # of domains
    pattern: str = columns.text(default="")
    page: str = columns.text(default="")  # a URL
    prefix: str = columns.text(default="")  # of URLs
    min_magnitude: float | None = columns.double(nullable=True)  # of a change, 0 to 1
    kinds: list[str] = columns.text_array()
    place: str = columns.text(default="")
    condition: str = columns.text(default="")
    condition_text: str = columns.text(default="")
    bound: float | None = columns.double(nullable=True)
    value_name: str = columns.text(default="")  # only changes of the values with this name
    digest: str = columns.text(default="")
    quiet: str = columns.text(default="")
    zone: str = columns.text(default="UTC")
    created_at: datetime = columns.timestamptz()
    position: int = columns.bigint()
    failures: int = columns.integer(default="0")
    failing_since: datetime | None = columns.timestamptz(nullable=True)
    resume_at: datetime | None = columns.timestamptz(nullable=True)
    last_error: str = columns.text(default="")
    delivered: int = columns.bigint(default="0")  # changes
    delivered_at: datetime | None = columns.timestamptz(nullable=True)
    paused_at: datetime | None = columns.timestamptz(nullable=True)
    pause_position: int | None = columns.bigint(nullable=True)  # end of the feed when it was paused
    max_bytes: int = columns.integer(default="262144")  # maximum size of a message to a webhook or a program


class Message(Table, table=True):
    """A message that is not delivered yet; deleted on delivery. state: dead if it was given up.

    token: identifies it to the receiver over all tries.
    """

    __table_args__ = (
        CheckConstraint("state IN ('waiting', 'dead')", name="message_state"),
        Index("message_next", "subscription_id", "tries", "id", postgresql_where=sql("state = 'waiting'")),
    )
    id: int = columns.identity()
    subscription_id: int = columns.foreign_key("subscription")
    token: UUID = columns.uuid(unique=True)
    state: str = columns.text(default="waiting")
    created_at: datetime = columns.timestamptz()
    tries: int = columns.integer(default="0")
    next_try_at: datetime = columns.timestamptz()
    last_error: str = columns.text(default="")


class Notice(Table, table=True):
    """A pending notification: a change for one subscription, in no message yet or in one not delivered yet.

    position: of the change in the feed.  due_at: do not send before.  is_grouped: send together with others.
    """

    __table_args__ = (
        Index("notice_message", "message_id", "position"),
        Index("notice_page", "subscription_id", "domain_id", "key", "message_id"),
        Index("notice_due", "subscription_id", "due_at", postgresql_where=sql("message_id IS NULL")),
    )
    subscription_id: int = columns.foreign_key("subscription", key=True)
    position: int = columns.bigint(key=True)
    domain_id: int = columns.bigint()
    key: bytes = columns.bytea()
    due_at: datetime = columns.timestamptz()
    is_grouped: bool = columns.boolean()
    content: dict[str, Any] = columns.jsonb()
    message_id: int | None = columns.foreign_key("message", nullable=True)
