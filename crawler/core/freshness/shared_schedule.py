"""Pages whose main texts are the same share one schedule: one leads, the others ride along and are tested now and then.

Known is only that the texts were equal over several looks of each. That they change together is tested at each look.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from crawler.core.http import PageKey

ENOUGH_LOOKS = 3  # good ones of each page since its text is what it is
LEAST_SHARED_BYTES = 500  # of main text, some 80 words: notes of a few lines are equal without being copies
RARER = 8  # times a page's own gap, after which it is tested while it rides along


@dataclass(frozen=True, slots=True)
class Twin:
    """A page that rides along with nobody, and whose text is what it is for enough looks. leads: others, already."""

    key: PageKey
    main_digest: bytes
    importance: float
    leads: bool = False


def sharers(twins: Iterable[Twin]) -> list[tuple[PageKey, PageKey]]:
    """Who is to ride along with whom: leader and follower.

    The most important page of a text leads, unless one does already. Who leads rides along with nobody.
    """
    by_text = defaultdict(list)
    for twin in twins:
        by_text[twin.main_digest].append(twin)
    found = []
    for same in by_text.values():
        best = max(same, key=lambda twin: (twin.leads, twin.importance, twin.key))
        found += [(best.key, twin.key) for twin in same if twin is not best and not twin.leads]
    return found


def rests_until(now: datetime, *, due_at: datetime, longest: timedelta) -> datetime:
    """When a page that rides along is tested next. due_at: when it would be looked at by itself; never before that."""
    return max(due_at, now + min(RARER * (due_at - now), longest))
