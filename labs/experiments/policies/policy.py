"""The interface of revisit policies in experiments."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from labs.experiments.worlds.world import Flags, Floats, Ints


@dataclass(frozen=True, slots=True)
class Scene:
    """What a crawler knows about its pages without a visit: importance (mean 1), host, and group by URL.

    budget_per_day: total requests.  cap_per_day: requests that a host allows, or None.  On day 0, every existing page
    has just been fetched once, and its change rate is unknown.
    """

    importance: Floats
    host: Ints
    group: Ints
    budget_per_day: float
    cap_per_day: float | None

    @property
    def size(self) -> int:
        return len(self.importance)


@dataclass(frozen=True, slots=True)
class VisitBatch:
    """The results of some visits, one row each; no page twice.

    gap: days since the last visit, 0 at a first one.  changed: False at a first visit.  gone: the page no longer
    exists.
    modified_age: days since the change, by Last-Modified; NaN without one.  distance_bits: differing bits of SimHash.
    """

    page: Ints
    at: Floats
    gap: Floats
    first: Flags
    changed: Flags
    gone: Flags
    modified_age: Floats
    distance_bits: Floats


class Policy(Protocol):
    """A revisit policy."""

    def choose(self, now: float, slots: int, room: Ints | None) -> Ints:
        """Return at most `slots` pages to visit now, none twice.  room: what each host still allows; None: no limit."""
        ...

    def learn(self, visits: VisitBatch) -> None:
        """Learn the results of visits."""
        ...

    def meet(self, pages: Ints, now: float) -> None:
        """Add new pages; on day 0 those that have just been fetched."""
        ...

    def expects(self, now: float) -> Floats | None:
        """Return the probability that each page's copy is fresh, as the policy would report it; None if it does not."""
        ...


def best(score: Floats, slots: int, *, host: Ints, room: Ints | None) -> Ints:
    """Return the pages with the highest scores above -inf, within what hosts allow. They are sorted if `room` is given.

    room: the visits that each host still allows; None for no limit.
    """
    if room is None:
        chosen = np.argpartition(-score, slots)[:slots] if slots < len(score) else np.arange(len(score))
        return chosen[score[chosen] > -np.inf]
    candidates = np.flatnonzero((score > -np.inf) & (room[host] > 0))
    order = candidates[np.argsort(-score[candidates], kind="stable")]
    return order[places(host[order]) < room[host[order]]][:slots]


def places(group: Ints) -> Ints:
    """Return the position of each row among the rows of its group, from 0, in order."""
    by_group = np.argsort(group, kind="stable")
    ordered = group[by_group]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(group) else np.zeros(0, np.int64)
    lengths = np.diff(np.append(starts, len(group)))
    result = np.empty(len(group), np.int64)
    result[by_group] = np.arange(len(group)) - np.repeat(starts, lengths)
    return result
