"""The volatile content of a domain: clocks, counters, tokens and ads, which differ without a change.

It is learned from second fetches, seconds after the first: a difference between these two is not a change. A difference
between visits on different days proves nothing: a price that changes daily remains a change. There are two exceptions:
a number that grew by the elapsed time, such as hours or days (relative_time.py), and a date between two visits that is
the only difference, visit after visit (a build stamp, dates.py).
"""

from collections.abc import Iterable, Mapping
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

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
from crawler.core.page.block import Block, BlockKind, BlockList
from crawler.core.page.fingerprint import hash_text

MAX_PATTERNS = 1024  # per domain; the oldest are dropped first
MAX_PATHS = 4096  # entries per mapping by path, such as path_stats; the oldest are dropped first
ENOUGH_STEADY = 3  # second fetches without a difference in blocks of one path and length, see `is_tested`

UnconfirmedPatterns = Mapping[tuple[int, int], tuple[WordPattern, ...]]  # by path and number of words


class VolatileContent(Struct, frozen=True):
    """The learned volatile content of a domain. Immutable, bounded. A gap marks a volatile word; a path is a css_path.

    patterns: patterns of words, by path and number of words.
    path_gaps: gaps that apply regardless of the block's other words, by path and number of words.
    unconfirmed_patterns: patterns found by a single second fetch; the block may have been edited in between.
    parameters: link parameters that differed, by name.
    noise_counts: whole blocks that appeared or disappeared between two fetches, by compute_block_key.
    proofs: how often blocks with gaps differed in second fetches, by compute_masked_form.
    stable_wordings: blocks that get no gaps, because only others of their path differed, by compute_wording_key.
    path_stats: by compute_path_key.  shape_stats: by compute_shape_key.  counters: by a number's path and context.
    stamps: build stamps, by position and form (dates.py).
    aliases: the path under which a block is stored, by the current path after its site was restyled (alignment.py).
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
        """Return the blocks of a page with their stored paths, which all other methods expect."""
        return replace_paths(blocks, self.aliases)

    def mask_words(self, block: Block) -> Words:
        """Return the words of a block, with a gap for each volatile word."""
        words = self.get_words(block)
        return _insert_gaps(words, self.get_gaps(block.css_path, words))

    def mask_pair(self, before: Block, after: Block) -> tuple[Words, Words]:
        """Return the masked words of two versions of a block. If the gaps of each match both, all are used in both."""
        first, second = self.get_words(before), self.get_words(after)
        if before.css_path != after.css_path or len(first) != len(second):
            return self.mask_words(before), self.mask_words(after)
        gaps = self.get_gaps(before.css_path, first) | self.get_gaps(after.css_path, second)
        if any(not matches_word(gap, first[n]) or not matches_word(gap, second[n]) for n, gap in gaps.items()):
            return self.mask_words(before), self.mask_words(after)
        return _insert_gaps(first, gaps), _insert_gaps(second, gaps)

    def mask_pair_loosely(self, before: Block, after: Block) -> tuple[Words, Words] | None:
        """Return the words of two versions of a block, masked with the gaps of all patterns of their path and length.

        Gaps count even if their pattern does not match as a whole. Returns None if the words cannot be paired, or no
        pattern is known.
        """
        first, second = self.get_words(before), self.get_words(after)
        patterns = self.patterns.get((before.css_path, len(first)), ())
        if before.css_path != after.css_path or len(first) != len(second) or not patterns:
            return None
        all_gaps = {n: gap for pattern in patterns for n, gap in list_gaps(pattern).items()}
        gaps = {n: gap for n, gap in all_gaps.items() if matches_word(gap, first[n]) and matches_word(gap, second[n])}
        return _insert_gaps(first, gaps), _insert_gaps(second, gaps)

    def get_words(self, block: Block) -> Words:
        """Return the words of a block; for a link, without its volatile parameters."""
        words, has_parameters = split_words(block), block.kind is BlockKind.LINK and self.parameters
        return drop_volatile_parameters(self.parameters, words) if has_parameters else words

    def get_gaps(self, path: int, words: Words) -> dict[int, str]:
        """Return the gaps of a block, by position of the volatile word."""
        shape = (path, len(words))
        gaps_found = {n: gap for n, gap in self.path_gaps.get(shape, {}).items() if matches_word(gap, words[n])}
        for pattern in self.patterns.get(shape, ()):
            pairs = enumerate(zip(pattern, words, strict=True))
            if all(n in gaps_found or matches_word(each, word) for n, (each, word) in pairs):
                gaps_found |= list_gaps(pattern)
        return {} if gaps_found and compute_wording_key(path, words) in self.stable_wordings else gaps_found

    def is_noise(self, block: Block) -> bool:
        """Return whether this exact block comes and goes at a path where texts do so, or its path is unstable."""
        stats = self.path_stats.get(compute_path_key(block), PathStats())
        return stats.is_unstable or (stats.is_volatile and compute_block_key(block) in self.noise_counts)

    def is_unstable(self, block: Block) -> bool:
        """Return whether the whole text at this path differs from one fetch to the next."""
        return self.path_stats.get(compute_path_key(block), PathStats()).is_unstable

    def is_alternation(self, before: Block, after: Block) -> bool:
        """Return whether texts at this path replace each other within seconds, and one of the two blocks did so.

        Two blocks that differ only in numbers are no alternation.
        """
        if before.css_path != after.css_path or before.kind is not after.kind:
            return False
        is_alternating = self.path_stats.get(compute_path_key(before), PathStats()).is_alternating
        if not is_alternating or self.noise_counts.keys().isdisjoint(map(compute_block_key, (before, after))):
            return False
        return list(map(mask_numbers, split_words(before))) != list(map(mask_numbers, split_words(after)))

    def is_tested(self, block: Block) -> bool:
        """Return whether enough second fetches showed that blocks of this path and number of words do not differ.

        On other pages, such a block may be a counter. So it must be tested again after as many changes as it has
        passed tests.
        """
        stats = self.shape_stats.get(compute_shape_key(block), ShapeStats())
        return stats.steady >= ENOUGH_STEADY and stats.changes < stats.steady

    def is_untested(self, block: Block) -> bool:
        """Return whether at most one second fetch showed that blocks of this path and number of words do not differ."""
        return self.shape_stats.get(compute_shape_key(block), ShapeStats()).steady <= 1

    def is_suspect(self, block: Block) -> bool:
        """Return whether one second fetch found that the block differs, and no other has confirmed it yet."""
        words = self.get_words(block)
        is_noise = compute_block_key(block) in self.noise_counts and not self.is_noise(block)
        patterns = self.unconfirmed_patterns.get((block.css_path, len(words)), ())
        return is_noise or any(matches_words(pattern, words) for pattern in patterns)

    def is_doubted(self, block: Block) -> bool:
        """Return whether the block is volatile, but did not differ in its last second fetch."""
        if block.kind is BlockKind.LINK and has_doubted_parameter(self.parameters, split_words(block)):
            return True
        proof = self.noise_counts.get(compute_block_key(block))
        return (proof or self.proofs.get(self.compute_masked_form(block), PROVEN)).steady > 0

    def compute_masked_form(self, block: Block) -> int:
        """Return a hash of a block's path and masked words: the part that is compared."""
        return hash_text(f"{block.css_path} {' '.join(self.mask_words(block))}")

    def has_differed(self, block: Block) -> bool:
        """Return whether a second fetch found differing words at this path, in a block with this number of words."""
        shape = (block.css_path, len(self.get_words(block)))
        return shape in self.patterns or shape in self.unconfirmed_patterns

    def has_gaps(self, block: Block) -> bool:
        """Return whether some words of a block are volatile."""
        return bool(self.get_gaps(block.css_path, self.get_words(block)))


NO_VOLATILE_CONTENT = VolatileContent()


def _insert_gaps(words: Words, gaps: Mapping[int, str]) -> Words:
    return tuple(gaps.get(n, word) for n, word in enumerate(words)) if gaps else words


def compute_path_key(block: Block) -> int:
    """Return a hash of a block's path and kind, because images may be stable where texts are not."""
    return hash_text(f"{block.css_path} {block.kind}")


def compute_shape_key(block: Block) -> int:
    """Return a hash of a block's path, kind and number of words."""
    return hash_text(f"{block.css_path} {block.kind} {len(split_words(block))}")


def compute_block_key(block: Block) -> int:
    """Return a hash of a block's path, kind and text."""
    return hash_text(f"{block.css_path} {block.kind} {block.text}")


def compute_wording_key(path: int, words: Words) -> int:
    """Return a hash of a path and of words without their numbers."""
    return hash_text(f"{path} {' '.join(map(mask_numbers, words))}")


MAX_CHARS = 1 << 19  # of all patterns, all unconfirmed patterns and all path_gaps each; 80,000 typical words


def trim_volatile(volatile: VolatileContent, *, max_chars: int = MAX_CHARS) -> VolatileContent:
    """Return the volatile content without the oldest patterns and gaps beyond MAX_PATTERNS or max_chars characters.

    If they do not fit, those that take more than a quarter of max_chars are dropped too; else `volatile` is returned.
    """
    trim = partial(keep_newest_within, max_values=MAX_PATTERNS, max_chars=max_chars)
    patterns = trim(volatile.patterns, length=_count_chars)
    unconfirmed = trim(volatile.unconfirmed_patterns, length=_count_chars)
    all_gaps = {key: (gaps,) for key, gaps in volatile.path_gaps.items()}
    gaps = trim(all_gaps, length=lambda gaps: _count_chars(gaps.values()))
    if patterns is volatile.patterns and unconfirmed is volatile.unconfirmed_patterns and gaps is all_gaps:
        return volatile
    path_gaps = {key: each for key, (each,) in gaps.items()}
    return replace(volatile, patterns=patterns, unconfirmed_patterns=unconfirmed, path_gaps=path_gaps)


def _count_chars(words: Iterable[str]) -> int:
    return sum(len(word) + 1 for word in words)
