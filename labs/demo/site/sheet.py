"""One page of the living site and everything that will ever happen to it.

Called a sheet, because a Page is what the crawler knows; a sheet is what is true.
"""

from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class SheetKind(StrEnum):
    """What a sheet is for; decides what its text looks like."""

    HOME = "home"
    LISTING = "listing"
    PLAIN = "plain"
    ARTICLE = "article"
    PRODUCT = "product"
    NEWS = "news"
    TERM = "glossary"


class Behaviour(StrEnum):
    """How a sheet's content moves. Exactly one per sheet."""

    STEADY = "steady"  # never changes
    POISSON = "poisson"  # edited at random instants, at a known rate
    CLOCK = "clock"  # never changes, but its footer tells the time of the request
    LISTING = "listing"  # changes exactly when something it lists appears
    VANISHING = "vanishing"  # 404 or 410 from a known instant on
    APPEARING = "appearing"  # linked and served from a known instant on; not there before
    MOVED = "moved"  # 301 to a new path from a known instant on


class Serving(StrEnum):
    """What the server says about versions of a sheet, and whether it is true."""

    BOTH = "both"  # ETag and Last-Modified
    ETAG = "etag"
    LAST_MODIFIED = "last_modified"
    NONE = "none"
    LIAR_FROZEN = "liar_frozen"  # the first version's validators for ever; 304 although the body has changed
    LIAR_NOW = "liar_now"  # Last-Modified is always now; never 304
    TOKEN = "token"  # noqa: S105 - no validators; a hidden form field differs in every answer


LIARS = frozenset({Serving.LIAR_FROZEN, Serving.LIAR_NOW})


@dataclass(frozen=True, slots=True)
class Sheet:
    """What is true of one page, for all time.

    path: where it first stands.  written: instant of its first version.  changes: instants at which its content
    changes, ascending, whole seconds, each later than written.  rate_per_day: the expected number of them.
    since: not there before; None: from the beginning.  until: no longer there from then on, but `ends_as` a 301, 404
    or 410.  broken: answers 500 in [from, to).  lists: paths of the sheets that it shows, each from its own since on.
    links: paths in its text and beside it, whatever becomes of them.
    """

    path: str
    kind: SheetKind
    title: str
    topic: str
    behaviour: Behaviour
    serving: Serving
    written: datetime
    changes: tuple[datetime, ...] = ()
    rate_per_day: float = 0.0
    since: datetime | None = None
    until: datetime | None = None
    ends_as: int = 404
    moves_to: str | None = None
    broken: tuple[datetime, datetime] | None = None
    lists: tuple[str, ...] = ()
    links: tuple[str, ...] = ()

    def version(self, at: datetime) -> int:
        """How often the content has changed up to and including an instant."""
        return bisect_right(self.changes, at)

    def version_began(self, version: int) -> datetime:
        """When a version came to be; version 0 with the sheet itself."""
        return self.changes[version - 1] if version else self.written

    def is_there(self, at: datetime) -> bool:
        """Whether the sheet is served from its first path."""
        return (self.since is None or self.since <= at) and (self.until is None or at < self.until)

    def is_broken(self, at: datetime) -> bool:
        return self.broken is not None and self.broken[0] <= at < self.broken[1]
