"""Statistics about the blocks of a domain in second fetches, and about numbers over time."""

from dataclasses import dataclass, replace

from crawler.core.http.urls import PageKey

# Second fetches in which a path may be stable for each in which it differed as a whole: of a few banners in rotation,
# two can be equal. A fetch in which only some of its blocks differed counts twice, because the other blocks are the
# page's own.
UNSTABLE_FACTOR = 2
MIXED_FACTOR = 2
# Second fetches in which a path differed as a whole, and their pages, before it is unstable: one bad fetch proves
# nothing.
ENOUGH_UNSTABLE = 3
ENOUGH_PAGES = 2
# Second fetches in which texts appeared or disappeared at a path: a single text may have been edited in between.
ENOUGH_DIFFERED = 2


@dataclass(frozen=True, slots=True)
class PathStats:
    """The second fetches that found a path, by outcome.

    steady: no block differed.  unstable: most blocks differed.  mixed: some blocks differed.
    pages: the first pages on which the path was unstable.
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
        """Return whether all texts at the path appear and disappear, and often enough."""
        return self.is_volatile and not self.mixed and self.steady < STEADY * self.unstable

    @property
    def is_unstable(self) -> bool:
        """Return whether the path differs from fetch to fetch, as enough second fetches on several pages showed."""
        is_proven = self.unstable >= ENOUGH_UNSTABLE and len(self.pages) >= ENOUGH_PAGES
        return is_proven and UNSTABLE_FACTOR * self.unstable > self.steady + MIXED_FACTOR * self.mixed


@dataclass(frozen=True, slots=True)
class ShapeStats:
    """The second fetches that found blocks of one path and number of words.

    steady: how many in a row showed no difference.  changes: significant changes since the last second fetch.
    """

    steady: int = 0
    changes: int = 0


@dataclass(frozen=True, slots=True)
class CounterStats:
    """How well numbers with one path and context matched the elapsed time since their last mismatch.

    agreements: the number of matches.  units: indices into relative_time.UNITS_S that match all of them.
    growths: the first different growths above 1.  fast_pages: the first pages whose number grew by more than 1.
    slow_pages: pages whose number grew by 1, as is usual with daily visits.
    misses: the number of mismatches ever.
    """

    agreements: int = 0
    units: frozenset[int] = frozenset()
    growths: frozenset[int] = frozenset()
    fast_pages: tuple[PageKey, ...] = ()
    slow_pages: tuple[PageKey, ...] = ()
    misses: int = 0


@dataclass(frozen=True, slots=True)
class StampStats:
    """The visits where only a stamp of one position and form differed, since its last mismatch.

    matches: how often it matched.  misses: the number of mismatches ever.
    """

    matches: int = 0
    misses: int = 0


ENOUGH_DIFFERENCES = 2  # second fetches; a text that differed in one may have been edited in between
MAX_DIFFERENCES = 8
STEADY = 4  # second fetches in a row without a difference, for each with one, that end the proof


@dataclass(frozen=True, slots=True)
class VolatilityCount:
    """A count of second fetches.

    differences: how many showed a difference, at most MAX_DIFFERENCES.  steady: how many since then did not.
    """

    differences: int = 0
    steady: int = 0

    @property
    def is_proven(self) -> bool:
        """Return whether the count proves volatility."""
        return self.differences >= ENOUGH_DIFFERENCES

    def add_fetch(self, *, differed: bool) -> "VolatilityCount":
        """Return the count after one more second fetch; zero after enough of them without a difference."""
        if differed:
            return VolatilityCount(min(self.differences + 1, MAX_DIFFERENCES))
        steady = self.steady + 1
        return VolatilityCount(self.differences, steady) if steady < STEADY * self.differences else VolatilityCount()


UNPROVEN = VolatilityCount()

PROVEN = VolatilityCount(ENOUGH_DIFFERENCES)
