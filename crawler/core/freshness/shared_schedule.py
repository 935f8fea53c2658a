"""Shared schedules: pages with one main text are looked at through one of them, the leader; the others follow it.

Their texts were equal over several looks of each, or their URLs say that they are one page. Whether they change
together is tested now and then.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from crawler.core.http.urls import PageKey, Url

ENOUGH_LOOKS = 3  # good ones of each page since its text is what it is
LEAST_SHARED_BYTES = 500  # of main text, some 80 words: notes of a few lines are equal without being copies
RARER = 8  # factor on a page's own gap, after which it is tested while it follows
TEST_COPY_AFTER = timedelta(days=30)  # at least, of a page that is another by its URL or its canonical link
_ENDING = re.compile(r"(?:/index|/default)?(?:\.[a-z][a-z0-9]{1,4})?/?\Z", re.IGNORECASE)  # of a path


@dataclass(frozen=True, slots=True)
class Twin:
    """A page that follows none. leads: other pages follow it already.

    stem: of its URL.  is_settled: its text is long enough, and unchanged for enough looks, to share with any other URL.
    """

    key: PageKey
    main_digest: bytes
    importance: float
    leads: bool = False
    stem: str = ""
    is_settled: bool = True


@dataclass(frozen=True, slots=True)
class SharedPair:
    """A page and the one whose schedule it is to share. is_copy: their URLs, too, say that they are one page."""

    leader: PageKey
    key: PageKey
    is_copy: bool = False


def stem_of(url: Url) -> str:
    """Return the URL without its query, its extension and a trailing slash, in which copies of a page differ."""
    scheme, _, rest = url.partition("?")[0].partition("://")
    host, _, path = rest.partition("/")
    return f"{scheme}://{host}{_ENDING.sub('', f'/{path}')}"


def sharers(twins: Iterable[Twin]) -> list[SharedPair]:
    """Return the pairs among pages with one text: pages that are settled, and pages with one stem.

    The most important page of a text leads, unless one leads already. A leader follows no page.
    """
    by_text = defaultdict(list)
    for twin in twins:
        by_text[twin.main_digest].append(twin)
    found = []
    for group in (group for same in by_text.values() for group in _groups(same)):
        best = max(group, key=lambda twin: (twin.leads, twin.importance, twin.key))
        found += [
            SharedPair(best.key, twin.key, is_copy=twin.stem == best.stem)
            for twin in group
            if twin is not best and not twin.leads
        ]
    return found


def _groups(same: Sequence[Twin]) -> Iterator[list[Twin]]:
    """Group pages with one text: all that are settled with those of their stems, and the others by their stems."""
    stems = {twin.stem for twin in same if twin.is_settled}
    by_stem = defaultdict(list)
    for twin in same:
        by_stem[None if twin.stem in stems else twin.stem].append(twin)
    yield from by_stem.values()


def rests_until(
    now: datetime, *, due_at: datetime, longest: timedelta, is_copy: bool = False, rested: timedelta = timedelta(0)
) -> datetime:
    """Return when a follower is tested next, never before due_at: for a copy that passed, twice as long as it rested.

    due_at: of the page by itself.  rested: since the visit before the test.
    """
    rest = RARER * (due_at - now)
    if is_copy:
        rest = max(rest, TEST_COPY_AFTER, 2 * rested)
    return max(due_at, now + min(rest, longest))
