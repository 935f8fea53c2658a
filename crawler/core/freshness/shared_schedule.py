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

MIN_VISITS = 3  # good ones of each page since its text is what it is
MIN_SHARED_BYTES = 500  # of main text, some 80 words: notes of a few lines are equal without being copies
TEST_GAP_FACTOR = 8  # factor on a page's own gap, after which it is tested while it follows
MIN_COPY_TEST_WAIT = timedelta(days=30)  # at least, of a page that is another by its URL or its canonical link
_ENDING = re.compile(r"(?:/index|/default)?(?:\.[a-z][a-z0-9]{1,4})?/?\Z", re.IGNORECASE)  # of a path


@dataclass(frozen=True, slots=True)
class DuplicateCandidate:
    """A page that follows none. is_canonical: other pages follow it already.

    stem: of its URL.  is_settled: its text is long enough, and unchanged for enough looks, to share with any other URL.
    """

    key: PageKey
    main_digest: bytes
    importance: float
    is_canonical: bool = False
    stem: str = ""
    is_settled: bool = True


@dataclass(frozen=True, slots=True)
class SharedPair:
    """A page and the one whose schedule it is to share. is_copy: their URLs, too, say that they are one page."""

    canonical: PageKey
    key: PageKey
    is_copy: bool = False


def derive_stem(url: Url) -> str:
    """Return the URL without its query, its extension and a trailing slash, in which copies of a page differ."""
    scheme, _, rest = url.partition("?")[0].partition("://")
    host, _, path = rest.partition("/")
    return f"{scheme}://{host}{_ENDING.sub('', f'/{path}')}"


def pair_duplicates(candidates: Iterable[DuplicateCandidate]) -> list[SharedPair]:
    """Return the pairs among pages with one text: pages that are settled, and pages with one stem.

    The most important page of a text leads, unless one leads already. A leader follows no page.
    """
    by_text = defaultdict(list)
    for candidate in candidates:
        by_text[candidate.main_digest].append(candidate)
    pairs = []
    for group in (group for candidates_of_text in by_text.values() for group in _group_by_stem(candidates_of_text)):
        best = max(group, key=lambda candidate: (candidate.is_canonical, candidate.importance, candidate.key))
        pairs += [
            SharedPair(best.key, candidate.key, is_copy=candidate.stem == best.stem)
            for candidate in group
            if candidate is not best and not candidate.is_canonical
        ]
    return pairs


def _group_by_stem(candidates: Sequence[DuplicateCandidate]) -> Iterator[list[DuplicateCandidate]]:
    """Group pages with one text: all that are settled with those of their stems, and the others by their stems."""
    stems = {candidate.stem for candidate in candidates if candidate.is_settled}
    by_stem = defaultdict(list)
    for candidate in candidates:
        by_stem[None if candidate.stem in stems else candidate.stem].append(candidate)
    yield from by_stem.values()


def compute_test_time(
    now: datetime, *, due_at: datetime, longest: timedelta, is_copy: bool = False, since_visit: timedelta = timedelta(0)
) -> datetime:
    """Return when a follower is tested next, never before due_at: for a copy that passed, twice as long as it rested.

    due_at: of the page by itself.  since_visit: since the visit before the test.
    """
    wait = TEST_GAP_FACTOR * (due_at - now)
    if is_copy:
        wait = max(wait, MIN_COPY_TEST_WAIT, 2 * since_visit)
    return max(due_at, now + min(wait, longest))
