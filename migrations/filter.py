"""The filter for Alembic's comparison of the database with the models."""

from typing import Any

from models import metadata


def ours(_thing: Any, name: str | None, kind: str, reflected: bool, _against: Any) -> bool:  # noqa: FBT001
    """Return whether to compare an object. Tables that the models lack, such as partitions, are not compared."""
    return not (kind == "table" and reflected and name not in metadata.tables)
