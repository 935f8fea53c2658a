"""Base classes of tables, and constructors for columns."""

import re
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import declared_attr
from sqlmodel import Field, SQLModel


class Table(SQLModel):
    """A table named after its class: `PageLinks` is page_links."""

    @declared_attr.directive
    def __tablename__(cls) -> str:  # noqa: N805  SQLAlchemy calls it with the class
        return re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()


class DomainTable(Table):
    """A small table whose rows belong to a domain and are deleted with it."""

    domain_id: int = Field(primary_key=True, sa_type=sa.BigInteger, foreign_key="domain.id", ondelete="CASCADE")


class PageTable(Table):
    """A large table with a row for each page, without a foreign key to domain."""

    domain_id: int = Field(primary_key=True, sa_type=sa.BigInteger)
    key: bytes = Field(primary_key=True, sa_type=sa.LargeBinary)


def timestamptz(*, nullable: bool = False, key: bool = False) -> Any:
    """Return a column of an instant with time zone."""
    return sa.Column(sa.DateTime(timezone=True), nullable=nullable, primary_key=key)


def timestamptz_array() -> Any:
    """Return a column of an array of instants, empty by default."""
    return sa.Column(ARRAY(sa.DateTime(timezone=True)), nullable=False, server_default="{}")


def text(*, nullable: bool = False, key: bool = False, default: str | None = None) -> Any:
    """Return a text column of any length."""
    return sa.Column(sa.Text, nullable=nullable, primary_key=key, server_default=default)


def text_array() -> Any:
    """Return a column of an array of texts, empty by default."""
    return sa.Column(ARRAY(sa.Text), nullable=False, server_default="{}")


def boolean(*, default: str = "false") -> Any:
    """Return a boolean column."""
    return sa.Column(sa.Boolean, nullable=False, server_default=default)


def jsonb(*, nullable: bool = False, default: str | None = None) -> Any:
    """Return a JSONB column."""
    return sa.Column(JSONB, nullable=nullable, server_default=default)


def bytea(*, nullable: bool = False, key: bool = False, default: str | None = None) -> Any:
    """Return a column of bytes: a page's key, a digest, a body."""
    return sa.Column(sa.LargeBinary, nullable=nullable, primary_key=key, server_default=default)


def bigint(*, nullable: bool = False, key: bool = False, default: str | None = None) -> Any:
    """Return a column of 64-bit integers."""
    return _build_number_column(sa.BigInteger, nullable=nullable, key=key, default=default)


def integer(*, nullable: bool = False, key: bool = False, default: str | None = "0") -> Any:
    """Return a column of 32-bit integers, 0 by default."""
    return _build_number_column(sa.Integer, nullable=nullable, key=key, default=default)


def integer_array() -> Any:
    """Return a column of an array of 32-bit integers, empty by default."""
    return sa.Column(ARRAY(sa.Integer), nullable=False, server_default="{}")


def smallint(*, nullable: bool = False, key: bool = False, default: str | None = None) -> Any:
    """Return a column of 16-bit integers."""
    return _build_number_column(sa.SmallInteger, nullable=nullable, key=key, default=default)


def double(*, nullable: bool = False, default: str | None = None) -> Any:
    """Return a column of doubles."""
    return _build_number_column(sa.Double, nullable=nullable, default=default)


def double_array() -> Any:
    """Return a column of an array of doubles, empty by default."""
    return sa.Column(ARRAY(sa.Double), nullable=False, server_default="{}")


def identity() -> Any:
    """Return a primary key that Postgres generates."""
    return sa.Column(sa.BigInteger, sa.Identity(always=True), primary_key=True)


def foreign_key(table: str, *, key: bool = False, nullable: bool = False) -> Any:
    """Return a foreign key to column id of a small table. Deleting the referenced row deletes this one."""
    target = sa.ForeignKey(f"{table}.id", ondelete="CASCADE")
    return sa.Column(sa.BigInteger, target, primary_key=key, nullable=nullable)


def _build_number_column(kind: Any, *, nullable: bool, default: str | None, key: bool = False) -> Any:
    """Return a numeric column whose default is a number in SQL rather than a string that Postgres converts."""
    number = None if default is None else sa.text(default)
    return sa.Column(kind, nullable=nullable, primary_key=key, server_default=number, autoincrement=False)
