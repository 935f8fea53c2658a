"""Statistics of how blocks of a domain behaved in second fetches, and numbers over time."""

from dataclasses import dataclass, replace

from crawler.core.http.urls import PageKey

# Second fetches in which a path may stand still for each in which it differed as a whole: of a few banners in turn two
# can be equal. A fetch in which only some of its blocks differed counts twice: the other blocks are the page's own.
UNSTABLE_FACTOR = 2
MIXED_FACTOR = 2
# Second fetches in which a path differed as a whole, and their pages, before it swings: one bad fetch is no proof.
ENOUGH_UNSTABLE = 3
ENOUGH_PAGES = 2
# Second fetches in which texts came or went at a path: a single text may have been edited between two fetches.
ENOUGH_DIFFERED = 2


@dataclass(frozen=True, slots=True)
class PathStats:
    """Second fetches that met a path, by outcome. steady: all its blocks stood still.  unstable: most of them differed.

    mixed: some of them differed.  pages: the first few pages on which it swung.
    """

    steady: int = 0
    unstable: int = 0
    mixed: int = 0
    pages: tuple[PageKey, ...] = ()

    def add_unstable(self, page: PageKey) -> "PathStats":
        """The stats after one more second fetch in which most blocks of the path differed."""
        pages = self.pages if page in self.pages else (*self.pages, page)[:ENOUGH_PAGES]
        return replace(self, unstable=self.unstable + 1, pages=pages)

    @property
    def is_volatile(self) -> bool:
        """Whether texts come and go at the path within seconds, as more than one second fetch has shown."""
        return self.unstable + self.mixed >= ENOUGH_DIFFERED

    @property
    def is_alternating(self) -> bool:
        """Whether all texts at the path come and go, and not too seldom."""
        return self.is_volatile and not self.mixed and self.steady < STEADY * self.unstable

    @property
    def is_unstable(self) -> bool:
        """Whether the path differs from fetch to fetch, as enough second fetches on several pages have shown."""
        is_proven = self.unstable >= ENOUGH_UNSTABLE and len(self.pages) >= ENOUGH_PAGES
        return is_proven and UNSTABLE_FACTOR * self.unstable > self.steady + MIXED_FACTOR * self.mixed


@dataclass(frozen=True, slots=True)
class ShapeStats:
    """Second fetches that met blocks of one path and number of words. steady: all stood still in so many in a row.

    changes: significant changes found there since the last second fetch.
    """

    steady: int = 0
    changes: int = 0


@dataclass(frozen=True, slots=True)
class CounterStats:
    """Agreement of numbers with one path and context with the time that passed, since they last disagreed.

    agreements: how often they agreed.  units: indices into relative_time.UNITS_S by which all of them agreed.
    growths: the first few different growths above 1.  fast_pages: the first few whose number grew by more than 1.
    slow_pages: pages whose number grew by 1, as most do that are looked at daily.
    misses: how often the numbers ever disagreed.
    """

    agreements: int = 0
    units: frozenset[int] = frozenset()
    growths: frozenset[int] = frozenset()
    fast_pages: tuple[PageKey, ...] = ()
    slow_pages: tuple[PageKey, ...] = ()
    misses: int = 0


@dataclass(frozen=True, slots=True)
class StampStats:
    """Looks at which a stamp of one place and form was all that differed of a page, and fitted, since it last did not.

    matches: how often it did.  misses: how often it ever did not.
    """

    matches: int = 0
    misses: int = 0


ENOUGH_DIFFERENCES = 2  # second fetches; a text that differed in one may have been edited between the two fetches
MAX_DIFFERENCES = 8
STEADY = 4  # second fetches in a row without a difference, for each with one, that end the proof


@dataclass(frozen=True, slots=True)
class VolatilityCount:
    """A count of second fetches.

    differences: how many showed a difference, 8 at most.  steady: how many since did not.
    """

    differences: int = 0
    steady: int = 0

    @property
    def is_proven(self) -> bool:
        """Whether the count proves volatility."""
        return self.differences >= ENOUGH_DIFFERENCES

    def add_fetch(self, *, differed: bool) -> "VolatilityCount":
        """The count after one more second fetch; back to zero after standing still for long enough."""
        if differed:
            return VolatilityCount(min(self.differences + 1, MAX_DIFFERENCES))
        steady = self.steady + 1
        return VolatilityCount(self.differences, steady) if steady < STEADY * self.differences else VolatilityCount()


UNPROVEN = VolatilityCount()

PROVEN = VolatilityCount(ENOUGH_DIFFERENCES)
