"""Shared schedules: of several pages with the same main text, only the canonical page is visited regularly.

The others, its duplicates, are checked occasionally. Pages qualify if their texts were equal over several visits to
each, or if their URLs show that they are copies.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain

from msgspec import Struct

from crawler.core.http.urls import PageKey, Url

MIN_VISITS = 3  # successful visits to each page since its text last changed
MIN_SHARED_BYTES = 500  # of main text, about 80 words: shorter texts can be equal by chance
# Wait until the next check of a duplicate, as a multiple of the gap that its own estimate gives.
TEST_GAP_FACTOR = 8
MIN_COPY_TEST_WAIT = timedelta(days=30)  # for a page whose URL or canonical link shows that it is a copy
_ENDING = re.compile(r"(?:/index|/default)?(?:\.[a-z][a-z0-9]{1,4})?/?\Z", re.IGNORECASE)  # of a path


class DuplicateCandidate(Struct, frozen=True):
    """A page that is not a duplicate so far. is_canonical: other pages follow it already.

    stem: see derive_stem.  is_settled: its text is long enough, and unchanged for enough visits, to share a schedule
    with a page of any other URL.
    """

    key: PageKey
    main_digest: bytes
    importance: float
    is_canonical: bool = False
    stem: str = ""
    is_settled: bool = True


class SharedPair(Struct, frozen=True):
    """A page and the canonical page whose schedule it will share. is_copy: their URLs also show that it is a copy."""

    canonical: PageKey
    key: PageKey
    is_copy: bool = False


def derive_stem(url: Url) -> str:
    """Return the URL without query, file extension, index name and trailing slash, in which copies of a page differ."""
    scheme, _, rest = url.partition("?")[0].partition("://")
    host, _, path = rest.partition("/")
    return f"{scheme}://{host}{_ENDING.sub('', f'/{path}')}"


def pair_duplicates(candidates: Iterable[DuplicateCandidate]) -> list[SharedPair]:
    """Return pairs of pages with the same text that have the same stem, or stems of settled pages.
    The canonical page is the one that is canonical already, or else the most important. It never becomes a duplicate.
    """
    by_text = defaultdict(list)
    for candidate in candidates:
        by_text[candidate.main_digest].append(candidate)
    pairs = []
    for group in chain.from_iterable(map(_group_by_stem, by_text.values())):
        best = max(group, key=lambda candidate: (candidate.is_canonical, candidate.importance, candidate.key))
        followers = (each for each in group if each is not best and not each.is_canonical)
        pairs += [SharedPair(best.key, each.key, is_copy=each.stem == best.stem) for each in followers]
    return pairs


def _group_by_stem(candidates: Sequence[DuplicateCandidate]) -> Iterable[list[DuplicateCandidate]]:
    """Group pages with the same text: settled pages and pages with their stems in one group, others by stem."""
    stems = {candidate.stem for candidate in candidates if candidate.is_settled}
    by_stem = defaultdict(list)
    for candidate in candidates:
        by_stem[None if candidate.stem in stems else candidate.stem].append(candidate)
    return by_stem.values()


def compute_test_time(
    now: datetime, *, due_at: datetime, longest: timedelta, is_copy: bool = False, since_visit: timedelta = timedelta(0)
) -> datetime:
    """Return when a duplicate is checked next, never before due_at.

    due_at: when the page is due by its own estimate.  longest: the longest wait.  is_copy: see SharedPair; the wait of
    a copy at least doubles with each check.  since_visit: the time since the visit before this check.
    """
    wait = TEST_GAP_FACTOR * (due_at - now)
    if is_copy:
        wait = max(wait, MIN_COPY_TEST_WAIT, 2 * since_visit)
    return max(due_at, now + min(wait, longest))
