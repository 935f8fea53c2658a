"""Path aliases: when a site is restyled, the new path of each block is mapped to the old one.

State is learnt by path, and a path is made of class names. A restyled site has new paths on most of a page at once;
then each is taken for the old path of the block that stood there.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from crawler.core.noise.alignment import counterparts, gaps
from crawler.core.noise.bounds import newest
from crawler.core.page import Block, BlockKind, BlockList

PathAliases = Mapping[int, int]  # the path under which a block is stored, by its path now

MOST_ALIASES = 4096
MOSTLY = 0.5  # of a page's paths must be new, and of its texts unchanged, for a restyled page


def with_aliases(blocks: BlockList, aliases: PathAliases) -> BlockList:
    """The blocks of a page under the paths at which they are stored."""
    if not aliases:
        return blocks
    stored = ((block, aliases.get(block.css_path, block.css_path)) for block in blocks)
    return tuple(block if path == block.css_path else replace(block, css_path=path) for block, path in stored)


def learn_aliases(aliases: PathAliases, before: BlockList, after: BlockList, *, met: Collection[int]) -> PathAliases:
    """The aliases after a look. met: all paths known of the domain; none of them becomes an alias of another."""
    were, are = ({block.css_path for block in blocks} for blocks in (before, after))
    if len(were & are) > (1 - MOSTLY) * len(were):
        return aliases
    aligned = list(_aligned(before, after))
    texts = sum(block.kind is BlockKind.TEXT for block in before)
    if sum(old.kind is BlockKind.TEXT and old.text == new.text for old, new in aligned) < MOSTLY * texts:
        return aliases
    still = {aliases.get(path, path) for path in are}
    votes = Counter(
        (new.css_path, aliases.get(old.css_path, old.css_path))
        for old, new in aligned
        if new.css_path not in aliases and new.css_path not in met
    )
    by_votes = sorted(votes, key=votes.__getitem__)  # so that the last one, with the most, stays
    return newest({**aliases, **{new: old for new, old in by_votes if old not in still}}, MOST_ALIASES)


def _aligned(before: BlockList, after: BlockList) -> Iterator[tuple[Block, Block]]:
    """Pairs of a block and the one in its place now: with equal texts and, between these, in equal elements."""
    old_keys, new_keys = ([(block.kind, block.tag_path, block.text) for block in blocks] for blocks in (before, after))
    end = slice(len(old_keys), None), slice(len(new_keys), None)
    i = j = 0
    for went, came in (*gaps(old_keys, new_keys), end):
        yield from zip(before[i : went.start], after[j : came.start], strict=True)
        lost, new = before[went], after[came]
        for n, m in counterparts(*([(block.kind, block.tag_path) for block in side] for side in (lost, new))):
            if n is not None and m is not None:
                yield lost[n], new[m]
        i, j = went.stop, came.stop
