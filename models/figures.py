"""Figures of a domain that take long to count: kept for whoever looks at a large one, with when they were counted."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import CheckConstraint, Column, Interval
from sqlmodel import Field

from models.columns import DomainTable, big, document, instant, octets, real, small, text


def span() -> Any:
    """A length of time, where there is one."""
    return Column(Interval, nullable=True)


class DomainFigures(DomainTable, table=True):
    """Counts and freshness of all pages of a domain. alike: groups of near-duplicates; null where not looked for."""

    counted_at: datetime = Field(sa_column=instant())
    new: int = Field(sa_column=big(default="0"))
    held_back: int = Field(sa_column=big(default="0"))
    known: int = Field(sa_column=big(default="0"))
    gone: int = Field(sa_column=big(default="0"))
    dead_links: int = Field(sa_column=big(default="0"))
    moved: int = Field(sa_column=big(default="0"))
    refused: int = Field(sa_column=big(default="0"))
    withheld: int = Field(sa_column=big(default="0"))
    freshness: float | None = Field(sa_column=real(nullable=True))
    freshness_plain: float | None = Field(sa_column=real(nullable=True))
    oldest_look_at: datetime | None = Field(sa_column=instant(nullable=True))
    alike: list[Any] | None = Field(sa_column=document(nullable=True))


class FreshnessFigures(DomainTable, table=True):
    """Freshness, ages and intervals of a part of a domain's pages: all, those of a template or of a decile.

    template: empty but for a template's row.  decile: of importance, 1 to 10; 0 but for a decile's row.
    """

    __table_args__ = (
        CheckConstraint("grouped_by IN ('domain', 'template', 'decile')", name="freshness_figures_group"),
    )
    grouped_by: str = Field(sa_column=text(key=True))
    template: str = Field(sa_column=text(key=True))
    decile: int = Field(sa_column=small(key=True))
    pages: int = Field(sa_column=big())
    freshness: float | None = Field(sa_column=real(nullable=True))
    freshness_plain: float | None = Field(sa_column=real(nullable=True))
    mean_age: timedelta | None = Field(sa_column=span())
    oldest_age: timedelta | None = Field(sa_column=span())
    shortest_interval: timedelta | None = Field(sa_column=span())
    mean_interval: timedelta | None = Field(sa_column=span())
    longest_interval: timedelta | None = Field(sa_column=span())


class TopPage(DomainTable, table=True):
    """The most important pages of a domain, by what they are asked for. ranking: a state, or all, failing, rendered."""

    ranking: str = Field(sa_column=text(key=True))
    place: int = Field(sa_column=small(key=True))
    key: bytes = Field(sa_column=octets())
