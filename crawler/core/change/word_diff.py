"""The difference between two versions of a page for people: which blocks changed, and which words of them.

Blocks are aligned first, then the words of those that stand for each other, so that the cost stays bounded on large
pages. What is news among the changed blocks is decided elsewhere (`significant`) and only marked here.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from crawler.core.noise.alignment import find_gaps, pair_equal
from crawler.core.noise.words import split_words
from crawler.core.page.outline import Block, BlockKind, BlockList

MIN_WORD_SIMILARITY = 0.4  # Dice coefficient of two blocks' words, from which on one is taken for an edit of the other
MAX_COMPARED_PAIRS = (
    4096  # of blocks in one gap that are compared by their words; beyond, their paths tell which is which
)
MAX_TOKENS = 10_000  # words, and what stands between them, of one block on either side; a tenth of a second
MAX_ALIGNED_CHARS = 500_000  # of a whole page, both sides; blocks after them are shown as replaced whole
CONTEXT_BLOCKS = 1  # unchanged blocks shown before and after a change
ELLIPSIS = "…"


class RunKind(StrEnum):
    """The side that a run of words belongs to."""

    KEPT = "kept"
    OLD = "old"
    NEW = "new"


MARKS = {RunKind.KEPT: "{}", RunKind.OLD: "[-{}-]", RunKind.NEW: "{{+{}+}}"}


@dataclass(frozen=True, slots=True)
class WordRun:
    """Words in a row that were kept, went or came, as they are written, with the space between them."""

    kind: RunKind
    text: str


def format_runs(runs: Iterable[WordRun]) -> str:
    """Runs of words as text, what went and came between marks: [-old-]{+new+}."""
    return "".join(MARKS[run.kind].format(run.text) for run in runs)


class BlockStatus(StrEnum):
    """What became of a block."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"  # the same words in another place


@dataclass(frozen=True, slots=True)
class BlockDiff:
    """One block of a difference.

    Always: KEPT and OLD runs together are the text that was, KEPT and NEW runs the text that is.
    was_at, is_at: its position among the blocks of each version; None where that has none.
    is_news: a change of the page's own; False for what is known to be noise.
    """

    status: BlockStatus
    kind: BlockKind
    runs: tuple[WordRun, ...]
    was_at: int | None
    is_at: int | None
    is_news: bool = True

    @property
    def old_text(self) -> str:
        """Its text before; empty for a block that came."""
        return "" if self.was_at is None else "".join(run.text for run in self.runs if run.kind is not RunKind.NEW)

    @property
    def new_text(self) -> str:
        """Its text after; empty for a block that went."""
        return "" if self.is_at is None else "".join(run.text for run in self.runs if run.kind is not RunKind.OLD)


@dataclass(frozen=True, slots=True)
class Hunk:
    """Changed blocks that stand close together, with the unchanged ones around them. skipped: unchanged, before it."""

    skipped: int
    blocks: tuple[BlockDiff, ...]


@dataclass(frozen=True, slots=True)
class PageDiff:
    """The difference between two versions of a page. skipped: unchanged blocks after the last hunk."""

    hunks: tuple[Hunk, ...] = ()
    skipped: int = 0
    counts: Counter[BlockStatus] = field(default_factory=Counter)

    def __bool__(self) -> bool:
        return bool(self.hunks)

    @property
    def changed_blocks(self) -> Iterator[BlockDiff]:
        """All blocks that are not the same, in their order."""
        return (block for hunk in self.hunks for block in hunk.blocks if block.status is not BlockStatus.UNCHANGED)


def diff_pages(
    before: BlockList,
    after: BlockList,
    *,
    context: int = CONTEXT_BLOCKS,
    significant_blocks: Collection[Block] | None = None,
) -> PageDiff:
    """The difference between two versions of a page, in the order of the new one; what went stands where it stood.

    context: unchanged blocks to show beside each change.  significant_blocks: blocks of either version that are the
    page's own change, by kind and text; None where all of them are.
    """
    all_blocks = _merge_moves(list(_align_blocks(before, after, significant_blocks)))
    hunks = tuple(_build_hunks(all_blocks, context))
    shown = sum(hunk.skipped + len(hunk.blocks) for hunk in hunks)
    return PageDiff(hunks=hunks, skipped=len(all_blocks) - shown, counts=Counter(block.status for block in all_blocks))


def diff_texts(before: str, after: str, *, context: int = CONTEXT_BLOCKS) -> PageDiff:
    """The difference between two texts, line by line."""
    one, other = (tuple(Block(css_path=0, text=line) for line in text.split("\n") if line) for text in (before, after))
    return diff_pages(one, other, context=context)


def diff_words(before: str, after: str, *, kind: BlockKind = BlockKind.TEXT) -> tuple[WordRun, ...]:
    """The words in which two texts of one block differ.

    Always: KEPT and OLD runs together are `before`, KEPT and NEW runs are `after`; no run is empty.
    """
    one, other = _split_tokens(before, kind), _split_tokens(after, kind)
    if max(len(one), len(other)) > MAX_TOKENS:
        return _build_runs([_Edit("", before, after)])
    edits: list[_Edit] = []
    end = 0
    for old, new in find_gaps(one, other):
        equal_text = "".join(one[end : old.start])
        edits.append(_Edit(kept=equal_text, old="".join(one[old]), new="".join(other[new])))
        end = old.stop
    return _build_runs(_merge_scraps(edits), rest="".join(one[end:]))


def shorten_runs(runs: Sequence[WordRun], *, context_chars: int, max_chars: int) -> tuple[WordRun, ...]:
    """Runs shortened for one line or two: an ellipsis stands for what is left out, and no word is cut.

    context_chars: characters to keep on each side of a change.  max_chars: characters of each run that went or came.
    """
    return tuple(
        replace(run, text=_shorten_equal_text(run.text, context_chars, is_first=n == 0, is_last=n == len(runs) - 1))
        if run.kind is RunKind.KEPT
        else replace(run, text=cut_at_word(run.text, max_chars))
        for n, run in enumerate(runs)
    )


def cut_around_change(before: str, after: str, *, max_chars: int) -> tuple[str, str]:
    """Two texts of one block, cut at words to `most` characters of each around the first difference."""
    if max(len(before), len(after)) <= max_chars:
        return before, after
    shared_chars = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), max_chars)
    start = max(shared_chars - max_chars // 2, 0)
    if start:
        start = max(before.find(" ", start, shared_chars) + 1, start)  # no word is cut, where there are words
    prefix = ELLIPSIS if start else ""
    return prefix + cut_at_word(before[start:], max_chars), prefix + cut_at_word(after[start:], max_chars)


def cut_at_word(text: str, max_chars: int) -> str:
    """The beginning of a text up to the end of a word, with an ellipsis where something follows."""
    if len(text) <= max_chars:
        return text
    beginning = text[:max_chars]
    space = beginning.rfind(" ")
    return (beginning[:space] if space > max_chars // 2 else beginning).rstrip() + ELLIPSIS


def cut_start_at_word(text: str, max_chars: int) -> str:
    """The end of a text from the beginning of a word on, with an ellipsis where something stands before."""
    if len(text) <= max_chars:
        return text
    ending = text[-max_chars:] if max_chars else ""
    space = ending.find(" ")
    return ELLIPSIS + (ending[space + 1 :] if -1 < space < max_chars // 2 else ending).lstrip()


class _Edit(NamedTuple):
    """Words that were kept, and what went and came after them."""

    kept: str
    old: str
    new: str


def _split_tokens(text: str, kind: BlockKind) -> list[str]:
    """The words of a text and what stands between them: together they are the text."""
    tokens = []
    end = 0
    for word in split_words(Block(css_path=0, text=text, kind=kind)):
        start = text.index(word, end)
        if start > end:
            tokens.append(text[end:start])
        end = start + len(word)
        tokens.append(word)
    return [*tokens, text[end:]] if end < len(text) else tokens


def _merge_scraps(edits: list[_Edit]) -> list[_Edit]:
    """Edits joined over words between them that happen to be equal, as long as there are any.

    Such a scrap has no letter and no digit, or is not longer than either edit beside it.
    Source: Fraser, "Diff strategies", 2006, section 3.2 (semantic cleanup).
    """
    edits_before = len(edits) + 1
    while len(edits) < edits_before:
        edits_before, apart, edits = len(edits), edits, []
        for edit in apart:
            if edits and _is_scrap(edits[-1], edit):
                last = edits[-1]
                edits[-1] = _Edit(last.kept, last.old + edit.kept + edit.old, last.new + edit.kept + edit.new)
            else:
                edits.append(edit)
    return edits


def _is_scrap(one: _Edit, other: _Edit) -> bool:
    smaller = min(max(len(one.old), len(one.new)), max(len(other.old), len(other.new)))
    return len(other.kept) <= smaller or not any(map(str.isalnum, other.kept))


def _build_runs(edits: Sequence[_Edit], *, rest: str = "") -> tuple[WordRun, ...]:
    parts = [
        each for edit in edits for each in ((RunKind.KEPT, edit.kept), (RunKind.OLD, edit.old), (RunKind.NEW, edit.new))
    ]
    return tuple(WordRun(kind, text) for kind, text in (*parts, (RunKind.KEPT, rest)) if text)


def _shorten_equal_text(text: str, context_chars: int, *, is_first: bool, is_last: bool) -> str:
    """Kept words between two edits, or beside the first or the last, without those that are far from both."""
    if is_first and is_last:
        return cut_at_word(text, 2 * context_chars)
    if is_first:
        return cut_start_at_word(text, context_chars)
    if is_last:
        return cut_at_word(text, context_chars)
    if len(text) <= 2 * context_chars + len(ELLIPSIS) + 2:
        return text
    return f"{cut_at_word(text, context_chars)} {cut_start_at_word(text, context_chars).removeprefix(ELLIPSIS)}"


def _align_blocks(
    before: BlockList, after: BlockList, significant_blocks: Collection[Block] | None
) -> Iterator[BlockDiff]:
    """All blocks of both versions, those that stand for each other in one."""
    chars_left = MAX_ALIGNED_CHARS
    significant_texts = (
        None if significant_blocks is None else {(block.kind, block.text) for block in significant_blocks}
    )
    for old_index, new_index in _align_positions(before, after):
        was = None if old_index is None else before[old_index]
        now = None if new_index is None else after[new_index]
        side = now or was or _EMPTY_BLOCK
        if was and now and (was.kind, was.text) == (now.kind, now.text):
            yield BlockDiff(
                BlockStatus.UNCHANGED, side.kind, _build_runs([], rest=side.text), old_index, new_index, is_news=False
            )
            continue
        chars_left -= len(was.text) + len(now.text) if was and now else 0
        if was and now and chars_left >= 0:
            runs = diff_words(was.text, now.text, kind=now.kind)
        else:
            runs = _build_runs([_Edit("", was.text if was else "", now.text if now else "")])
        status = BlockStatus.CHANGED if was and now else BlockStatus.ADDED if now else BlockStatus.REMOVED
        is_significant = significant_texts is None or any(
            (each.kind, each.text) in significant_texts for each in (was, now) if each
        )
        yield BlockDiff(status, side.kind, runs, old_index, new_index, is_significant)


def _align_positions(before: BlockList, after: BlockList) -> Iterator[tuple[int | None, int | None]]:
    """The positions of all blocks, those that stand for each other together."""
    forms = ([(block.kind, block.text) for block in page] for page in (before, after))
    end = slice(len(before), len(before)), slice(len(after), len(after))
    n = m = 0
    for old, new in (*find_gaps(*forms), end):
        yield from zip(range(n, old.start), range(m, new.start), strict=True)
        for old_index, new_index in _pair_blocks(before[old], after[new]):
            yield (
                None if old_index is None else old.start + old_index,
                None if new_index is None else new.start + new_index,
            )
        n, m = old.stop, new.stop


def _pair_blocks(old: BlockList, new: BlockList) -> Iterator[tuple[int | None, int | None]]:
    """Which blocks of a gap stand for each other: by their words, and between those by their paths."""
    n = m = 0
    for i, j in (*_find_similar_pairs(old, new), (len(old), len(new))):
        paths = ([(block.css_path, block.kind) for block in side] for side in (old[n:i], new[m:j]))
        for old_index, new_index in pair_equal(*paths):
            yield (None if old_index is None else n + old_index, None if new_index is None else m + new_index)
        if i < len(old) and j < len(new):
            yield i, j
        n, m = i + 1, j + 1


def _find_similar_pairs(old: BlockList, new: BlockList) -> list[tuple[int, int]]:
    """The pairs of blocks, in the order of both sides, that have most words in common altogether."""
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
    """Dice coefficient of two blocks' words; 0 for blocks of two kinds, and below MIN_WORD_SIMILARITY."""
    if one[0] is not other[0]:
        return 0.0
    coefficient = 2 * len(one[1] & other[1]) / max(len(one[1]) + len(other[1]), 1)
    return coefficient if coefficient >= MIN_WORD_SIMILARITY else 0.0


def _merge_moves(blocks: list[BlockDiff]) -> list[BlockDiff]:
    """The blocks with one that went and came elsewhere, word by word, as one that moved."""
    removed_positions: dict[tuple[BlockKind, str], deque[int]] = defaultdict(deque)
    for n, block in enumerate(blocks):
        if block.status is BlockStatus.REMOVED and block.old_text:
            removed_positions[block.kind, block.old_text].append(n)
    left_out: set[int] = set()
    for m, block in enumerate(blocks):
        if block.status is BlockStatus.ADDED and removed_positions[block.kind, block.new_text]:
            n = removed_positions[block.kind, block.new_text].popleft()
            left_out.add(n)
            blocks[m] = replace(
                block,
                status=BlockStatus.MOVED,
                runs=(WordRun(RunKind.KEPT, block.new_text),),
                was_at=blocks[n].was_at,
                is_news=block.is_news or blocks[n].is_news,
            )
    return [block for n, block in enumerate(blocks) if n not in left_out]


def _build_hunks(blocks: Sequence[BlockDiff], context: int) -> Iterator[Hunk]:
    end = 0  # of the hunk before
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
