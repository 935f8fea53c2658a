"""How places of a domain came through pairs of looks, and numbers through the time: what volatile is judged by."""

from dataclasses import dataclass, replace

from crawler.core.http import PageKey

# In so many pairs a place may stand still for each in which it differed as a whole: of a few banners in turn two can be
# the same. One in which some of its kind differed and others did not counts twice: those others are the page's own.
SWINGING = 2
MIXED = 2
# A place swings on the word of so many pairs, on two pages: one look that went wrong tells nothing of all others.
ENOUGH_SWUNG = 3
ENOUGH_PAGES = 2
# A text that came or went within seconds may have been edited just then, until so many pairs have found such there.
ENOUGH_DIFFERED = 2


@dataclass(frozen=True, slots=True)
class PathStats:
    """How a path came through pairs. steady: all on it stood still.  swung: most of it differed.  mixed: some did.

    pages: the first few on which it swung.
    """

    steady: int = 0
    swung: int = 0
    mixed: int = 0
    pages: tuple[PageKey, ...] = ()

    def swung_on(self, page: PageKey) -> "PathStats":
        """After one more pair in which most of it differed."""
        pages = self.pages if page in self.pages else (*self.pages, page)[:ENOUGH_PAGES]
        return replace(self, swung=self.swung + 1, pages=pages)

    @property
    def is_lively(self) -> bool:
        """Whether texts come and go here within seconds, as more than one pair has shown."""
        return self.swung + self.mixed >= ENOUGH_DIFFERED

    @property
    def turns(self) -> bool:
        """Whether all of it does, and not too seldom."""
        return self.is_lively and not self.mixed and self.steady < STEADY * self.swung

    @property
    def swings(self) -> bool:
        """Whether it differs from look to look, as far as enough pairs have told."""
        is_told = self.swung >= ENOUGH_SWUNG and len(self.pages) >= ENOUGH_PAGES
        return is_told and SWINGING * self.swung > self.steady + MIXED * self.mixed


@dataclass(frozen=True, slots=True)
class ShapeStats:
    """How places of one path and one number of words came through pairs. changes: found there since the last pair."""

    steady: int = 0
    changes: int = 0


@dataclass(frozen=True, slots=True)
class CounterStats:
    """How numbers that stand alike have agreed with the time since they last did not.

    times: how often.  units: of elapsed.UNITS_S, by number, of which all of them grew by as many as had passed.
    growths: the first few that differ and are more than 1.  pages: the first few that grew by more than 1.  ones: those
    that grew by 1, as most do that are looked at daily.
    missed: how often they did not agree, ever.
    """

    times: int = 0
    units: frozenset[int] = frozenset()
    growths: frozenset[int] = frozenset()
    pages: tuple[PageKey, ...] = ()
    ones: tuple[PageKey, ...] = ()
    missed: int = 0


ENOUGH_MOVED = 2  # pairs; what differed in one alone may have been edited between its two looks

MOST_MOVED = 8

STEADY = 4  # pairs in a row in which it stood still, for each in which it had moved, end the proof


@dataclass(frozen=True, slots=True)
class VolatilityCount:
    """How something came through pairs. moved: in how many it differed, 8 at most.  steady: in how many since it did
    not.
    """

    moved: int = 0
    steady: int = 0

    @property
    def holds(self) -> bool:
        """Whether it is volatile, as far as is known."""
        return self.moved >= ENOUGH_MOVED

    def after(self, *, moved: bool) -> "VolatilityCount":
        """After one more pair. What has stood still for long enough is as if it had never moved."""
        if moved:
            return VolatilityCount(min(self.moved + 1, MOST_MOVED))
        steady = self.steady + 1
        return VolatilityCount(self.moved, steady) if steady < STEADY * self.moved else VolatilityCount()


UNPROVEN = VolatilityCount()

PROVEN = VolatilityCount(ENOUGH_MOVED)
