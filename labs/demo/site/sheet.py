"""A page of the living site with its whole history.

It is called a sheet, because a Page is what the crawler knows; a sheet is the truth.
"""

from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class SheetKind(StrEnum):
    """The kind of a sheet, which determines what its text looks like."""

    LISTING = "listing"
    PLAIN = "plain"
    ARTICLE = "article"
    PRODUCT = "product"
    NEWS = "news"
    TERM = "glossary"


class Behaviour(StrEnum):
    """How a sheet's content changes. Each sheet has exactly one behavior."""

    STEADY = "steady"  # never changes
    POISSON = "poisson"  # edited at random instants, at a known rate
    CLOCK = "clock"  # never changes, but its footer contains the time of the request
    LISTING = "listing"  # changes exactly when something that it lists appears
    VANISHING = "vanishing"  # 404 or 410 from a known instant on
    APPEARING = "appearing"  # linked and served from a known instant on; not there before
    MOVED = "moved"  # 301 to a new path from a known instant on


class Serving(StrEnum):
    """Which validators the server sends for versions of a sheet, and whether they are right."""

    BOTH = "both"  # ETag and Last-Modified
    ETAG = "etag"
    LAST_MODIFIED = "last_modified"
    NONE = "none"
    LIAR_FROZEN = "liar_frozen"  # always the first version's validators; 304 although the body has changed
    LIAR_NOW = "liar_now"  # Last-Modified is always now; never 304
    TOKEN = "token"  # noqa: S105 - no validators; a hidden form field differs in every response


LIARS = frozenset({Serving.LIAR_FROZEN, Serving.LIAR_NOW})


@dataclass(frozen=True, slots=True)
class Sheet:
    """The truth about one page, for all time.

    path: its first path.  written: instant of its first version.  changes: instants at which its content changes,
    ascending, in whole seconds, each later than written.  rate_per_day: the expected number of changes per day.
    since: when it appears; None: there from the beginning.  until: when it ends and responds with `ends_as`: 301, 404
    or 410.  broken: responds with 500 in [from, to).  lists: paths of the sheets that it lists, each from its `since`.
    links: paths linked in its text and beside it, even if they end.
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
        """Return how often the content has changed up to and including an instant."""
        return bisect_right(self.changes, at)

    def version_began(self, version: int) -> datetime:
        """Return when a version began; version 0 began with the sheet itself."""
        return self.changes[version - 1] if version else self.written

    def is_there(self, at: datetime) -> bool:
        """Return whether the sheet is served at its first path."""
        return (self.since is None or self.since <= at) and (self.until is None or at < self.until)

    def is_broken(self, at: datetime) -> bool:
        return self.broken is not None and self.broken[0] <= at < self.broken[1]
