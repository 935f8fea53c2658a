"""Learn from a second fetch of a page, seconds after the first: any difference between the two is volatile.

Second fetches also audit the mask: now and then one tests a difference that the mask hides. No proof is for ever.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from crawler.core.http.urls import PageKey
from crawler.core.noise.noise import (
    MOST_PATHS,
    MOST_PATTERNS,
    PatternsOnce,
    Volatile,
    kind_of,
    noise_of,
    trial_of,
    wording_of,
)
from crawler.core.noise.session_params import ParameterAtPath, learn_parameters, moved_in, parameter_of, path_of
from crawler.core.noise.stability import PROVEN, UNPROVEN, PathStats, ShapeStats, VolatilityCount
from crawler.core.noise.words import Pattern, Words, fits, gaps_of, is_same_block, newest, pattern_of, words_of
from crawler.core.page.fingerprint import number_of
from crawler.core.page.outline import Block, BlockKind, BlockList, Sides

MOST_SAME = 32  # patterns of one path and number of words
MOST_NOISE = 1024
MOSTLY = 0.5  # share of the blocks of one path that differ, from which on the path swung


def learn_from_repeat(
    volatile: Volatile, *, page: PageKey, differing: Sequence[Sides], first: Sequence[Block], second: Sequence[Block]
) -> Volatile:
    """The volatile places after a second fetch.

    differing: blocks of the first fetch, each with the one in its place in the second; None where only one fetch had
    such a block.  first, second: all blocks of both.
    """
    moved = moved_in(first, second)
    known = replace(
        _without_steady_gaps(volatile, first, second), parameters=learn_parameters(volatile.parameters, moved)
    )
    lost: list[Block] = []
    named: set[int] = set()
    for before, after in differing:
        learnt = with_replaced(known, before, after, once=volatile.once, moved=moved) if before and after else None
        if learnt is None:
            lost += filter(None, (before, after))
        else:
            known = learnt
            named |= {noise_of(block) for block in (before, after) if block}
    both, lost_forms = (*first, *second), set(map(noise_of, lost))
    noise = _noise_after(known.noise, lost_forms, set(map(noise_of, both)))
    known = _with_own_blocks(known, first, second)
    return replace(
        known,
        noise=noise,
        path_stats=newest(_path_stats_after(known, page, lost, named, both), MOST_PATHS),
        shape_stats=newest(_shape_stats_after(known, named | lost_forms, both), MOST_PATHS),
    )


def _without_steady_gaps(volatile: Volatile, first: Sequence[Block], second: Sequence[Block]) -> Volatile:
    """The volatile places without gaps of blocks that both fetches had and that stood still in many second fetches."""
    old, new = _with_gaps(volatile, first), _with_gaps(volatile, second)
    known, proofs = volatile, dict(volatile.proofs)
    for form in old.keys() & new.keys():
        proof = proofs.pop(form, PROVEN).after(moved=old[form] != new[form])
        if proof.holds:
            proofs[form] = proof
        else:
            (block, *_) = old[form]
            known = without_gaps(known, block)
    return replace(known, proofs=newest(proofs, MOST_PATHS))


def _with_gaps(volatile: Volatile, blocks: Iterable[Block]) -> dict[int, Counter[Block]]:
    found: dict[int, Counter[Block]] = defaultdict(Counter)
    for block in blocks:
        if volatile.has_gaps(block):
            found[volatile.form_of(block)][block] += 1
    return found


def _noise_after(known: Mapping[int, VolatilityCount], lost: set[int], met: set[int]) -> dict[int, VolatilityCount]:
    """The counts of blocks that came or went, by noise_of. lost: did so now.  met: in either fetch."""
    found = dict(known)
    for noise in (met & found.keys()) | lost:
        proof = found.pop(noise, UNPROVEN).after(moved=noise in lost)
        if proof != UNPROVEN:
            found[noise] = proof
    return newest(found, MOST_NOISE)


def _with_own_blocks(volatile: Volatile, first: Sequence[Block], second: Sequence[Block]) -> Volatile:
    """The volatile places with `own` updated: a block that stood still beside others that moved has no gaps."""
    old, new = (_by_form(volatile, blocks) for blocks in (first, second))
    moved = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    lively = {same for same, _ in moved}
    own = dict(volatile.own)
    for _, form in moved:
        own.pop(form, None)
    own |= dict.fromkeys(form for same, form in old if same in lively and (same, form) not in moved)
    return replace(volatile, own=newest(own, MOST_PATHS))


def _by_form(volatile: Volatile, blocks: Iterable[Block]) -> dict[tuple[tuple[int, int], int], Counter[Words]]:
    """The wordings of blocks with a known or suspected pattern, by path and number of words, and by wording_of."""
    found: dict[tuple[tuple[int, int], int], Counter[Words]] = defaultdict(Counter)
    for block in blocks:
        words = volatile.words(block)
        same = (block.css_path, len(words))
        if same in volatile.patterns or same in volatile.anywhere or same in volatile.once:
            found[same, wording_of(block.css_path, words)][words] += 1
    return found


def _path_stats_after(
    volatile: Volatile, page: PageKey, lost: Sequence[Block], named: set[int], blocks: Sequence[Block]
) -> dict[int, PathStats]:
    """The stats of each path after a second fetch. lost: blocks that came or went.

    named: blocks of which only some words differed; these, and blocks with gaps, say nothing of the path's others.
    """
    found = dict(volatile.path_stats)
    differing = Counter(map(kind_of, lost))
    partly = Counter(
        kind_of(block) for block in blocks if noise_of(block) in named or volatile.masked(block) != words_of(block)
    )
    for kind, many in Counter(map(kind_of, blocks)).items():
        stats = found.pop(kind, PathStats())
        if not differing[kind]:
            found[kind] = replace(stats, steady=stats.steady + 1)
        elif differing[kind] >= MOSTLY * (many - partly[kind]):
            found[kind] = stats.swung_on(page)
        else:
            found[kind] = replace(stats, mixed=stats.mixed + 1)
    return found


def _shape_stats_after(volatile: Volatile, differing: set[int], blocks: Sequence[Block]) -> dict[int, ShapeStats]:
    """The stats by path and number of words after a second fetch.

    A block with gaps counts only where it differed: beside its gaps it is not known to have stood still.
    """
    found = dict(volatile.shape_stats)
    moved = {trial_of(block) for block in blocks if noise_of(block) in differing}
    for trial in moved | {trial_of(block) for block in blocks if not volatile.has_gaps(block)}:
        before = found.pop(trial, ShapeStats())
        found[trial] = ShapeStats() if trial in moved else ShapeStats(before.steady + 1)
    return found


def count_changes(volatile: Volatile, blocks: Iterable[Block]) -> Volatile:
    """The volatile places after significant changes of these blocks without a second fetch."""
    found = dict(volatile.shape_stats)
    for trial in {trial_of(block) for block in blocks} & found.keys():
        found[trial] = replace(found[trial], changes=found[trial].changes + 1)
    return replace(volatile, shape_stats=found)


def with_replaced(
    volatile: Volatile, before: Block, after: Block, *, once: PatternsOnce, moved: Mapping[ParameterAtPath, bool]
) -> Volatile | None:
    """The volatile places after some words of a block differed in a second fetch; None if too little of it stayed.

    moved: for each parameter of links, whether it differed in this second fetch.
    """
    old, new = volatile.words(before), volatile.words(after)
    if before.css_path != after.css_path or len(old) != len(new):
        return None
    differing = {n for n in range(len(old)) if old[n] != new[n]}
    names = {parameter_of(old[n]) for n in differing} if before.kind is BlockKind.LINK else {""}
    if all(names) and names == {parameter_of(new[n]) for n in differing}:
        return volatile if all(moved.get((name, path_of(old))) for name in names) else None
    if not is_same_block(pattern_of(old, new), before.kind):
        return None
    return with_differing(volatile, before.css_path, old, new, once=once)


def with_differing(volatile: Volatile, path: int, first: Words, second: Words, *, once: PatternsOnce) -> Volatile:
    """The volatile places after a second fetch in which some words of a block differed.

    Words that differed in another second fetch, too, are volatile. once: patterns seen in a single one before this.
    """
    pattern = pattern_of(first, second)
    same, gaps = (path, len(pattern)), gaps_of(pattern)
    doubted = volatile.once.get(same, ())
    proven = {n for each in once.get(same, ()) for n in gaps_of(each)} | volatile.gaps(path, second).keys()
    if gaps.keys() <= proven:
        for each in once.get(same, ()):  # this fetch and the earlier one prove each other
            if gaps_of(each).keys() <= gaps.keys():
                volatile = with_pattern(volatile, path, each)
        return with_pattern(volatile, path, pattern)
    once = {**volatile.once, same: (*(each for each in doubted if each != pattern), pattern)[-MOST_SAME:]}
    volatile = replace(volatile, once=newest(once, MOST_PATTERNS))
    if gaps.keys().isdisjoint(proven):
        return volatile
    return with_pattern(volatile, path, tuple(each if n in proven else second[n] for n, each in enumerate(pattern)))


def without_gaps(volatile: Volatile, block: Block) -> Volatile:
    """The volatile places without all that is known of gaps of such a block."""
    words = volatile.words(block)
    same = (block.css_path, len(words))
    left = {key: each for key, each in volatile.patterns.items() if key != same}
    others = tuple(pattern for pattern in volatile.patterns.get(same, ()) if not fits(pattern, words))
    return replace(
        volatile,
        patterns={**left, same: others} if others else left,
        anywhere={key: each for key, each in volatile.anywhere.items() if key != same},
        once={key: each for key, each in volatile.once.items() if key != same},
    )


def with_pattern(volatile: Volatile, path: int, pattern: Pattern) -> Volatile:
    """The volatile places with one more pattern.

    Where only the other words differ from those of a known pattern with the same gaps, these hold whatever they are.
    """
    same = (path, len(pattern))
    kept: list[Pattern] = []
    anywhere = dict(volatile.anywhere)
    for known in volatile.patterns.get(same, ()):
        if known == pattern:
            continue
        kept.append(known)
        if gaps_of(known) == gaps_of(pattern):
            anywhere[same] = {**anywhere.get(same, {}), **gaps_of(pattern)}
    patterns = dict(volatile.patterns)
    patterns.pop(same, None)
    patterns[same] = (*kept, pattern)[-MOST_SAME:]
    return replace(volatile, patterns=newest(patterns, MOST_PATTERNS), anywhere=newest(anywhere, MOST_PATTERNS))


TESTED_EVERY = 50  # looks at which only masked blocks differ, for one test
DOUBTED_EVERY = 5  # such looks for one test, where a masked block stood still in the last second fetch


def hidden_by_mask(before: BlockList, after: BlockList, volatile: Volatile) -> Sequence[Block]:
    """The volatile blocks of a page that differ from those before."""
    before, after = volatile.named(before), volatile.named(after)
    old_blocks = set(before)
    new = (block for block in after if block not in old_blocks)
    return [block for block in new if volatile.is_noise(block) or volatile.masked(block) != words_of(block)]


def wants_test(blocks: Sequence[Block], volatile: Volatile, *, page: PageKey, looks: int) -> bool:
    """Whether this look is to test, by a second fetch, if the hidden blocks still differ within seconds.

    looks: at the domain so far. The choice of tests does not depend on chance, and favours no page.
    """
    if not blocks:
        return False
    every = DOUBTED_EVERY if any(map(volatile.is_doubted, blocks)) else TESTED_EVERY
    return number_of(f"{page.hex()} {looks}") % every == 0
