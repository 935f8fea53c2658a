"""A virtual web: pages that change, appear and vanish at known instants of continuous time, in days."""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from crawler.core.freshness.estimates import convert_magnitude_to_bits

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

FROZEN_BEFORE_DAYS = 365.0  # before the birth: the value of a frozen Last-Modified


class Modified(StrEnum):
    """The Last-Modified of a world's servers."""

    SILENT = "silent"
    HONEST = "honest"
    ECHO = "echo"  # always now
    FROZEN = "frozen"  # always the same, from long before the page was found


@dataclass(frozen=True, slots=True)
class Segments:
    """True change rates in segments: from day `since` on, `page` changes `rate` times per day on average.

    Sorted by `since`; every page has a segment that begins at or before its birth.
    """

    page: Ints
    since: Floats
    rate: Floats


@dataclass(frozen=True, slots=True)
class World:
    """Pages by number, 0 to n - 1, from day 0 to day `days`.

    importance: the mean page has 1.  host, group: numbers from 0; a group corresponds to a URL template.
    cap_per_day: requests that a host allows, or None if there is no limit.
    born, died: days; 0 and inf for pages that always exist.  edit: share of its text that a change replaces.
    adds_up: each change replaces a random part; else all changes of a page replace the same part.
    keys: page * stride + day of every change, ascending, then inf; so one binary search finds a page's next change.
    """

    name: str
    days: float
    importance: Floats
    host: Ints
    group: Ints
    born: Floats
    died: Floats
    edit: Floats
    keys: Floats = field(repr=False)
    segments: Segments = field(repr=False)
    modified: Modified = Modified.SILENT
    adds_up: bool = True
    cap_per_day: float | None = None

    @property
    def size(self) -> int:
        """Return the number of pages that ever exist."""
        return len(self.importance)

    @property
    def stride(self) -> float:
        return self.days + 1.0

    def next_change(self, pages: Ints, day: Floats | float) -> Floats:
        """Return the first change after `day` of each page; at least stride - 1, beyond the end, if there is none."""
        found = np.searchsorted(self.keys, pages * self.stride + day, side="right")
        return np.asarray(self.keys[found] - pages * self.stride, np.float64)

    def last_change(self, pages: Ints, day: Floats) -> Floats:
        """Return the last change at or before `day` of each page; the day of its birth if there is none."""
        found = np.searchsorted(self.keys, pages * self.stride + day, side="right") - 1
        before = np.where(found >= 0, self.keys[np.maximum(found, 0)], -np.inf)
        return np.asarray(np.maximum(before - pages * self.stride, self.born[pages]))

    def changes_between(self, pages: Ints, since: Floats, until: Floats) -> Ints:
        """Return how many changes each page made after `since`, up to and including `until`."""
        after = np.searchsorted(self.keys, pages * self.stride + until, side="right")
        return np.asarray(after - np.searchsorted(self.keys, pages * self.stride + since, side="right"), np.int64)

    def distance_bits(self, pages: Ints, changes: Ints) -> Floats:
        """Return the mean SimHash distance between two versions with this many changes between them."""
        return convert_magnitude_to_bits(self.divergence(pages, changes))

    def divergence(self, pages: Ints, changes: Ints) -> Floats:
        """Return the share of its text by which a copy differs from its page after this many changes."""
        many = changes if self.adds_up else np.minimum(changes, 1)
        return np.asarray(1 - (1 - self.edit[pages]) ** many, np.float64)

    def modified_age(self, pages: Ints, day: Floats) -> Floats:
        """Return the days since the page's last change, by its Last-Modified at `day`; NaN if there is none."""
        match self.modified:
            case Modified.HONEST:
                return day - self.last_change(pages, day)
            case Modified.ECHO:
                return np.zeros(len(pages))
            case Modified.FROZEN:
                return day - self.born[pages] + FROZEN_BEFORE_DAYS
            case Modified.SILENT:
                return np.full(len(pages), np.nan)

    def rates_at(self, day: float) -> Floats:
        """Return the true change rate of each page at an instant, per day."""
        begun = self.segments.since <= day
        rates = np.zeros(self.size)
        rates[self.segments.page[begun]] = self.segments.rate[
            begun
        ]  # of several segments of a page, the last one stays
        return rates


def keys_of(pages: Ints, days: Floats, *, stride: float) -> Floats:
    """Return changes in any order as the keys of a World."""
    return np.append(np.sort(pages * stride + days), np.inf)
