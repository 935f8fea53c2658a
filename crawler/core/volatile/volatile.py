"""What differs from one look to the next though nothing happened: clocks, counters, tokens, advertisements.

It is learnt from paired looks alone, two full looks seconds apart: what differs between these two is no news. That a
place differs between looks of different days proves nothing: a price that moves daily stays a change. There is one
other proof, by time itself: a number that has grown by exactly the hours, days or weeks that passed counts them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from crawler.core.page import Block, BlockKind, BlockList, number_of
from crawler.core.volatile.bounds import newest, newest_within
from crawler.core.volatile.path_aliases import PathAliases, with_aliases
from crawler.core.volatile.session_params import Parameters, are_doubted, said_without
from crawler.core.volatile.stability import PROVEN, CounterStats, PathStats, ShapeStats, VolatilityCount
from crawler.core.volatile.words import (
    Pattern,
    Words,
    agrees,
    fits,
    gaps_of,
    numberless,
    pattern_of,
    words_of,
)

MOST_PATTERNS = 1024  # of one domain; the oldest are forgotten first
MOST_SAME = 32  # patterns of one path and length
MOST_NOISE = 1024
MOST_PATHS = 4096
ENOUGH_STEADY = 3  # pairs in which a path stood still, and it needs no more of them

Once = Mapping[tuple[int, int], tuple[Pattern, ...]]  # by path and number of words


@dataclass(frozen=True, slots=True)
class Volatile:
    """What is known of the volatile places of one domain; immutable, and bounded.

    patterns: by path and number of words.  anywhere: gaps at a path whatever its other words.
    once: what differed in a single pair; it may have been edited between the two looks.
    parameters: of links.  noise: whole places that came or went between two looks of a pair, by noise_of.
    proofs: of places with gaps that pairs met again, by form_of.
    own: by said_of, what has no gaps: it stood still while others of its kind moved.
    steadiness: by kind_of.  counting: of numbers that stand alike.  trials: by trial_of.
    names: the paths by which places are known.
    """

    patterns: Mapping[tuple[int, int], tuple[Pattern, ...]] = field(default_factory=dict)
    anywhere: Mapping[tuple[int, int], Mapping[int, str]] = field(default_factory=dict)
    once: Once = field(default_factory=dict)
    parameters: Parameters = field(default_factory=dict)
    noise: Mapping[int, VolatilityCount] = field(default_factory=dict)
    proofs: Mapping[int, VolatilityCount] = field(default_factory=dict)
    own: Mapping[int, None] = field(default_factory=dict)
    path_stats: Mapping[int, PathStats] = field(default_factory=dict)
    counters: Mapping[int, CounterStats] = field(default_factory=dict)
    shape_stats: Mapping[int, ShapeStats] = field(default_factory=dict)
    aliases: PathAliases = field(default_factory=dict)

    def named(self, outline: BlockList) -> BlockList:
        """A page with its places where they are known; all else here asks for places that are so named."""
        return with_aliases(outline, self.aliases)

    def masked(self, place: Block) -> Words:
        """The words of a place, with nothing in place of those that are volatile."""
        words = self.said(place)
        gaps = self.gaps(place.css_path, words)
        return tuple(gaps.get(n, word) for n, word in enumerate(words)) if gaps else words

    def both(self, before: Block, after: Block) -> tuple[Words, Words]:
        """The masked words of a place then and now: what is volatile in the one is so in the other."""
        one, other = self.said(before), self.said(after)
        if before.css_path != after.css_path or len(one) != len(other):
            return self.masked(before), self.masked(after)
        gaps = self.gaps(before.css_path, one) | self.gaps(after.css_path, other)
        if any(not agrees(gap, one[n]) or not agrees(gap, other[n]) for n, gap in gaps.items()):
            return self.masked(before), self.masked(after)
        return tuple(gaps.get(n, w) for n, w in enumerate(one)), tuple(gaps.get(n, w) for n, w in enumerate(other))

    def loosely(self, before: Block, after: Block) -> tuple[Words, Words] | None:
        """The same with all gaps of such places, whatever their other words are; None where there are none."""
        one, other = self.said(before), self.said(after)
        patterns = self.patterns.get((before.css_path, len(one)), ())
        if before.css_path != after.css_path or len(one) != len(other) or not patterns:
            return None
        gaps = {n: gap for pattern in patterns for n, gap in gaps_of(pattern).items()}
        left = {n: gap for n, gap in gaps.items() if agrees(gap, one[n]) and agrees(gap, other[n])}
        return tuple(left.get(n, w) for n, w in enumerate(one)), tuple(left.get(n, w) for n, w in enumerate(other))

    def said(self, place: Block) -> Words:
        """The words of a place without volatile parameters, which other pages' links do not even have."""
        words = words_of(place)
        return said_without(self.parameters, words) if place.kind is BlockKind.LINK and self.parameters else words

    def gaps(self, path: int, words: Words) -> dict[int, str]:
        """Which words of a place are volatile, with what stands for them."""
        same = (path, len(words))
        found = {n: gap for n, gap in self.anywhere.get(same, {}).items() if agrees(gap, words[n])}
        for pattern in self.patterns.get(same, ()):
            if all(n in found or agrees(each, word) for n, (each, word) in enumerate(zip(pattern, words, strict=True))):
                found |= gaps_of(pattern)
        return {} if found and said_of(path, words) in self.own else found

    def is_noise(self, place: Block) -> bool:
        """Whether this very place came or went within seconds before, or what stands there never stands still."""
        known = self.path_stats.get(kind_of(place), PathStats())
        return known.swings or (known.is_lively and noise_of(place) in self.noise)

    def swings(self, place: Block) -> bool:
        """Whether what stands there differs, as a whole, from one look to the next."""
        known = self.path_stats.get(kind_of(place))
        return known is not None and known.swings

    def is_by_turns(self, before: Block, after: Block) -> bool:
        """Whether one of the two came or went within seconds, and so does whatever stands there, if anything.

        Another number in the same words is no other text that had its turn.
        """
        known = self.path_stats.get(kind_of(before))
        if (
            before.css_path != after.css_path
            or before.kind is not after.kind
            or known is None
            or not known.turns
            or list(map(numberless, words_of(before))) == list(map(numberless, words_of(after)))
        ):
            return False
        return noise_of(before) in self.noise or noise_of(after) in self.noise

    def is_tested(self, place: Block) -> bool:
        """Whether pairs have shown often enough that what stands here stands still; ever more seldom it is asked again,
        since places alike in name can hold a counter on other pages.
        """
        known = self.shape_stats.get(trial_of(place), ShapeStats())
        return known.steady >= ENOUGH_STEADY and known.changes < known.steady

    def is_unknown(self, place: Block) -> bool:
        """Whether one pair at most has told anything of places like this."""
        return self.shape_stats.get(trial_of(place), ShapeStats()).steady <= 1

    def is_suspect(self, place: Block) -> bool:
        """Whether one pair has found it differing, and none yet that it does so again."""
        words = self.said(place)
        is_noise = noise_of(place) in self.noise and not self.is_noise(place)
        return is_noise or any(fits(pattern, words) for pattern in self.once.get((place.css_path, len(words)), ()))

    def is_doubted(self, place: Block) -> bool:
        """Whether it is volatile, and stood still in the last pair that met it."""
        if place.kind is BlockKind.LINK and are_doubted(self.parameters, words_of(place)):
            return True
        proof = self.noise.get(noise_of(place)) or self.proofs.get(self.form_of(place), PROVEN)
        return proof.steady > 0

    def form_of(self, place: Block) -> int:
        """A number for what is compared of a place."""
        return number_of(f"{place.css_path} {' '.join(self.masked(place))}")

    def has_moved(self, place: Block) -> bool:
        """Whether a pair has found words differing where this stands, in a place of as many words."""
        same = (place.css_path, len(self.said(place)))
        return same in self.patterns or same in self.once

    def has_gaps(self, place: Block) -> bool:
        """Whether some words of a place are volatile: a machine writes it."""
        return bool(self.gaps(place.css_path, self.said(place)))


NOTHING_VOLATILE = Volatile()


def kind_of(place: Block) -> int:
    """A number for places of the same path that hold the same: a picture can stand still where words do not."""
    return number_of(f"{place.css_path} {place.kind}")


def trial_of(place: Block) -> int:
    """A number for places of the same path and length."""
    return number_of(f"{place.css_path} {place.kind} {len(words_of(place))}")


def noise_of(place: Block) -> int:
    """A number for a place with all that it says."""
    return number_of(f"{place.css_path} {place.kind} {place.text}")


def said_of(path: int, words: Words) -> int:
    """A number for places of one path that say the same but for their numbers."""
    return number_of(f"{path} {' '.join(map(numberless, words))}")


def with_differing(volatile: Volatile, path: int, one: Words, other: Words, *, once: Once) -> Volatile:
    """After a pair in which some words of a place differed: those that had differed in another pair are volatile.

    once: what had differed in a single pair before this one.
    """
    pattern = pattern_of(one, other)
    same, gaps = (path, len(pattern)), gaps_of(pattern)
    doubted = volatile.once.get(same, ())
    proven = {n for each in once.get(same, ()) for n in gaps_of(each)} | volatile.gaps(path, other).keys()
    if gaps.keys() <= proven:
        for each in once.get(same, ()):  # which this pair proves, as they prove it
            if gaps_of(each).keys() <= gaps.keys():
                volatile = with_pattern(volatile, path, each)
        return with_pattern(volatile, path, pattern)
    once = {**volatile.once, same: (*(each for each in doubted if each != pattern), pattern)[-MOST_SAME:]}
    volatile = replace(volatile, once=newest(once, MOST_PATTERNS))
    if gaps.keys().isdisjoint(proven):
        return volatile
    return with_pattern(volatile, path, tuple(each if n in proven else other[n] for n, each in enumerate(pattern)))


def without_gaps(volatile: Volatile, place: Block) -> Volatile:
    """As if no pair had found words of such a place differing."""
    words = volatile.said(place)
    same = (place.css_path, len(words))
    left = {key: each for key, each in volatile.patterns.items() if key != same}
    others = tuple(pattern for pattern in volatile.patterns.get(same, ()) if not fits(pattern, words))
    return replace(
        volatile,
        patterns={**left, same: others} if others else left,
        anywhere={key: each for key, each in volatile.anywhere.items() if key != same},
        once={key: each for key, each in volatile.once.items() if key != same},
    )


def with_pattern(volatile: Volatile, path: int, pattern: Pattern) -> Volatile:
    """Where only the other words differ from those of a known one with the same gaps, these hold anywhere."""
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


MOST_CHARS = 1 << 19  # of patterns and of gaps; of words as pages have them, 80,000


def trimmed(volatile: Volatile, *, chars: int = MOST_CHARS) -> Volatile:
    """What is known, without its oldest patterns and gaps where all would take more room than that.

    What would take more than a quarter of the room alone is not kept either. Always: unchanged if it fits.
    """
    patterns = newest_within(volatile.patterns, most=MOST_PATTERNS, chars=chars, length=_length)
    once = newest_within(volatile.once, most=MOST_PATTERNS, chars=chars, length=_length)
    every = {key: (gaps,) for key, gaps in volatile.anywhere.items()}
    gaps = newest_within(every, most=MOST_PATTERNS, chars=chars, length=lambda gaps: _length(gaps.values()))
    if patterns is volatile.patterns and once is volatile.once and gaps is every:
        return volatile
    anywhere = {key: only for key, (only,) in gaps.items()}
    return replace(volatile, patterns=patterns, once=once, anywhere=anywhere)


def _length(words: Iterable[str]) -> int:
    return sum(len(word) + 1 for word in words)
