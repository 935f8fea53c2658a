"""Kinds of changes, as the user gives them."""

from crawler.errors import BadInput
from crawler.store.report import EventKind

NEWS = frozenset(EventKind) - {EventKind.ADDED, EventKind.HINT}  # shown by default


def parse_kinds(text: str) -> frozenset[EventKind]:
    """Parse a comma-separated list of kinds, such as changed,gone. Raises BadInput."""
    names = {name.strip().lower() for name in text.split(",")} - {""}
    unknown = sorted(names - set(EventKind))
    if not names:
        raise BadInput(f"choose at least one kind of change: {', '.join(EventKind)}")
    if unknown:
        raise BadInput(f"{unknown[0]!r} is not a kind of change: use {', '.join(EventKind)}")
    return frozenset(map(EventKind, names))
