"""What of a database counts as our schema."""

from typing import Any

from models import metadata


def ours(_thing: Any, name: str | None, kind: str, reflected: bool, _against: Any) -> bool:  # noqa: FBT001
    """Partitions are storage, not schema: only their parents are compared with the models."""
    return not (kind == "table" and reflected and name not in metadata.tables)
