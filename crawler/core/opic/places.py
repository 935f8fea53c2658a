"""The textbook's two orders of discovery: a queue for each level (breadth first), and one stack (depth first).

A new page's place is its rank in the frontier, 32 bits, the greatest first. The next place follows from the last one
that waits: behind it in a level's queue, above it on the stack. So nothing but the ranks themselves has to be stored,
places that were left are used again. What bounds a queue is how many pages wait there, not how many there ever were; a
stack grows with the links that pages just read have to pages that wait, until it is empty.
"""

import math
from dataclasses import dataclass, field

from crawler.core.opic.opic import ENDOWMENT

LEVELS = 512  # links away from the nearest seed; pages still deeper stand in one queue
PLACES = 1 << 22  # of a level: four million pages in their order; any beyond share the last place, by their keys
TOP = 2**31 - 1  # of the stack: two thousand million pages
CLOCK_STEPS = 1 << 15  # of places, while a domain's clock grows by the factor e; below PLACES for any clock


def level_of(depth: int) -> int:
    """The level in whose queue a page so many links away waits."""
    return min(depth, LEVELS - 1)


def ranks_of(level: int) -> tuple[int, int]:
    """The last and the first rank of a level's queue."""
    return -((level + 1) * PLACES - 1), -level * PLACES


def queue_rank(depth: int, *, clock: float) -> int:
    """A place in the queue of its level for a page that was found under another order, or by nobody.

    clock: of the domain, in coins, when the page was found, which tells the order of discovery nearly: pages found by
    one page have one clock.
    """
    return ranks_of(level_of(depth))[1] - _place_of(clock)


def stack_rank(*, clock: float) -> int:
    """A place on the stack for such a page: what was found last comes first."""
    return _place_of(clock)


def _place_of(clock: float) -> int:
    return min(int(math.log1p(max(clock, 0.0) / ENDOWMENT) * CLOCK_STEPS), PLACES - 1)


@dataclass(slots=True)
class LevelQueues:
    """Breadth first: pages wait by level, and in a level in the order in which they were found.

    last: by level, the least rank that waits there; levels where nobody waits are absent.
    """

    last: dict[int, int] = field(default_factory=dict)

    def join(self, depth: int) -> int:
        """The rank of one more page so many links away."""
        level = level_of(depth)
        least, first = ranks_of(level)
        rank = max(self.last[level] - 1, least) if level in self.last else first
        self.last[level] = rank
        return rank


@dataclass(slots=True)
class PageStack:
    """Depth first: what the page just read links to comes next. top: the greatest rank that waits."""

    top: int = 0

    def push(self) -> int:
        """The rank of one more page."""
        self.top = min(self.top + 1, TOP)
        return self.top
