"""The difference between two versions of a page for people: which blocks changed, and which of their words.

Blocks are aligned first, and then the words of each pair of blocks, which bounds the cost on large pages. Which blocks
are significant is decided elsewhere (`select_significant`); here they are only marked.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from crawler.core.noise.alignment import find_gaps, pair_equal
from crawler.core.noise.words import split_words
from crawler.core.page.block import Block, BlockKind, BlockList

MIN_WORD_SIMILARITY = 0.4  # minimum Dice coefficient of two blocks' words, to show one as an edit of the other
# Pairs of blocks between two equal blocks that are compared by words; if there are more, blocks are paired by path.
MAX_COMPARED_PAIRS = 4096
MAX_TOKENS = 10_000  # words and separators of a block, compared in 0.1 s; a longer block is shown as replaced in full
MAX_ALIGNED_CHARS = 500_000  # of all changed blocks, both versions; further blocks are shown as replaced in full
CONTEXT_BLOCKS = 1  # unchanged blocks shown before and after a change
ELLIPSIS = "…"


class RunKind(StrEnum):
    """The version that a run of words belongs to: both, the old one or the new one."""

    KEPT = "kept"
    OLD = "old"
    NEW = "new"


MARKS = {RunKind.KEPT: "{}", RunKind.OLD: "[-{}-]", RunKind.NEW: "{{+{}+}}"}


class WordRun(Struct, frozen=True):
    """Consecutive words that were kept, removed or added, as written, with the whitespace between them."""

    kind: RunKind
    text: str


def format_runs(runs: Iterable[WordRun]) -> str:
    """Format runs of words as text, with removed and added words marked: [-old-]{+new+}."""
    return "".join(MARKS[run.kind].format(run.text) for run in runs)


class BlockStatus(StrEnum):
    """What happened to a block."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"  # the same words at another position


class BlockDiff(Struct, frozen=True):
    """One block of a difference.

    Invariant: the KEPT and OLD runs together are the old text, the KEPT and NEW runs the new text.
    was_at, is_at: the block's index in each version; None if the version lacks it.
    is_news: whether the change is significant; False for known noise and unchanged blocks.
    """

    status: BlockStatus
    kind: BlockKind
    runs: tuple[WordRun, ...]
    was_at: int | None
    is_at: int | None
    is_news: bool = True

    @property
    def old_text(self) -> str:
        """Return the text before the change; empty for an added block."""
        return "" if self.was_at is None else "".join(run.text for run in self.runs if run.kind is not RunKind.NEW)

    @property
    def new_text(self) -> str:
        """Return the text after the change; empty for a removed block."""
        return "" if self.is_at is None else "".join(run.text for run in self.runs if run.kind is not RunKind.OLD)


class Hunk(Struct, frozen=True):
    """Changed blocks close together, with unchanged blocks around them.

    skipped: the number of unchanged blocks between the previous hunk and this one.
    """

    skipped: int
    blocks: tuple[BlockDiff, ...]


class PageDiff(Struct, frozen=True):
    """The difference between two versions of a page.

    skipped: the number of unchanged blocks after the last hunk.  counts: the number of blocks by status.
    """

    hunks: tuple[Hunk, ...] = ()
    skipped: int = 0
    counts: Counter[BlockStatus] = field(default_factory=Counter)

    def __bool__(self) -> bool:
        return bool(self.hunks)

    @property
    def changed_blocks(self) -> Iterator[BlockDiff]:
        """Return all changed, added, removed and moved blocks, in order."""
        return (block for hunk in self.hunks for block in hunk.blocks if block.status is not BlockStatus.UNCHANGED)


def diff_pages(
    before: BlockList,
    after: BlockList,
    *,
    context: int = CONTEXT_BLOCKS,
    significant_blocks: Collection[Block] | None = None,
) -> PageDiff:
    """Compare two versions of a page block by block, in the order of the new one; removed blocks keep their position.

    context: unchanged blocks to show before and after each change.
    significant_blocks: significant blocks of either version, matched by kind and text; None if all of them are.
    """
    all_blocks = _merge_moves(list(_align_blocks(before, after, significant_blocks)))
    hunks = tuple(_build_hunks(all_blocks, context))
    shown = sum(hunk.skipped + len(hunk.blocks) for hunk in hunks)
    return PageDiff(hunks=hunks, skipped=len(all_blocks) - shown, counts=Counter(block.status for block in all_blocks))


def diff_texts(before: str, after: str, *, context: int = CONTEXT_BLOCKS) -> PageDiff:
    """Compare two texts line by line."""
    one, other = (tuple(Block(css_path=0, text=line) for line in text.split("\n") if line) for text in (before, after))
    return diff_pages(one, other, context=context)


def diff_words(before: str, after: str, *, kind: BlockKind = BlockKind.TEXT) -> tuple[WordRun, ...]:
    """Return the words in which two texts of one block differ.

    Invariant: the KEPT and OLD runs together are `before`, the KEPT and NEW runs `after`. No run is empty.
    """
    one, other = _split_tokens(before, kind), _split_tokens(after, kind)
    if max(len(one), len(other)) > MAX_TOKENS:
        return _build_runs([_Edit("", before, after)])
    edits: list[_Edit] = []
    end = 0
    for old, new in find_gaps(one, other):
        edits.append(_Edit("".join(one[end : old.start]), "".join(one[old]), "".join(other[new])))
        end = old.stop
    return _build_runs(_merge_close_edits(edits), rest="".join(one[end:]))


def shorten_runs(runs: Sequence[WordRun], *, context_chars: int, max_chars: int) -> tuple[WordRun, ...]:
    """Shorten runs to fit one or two lines, with an ellipsis for each omission. Only long words are cut.

    context_chars: characters to keep on each side of a change.  max_chars: characters to keep of an added or removed
    run.
    """
    return tuple(
        replace(run, text=_shorten_equal_text(run.text, context_chars, is_first=n == 0, is_last=n == len(runs) - 1))
        if run.kind is RunKind.KEPT
        else replace(run, text=cut_at_word(run.text, max_chars))
        for n, run in enumerate(runs)
    )


def cut_around_change(before: str, after: str, *, max_chars: int) -> tuple[str, str]:
    """Cut two texts of one block to about max_chars characters each around the first difference, mostly at spaces."""
    if max(len(before), len(after)) <= max_chars:
        return before, after
    shared_chars = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), max_chars)
    start = max(shared_chars - max_chars // 2, 0)
    if start:
        start = max(before.find(" ", start, shared_chars) + 1, start)  # do not cut a word
    prefix = ELLIPSIS if start else ""
    return prefix + cut_at_word(before[start:], max_chars), prefix + cut_at_word(after[start:], max_chars)


def cut_at_word(text: str, max_chars: int) -> str:
    """Return a text cut to max_chars, at a space if one is in the second half, with an ellipsis if something is cut."""
    if len(text) <= max_chars:
        return text
    beginning = text[:max_chars]
    space = beginning.rfind(" ")
    return (beginning[:space] if space > max_chars // 2 else beginning).rstrip() + ELLIPSIS


def cut_start_at_word(text: str, max_chars: int) -> str:
    """Return the end of a text as `cut_at_word` does the start, at a space if one is in the first half."""
    if len(text) <= max_chars:
        return text
    ending = text[-max_chars:] if max_chars else ""
    space = ending.find(" ")
    return ELLIPSIS + (ending[space + 1 :] if -1 < space < max_chars // 2 else ending).lstrip()


class _Edit(NamedTuple):
    """Kept words, and the words removed and added after them."""

    kept: str
    old: str
    new: str


def _split_tokens(text: str, kind: BlockKind) -> list[str]:
    """Split a text into words and separators, which together are the text."""
    tokens = []
    end = 0
    for word in split_words(Block(css_path=0, text=text, kind=kind)):
        start = text.index(word, end)
        if start > end:
            tokens.append(text[end:start])
        end = start + len(word)
        tokens.append(word)
    return [*tokens, text[end:]] if end < len(text) else tokens


def _merge_close_edits(edits: list[_Edit]) -> list[_Edit]:
    """Merge edits that are separated only by a text that is equal by chance.

    Such a text has no letter and no digit, or is not longer than either edit beside it.
    Source: Fraser, "Diff strategies", 2006, section 3.2 (semantic cleanup).
    """
    edits_before = len(edits) + 1
    while len(edits) < edits_before:
        edits_before, apart, edits = len(edits), edits, []
        for edit in apart:
            smaller = min(max(len(each.old), len(each.new)) for each in (*edits[-1:], edit))
            if edits and (len(edit.kept) <= smaller or not any(map(str.isalnum, edit.kept))):
                last = edits[-1]
                edits[-1] = _Edit(last.kept, last.old + edit.kept + edit.old, last.new + edit.kept + edit.new)
            else:
                edits.append(edit)
    return edits


def _build_runs(edits: Sequence[_Edit], *, rest: str = "") -> tuple[WordRun, ...]:
    parts = chain.from_iterable(zip(RunKind, edit, strict=True) for edit in edits)  # both in the order kept, old, new
    return tuple(WordRun(kind, text) for kind, text in (*parts, (RunKind.KEPT, rest)) if text)


def _shorten_equal_text(text: str, context_chars: int, *, is_first: bool, is_last: bool) -> str:
    """Shorten kept words, keeping only those near an edit."""
    if is_last:
        return cut_at_word(text, 2 * context_chars if is_first else context_chars)
    if is_first:
        return cut_start_at_word(text, context_chars)
    if len(text) <= 2 * context_chars + len(ELLIPSIS) + 2:
        return text
    return f"{cut_at_word(text, context_chars)} {cut_start_at_word(text, context_chars).removeprefix(ELLIPSIS)}"


def _align_blocks(before: BlockList, after: BlockList, significant: Collection[Block] | None) -> Iterator[BlockDiff]:
    """Yield all blocks of both versions, paired blocks as one."""
    chars_left = MAX_ALIGNED_CHARS
    significant_texts = {(block.kind, block.text) for block in significant or ()}
    for old_index, new_index in _align_positions(before, after):
        was = None if old_index is None else before[old_index]
        now = None if new_index is None else after[new_index]
        side = now or was or _EMPTY_BLOCK
        if was and now and (was.kind, was.text) == (now.kind, now.text):
            runs = _build_runs([], rest=side.text)
            yield BlockDiff(BlockStatus.UNCHANGED, side.kind, runs, old_index, new_index, is_news=False)
            continue
        chars_left -= len(was.text) + len(now.text) if was and now else 0
        if was and now and chars_left >= 0:
            runs = diff_words(was.text, now.text, kind=now.kind)
        else:
            runs = _build_runs([_Edit("", was.text if was else "", now.text if now else "")])
        status = BlockStatus.CHANGED if was and now else BlockStatus.ADDED if now else BlockStatus.REMOVED
        texts = {(each.kind, each.text) for each in (was, now) if each}
        is_news = significant is None or not significant_texts.isdisjoint(texts)
        yield BlockDiff(status, side.kind, runs, old_index, new_index, is_news)


def _align_positions(before: BlockList, after: BlockList) -> Iterator[tuple[int | None, int | None]]:
    """Yield the positions of all blocks, those of paired blocks together."""
    forms = ([(block.kind, block.text) for block in page] for page in (before, after))
    end = slice(len(before), len(before)), slice(len(after), len(after))
    n = m = 0
    for old, new in (*find_gaps(*forms), end):
        yield from zip(range(n, old.start), range(m, new.start), strict=True)
        for i, j in _pair_blocks(before[old], after[new]):
            yield None if i is None else old.start + i, None if j is None else new.start + j
        n, m = old.stop, new.stop


def _pair_blocks(old: BlockList, new: BlockList) -> Iterator[tuple[int | None, int | None]]:
    """Pair the blocks between two equal blocks: first by their words, then the remaining ones by their paths."""
    n = m = 0
    for i, j in (*_find_similar_pairs(old, new), (len(old), len(new))):
        paths = ([(block.css_path, block.kind) for block in side] for side in (old[n:i], new[m:j]))
        for old_index, new_index in pair_equal(*paths):
            yield (None if old_index is None else n + old_index, None if new_index is None else m + new_index)
        if i < len(old) and j < len(new):
            yield i, j
        n, m = i + 1, j + 1


def _find_similar_pairs(old: BlockList, new: BlockList) -> list[tuple[int, int]]:
    """Return the pairs of blocks, in order, with the greatest total similarity; none above MAX_COMPARED_PAIRS."""
    if not old or not new or len(old) * len(new) > MAX_COMPARED_PAIRS:
        return []
    one, other = ([(block.kind, frozenset(split_words(block))) for block in side] for side in (old, new))
    similarity = [[_compute_dice(a, b) for b in other] for a in one]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            paired = similarity[i][j] + best[i + 1][j + 1] if similarity[i][j] else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], paired)
    pairs = []
    i = j = 0
    while i < len(old) and j < len(new):
        if similarity[i][j] and best[i][j] == similarity[i][j] + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _compute_dice(one: tuple[BlockKind, frozenset[str]], other: tuple[BlockKind, frozenset[str]]) -> float:
    """Return the Dice coefficient of two blocks' words; 0 below MIN_WORD_SIMILARITY and for different kinds."""
    if one[0] is not other[0]:
        return 0.0
    coefficient = 2 * len(one[1] & other[1]) / max(len(one[1]) + len(other[1]), 1)
    return coefficient if coefficient >= MIN_WORD_SIMILARITY else 0.0


def _merge_moves(blocks: list[BlockDiff]) -> list[BlockDiff]:
    """Merge a removed block and an added block with the same words into one moved block."""
    removed_positions: dict[tuple[BlockKind, str], deque[int]] = defaultdict(deque)
    for n, block in enumerate(blocks):
        if block.status is BlockStatus.REMOVED and block.old_text:
            removed_positions[block.kind, block.old_text].append(n)
    left_out: set[int] = set()
    for m, block in enumerate(blocks):
        if block.status is BlockStatus.ADDED and removed_positions[block.kind, block.new_text]:
            n = removed_positions[block.kind, block.new_text].popleft()
            left_out.add(n)
            runs, was_at = (WordRun(RunKind.KEPT, block.new_text),), blocks[n].was_at
            is_news = block.is_news or blocks[n].is_news
            blocks[m] = replace(block, status=BlockStatus.MOVED, runs=runs, was_at=was_at, is_news=is_news)
    return [block for n, block in enumerate(blocks) if n not in left_out]


def _build_hunks(blocks: Sequence[BlockDiff], context: int) -> Iterator[Hunk]:
    end = 0  # end of the previous hunk
    begin: int | None = None
    last = 0
    for n, block in enumerate(blocks):
        if block.status is BlockStatus.UNCHANGED:
            continue
        if begin is not None and n - last > 2 * context + 1:
            yield Hunk(skipped=begin - end, blocks=tuple(blocks[begin : last + 1 + context]))
            end, begin = last + 1 + context, None
        if begin is None:
            begin = max(n - context, end)
        last = n
    if begin is not None:
        yield Hunk(skipped=begin - end, blocks=tuple(blocks[begin : last + 1 + context]))


_EMPTY_BLOCK = Block(css_path=0, text="")
