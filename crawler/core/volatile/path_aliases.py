"""Paths by the names that they are known by: a site whose elements get new classes says the same in the same places.

What was learnt of a place is kept by its path, and a path is made of class names. When a site is restyled, most paths
of its pages are new at once; then each is taken for the old one that stood there.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from crawler.core.page import Block, BlockKind, BlockList
from crawler.core.volatile.alignment import counterparts, gaps
from crawler.core.volatile.bounds import newest

PathAliases = Mapping[int, int]  # the path by which a place is known, by its path now

MOST_ALIASES = 4096
MOSTLY = 0.5  # of a page's paths have to be new ones, and of its texts the same; else each path is a new place


def with_aliases(outline: BlockList, names: PathAliases) -> BlockList:
    """A page with its places under the paths that they are known by."""
    if not names:
        return outline
    return tuple(
        replace(place, css_path=names[place.css_path]) if place.css_path in names else place for place in outline
    )


def learn_aliases(names: PathAliases, before: BlockList, after: BlockList, *, met: Collection[int]) -> PathAliases:
    """The names after a look. met: all paths known of the domain; one of them is never another's new name."""
    were, are = ({place.css_path for place in outline} for outline in (before, after))
    if len(were & are) > (1 - MOSTLY) * len(were):
        return names
    aligned = list(_aligned(before, after))
    said = sum(place.kind is BlockKind.TEXT for place in before)
    if sum(old.kind is BlockKind.TEXT and old.text == new.text for old, new in aligned) < MOSTLY * said:
        return names
    still = {names.get(path, path) for path in are}
    votes = Counter(
        (new.css_path, names.get(old.css_path, old.css_path))
        for old, new in aligned
        if new.css_path not in names and new.css_path not in met
    )
    by_votes = sorted(votes, key=votes.__getitem__)  # so that the last one, with the most, stays
    return newest({**names, **{new: old for new, old in by_votes if old not in still}}, MOST_ALIASES)


def _aligned(before: BlockList, after: BlockList) -> Iterator[tuple[Block, Block]]:
    """Which place stands where which stood: those that say the same and, between them, those in like elements."""
    one, other = ([(place.kind, place.tag_path, place.text) for place in outline] for outline in (before, after))
    end = slice(len(one), None), slice(len(other), None)
    i = j = 0
    for went, came in (*gaps(one, other), end):
        yield from zip(before[i : went.start], after[j : came.start], strict=True)
        lost, new = before[went], after[came]
        for n, m in counterparts(*([(place.kind, place.tag_path) for place in side] for side in (lost, new))):
            if n is not None and m is not None:
                yield lost[n], new[m]
        i, j = went.stop, came.stop
