"""Learning from a second fetch of a page, seconds after the first: any difference between the two is volatile.

From time to time, a second fetch tests a difference that the mask hides, because no proof lasts forever.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from crawler.core.http.urls import PageKey
from crawler.core.noise.noise import (
    MAX_PATHS,
    MAX_PATTERNS,
    UnconfirmedPatterns,
    VolatileContent,
    compute_block_key,
    compute_path_key,
    compute_shape_key,
    compute_wording_key,
)
from crawler.core.noise.session_params import (
    ParameterAtPath,
    compare_parameters,
    compute_path_hash,
    learn_parameters,
    parse_parameter_name,
)
from crawler.core.noise.stability import PROVEN, UNPROVEN, PathStats, ShapeStats, VolatilityCount
from crawler.core.noise.words import (
    WordPattern,
    Words,
    build_pattern,
    is_same_block,
    keep_newest,
    list_gaps,
    matches_words,
    split_words,
)
from crawler.core.page.block import Block, BlockKind, BlockList, BlockPair
from crawler.core.page.fingerprint import hash_text

MAX_PATTERNS_PER_SHAPE = 32  # of one path and number of words
MAX_NOISE_BLOCKS = 1024  # per domain; the oldest are dropped first
UNSTABLE_SHARE = 0.5  # share of a path's blocks that differ, from which on the fetch counts as unstable (PathStats)


def learn_from_second_fetch(
    volatile: VolatileContent,
    *,
    page: PageKey,
    differing: Sequence[BlockPair],
    first: Sequence[Block],
    second: Sequence[Block],
) -> VolatileContent:
    """Return the volatile content after a second fetch.

    differing: blocks of the first fetch paired with those that replace them in the second; None on the side that lacks
    the block.
    first, second: all blocks of both fetches.
    """
    differed, unconfirmed = compare_parameters(first, second), volatile.unconfirmed_patterns
    parameters = learn_parameters(volatile.parameters, differed)
    updated = replace(_drop_steady_gaps(volatile, first, second), parameters=parameters)
    unmatched: list[Block] = []
    partly_changed: set[int] = set()
    for before, after in differing:
        learned = None
        if before and after:
            learned = learn_replaced_words(updated, before, after, unconfirmed=unconfirmed, differed=differed)
        if learned is None:
            unmatched += filter(None, (before, after))
        else:
            updated = learned
            partly_changed |= {compute_block_key(block) for block in (before, after) if block}
    all_blocks, unmatched_keys = (*first, *second), set(map(compute_block_key, unmatched))
    noise = _update_noise(updated.noise_counts, unmatched_keys, set(map(compute_block_key, all_blocks)))
    updated = _update_stable_wordings(updated, first, second)
    paths = _update_path_stats(updated, page, unmatched, partly_changed, all_blocks)
    shapes = _update_shape_stats(updated, partly_changed | unmatched_keys, all_blocks)
    return replace(updated, noise_counts=noise, path_stats=paths, shape_stats=shapes)


def _drop_steady_gaps(volatile: VolatileContent, first: Sequence[Block], second: Sequence[Block]) -> VolatileContent:
    """Return the volatile content without gaps that no longer differ (VolatilityCount) in blocks of both fetches."""
    old, new = _count_blocks_with_gaps(volatile, first), _count_blocks_with_gaps(volatile, second)
    updated, proofs = volatile, dict(volatile.proofs)
    for form in old.keys() & new.keys():
        proof = proofs.pop(form, PROVEN).add_fetch(differed=old[form] != new[form])
        if proof.is_proven:
            proofs[form] = proof
        else:
            updated = drop_gaps(updated, next(iter(old[form])))
    return replace(updated, proofs=keep_newest(proofs, MAX_PATHS))


def _count_blocks_with_gaps(volatile: VolatileContent, blocks: Iterable[Block]) -> dict[int, Counter[Block]]:
    counts: dict[int, Counter[Block]] = defaultdict(Counter)
    for block in blocks:
        if volatile.has_gaps(block):
            counts[volatile.compute_masked_form(block)][block] += 1
    return counts


def _update_noise(
    before: Mapping[int, VolatilityCount], unmatched: set[int], seen: set[int]
) -> dict[int, VolatilityCount]:
    """Count blocks that appeared or disappeared. unmatched: those of this second fetch.  seen: all of both fetches."""
    counts = dict(before)
    for key in (seen & counts.keys()) | unmatched:
        proof = counts.pop(key, UNPROVEN).add_fetch(differed=key in unmatched)
        if proof != UNPROVEN:
            counts[key] = proof
    return keep_newest(counts, MAX_NOISE_BLOCKS)


def _update_stable_wordings(volatile: VolatileContent, *fetches: Sequence[Block]) -> VolatileContent:
    """Update stable_wordings with the blocks that did not differ while others of their path and word count did."""
    old, new = (_group_by_wording(volatile, blocks) for blocks in fetches)
    differed = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    differing_shapes = {shape for shape, _ in differed}
    differing_wordings = {wording for _, wording in differed}
    wordings = {wording: None for wording in volatile.stable_wordings if wording not in differing_wordings}
    wordings |= dict.fromkeys(
        wording for shape, wording in old if shape in differing_shapes and (shape, wording) not in differed
    )
    return replace(volatile, stable_wordings=keep_newest(wordings, MAX_PATHS))


def _group_by_wording(
    volatile: VolatileContent, blocks: Iterable[Block]
) -> dict[tuple[tuple[int, int], int], Counter[Words]]:
    """Count blocks with known or unconfirmed patterns by path, number of words and wording key."""
    groups: dict[tuple[tuple[int, int], int], Counter[Words]] = defaultdict(Counter)
    for block in blocks:
        words = volatile.get_words(block)
        shape = (block.css_path, len(words))
        if shape in volatile.patterns or shape in volatile.path_gaps or shape in volatile.unconfirmed_patterns:
            groups[shape, compute_wording_key(block.css_path, words)][words] += 1
    return groups


def _update_path_stats(
    volatile: VolatileContent,
    page: PageKey,
    unmatched: Sequence[Block],
    partly_changed: set[int],
    blocks: Sequence[Block],
) -> dict[int, PathStats]:
    """Return the stats of each path after a second fetch.

    unmatched: blocks that appeared or disappeared.  partly_changed: keys of blocks of which only some words differed.
    Partly changed blocks, and blocks with gaps, do not count.
    """
    path_stats = dict(volatile.path_stats)
    differing = Counter(map(compute_path_key, unmatched))
    partly = Counter(
        compute_path_key(block)
        for block in blocks
        if compute_block_key(block) in partly_changed or volatile.mask_words(block) != split_words(block)
    )
    for key, count in Counter(map(compute_path_key, blocks)).items():
        stats = path_stats.pop(key, PathStats())
        if not differing[key]:
            path_stats[key] = replace(stats, steady=stats.steady + 1)
        elif differing[key] >= UNSTABLE_SHARE * (count - partly[key]):
            path_stats[key] = stats.add_unstable(page)
        else:
            path_stats[key] = replace(stats, mixed=stats.mixed + 1)
    return keep_newest(path_stats, MAX_PATHS)


def _update_shape_stats(volatile: VolatileContent, keys: set[int], blocks: Sequence[Block]) -> dict[int, ShapeStats]:
    """Return the stats of each shape after a second fetch. keys: those of the blocks that differed.

    A block with gaps counts only if it differed, because its gaps may hide a difference.
    """
    shape_stats = dict(volatile.shape_stats)
    differed = {compute_shape_key(block) for block in blocks if compute_block_key(block) in keys}
    for shape in differed | {compute_shape_key(block) for block in blocks if not volatile.has_gaps(block)}:
        before = shape_stats.pop(shape, ShapeStats())
        shape_stats[shape] = ShapeStats() if shape in differed else ShapeStats(before.steady + 1)
    return keep_newest(shape_stats, MAX_PATHS)


def count_changes(volatile: VolatileContent, blocks: Iterable[Block]) -> VolatileContent:
    """Return the volatile content after significant changes of these blocks without a second fetch."""
    shape_stats = dict(volatile.shape_stats)
    for shape in {compute_shape_key(block) for block in blocks} & shape_stats.keys():
        shape_stats[shape] = replace(shape_stats[shape], changes=shape_stats[shape].changes + 1)
    return replace(volatile, shape_stats=shape_stats)


def learn_replaced_words(
    volatile: VolatileContent,
    before: Block,
    after: Block,
    *,
    unconfirmed: UnconfirmedPatterns,
    differed: Mapping[ParameterAtPath, bool],
) -> VolatileContent | None:
    """Return the volatile content after some words of a block differed in a second fetch.

    Return None if they are not versions of one block, or links of which a differing parameter is False in `differed`.
    unconfirmed: patterns found by a single earlier second fetch.
    differed: for each link parameter at a path, whether all its values differed in this second fetch.
    """
    old, new = volatile.get_words(before), volatile.get_words(after)
    if before.css_path != after.css_path or len(old) != len(new):
        return None
    differing = {n for n in range(len(old)) if old[n] != new[n]}
    names = {parse_parameter_name(old[n]) for n in differing} if before.kind is BlockKind.LINK else {""}
    if all(names) and names == {parse_parameter_name(new[n]) for n in differing}:
        return volatile if all(differed.get((name, compute_path_hash(old))) for name in names) else None
    if not is_same_block(build_pattern(old, new), before.kind):
        return None
    return learn_differing_words(volatile, before.css_path, old, new, unconfirmed=unconfirmed)


def learn_differing_words(
    volatile: VolatileContent, path: int, first: Words, second: Words, *, unconfirmed: UnconfirmedPatterns
) -> VolatileContent:
    """Return the volatile content after a second fetch in which some words of a block differed.

    Words that also differed in another second fetch are volatile.
    unconfirmed: patterns found by a single earlier second fetch.
    """
    pattern = build_pattern(first, second)
    shape, gaps = (path, len(pattern)), list_gaps(pattern)
    proven = {n for each in unconfirmed.get(shape, ()) for n in list_gaps(each)}
    proven |= volatile.get_gaps(path, second).keys()
    if gaps.keys() <= proven:
        earlier = (each for each in unconfirmed.get(shape, ()) if list_gaps(each).keys() <= gaps.keys())
        for each in earlier:  # this fetch and the earlier one confirm each other
            volatile = add_pattern(volatile, path, each)
        return add_pattern(volatile, path, pattern)
    others = (each for each in volatile.unconfirmed_patterns.get(shape, ()) if each != pattern)
    patterns = {**volatile.unconfirmed_patterns, shape: (*others, pattern)[-MAX_PATTERNS_PER_SHAPE:]}
    volatile = replace(volatile, unconfirmed_patterns=keep_newest(patterns, MAX_PATTERNS))
    if gaps.keys().isdisjoint(proven):
        return volatile
    return add_pattern(volatile, path, tuple(each if n in proven else second[n] for n, each in enumerate(pattern)))


def drop_gaps(volatile: VolatileContent, block: Block) -> VolatileContent:
    """Return the volatile content without the gaps that apply to a block."""
    words = volatile.get_words(block)
    shape = (block.css_path, len(words))
    other_patterns = {key: each for key, each in volatile.patterns.items() if key != shape}
    others = tuple(pattern for pattern in volatile.patterns.get(shape, ()) if not matches_words(pattern, words))
    return replace(
        volatile,
        patterns={**other_patterns, shape: others} if others else other_patterns,
        path_gaps={key: each for key, each in volatile.path_gaps.items() if key != shape},
        unconfirmed_patterns={key: each for key, each in volatile.unconfirmed_patterns.items() if key != shape},
    )


def add_pattern(volatile: VolatileContent, path: int, pattern: WordPattern) -> VolatileContent:
    """Return the volatile content with one more pattern.

    If a known pattern has the same gaps and other words, the gaps apply regardless of the other words.
    """
    shape = (path, len(pattern))
    others: list[WordPattern] = []
    path_gaps = dict(volatile.path_gaps)
    for known_pattern in volatile.patterns.get(shape, ()):
        if known_pattern == pattern:
            continue
        others.append(known_pattern)
        if list_gaps(known_pattern) == list_gaps(pattern):
            path_gaps[shape] = {**path_gaps.get(shape, {}), **list_gaps(pattern)}
    patterns = {key: each for key, each in volatile.patterns.items() if key != shape}
    patterns[shape] = (*others, pattern)[-MAX_PATTERNS_PER_SHAPE:]
    newest, gaps = keep_newest(patterns, MAX_PATTERNS), keep_newest(path_gaps, MAX_PATTERNS)
    return replace(volatile, patterns=newest, path_gaps=gaps)


TEST_INTERVAL = 50  # of the visits where only masked blocks differ, one in this many is a test
DOUBTED_TEST_INTERVAL = 5  # the same if a masked block did not differ in its last second fetch


def find_hidden_blocks(before: BlockList, after: BlockList, volatile: VolatileContent) -> Sequence[Block]:
    """Return the blocks of a page that the previous version lacks, and whose volatile words or texts the mask hides."""
    before, after = volatile.apply_aliases(before), volatile.apply_aliases(after)
    old_blocks = set(before)
    new = (block for block in after if block not in old_blocks)
    return [block for block in new if volatile.is_noise(block) or volatile.mask_words(block) != split_words(block)]


def needs_test(blocks: Sequence[Block], volatile: VolatileContent, *, page: PageKey, visits: int) -> bool:
    """Return whether this visit should test, with a second fetch, if the hidden blocks still differ within seconds.

    blocks: the hidden blocks (`find_hidden_blocks`).
    visits: the number of the domain's visits so far. The choice is deterministic and does not prefer any page.
    """
    if not blocks:
        return False
    interval = DOUBTED_TEST_INTERVAL if any(map(volatile.is_doubted, blocks)) else TEST_INTERVAL
    return hash_text(f"{page.hex()} {visits}") % interval == 0
