"""The kinds of changes, as people say them."""

from crawler.errors import BadInput
from crawler.store.report import EventKind

KINDS = {
    "new": EventKind.FIRST,
    "changed": EventKind.CHANGED,
    "moved": EventKind.MOVED,
    "gone": EventKind.GONE,
    "refused": EventKind.REFUSED,
    "back": EventKind.BACK,
    "site": EventKind.BOILERPLATE,
    "held-back": EventKind.HELD_BACK,
    "let-go": EventKind.LET_GO,
    "hint": EventKind.HINT,
}
KIND_WORDS = {kind: name.replace("-", " ") for name, kind in KINDS.items()}
NEWS = frozenset(KINDS.values()) - {EventKind.FIRST, EventKind.HINT}  # what people are shown unless they ask for others


def format_kind(kind: EventKind) -> str:
    """A kind as people type it."""
    return KIND_WORDS[kind].replace(" ", "-")


def parse_kinds(text: str) -> frozenset[EventKind]:
    """The kinds in a list with commas, such as changed,gone. Raises BadInput."""
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    unknown = next((name for name in names if name not in KINDS), None)
    if unknown is not None or not names:
        raise BadInput(f"{unknown or text!r} is no kind of change; there are {', '.join(KINDS)}")
    return frozenset(KINDS[name] for name in names)
