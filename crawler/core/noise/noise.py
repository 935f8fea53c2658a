"""The volatile places of a domain: clocks, counters, tokens, advertisements, which differ though nothing happened.

They are learnt from second fetches alone, seconds after the first: a difference between these two is no change. A
difference between looks of different days proves nothing: a price that moves daily stays a change. Two other
proofs are of time itself: a number that has grown by exactly the hours, days or weeks that passed counts them; and a
date between two looks that is all that differs, look after look, is the date of a build.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from crawler.core.noise.alignment import PathAliases, replace_paths
from crawler.core.noise.session_params import LinkParameters, drop_volatile_parameters, has_doubted_parameter
from crawler.core.noise.stability import PROVEN, CounterStats, PathStats, ShapeStats, StampStats, VolatilityCount
from crawler.core.noise.words import (
    WordPattern,
    Words,
    keep_newest_within,
    list_gaps,
    mask_numbers,
    matches_word,
    matches_words,
    split_words,
)
from crawler.core.page.fingerprint import hash_text
from crawler.core.page.outline import Block, BlockKind, BlockList

MAX_PATTERNS = 1024  # of one domain; the oldest are forgotten first
MAX_PATHS = 4096
ENOUGH_STEADY = 3  # second fetches in which a block stood still, after which it needs no more of them

UnconfirmedPatterns = Mapping[tuple[int, int], tuple[WordPattern, ...]]  # by path and number of words


@dataclass(frozen=True, slots=True)
class VolatileContent:
    """The volatile places learnt of one domain; immutable, and bounded. A gap is a volatile word of a block.

    patterns: by path and number of words.  path_gaps: gaps at a path whatever its other words.
    unconfirmed_patterns: patterns seen in a single second fetch; the block may have been edited between the two
    fetches.  parameters: of links.  noise_counts: whole blocks that came or went between two fetches, by noise_of.
    proofs: of blocks with gaps that second fetches met again, by form_of.  stable_wordings: blocks without gaps, by
    wording_of: they stood still while others of their path moved.  path_stats: by kind_of.  counters: of numbers with
    one path and context.  shape_stats: by trial_of.  stamps: dates that outlive a second fetch (dates.py).  aliases:
    the paths under which blocks are stored.
    """

    patterns: Mapping[tuple[int, int], tuple[WordPattern, ...]] = field(default_factory=dict)
    path_gaps: Mapping[tuple[int, int], Mapping[int, str]] = field(default_factory=dict)
    unconfirmed_patterns: UnconfirmedPatterns = field(default_factory=dict)
    parameters: LinkParameters = field(default_factory=dict)
    noise_counts: Mapping[int, VolatilityCount] = field(default_factory=dict)
    proofs: Mapping[int, VolatilityCount] = field(default_factory=dict)
    stable_wordings: Mapping[int, None] = field(default_factory=dict)
    path_stats: Mapping[int, PathStats] = field(default_factory=dict)
    counters: Mapping[int, CounterStats] = field(default_factory=dict)
    shape_stats: Mapping[int, ShapeStats] = field(default_factory=dict)
    stamps: Mapping[int, StampStats] = field(default_factory=dict)
    aliases: PathAliases = field(default_factory=dict)

    def apply_aliases(self, blocks: BlockList) -> BlockList:
        """The blocks of a page under the paths at which they are stored; all other methods expect such blocks."""
        return replace_paths(blocks, self.aliases)

    def mask_words(self, block: Block) -> Words:
        """The words of a block, with its gap in place of each volatile word."""
        words = self.get_words(block)
        gaps = self.get_gaps(block.css_path, words)
        return _insert_gaps(words, gaps)

    def mask_pair(self, before: Block, after: Block) -> tuple[Words, Words]:
        """The masked words of a block then and now: a word that is volatile in one wording is masked in both."""
        first, second = self.get_words(before), self.get_words(after)
        if before.css_path != after.css_path or len(first) != len(second):
            return self.mask_words(before), self.mask_words(after)
        gaps = self.get_gaps(before.css_path, first) | self.get_gaps(after.css_path, second)
        if any(not matches_word(gap, first[n]) or not matches_word(gap, second[n]) for n, gap in gaps.items()):
            return self.mask_words(before), self.mask_words(after)
        return _insert_gaps(first, gaps), _insert_gaps(second, gaps)

    def mask_pair_loosely(self, before: Block, after: Block) -> tuple[Words, Words] | None:
        """Both wordings with *every* gap ever learned for this path and word count.

        Gaps of patterns that do not match as a whole count, too. None if the two cannot be paired word by word, or no
        gap is known.
        """
        first, second = self.get_words(before), self.get_words(after)
        patterns = self.patterns.get((before.css_path, len(first)), ())
        if before.css_path != after.css_path or len(first) != len(second) or not patterns:
            return None
        gaps = {n: gap for pattern in patterns for n, gap in list_gaps(pattern).items()}
        matching_gaps = {
            n: gap for n, gap in gaps.items() if matches_word(gap, first[n]) and matches_word(gap, second[n])
        }
        return _insert_gaps(first, matching_gaps), _insert_gaps(second, matching_gaps)

    def get_words(self, block: Block) -> Words:
        """The words of a block, for a link without its volatile parameters."""
        words = split_words(block)
        return (
            drop_volatile_parameters(self.parameters, words)
            if block.kind is BlockKind.LINK and self.parameters
            else words
        )

    def get_gaps(self, path: int, words: Words) -> dict[int, str]:
        """The volatile words of a block at a path: their positions, each with the gap that stands for it."""
        shape = (path, len(words))
        gaps_found = {n: gap for n, gap in self.path_gaps.get(shape, {}).items() if matches_word(gap, words[n])}
        for pattern in self.patterns.get(shape, ()):
            if all(
                n in gaps_found or matches_word(each, word)
                for n, (each, word) in enumerate(zip(pattern, words, strict=True))
            ):
                gaps_found |= list_gaps(pattern)
        return {} if gaps_found and compute_wording_key(path, words) in self.stable_wordings else gaps_found

    def is_noise(self, block: Block) -> bool:
        """Whether this very block came or went between two fetches before, or its path never stands still."""
        stats = self.path_stats.get(compute_path_key(block), PathStats())
        return stats.is_unstable or (stats.is_volatile and compute_block_key(block) in self.noise_counts)

    def is_unstable(self, block: Block) -> bool:
        """Whether the text at this path differs, as a whole, from one fetch to the next."""
        return self.path_stats.get(compute_path_key(block), PathStats()).is_unstable

    def is_alternation(self, before: Block, after: Block) -> bool:
        """Whether texts at this path replace each other within seconds, and one of the two blocks was among them.

        Two texts that differ in numbers only are not taken for two such texts.
        """
        if (
            before.css_path != after.css_path
            or not self.path_stats.get(compute_path_key(before), PathStats()).is_alternating
        ):
            return False
        if before.kind is not after.kind or self.noise_counts.keys().isdisjoint(
            (compute_block_key(before), compute_block_key(after))
        ):
            return False
        return list(map(mask_numbers, split_words(before))) != list(map(mask_numbers, split_words(after)))

    def is_tested(self, block: Block) -> bool:
        """Whether second fetches have shown often enough that such a block stands still.

        Changes since then call for another test, ever more seldom: on other pages its path may hold a counter.
        """
        stats = self.shape_stats.get(compute_shape_key(block), ShapeStats())
        return stats.steady >= ENOUGH_STEADY and stats.changes < stats.steady

    def is_untested(self, block: Block) -> bool:
        """Whether at most one second fetch has shown blocks like this standing still."""
        return self.shape_stats.get(compute_shape_key(block), ShapeStats()).steady <= 1

    def is_suspect(self, block: Block) -> bool:
        """Whether one second fetch has found the block differing, and no other has confirmed it yet."""
        words = self.get_words(block)
        is_noise = compute_block_key(block) in self.noise_counts and not self.is_noise(block)
        return is_noise or any(
            matches_words(pattern, words) for pattern in self.unconfirmed_patterns.get((block.css_path, len(words)), ())
        )

    def is_doubted(self, block: Block) -> bool:
        """Whether the block is volatile, but stood still in the last second fetch that met it."""
        if block.kind is BlockKind.LINK and has_doubted_parameter(self.parameters, split_words(block)):
            return True
        proof = self.noise_counts.get(compute_block_key(block)) or self.proofs.get(
            self.compute_masked_form(block), PROVEN
        )
        return proof.steady > 0

    def compute_masked_form(self, block: Block) -> int:
        """A hash of a block's path and masked words: the part that is compared."""
        return hash_text(f"{block.css_path} {' '.join(self.mask_words(block))}")

    def has_differed(self, block: Block) -> bool:
        """Whether a second fetch has found words differing at this path, in a block of as many words."""
        shape = (block.css_path, len(self.get_words(block)))
        return shape in self.patterns or shape in self.unconfirmed_patterns

    def has_gaps(self, block: Block) -> bool:
        """Whether some words of a block are volatile."""
        return bool(self.get_gaps(block.css_path, self.get_words(block)))


NO_VOLATILE_CONTENT = VolatileContent()


def _insert_gaps(words: Words, gaps: Mapping[int, str]) -> Words:
    return tuple(gaps.get(n, word) for n, word in enumerate(words)) if gaps else words


def compute_path_key(block: Block) -> int:
    """A hash of a block's path and kind: a picture can stand still where words do not."""
    return hash_text(f"{block.css_path} {block.kind}")


def compute_shape_key(block: Block) -> int:
    """A hash of a block's path, kind and number of words."""
    return hash_text(f"{block.css_path} {block.kind} {len(split_words(block))}")


def compute_block_key(block: Block) -> int:
    """A hash of a block's path, kind and text."""
    return hash_text(f"{block.css_path} {block.kind} {block.text}")


def compute_wording_key(path: int, words: Words) -> int:
    """A hash of a path and of words without their numbers."""
    return hash_text(f"{path} {' '.join(map(mask_numbers, words))}")


MAX_CHARS = 1 << 19  # of patterns and of gaps; of words as pages have them, 80,000


def trim_volatile(volatile: VolatileContent, *, max_chars: int = MAX_CHARS) -> VolatileContent:
    """The volatile places without their oldest patterns and gaps, where all would take more than `chars` characters.

    A pattern that takes more than a quarter of the room alone is not kept either. Always: unchanged if all fits.
    """
    patterns = keep_newest_within(volatile.patterns, max_values=MAX_PATTERNS, max_chars=max_chars, length=_count_chars)
    once = keep_newest_within(
        volatile.unconfirmed_patterns, max_values=MAX_PATTERNS, max_chars=max_chars, length=_count_chars
    )
    all_gaps = {key: (gaps,) for key, gaps in volatile.path_gaps.items()}
    gaps = keep_newest_within(
        all_gaps, max_values=MAX_PATTERNS, max_chars=max_chars, length=lambda gaps: _count_chars(gaps.values())
    )
    if patterns is volatile.patterns and once is volatile.unconfirmed_patterns and gaps is all_gaps:
        return volatile
    anywhere = {key: path_gaps for key, (path_gaps,) in gaps.items()}
    return replace(volatile, patterns=patterns, unconfirmed_patterns=once, path_gaps=anywhere)


def _count_chars(words: Iterable[str]) -> int:
    return sum(len(word) + 1 for word in words)
