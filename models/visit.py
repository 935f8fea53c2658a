"""Finished looks, append-only, partitioned by time so that retention is a DROP."""

from datetime import datetime

from sqlalchemy import Boolean, CheckConstraint, Column, DateTime
from sqlmodel import Field, SQLModel

from models.columns import big, count, domain_key, instant, octets, real, small, text


class VisitRow(SQLModel, table=True):
    """One look: what came, what it meant, what it cost, when next."""

    __tablename__ = "visit"
    __table_args__ = (
        CheckConstraint("answer IN ('fetched', 'not_modified', 'unreached')", name="visit_answer"),
        CheckConstraint(
            "change IN ('first', 'same', 'cosmetic', 'changed', 'moved', 'gone', 'back', 'unknown')",
            name="visit_change",
        ),
        CheckConstraint("cash >= 0", name="visit_cash"),
        {"postgresql_partition_by": "RANGE (at)"},
    )
    domain_id: int = Field(sa_column=domain_key())
    key: bytes = Field(sa_column=octets(key=True))
    at: datetime = Field(sa_column=Column(DateTime(timezone=True), primary_key=True))
    answer: str = Field(sa_column=text())
    status: int | None = Field(sa_column=small(nullable=True))
    reason: str = Field(sa_column=text(default=""))
    change: str = Field(sa_column=text())
    rung: str = Field(sa_column=text())
    distance_bits: int | None = Field(sa_column=small(nullable=True))
    conditional: bool = Field(default=False)
    requests: int = Field(sa_column=small())
    received_bytes: int = Field(sa_column=count())
    saved_bytes: int = Field(sa_column=count())
    elapsed_ms: int = Field(sa_column=count())
    cash: int = Field(sa_column=big(default="0"))
    expected: float | None = Field(sa_column=real(nullable=True))
    due_at: datetime | None = Field(sa_column=instant(nullable=True))
    price: float | None = Field(sa_column=real(nullable=True))
    audit: bool = Field(sa_column=Column(Boolean, nullable=False, server_default="false"))
    parts: str = Field(sa_column=text(default=""))
    rendering: str = Field(sa_column=text(default=""))  # why it was rendered, or was not, or what became of it
    added_words: int | None = Field(sa_column=count(nullable=True, default=None))  # by its scripts
    added_links: int | None = Field(sa_column=count(nullable=True, default=None))
    amount: float | None = Field(sa_column=real(nullable=True))  # of the change found: the part of the page, 0 to 1
