"""What tables share: how they are named, the columns that begin them, and the types of columns."""

import re
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import declared_attr
from sqlmodel import Field, SQLModel


class Table(SQLModel):
    """A table that has the name of its class: `PageLinks` is page_links."""

    @declared_attr.directive
    def __tablename__(cls) -> str:  # noqa: N805  SQLAlchemy calls it with the class
        return re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()


class DomainTable(Table):
    """A small table, whose rows belong to a domain and are removed with it."""

    domain_id: int = Field(primary_key=True, sa_type=sa.BigInteger, foreign_key="domain.id", ondelete="CASCADE")


class PageTable(Table):
    """A large table with rows of pages; they carry no foreign key, they live and die with a partition."""

    domain_id: int = Field(primary_key=True, sa_type=sa.BigInteger)
    key: bytes = Field(primary_key=True, sa_type=sa.LargeBinary)


def timestamptz(*, nullable: bool = False, key: bool = False) -> Any:
    """An aware instant."""
    return sa.Column(sa.DateTime(timezone=True), nullable=nullable, primary_key=key)


def timestamptz_array() -> Any:
    """A list of instants, empty by default."""
    return sa.Column(ARRAY(sa.DateTime(timezone=True)), nullable=False, server_default="{}")


def text(*, nullable: bool = False, key: bool = False, default: str | None = None) -> Any:
    """Text of any length: a URL has no 255 characters' limit here."""
    return sa.Column(sa.Text, nullable=nullable, primary_key=key, server_default=default)


def text_array() -> Any:
    """A list of texts, empty by default."""
    return sa.Column(ARRAY(sa.Text), nullable=False, server_default="{}")


def boolean(*, default: str = "false") -> Any:
    """True or false."""
    return sa.Column(sa.Boolean, nullable=False, server_default=default)


def jsonb(*, nullable: bool = False, default: str | None = None) -> Any:
    """A value as JSON."""
    return sa.Column(JSONB, nullable=nullable, server_default=default)


def bytea(*, nullable: bool = False, key: bool = False, default: str | None = None) -> Any:
    """Bytes: a page's key, a digest, a body."""
    return sa.Column(sa.LargeBinary, nullable=nullable, primary_key=key, server_default=default)


def bigint(*, nullable: bool = False, key: bool = False, default: str | None = None) -> Any:
    """64 bits."""
    return _build_number_column(sa.BigInteger, nullable=nullable, key=key, default=default)


def integer(*, nullable: bool = False, key: bool = False, default: str | None = "0") -> Any:
    """32 bits, from nothing upwards."""
    return _build_number_column(sa.Integer, nullable=nullable, key=key, default=default)


def integer_array() -> Any:
    """A list of numbers of 32 bits, empty by default."""
    return sa.Column(ARRAY(sa.Integer), nullable=False, server_default="{}")


def smallint(*, nullable: bool = False, key: bool = False, default: str | None = None) -> Any:
    """16 bits."""
    return _build_number_column(sa.SmallInteger, nullable=nullable, key=key, default=default)


def double(*, nullable: bool = False, default: str | None = None) -> Any:
    """A double."""
    return _build_number_column(sa.Double, nullable=nullable, default=default)


def double_array() -> Any:
    """A list of doubles, empty by default."""
    return sa.Column(ARRAY(sa.Double), nullable=False, server_default="{}")


def identity() -> Any:
    """A number that Postgres gives each row."""
    return sa.Column(sa.BigInteger, sa.Identity(always=True), primary_key=True)


def foreign_key(table: str, *, key: bool = False, nullable: bool = False) -> Any:
    """A row of another small table, as a foreign key: removing it removes this row."""
    target = sa.ForeignKey(f"{table}.id", ondelete="CASCADE")
    return sa.Column(sa.BigInteger, target, primary_key=key, nullable=nullable)


def _build_number_column(kind: Any, *, nullable: bool, default: str | None, key: bool = False) -> Any:
    """Return the column of a number, whose default is one in SQL, not a text that Postgres has to convert."""
    number = None if default is None else sa.text(default)
    return sa.Column(kind, nullable=nullable, primary_key=key, server_default=number, autoincrement=False)
