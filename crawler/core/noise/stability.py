"""Statistics about the blocks of a domain in second fetches, and about numbers over time."""

from msgspec import Struct
from msgspec.structs import replace

from crawler.core.http.urls import PageKey

# A path is unstable if it was steady in fewer than this many second fetches per one in which most of its blocks
# differed: of a few banners in rotation, two can be equal.
UNSTABLE_FACTOR = 2
# A second fetch in which only some of a path's blocks differed counts as this many steady ones: the others are content.
MIXED_FACTOR = 2
ENOUGH_UNSTABLE = 3  # second fetches in which most blocks of a path differed, before it is unstable
ENOUGH_PAGES = 2  # distinct pages of these fetches: one bad response proves nothing
# Second fetches in which texts appeared or disappeared at a path: a single text may have been edited in between.
ENOUGH_DIFFERED = 2


class PathStats(Struct, frozen=True):
    """The second fetches of pages with a path, by how many blocks of that path differed in more than some words.

    steady: none did.  unstable: most did.  mixed: some did.
    pages: the first pages on which most did, at most ENOUGH_PAGES.
    """

    steady: int = 0
    unstable: int = 0
    mixed: int = 0
    pages: tuple[PageKey, ...] = ()

    def add_unstable(self, page: PageKey) -> "PathStats":
        """Return the stats after one more second fetch in which most blocks of the path differed."""
        pages = self.pages if page in self.pages else (*self.pages, page)[:ENOUGH_PAGES]
        return replace(self, unstable=self.unstable + 1, pages=pages)

    @property
    def is_volatile(self) -> bool:
        """Return whether texts appear and disappear at the path within seconds, as several second fetches showed."""
        return self.unstable + self.mixed >= ENOUGH_DIFFERED

    @property
    def is_alternating(self) -> bool:
        """Return whether several second fetches replaced most texts at the path, and none replaced only some."""
        return self.is_volatile and not self.mixed and self.steady < STEADY * self.unstable

    @property
    def is_unstable(self) -> bool:
        """Return whether most blocks of the path differ from fetch to fetch, as enough second fetches showed."""
        is_proven = self.unstable >= ENOUGH_UNSTABLE and len(self.pages) >= ENOUGH_PAGES
        return is_proven and UNSTABLE_FACTOR * self.unstable > self.steady + MIXED_FACTOR * self.mixed


class ShapeStats(Struct, frozen=True):
    """The second fetches that found blocks of one path, kind and number of words (the shape).

    steady: the number of fetches in a row without a difference.
    changes: the number of significant changes since the last second fetch.
    """

    steady: int = 0
    changes: int = 0


class CounterStats(Struct, frozen=True):
    """How often numbers with one path and context grew by the elapsed time (a match), since their last mismatch.

    agreements: the number of matches.  units: the time units that fit all of them, as indices of relative_time.UNITS_S.
    growths: different growths above 1.  fast_pages: the first pages whose number grew by more than 1.
    slow_pages: pages whose number grew by 1, as is usual with daily visits.
    misses: the number of all mismatches.
    """

    agreements: int = 0
    units: frozenset[int] = frozenset()
    growths: frozenset[int] = frozenset()
    fast_pages: tuple[PageKey, ...] = ()
    slow_pages: tuple[PageKey, ...] = ()
    misses: int = 0


class StampStats(Struct, frozen=True):
    """The visits where a stamp of one position and form differed.

    matches: how often it matched the time of the visit since the last mismatch.  misses: the number of all mismatches.
    """

    matches: int = 0
    misses: int = 0


ENOUGH_DIFFERENCES = 2  # second fetches; a text that differed in one may have been edited in between
MAX_DIFFERENCES = 8  # second fetches with a difference that are counted; more of them add nothing
# A proof ends after this many second fetches in a row without a difference, for each second fetch with one.
STEADY = 4


class VolatilityCount(Struct, frozen=True):
    """The second fetches that tested whether one thing, such as a block, is volatile.

    differences: how many showed a difference, at most MAX_DIFFERENCES.  steady: how many since then did not.
    """

    differences: int = 0
    steady: int = 0

    @property
    def is_proven(self) -> bool:
        """Return whether enough fetches showed a difference."""
        return self.differences >= ENOUGH_DIFFERENCES

    def add_fetch(self, *, differed: bool) -> "VolatilityCount":
        """Return the count after one more second fetch; zero after enough of them without a difference."""
        if differed:
            return VolatilityCount(min(self.differences + 1, MAX_DIFFERENCES))
        steady = self.steady + 1
        return VolatilityCount(self.differences, steady) if steady < STEADY * self.differences else VolatilityCount()


UNPROVEN = VolatilityCount()

PROVEN = VolatilityCount(ENOUGH_DIFFERENCES)
