"""Paths by the names that they are known by: a site whose elements get new classes says the same in the same places.

What was learnt of a place is kept by its path, and a path is made of class names. When a site is restyled, most paths
of its pages are new at once; then each is taken for the old one that stood there.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from crawler.core.page import Outline, Part, Place
from crawler.core.volatile.alignment import counterparts, gaps
from crawler.core.volatile.bounds import newest

Names = Mapping[int, int]  # the path by which a place is known, by its path now

MOST_NAMES = 4096
MOSTLY = 0.5  # of a page's paths have to be new ones, and of its texts the same; else each path is a new place


def named(outline: Outline, names: Names) -> Outline:
    """A page with its places under the paths that they are known by."""
    if not names:
        return outline
    return tuple(replace(place, path=names[place.path]) if place.path in names else place for place in outline)


def learn_names(names: Names, before: Outline, after: Outline, *, met: Collection[int]) -> Names:
    """The names after a look. met: all paths known of the domain; one of them is never another's new name."""
    were, are = ({place.path for place in outline} for outline in (before, after))
    if len(were & are) > (1 - MOSTLY) * len(were):
        return names
    aligned = list(_aligned(before, after))
    said = sum(place.part is Part.TEXT for place in before)
    if sum(old.part is Part.TEXT and old.text == new.text for old, new in aligned) < MOSTLY * said:
        return names
    still = {names.get(path, path) for path in are}
    votes = Counter(
        (new.path, names.get(old.path, old.path))
        for old, new in aligned
        if new.path not in names and new.path not in met
    )
    by_votes = sorted(votes, key=votes.__getitem__)  # so that the last one, with the most, stays
    return newest({**names, **{new: old for new, old in by_votes if old not in still}}, MOST_NAMES)


def _aligned(before: Outline, after: Outline) -> Iterator[tuple[Place, Place]]:
    """Which place stands where which stood: those that say the same and, between them, those in like elements."""
    one, other = ([(place.part, place.bare, place.text) for place in outline] for outline in (before, after))
    end = slice(len(one), None), slice(len(other), None)
    i = j = 0
    for went, came in (*gaps(one, other), end):
        yield from zip(before[i : went.start], after[j : came.start], strict=True)
        lost, new = before[went], after[came]
        for n, m in counterparts(*([(place.part, place.bare) for place in side] for side in (lost, new))):
            if n is not None and m is not None:
                yield lost[n], new[m]
        i, j = went.stop, came.stop
