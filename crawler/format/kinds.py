"""The kinds of changes, as people say them."""

from crawler.errors import BadInput
from crawler.store.report import EventKind

NEWS = frozenset(EventKind) - {EventKind.ADDED, EventKind.HINT}  # what people are shown unless they ask for others


def parse_kinds(text: str) -> frozenset[EventKind]:
    """The kinds in a list with commas, such as changed,gone. Raises BadInput."""
    names = {name.strip().lower() for name in text.split(",")} - {""}
    unknown = sorted(names - set(EventKind))
    if unknown or not names:
        raise BadInput(f"{(unknown or [text])[0]!r} is no kind of change; there are {', '.join(EventKind)}")
    return frozenset(map(EventKind, names))
