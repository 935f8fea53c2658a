"""What the laboratory asks of a rule for revisits, and what it tells it."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from labs.experiments.worlds.world import Flags, Floats, Ints


@dataclass(frozen=True, slots=True)
class Scene:
    """What a crawler knows of its pages without a look: their importance (mean 1), host, and group by URL.

    budget_per_day: requests in all.  cap_per_day: requests that a host bears, or None.  day 0: every page that lives
    then has just been fetched, once; of how often it changes nothing is known.
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
class LookBatch:
    """What some looks found, one row each; no page twice.

    gap: days since the last look, 0 at a first one.  changed: False at a first look.  gone: the page is no more.
    modified_age: days since the change, by Last-Modified; NaN without one.  distance_bits: SimHash, of 64.
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
    """A rule for revisits."""

    def choose(self, now: float, slots: int, room: Ints | None) -> Ints:
        """At most `slots` pages to look at now, none twice.  room: what each host still bears; None binds nobody."""
        ...

    def learn(self, visits: LookBatch) -> None:
        """What the looks found."""
        ...

    def meet(self, pages: Ints, now: float) -> None:
        """Pages heard of for the first time; on day 0 those that have just been fetched."""
        ...

    def expects(self, now: float) -> Floats | None:
        """For every page the chance that its copy is fresh, as the policy would report it; None if it does not."""
        ...


def best(score: Floats, slots: int, *, host: Ints, room: Ints | None) -> Ints:
    """The pages with the highest scores, none of -inf, within what each host bears; best first where room binds."""
    if room is None:
        chosen = np.argpartition(-score, slots)[:slots] if slots < len(score) else np.arange(len(score))
        return chosen[score[chosen] > -np.inf]
    candidates = np.flatnonzero((score > -np.inf) & (room[host] > 0))
    order = candidates[np.argsort(-score[candidates], kind="stable")]
    return order[places(host[order]) < room[host[order]]][:slots]


def places(group: Ints) -> Ints:
    """The place of each row among the rows of its group, from 0, in the order in which they stand."""
    by_group = np.argsort(group, kind="stable")
    ordered = group[by_group]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(group) else np.zeros(0, np.int64)
    lengths = np.diff(np.append(starts, len(group)))
    result = np.empty(len(group), np.int64)
    result[by_group] = np.arange(len(group)) - np.repeat(starts, lengths)
    return result
