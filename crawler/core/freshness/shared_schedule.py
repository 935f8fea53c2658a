"""Shared schedules: pages with one main text are looked at through one of them, the leader; the others follow it.

Their texts were equal over several looks of each. Whether they change together is tested now and then.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from crawler.core.http import PageKey

ENOUGH_LOOKS = 3  # good ones of each page since its text is what it is
LEAST_SHARED_BYTES = 500  # of main text, some 80 words: notes of a few lines are equal without being copies
RARER = 8  # factor on a page's own gap, after which it is tested while it follows


@dataclass(frozen=True, slots=True)
class Twin:
    """A page that follows none, and whose text is unchanged for enough looks. leads: other pages follow it already."""

    key: PageKey
    main_digest: bytes
    importance: float
    leads: bool = False


def sharers(twins: Iterable[Twin]) -> list[tuple[PageKey, PageKey]]:
    """Pairs of leader and follower among pages with one text.

    The most important page of a text leads, unless one leads already. A leader follows no page.
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
    """The instant at which a follower is tested next, never before due_at. due_at: of the page by itself."""
    return max(due_at, now + min(RARER * (due_at - now), longest))
