"""Statistics of how blocks of a domain behaved in second fetches, and numbers over time."""

from dataclasses import dataclass, replace

from crawler.core.http.urls import PageKey

# Second fetches in which a path may stand still for each in which it differed as a whole: of a few banners in turn two
# can be equal. A fetch in which only some of its blocks differed counts twice: the other blocks are the page's own.
SWINGING = 2
MIXED = 2
# Second fetches in which a path differed as a whole, and their pages, before it swings: one bad fetch is no proof.
ENOUGH_SWUNG = 3
ENOUGH_PAGES = 2
# Second fetches in which texts came or went at a path: a single text may have been edited between two fetches.
ENOUGH_DIFFERED = 2


@dataclass(frozen=True, slots=True)
class PathStats:
    """Second fetches that met a path, by outcome. steady: all its blocks stood still.  swung: most of them differed.

    mixed: some of them differed.  pages: the first few pages on which it swung.
    """

    steady: int = 0
    swung: int = 0
    mixed: int = 0
    pages: tuple[PageKey, ...] = ()

    def swung_on(self, page: PageKey) -> "PathStats":
        """The stats after one more second fetch in which most blocks of the path differed."""
        pages = self.pages if page in self.pages else (*self.pages, page)[:ENOUGH_PAGES]
        return replace(self, swung=self.swung + 1, pages=pages)

    @property
    def is_lively(self) -> bool:
        """Whether texts come and go at the path within seconds, as more than one second fetch has shown."""
        return self.swung + self.mixed >= ENOUGH_DIFFERED

    @property
    def turns(self) -> bool:
        """Whether all texts at the path come and go, and not too seldom."""
        return self.is_lively and not self.mixed and self.steady < STEADY * self.swung

    @property
    def swings(self) -> bool:
        """Whether the path differs from fetch to fetch, as enough second fetches on several pages have shown."""
        is_proven = self.swung >= ENOUGH_SWUNG and len(self.pages) >= ENOUGH_PAGES
        return is_proven and SWINGING * self.swung > self.steady + MIXED * self.mixed


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

    times: how often they agreed.  units: indices into relative_time.UNITS_S by which all of them agreed.
    growths: the first few different growths above 1.  pages: the first few whose number grew by more than 1.
    ones: pages whose number grew by 1, as most do that are looked at daily.
    missed: how often the numbers ever disagreed.
    """

    times: int = 0
    units: frozenset[int] = frozenset()
    growths: frozenset[int] = frozenset()
    pages: tuple[PageKey, ...] = ()
    ones: tuple[PageKey, ...] = ()
    missed: int = 0


@dataclass(frozen=True, slots=True)
class StampStats:
    """Looks at which a stamp of one place and form was all that differed of a page, and fitted, since it last did not.

    times: how often it did.  missed: how often it ever did not.
    """

    times: int = 0
    missed: int = 0


ENOUGH_MOVED = 2  # second fetches; a text that differed in one may have been edited between the two fetches
MOST_MOVED = 8
STEADY = 4  # second fetches in a row without a difference, for each with one, that end the proof


@dataclass(frozen=True, slots=True)
class VolatilityCount:
    """A count of second fetches. moved: how many showed a difference, 8 at most.  steady: how many since did not."""

    moved: int = 0
    steady: int = 0

    @property
    def holds(self) -> bool:
        """Whether the count proves volatility."""
        return self.moved >= ENOUGH_MOVED

    def after(self, *, moved: bool) -> "VolatilityCount":
        """The count after one more second fetch; back to zero after standing still for long enough."""
        if moved:
            return VolatilityCount(min(self.moved + 1, MOST_MOVED))
        steady = self.steady + 1
        return VolatilityCount(self.moved, steady) if steady < STEADY * self.moved else VolatilityCount()


UNPROVEN = VolatilityCount()

PROVEN = VolatilityCount(ENOUGH_MOVED)
