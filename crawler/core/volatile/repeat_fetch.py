"""What two looks at a page teach that were seconds apart: whatever differs between them is no news."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from crawler.core.http import PageKey
from crawler.core.page import Block, BlockKind
from crawler.core.volatile.bounds import newest
from crawler.core.volatile.session_params import Behind, learn_parameters, moved_in, parameter_of, path_of
from crawler.core.volatile.stability import PROVEN, UNPROVEN, PathStats, ShapeStats, VolatilityCount
from crawler.core.volatile.volatile import (
    MOST_NOISE,
    MOST_PATHS,
    Once,
    Volatile,
    kind_of,
    noise_of,
    said_of,
    trial_of,
    with_differing,
    without_gaps,
)
from crawler.core.volatile.words import Words, is_one_place, pattern_of, words_of

MOSTLY = 0.5  # of the places of one kind


def learn_from_repeat(
    volatile: Volatile,
    *,
    page: PageKey,
    replaced: Sequence[tuple[Block, Block]],
    others: Sequence[Block],
    first: Sequence[Block],
    second: Sequence[Block],
) -> Volatile:
    """What two looks at a page teach that were seconds apart.

    replaced: places of the first look and what stood there in the second.  others: places that only one of them had.
    first, second: all places of both.
    """
    moved = moved_in(first, second)
    known = replace(_upheld(volatile, first, second), parameters=learn_parameters(volatile.parameters, moved))
    lost, named = list(others), set()
    for before, after in replaced:
        learnt = learn_replaced(known, before, after, once=volatile.once, moved=moved)
        if learnt is None:
            lost += [before, after]
        else:
            known = learnt
            named |= {noise_of(before), noise_of(after)}
    noise = _noisy(known.noise, {noise_of(place) for place in lost}, {noise_of(place) for place in (*first, *second)})
    differing = named | {noise_of(place) for place in lost}
    known = _owned(known, first, second)
    return replace(
        known,
        noise=noise,
        path_stats=newest(_stood(known, page, lost, named, (*first, *second)), MOST_PATHS),
        shape_stats=newest(_tried(known, differing, (*first, *second)), MOST_PATHS),
    )


def _upheld(volatile: Volatile, first: Sequence[Block], second: Sequence[Block]) -> Volatile:
    """Gaps of places that both looks have, as far as they still hold: what stands still in many pairs has none."""
    one, other = _with_gaps(volatile, first), _with_gaps(volatile, second)
    known, proofs = volatile, dict(volatile.proofs)
    for form in one.keys() & other.keys():
        proof = proofs.pop(form, PROVEN).after(moved=one[form] != other[form])
        if proof.holds:
            proofs[form] = proof
        else:
            (place, *_) = one[form]
            known = without_gaps(known, place)
    return replace(known, proofs=newest(proofs, MOST_PATHS))


def _with_gaps(volatile: Volatile, places: Iterable[Block]) -> dict[int, Counter[Block]]:
    found: dict[int, Counter[Block]] = defaultdict(Counter)
    for place in places:
        if volatile.has_gaps(place):
            found[volatile.form_of(place)][place] += 1
    return found


def _noisy(known: Mapping[int, VolatilityCount], lost: set[int], met: set[int]) -> dict[int, VolatilityCount]:
    """Texts that came or went within seconds, without those that stood still often enough since."""
    found = dict(known)
    for noise in (met & found.keys()) | lost:
        proof = found.pop(noise, UNPROVEN).after(moved=noise in lost)
        if proof != UNPROVEN:
            found[noise] = proof
    return newest(found, MOST_NOISE)


def _owned(volatile: Volatile, first: Sequence[Block], second: Sequence[Block]) -> Volatile:
    """What stood still beside its like that moved within seconds has no gaps, until it moves itself."""
    one, other = (_by_form(volatile, places) for places in (first, second))
    moved = {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}
    lively = {same for same, _ in moved}
    own = dict(volatile.own)
    for _, form in moved:
        own.pop(form, None)
    own |= dict.fromkeys(form for same, form in one if same in lively and (same, form) not in moved)
    return replace(volatile, own=newest(own, MOST_PATHS))


def _by_form(volatile: Volatile, places: Iterable[Block]) -> dict[tuple[tuple[int, int], int], Counter[Words]]:
    """What is said where something is, or may be, volatile: by path and number of words, and by all but the numbers."""
    found: dict[tuple[tuple[int, int], int], Counter[Words]] = defaultdict(Counter)
    for place in places:
        words = volatile.said(place)
        same = (place.css_path, len(words))
        if same in volatile.patterns or same in volatile.anywhere or same in volatile.once:
            found[same, said_of(place.css_path, words)][words] += 1
    return found


def _stood(
    volatile: Volatile, page: PageKey, lost: Sequence[Block], named: set[int], places: Sequence[Block]
) -> dict[int, PathStats]:
    """What has gaps tells nothing of the other places. named: those of which only some words differed."""
    found = dict(volatile.path_stats)
    differing = Counter(map(kind_of, lost))
    partly = Counter(
        kind_of(place) for place in places if noise_of(place) in named or volatile.masked(place) != words_of(place)
    )
    for kind, many in Counter(map(kind_of, places)).items():
        stood = found.pop(kind, PathStats())
        if not differing[kind]:
            found[kind] = replace(stood, steady=stood.steady + 1)
        elif differing[kind] >= MOSTLY * (many - partly[kind]):
            found[kind] = stood.swung_on(page)
        else:
            found[kind] = replace(stood, mixed=stood.mixed + 1)
    return found


def _tried(volatile: Volatile, differing: set[int], places: Sequence[Block]) -> dict[int, ShapeStats]:
    """Places that have gaps stood still as far as is known only; of them a pair tells more where they differ again."""
    found = dict(volatile.shape_stats)
    moved = {trial_of(place) for place in places if noise_of(place) in differing}
    for trial in moved | {trial_of(place) for place in places if not volatile.has_gaps(place)}:
        before = found.pop(trial, ShapeStats())
        found[trial] = ShapeStats() if trial in moved else ShapeStats(before.steady + 1)
    return found


def learn_changes(volatile: Volatile, places: Iterable[Block]) -> Volatile:
    """In these places there was news, and no pair was taken."""
    found = dict(volatile.shape_stats)
    for trial in {trial_of(place) for place in places} & found.keys():
        found[trial] = replace(found[trial], changes=found[trial].changes + 1)
    return replace(volatile, shape_stats=found)


def learn_replaced(
    volatile: Volatile, before: Block, after: Block, *, once: Once, moved: Mapping[Behind, bool]
) -> Volatile | None:
    """A place whose words differ here and there: twice, and these words are volatile. None if nothing of it stayed.

    moved: which parameters differed in this pair.
    """
    one, other = volatile.said(before), volatile.said(after)
    if before.css_path != after.css_path or len(one) != len(other):
        return None
    differing = {n for n in range(len(one)) if one[n] != other[n]}
    names = {parameter_of(one[n]) for n in differing} if before.kind is BlockKind.LINK else {""}
    if all(names) and names == {parameter_of(other[n]) for n in differing}:
        return volatile if all(moved.get((name, path_of(one))) for name in names) else None
    if not is_one_place(pattern_of(one, other), before.kind):
        return None
    return with_differing(volatile, before.css_path, one, other, once=once)
