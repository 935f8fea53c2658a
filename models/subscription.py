"""Who is told of changes, what waits to be told, and the messages that carry it. No secret stands here."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, Column, Index
from sqlalchemy import text as sql
from sqlalchemy.types import Uuid
from sqlmodel import Field

from models.columns import Table, big, count, document, flag, identity, instant, octets, real, reference, text, texts


class Subscription(Table, table=True):
    """A wish to be told of changes. target, secret: where secrets stand, never what they are.

    position: of the feed, up to which it was read.  failures: of its target, in a row.
    """

    __table_args__ = (
        CheckConstraint("condition IN ('', 'appears', 'goes', 'below', 'above')", name="subscription_condition"),
        CheckConstraint("(condition IN ('below', 'above')) = (bound IS NOT NULL)", name="subscription_bound"),
        CheckConstraint("position >= 0 AND failures >= 0", name="subscription_counts"),
        CheckConstraint("(paused_at IS NULL) = (pause_position IS NULL)", name="subscription_paused"),
        CheckConstraint("most_bytes > 0", name="subscription_size"),
    )
    id: int = Field(sa_column=identity())
    target: str = Field(sa_column=text())
    secret: str = Field(sa_column=text(default=""))
    seal: str = Field(sa_column=text(default=""))  # of a command: the proof that this machine's user has set it
    allow_private: bool = Field(sa_column=flag())
    domain_id: int | None = Field(sa_column=reference("domain", nullable=True))
    pattern: str = Field(sa_column=text(default=""))
    kinds: list[str] = Field(sa_column=texts())
    place: str = Field(sa_column=text(default=""))
    condition: str = Field(sa_column=text(default=""))
    condition_text: str = Field(sa_column=text(default=""))
    bound: float | None = Field(sa_column=real(nullable=True))
    digest: str = Field(sa_column=text(default=""))
    quiet: str = Field(sa_column=text(default=""))
    zone: str = Field(sa_column=text(default="UTC"))
    made_at: datetime = Field(sa_column=instant())
    position: int = Field(sa_column=big())
    failures: int = Field(sa_column=count(default="0"))
    failing_since: datetime | None = Field(sa_column=instant(nullable=True))
    resume_at: datetime | None = Field(sa_column=instant(nullable=True))
    last_error: str = Field(sa_column=text(default=""))
    delivered: int = Field(sa_column=big(default="0"))  # changes
    delivered_at: datetime | None = Field(sa_column=instant(nullable=True))
    paused_at: datetime | None = Field(sa_column=instant(nullable=True))
    pause_position: int | None = Field(sa_column=big(nullable=True))  # where the feed ended then
    most_bytes: int = Field(sa_column=count(default="262144"))  # of a message to a webhook or a program


class Message(Table, table=True):
    """One message on its way, gone when it was taken. token: what a receiver knows it by, however often it comes."""

    __table_args__ = (
        CheckConstraint("state IN ('waiting', 'dead')", name="message_state"),
        Index("message_next", "subscription_id", "tries", "id", postgresql_where=sql("state = 'waiting'")),
    )
    id: int = Field(sa_column=identity())
    subscription_id: int = Field(sa_column=reference("subscription"))
    token: UUID = Field(sa_column=Column(Uuid, nullable=False, unique=True))
    state: str = Field(sa_column=text(default="waiting"))
    made_at: datetime = Field(sa_column=instant())
    tries: int = Field(sa_column=count(default="0"))
    next_try_at: datetime = Field(sa_column=instant())
    last_error: str = Field(sa_column=text(default=""))


class Notice(Table, table=True):
    """One change that is to be told to one subscriber: in no message yet, or in one that was not taken yet."""

    __table_args__ = (
        Index("notice_message", "message_id", "position"),
        Index("notice_page", "subscription_id", "domain_id", "key", "message_id"),
        Index("notice_due", "subscription_id", "due_at", postgresql_where=sql("message_id IS NULL")),
    )
    subscription_id: int = Field(sa_column=reference("subscription", key=True))
    position: int = Field(sa_column=big(key=True))
    domain_id: int = Field(sa_column=big())
    key: bytes = Field(sa_column=octets())
    due_at: datetime = Field(sa_column=instant())
    is_grouped: bool = Field(sa_column=flag())
    content: dict[str, Any] = Field(sa_column=document())
    message_id: int | None = Field(sa_column=reference("message", nullable=True))
