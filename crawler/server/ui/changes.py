"""What changed, the newest first: of all domains or one, by kind, from any place on."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.app.changes import Database, EventKind, FeedItem, domain_named, names, newest_changes
from crawler.errors import BadInput
from crawler.format.kinds import NEWS

SHOWN = 25  # changes of one page of the list
SPANS = {  # as an address has them
    "1d": ("the last 24 hours", timedelta(days=1)),
    "7d": ("the last 7 days", timedelta(days=7)),
    "30d": ("the last 30 days", timedelta(days=30)),
}
NAMES = {
    EventKind.FIRST: "first seen",
    EventKind.CHANGED: "changed",
    EventKind.MOVED: "moved",
    EventKind.GONE: "gone",
    EventKind.REFUSED: "may not be fetched any more",
    EventKind.BACK: "back",
    EventKind.BOILERPLATE: "the site's frame changed",
    EventKind.HELD_BACK: "pages like it are put off",
    EventKind.LET_GO: "pages like it are asked for again",
    EventKind.HINT: "said to have changed",
}


@dataclass(frozen=True, slots=True)
class ChangesAsked:
    """The filter as it was typed. since: one of SPANS, or empty for all that is kept.

    before: the place after which to go on, as `more` of the page before has it.
    """

    domain: str = ""
    kinds: frozenset[EventKind] = NEWS
    since: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class ChangeFacts:
    """A page of the list. names: all domains to choose from.  more: the place from which to go on; empty at the end."""

    at: datetime
    asked: ChangesAsked
    names: tuple[str, ...]
    items: tuple[FeedItem, ...]
    more: str


async def change_facts(db: Database, asked: ChangesAsked, *, at: datetime, most: int = SHOWN) -> ChangeFacts:
    """The newest changes under a filter. Raises BadInput."""
    only = await domain_named(db, asked.domain) if asked.domain else None
    since = _begin(asked.since, at=at)
    before = _place(asked.before)
    items = await newest_changes(db, only=only, kinds=asked.kinds, since=since, before=before, most=most + 1, at=at)
    shown = items[:most]
    return ChangeFacts(
        at=at,
        asked=asked,
        names=tuple(sorted(await names(db))),
        items=tuple(shown),
        more=_typed(shown[-1]) if len(items) > most else "",
    )


def _begin(typed: str, *, at: datetime) -> datetime | None:
    """When the span that was asked for begins."""
    if not typed:
        return None
    if typed not in SPANS:
        raise BadInput(f"{typed[:40]!r} is no span of this list: choose among {', '.join(SPANS)}")
    return at - SPANS[typed][1]


def _typed(item: FeedItem) -> str:
    """A place in the list as an address has it."""
    at, position = item.place
    return f"{at.timestamp():.6f}_{position}"


def _place(typed: str) -> tuple[datetime, int] | None:
    if not typed:
        return None
    seconds, _, position = typed.partition("_")
    try:
        return datetime.fromtimestamp(float(seconds), UTC), int(position)
    except (ValueError, OverflowError, OSError) as error:
        raise BadInput(f"{typed[:40]!r} is no place in the list of changes") from error
