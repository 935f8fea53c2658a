"""Base classes of tables, and constructors for columns."""

import re
from functools import partial
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
    """A large table whose rows belong to a page. It has no foreign key to domain."""

    domain_id: int = Field(primary_key=True, sa_type=sa.BigInteger)
    key: bytes = Field(primary_key=True, sa_type=sa.LargeBinary)


def build_column(
    kind: Any, *, nullable: bool = False, key: bool = False, unique: bool | None = None, default: Any = None
) -> Any:
    """Return the field of a column. kind: the SQL type.  key: it is part of the primary key.  default: in SQL."""
    column = sa.Column(kind, nullable=nullable, primary_key=key, unique=unique, server_default=default)
    return Field(sa_column=column)


def _build_number(kind: Any, *, nullable: bool = False, key: bool = False, default: str | None = None) -> Any:
    """Return a numeric column whose default is a number in SQL rather than a string that Postgres converts."""
    number = None if default is None else sa.text(default)
    column = sa.Column(kind, nullable=nullable, primary_key=key, server_default=number, autoincrement=False)
    return Field(sa_column=column)


def _build_array(kind: Any) -> Any:
    return build_column(ARRAY(kind), default="{}")


timestamptz = partial(build_column, sa.DateTime(timezone=True))  # an instant with time zone
date = partial(build_column, sa.Date)
interval = partial(build_column, sa.Interval)
text = partial(build_column, sa.Text)  # of any length
boolean = partial(build_column, sa.Boolean, default="false")
jsonb = partial(build_column, JSONB)
bytea = partial(build_column, sa.LargeBinary)  # a page's key, a digest, a body
uuid = partial(build_column, sa.Uuid)
bigint = partial(_build_number, sa.BigInteger)
integer = partial(_build_number, sa.Integer, default="0")
smallint = partial(_build_number, sa.SmallInteger)
double = partial(_build_number, sa.Double)
# Arrays, empty by default.
timestamptz_array = partial(_build_array, sa.DateTime(timezone=True))
text_array = partial(_build_array, sa.Text)
integer_array = partial(_build_array, sa.Integer)
double_array = partial(_build_array, sa.Double)


def identity() -> Any:
    """Return a primary key that Postgres generates."""
    return Field(sa_column=sa.Column(sa.BigInteger, sa.Identity(always=True), primary_key=True))


def foreign_key(table: str, *, key: bool = False, nullable: bool = False) -> Any:
    """Return a foreign key to column id of a small table. Deleting the referenced row deletes this one."""
    target = sa.ForeignKey(f"{table}.id", ondelete="CASCADE")
    return Field(sa_column=sa.Column(sa.BigInteger, target, primary_key=key, nullable=nullable))
