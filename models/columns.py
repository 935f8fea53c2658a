"""The column types that every table shares."""

from typing import Any

from sqlalchemy import BigInteger, Column, DateTime, Double, ForeignKey, Integer, LargeBinary, SmallInteger, Text
from sqlalchemy import text as sql
from sqlalchemy.dialects.postgresql import ARRAY


def instant(*, nullable: bool = False) -> Any:
    """An aware instant."""
    return Column(DateTime(timezone=True), nullable=nullable)


def text(*, nullable: bool = False, default: str | None = None) -> Any:
    """Text of any length: a URL has no 255 characters' limit here."""
    return Column(Text, nullable=nullable, server_default=default)


def texts() -> Any:
    """A list of texts, empty by default."""
    return Column(ARRAY(Text), nullable=False, server_default="{}")


def counts() -> Any:
    """A list of numbers of 32 bits, empty by default."""
    return Column(ARRAY(Integer), nullable=False, server_default="{}")


def octets(*, nullable: bool = False, key: bool = False, default: str | None = None) -> Any:
    """Bytes: a page's key, a digest, a body."""
    return Column(LargeBinary, nullable=nullable, primary_key=key, server_default=default)


def big(*, nullable: bool = False, key: bool = False, default: str | None = None) -> Any:
    """64 bits."""
    counted: Any = False if key else "auto"
    return Column(
        BigInteger, nullable=nullable, primary_key=key, server_default=_number(default), autoincrement=counted
    )


def count(*, nullable: bool = False, default: str | None = "0") -> Any:
    """32 bits, from nothing upwards."""
    return Column(Integer, nullable=nullable, server_default=_number(default))


def small(*, nullable: bool = False, key: bool = False, default: str | None = None) -> Any:
    """16 bits."""
    counted: Any = False if key else "auto"
    return Column(
        SmallInteger, nullable=nullable, primary_key=key, server_default=_number(default), autoincrement=counted
    )


def instants() -> Any:
    """A list of instants, empty by default."""
    return Column(ARRAY(DateTime(timezone=True)), nullable=False, server_default="{}")


def reals() -> Any:
    """A list of doubles, empty by default."""
    return Column(ARRAY(Double), nullable=False, server_default="{}")


def real(*, nullable: bool = False, default: str | None = None) -> Any:
    """A double."""
    return Column(Double, nullable=nullable, server_default=_number(default))


def domain_key(*, key: bool = True) -> Any:
    """The domain that a row belongs to; rows of big tables carry no foreign key, they live and die with a partition."""
    return Column(BigInteger, primary_key=key, nullable=False, autoincrement=False)


def domain_reference(*, key: bool = True) -> Any:
    """The domain of a row of a small table, as a foreign key: removing the domain removes the row."""
    return Column(
        BigInteger, ForeignKey("domain.id", ondelete="CASCADE"), primary_key=key, nullable=False, autoincrement=False
    )


def _number(default: str | None) -> Any:
    """A number as SQL has it, not as a text that Postgres has to convert."""
    return None if default is None else sql(default)
