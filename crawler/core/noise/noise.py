"""The volatile places of a domain: clocks, counters, tokens, advertisements, which differ though nothing happened.

They are learnt from second fetches alone, seconds after the first: a difference between these two is no change. A
difference between looks of different days proves nothing: a price that moves daily stays a change. Two other
proofs are of time itself: a number that has grown by exactly the hours, days or weeks that passed counts them; and a
date between two looks that is all that differs, look after look, is the date of a build.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from crawler.core.noise.alignment import PathAliases, with_aliases
from crawler.core.noise.session_params import Parameters, are_doubted, without_volatile
from crawler.core.noise.stability import PROVEN, CounterStats, PathStats, ShapeStats, StampStats, VolatilityCount
from crawler.core.noise.words import Pattern, Words, agrees, fits, gaps_of, newest_within, numberless, words_of
from crawler.core.page.fingerprint import number_of
from crawler.core.page.outline import Block, BlockKind, BlockList

MOST_PATTERNS = 1024  # of one domain; the oldest are forgotten first
MOST_PATHS = 4096
ENOUGH_STEADY = 3  # second fetches in which a block stood still, after which it needs no more of them

PatternsOnce = Mapping[tuple[int, int], tuple[Pattern, ...]]  # by path and number of words


@dataclass(frozen=True, slots=True)
class Volatile:
    """The volatile places learnt of one domain; immutable, and bounded. A gap is a volatile word of a block.

    patterns: by path and number of words.  anywhere: gaps at a path whatever its other words.
    once: patterns seen in a single second fetch; the block may have been edited between the two fetches.
    parameters: of links.  noise: whole blocks that came or went between two fetches, by noise_of.
    proofs: of blocks with gaps that second fetches met again, by form_of.
    own: blocks without gaps, by wording_of: they stood still while others of their path moved.
    path_stats: by kind_of.  counters: of numbers with one path and context.  shape_stats: by trial_of.
    stamps: dates that outlive a second fetch (dates.py).  aliases: the paths under which blocks are stored.
    """

    patterns: Mapping[tuple[int, int], tuple[Pattern, ...]] = field(default_factory=dict)
    anywhere: Mapping[tuple[int, int], Mapping[int, str]] = field(default_factory=dict)
    once: PatternsOnce = field(default_factory=dict)
    parameters: Parameters = field(default_factory=dict)
    noise: Mapping[int, VolatilityCount] = field(default_factory=dict)
    proofs: Mapping[int, VolatilityCount] = field(default_factory=dict)
    own: Mapping[int, None] = field(default_factory=dict)
    path_stats: Mapping[int, PathStats] = field(default_factory=dict)
    counters: Mapping[int, CounterStats] = field(default_factory=dict)
    shape_stats: Mapping[int, ShapeStats] = field(default_factory=dict)
    stamps: Mapping[int, StampStats] = field(default_factory=dict)
    aliases: PathAliases = field(default_factory=dict)

    def named(self, blocks: BlockList) -> BlockList:
        """The blocks of a page under the paths at which they are stored; all other methods expect such blocks."""
        return with_aliases(blocks, self.aliases)

    def masked(self, block: Block) -> Words:
        """The words of a block, with its gap in place of each volatile word."""
        words = self.words(block)
        gaps = self.gaps(block.css_path, words)
        return _with_gaps(words, gaps)

    def both(self, before: Block, after: Block) -> tuple[Words, Words]:
        """The masked words of a block then and now: a word that is volatile in one wording is masked in both."""
        first, second = self.words(before), self.words(after)
        if before.css_path != after.css_path or len(first) != len(second):
            return self.masked(before), self.masked(after)
        gaps = self.gaps(before.css_path, first) | self.gaps(after.css_path, second)
        if any(not agrees(gap, first[n]) or not agrees(gap, second[n]) for n, gap in gaps.items()):
            return self.masked(before), self.masked(after)
        return _with_gaps(first, gaps), _with_gaps(second, gaps)

    def loosely(self, before: Block, after: Block) -> tuple[Words, Words] | None:
        """Both wordings with *every* gap ever learned for this path and word count.

        Gaps of patterns that do not match as a whole count, too. None if the two cannot be paired word by word, or no
        gap is known.
        """
        first, second = self.words(before), self.words(after)
        patterns = self.patterns.get((before.css_path, len(first)), ())
        if before.css_path != after.css_path or len(first) != len(second) or not patterns:
            return None
        gaps = {n: gap for pattern in patterns for n, gap in gaps_of(pattern).items()}
        left = {n: gap for n, gap in gaps.items() if agrees(gap, first[n]) and agrees(gap, second[n])}
        return _with_gaps(first, left), _with_gaps(second, left)

    def words(self, block: Block) -> Words:
        """The words of a block, for a link without its volatile parameters."""
        words = words_of(block)
        return without_volatile(self.parameters, words) if block.kind is BlockKind.LINK and self.parameters else words

    def gaps(self, path: int, words: Words) -> dict[int, str]:
        """The volatile words of a block at a path: their positions, each with the gap that stands for it."""
        same = (path, len(words))
        found = {n: gap for n, gap in self.anywhere.get(same, {}).items() if agrees(gap, words[n])}
        for pattern in self.patterns.get(same, ()):
            if all(n in found or agrees(each, word) for n, (each, word) in enumerate(zip(pattern, words, strict=True))):
                found |= gaps_of(pattern)
        return {} if found and wording_of(path, words) in self.own else found

    def is_noise(self, block: Block) -> bool:
        """Whether this very block came or went between two fetches before, or its path never stands still."""
        known = self.path_stats.get(kind_of(block), PathStats())
        return known.swings or (known.is_lively and noise_of(block) in self.noise)

    def swings(self, block: Block) -> bool:
        """Whether the text at this path differs, as a whole, from one fetch to the next."""
        return self.path_stats.get(kind_of(block), PathStats()).swings

    def is_by_turns(self, before: Block, after: Block) -> bool:
        """Whether texts at this path replace each other within seconds, and one of the two blocks was among them.

        Two texts that differ in numbers only are not taken for two such texts.
        """
        if before.css_path != after.css_path or not self.path_stats.get(kind_of(before), PathStats()).turns:
            return False
        if before.kind is not after.kind or self.noise.keys().isdisjoint((noise_of(before), noise_of(after))):
            return False
        return list(map(numberless, words_of(before))) != list(map(numberless, words_of(after)))

    def is_tested(self, block: Block) -> bool:
        """Whether second fetches have shown often enough that such a block stands still.

        Changes since then call for another test, ever more seldom: on other pages its path may hold a counter.
        """
        known = self.shape_stats.get(trial_of(block), ShapeStats())
        return known.steady >= ENOUGH_STEADY and known.changes < known.steady

    def is_unknown(self, block: Block) -> bool:
        """Whether at most one second fetch has shown blocks like this standing still."""
        return self.shape_stats.get(trial_of(block), ShapeStats()).steady <= 1

    def is_suspect(self, block: Block) -> bool:
        """Whether one second fetch has found the block differing, and no other has confirmed it yet."""
        words = self.words(block)
        is_noise = noise_of(block) in self.noise and not self.is_noise(block)
        return is_noise or any(fits(pattern, words) for pattern in self.once.get((block.css_path, len(words)), ()))

    def is_doubted(self, block: Block) -> bool:
        """Whether the block is volatile, but stood still in the last second fetch that met it."""
        if block.kind is BlockKind.LINK and are_doubted(self.parameters, words_of(block)):
            return True
        proof = self.noise.get(noise_of(block)) or self.proofs.get(self.form_of(block), PROVEN)
        return proof.steady > 0

    def form_of(self, block: Block) -> int:
        """A hash of a block's path and masked words: the part that is compared."""
        return number_of(f"{block.css_path} {' '.join(self.masked(block))}")

    def has_moved(self, block: Block) -> bool:
        """Whether a second fetch has found words differing at this path, in a block of as many words."""
        same = (block.css_path, len(self.words(block)))
        return same in self.patterns or same in self.once

    def has_gaps(self, block: Block) -> bool:
        """Whether some words of a block are volatile."""
        return bool(self.gaps(block.css_path, self.words(block)))


NOTHING_VOLATILE = Volatile()


def _with_gaps(words: Words, gaps: Mapping[int, str]) -> Words:
    return tuple(gaps.get(n, word) for n, word in enumerate(words)) if gaps else words


def kind_of(block: Block) -> int:
    """A hash of a block's path and kind: a picture can stand still where words do not."""
    return number_of(f"{block.css_path} {block.kind}")


def trial_of(block: Block) -> int:
    """A hash of a block's path, kind and number of words."""
    return number_of(f"{block.css_path} {block.kind} {len(words_of(block))}")


def noise_of(block: Block) -> int:
    """A hash of a block's path, kind and text."""
    return number_of(f"{block.css_path} {block.kind} {block.text}")


def wording_of(path: int, words: Words) -> int:
    """A hash of a path and of words without their numbers."""
    return number_of(f"{path} {' '.join(map(numberless, words))}")


MOST_CHARS = 1 << 19  # of patterns and of gaps; of words as pages have them, 80,000


def trimmed(volatile: Volatile, *, chars: int = MOST_CHARS) -> Volatile:
    """The volatile places without their oldest patterns and gaps, where all would take more than `chars` characters.

    A pattern that takes more than a quarter of the room alone is not kept either. Always: unchanged if all fits.
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
