"""The boilerplate of a domain: blocks on nearly all pages, or all of one layout, such as menus and footers.

Boilerplate is learned page by page. A block belongs to it as long as nearly every page with the block's path (the tags
and classes around it) has the same text there. A menu that is edited on all pages is therefore one edit of the site,
and no change of its pages. In contrast, "sold out" on one of fifty pages that say "in stock" is a change of that page.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from heapq import nsmallest
from itertools import islice
from typing import Any, NamedTuple, TypeGuard

from msgspec import Struct, field
from msgspec.structs import replace

from crawler.core.http.urls import PageKey
from crawler.core.noise.words import Words, get_word_pattern, keep_newest
from crawler.core.page.block import Block, BlockKind
from crawler.core.page.fingerprint import hash_text
from crawler.core.page.shared_lines import SharedLines
from crawler.core.page.snapshot import BlockForms, Parsed, parse_body

MAX_COUNTED_BLOCKS = 2048  # per domain; also the maximum number of paths
MAX_NEW_BLOCKS = 256  # per page: blocks not counted before, at its start, and as many again at its end
ENOUGH_PAGES = 3  # minimum number of distinct pages with a boilerplate block
MIN_BOILERPLATE_SHARE = 0.8  # of the visits to pages with the block's path, since the block was first found
MIN_PATH_SHARE = 0.05  # minimum share of all visits that were to pages with the block's path
ENOUGH_REPLACEMENTS = 3  # successive boilerplate texts at a path, after which its text is expected to rotate
MAX_KNOWN_CHARS = 200  # of a text whose words are remembered for other pages
MIN_ROTATING_PAGES = 2  # minimum number of distinct pages with a boilerplate block at such a path


class BlockCount(NamedTuple):
    """How often a block was found.

    path: the block's css_path.  pages: the first distinct pages with the block, at most ENOUGH_PAGES.
    first_visit, last_visit: the first and last visit that found it, numbered among the visits to pages with its path.
    visits: how many visits found it.  was_boilerplate: whether the block is boilerplate or was before.
    text: the hash of its text as last found; 0 if it is not a text.
    """

    path: int
    pages: tuple[PageKey, ...]
    first_visit: int
    last_visit: int
    visits: int
    was_boilerplate: bool = False
    text: int = 0


class Boilerplate(Struct, frozen=True):
    """The counted blocks of one domain. Immutable and bounded. A block's form is a hash, see `compute_form`.

    counts: the counts of blocks, by form.  visits_by_path: the number of visits to pages with a path, by path.
    replacements: the number of successive boilerplate blocks, by path; blocks that exist at the same time count as one.
    total_visits: the number of visits to all pages.
    """

    counts: Mapping[int, BlockCount] = field(default_factory=dict)
    visits_by_path: Mapping[int, int] = field(default_factory=dict)
    replacements: Mapping[int, int] = field(default_factory=dict)
    total_visits: int = 0

    def contains(self, form: int) -> bool:
        """Return whether a block is boilerplate now: on nearly all pages with its path."""
        count = self.counts.get(form)
        return self._has_common_path(count) and _is_boilerplate(count, self.visits_by_path)

    def is_shared(self, form: int, *, min_share: float) -> bool:
        """Return whether ENOUGH_PAGES pages have a block, and it was boilerplate or is common at its path.

        min_share: share of the visits to pages with its path, since the block was first found, 0 to 1.
        """
        count = self.counts.get(form)
        if count is None or len(count.pages) < ENOUGH_PAGES:
            return False
        visits_since = self.visits_by_path.get(count.path, 0) - count.first_visit + 1
        return count.was_boilerplate or count.visits >= min_share * visits_since

    def list_shared_lines(self) -> SharedLines:
        """Return the texts that are boilerplate now."""
        hashes = (count.text for form, count in self.counts.items() if count.text and self.contains(form))
        return SharedLines.build(hashes, pages=self.total_visits)

    def was_boilerplate(self, form: int) -> bool:
        """Return whether a block is or was boilerplate."""
        count = self.counts.get(form)
        return count is not None and count.was_boilerplate

    def has_dropped(self, form: int) -> bool:
        """Return whether a block was boilerplate and the last ENOUGH_PAGES visits to pages with its path lacked it."""
        count = self.counts.get(form)
        if not self._has_common_path(count) or not count.was_boilerplate:
            return False
        return self.visits_by_path.get(count.path, 0) - count.last_visit >= ENOUGH_PAGES

    def _has_common_path(self, count: BlockCount | None) -> TypeGuard[BlockCount]:
        """Return whether many pages have a block's path, not just one index page per language."""
        return count is not None and self.visits_by_path.get(count.path, 0) >= MIN_PATH_SHARE * self.total_visits

    def is_rotating_text(self, form: int) -> bool:
        """Return whether a block is the current text of a path where boilerplate rotates, such as news of the day.

        The block must be on MIN_ROTATING_PAGES pages, and nearly all visits since its first must have found it.
        """
        count = self.counts.get(form)
        if count is None or self.replacements.get(count.path, 0) < ENOUGH_REPLACEMENTS:
            return False
        return _is_boilerplate(count, self.visits_by_path, min_pages=MIN_ROTATING_PAGES)


NO_BOILERPLATE = Boilerplate()


def compute_form(block: Block, words: Words) -> int:
    """Return a hash of a block's path, kind and words. words: the block's words under a mask."""
    return hash_text(f"{block.css_path} {_NAMES[block.kind]} {' '.join(words)}")


_NAMES = {kind: kind.value for kind in BlockKind}  # formatting a member takes longer


def compute_forms(blocks: Iterable[Block], mask_words: Callable[[Block], Words] | None = None) -> BlockForms:
    """Return the forms of a page's blocks. mask_words: returns a block's words under a mask; None: there is no mask."""
    if mask_words is None:
        pairs = [(block, _compute_plain_form(block)) for block in blocks]
    else:
        pairs = [(block, compute_form(block, mask_words(block))) for block in blocks]
    texts = {form: hash_text(block.text) for block, form in pairs if block.kind is BlockKind.TEXT}
    return BlockForms([(block.css_path, form) for block, form in pairs], texts)


def _compute_plain_form(block: Block) -> int:
    join_words = _join_known_words if len(block.text) <= MAX_KNOWN_CHARS else _join_words
    return hash_text(f"{block.css_path} {_NAMES[block.kind]} {join_words(block.text, block.kind is BlockKind.LINK)}")


def _join_words(text: str, is_link: bool) -> str:  # noqa: FBT001  lru_cache is slower with keywords
    return " ".join(get_word_pattern(is_link=is_link).findall(text))


_join_known_words = lru_cache(maxsize=1 << 13)(_join_words)  # boilerplate is on many pages


def parse_page(body: bytes, *, with_blocks: bool, with_forms: bool = False, **options: Any) -> Parsed:
    """Parse a body, and compute the forms of its blocks.

    with_forms: leave out the blocks and return their forms, which take less time to send to another process.
    options: passed on to `parse_body`.
    """
    parsed = parse_body(body, with_blocks=with_blocks or with_forms, **options)
    if not with_forms:
        return parsed
    return replace(parsed, blocks=(), forms=compute_forms(parsed.blocks))


def _is_boilerplate(count: BlockCount, visits_by_path: Mapping[int, int], *, min_pages: int = ENOUGH_PAGES) -> bool:
    """Return whether a block is on min_pages pages, was found by nearly all visits to its path since, and recently."""
    if len(count.pages) < min_pages or visits_by_path.get(count.path, 0) < count.last_visit:
        return False
    visits = visits_by_path.get(count.path, 0)
    is_common = count.visits >= MIN_BOILERPLATE_SHARE * (visits - count.first_visit + 1)
    return is_common and visits - count.last_visit < ENOUGH_PAGES


def learn_page(
    boilerplate: Boilerplate, page: PageKey, blocks: Sequence[tuple[int, int]], texts: Mapping[int, int] | None = None
) -> Boilerplate:
    """Return the boilerplate after one more visit.

    blocks: the path and form of each block, in the page's order.  texts: the hashes of their texts, by form.
    """
    texts = texts or {}
    blocks = _select_blocks_to_count(boilerplate, blocks)
    visits = dict(boilerplate.visits_by_path)
    for path in {path for path, _ in blocks}:
        visits[path] = visits.pop(path, 0) + 1
    visits = keep_newest(visits, MAX_COUNTED_BLOCKS)
    counts = dict(boilerplate.counts)
    replacements = dict(boilerplate.replacements)
    only_page = (page,)
    for form, path in {form: path for path, form in blocks if path in visits}.items():
        count, visit, text = counts.pop(form, None), visits[path], texts.get(form, 0)
        if count is None or count.last_visit > visit:  # it is new, or the path was dropped in between
            counts[form] = _new_count((path, only_page, visit, visit, 1, False, text))
            continue
        _, pages, first_visit, last_visit, known, was, _ = count
        if len(pages) < ENOUGH_PAGES and page not in pages:
            pages = (*pages, page)
        count = _new_count((count.path, pages, first_visit, visit, known + 1, was, text))
        if not was:
            if len(pages) >= ENOUGH_PAGES and _is_boilerplate(count, visits):
                count = count._replace(was_boilerplate=True)
                before = replacements.get(path, 0)
                replacements[path] = before + 1 if _replaces_boilerplate(count, counts) else max(1, before)
        # The block was missing in between and is found again: the first few pages had it by chance.
        elif 1 < visit - last_visit <= ENOUGH_PAGES and not _is_boilerplate(count, visits):
            count = count._replace(was_boilerplate=False)
        counts[form] = count
    if len(replacements) > MAX_COUNTED_BLOCKS:
        replacements = {path: replaced for path, replaced in replacements.items() if path in visits}
    return Boilerplate(_trim_counts(counts), visits, replacements, boilerplate.total_visits + 1)


_new_count: Callable[[Iterable[Any]], BlockCount] = partial(tuple.__new__, BlockCount)


def _replaces_boilerplate(count: BlockCount, counts: Mapping[int, BlockCount]) -> bool:
    """Return whether a block is the first new one at its path after a boilerplate block there was removed.

    Menu entries have the same path and exist side by side: of three new entries, only one replaces a removed one.
    """
    others = [other for other in counts.values() if other.was_boilerplate and other.path == count.path]
    ended = max((other.last_visit for other in others if other.last_visit < count.first_visit), default=None)
    return ended is not None and not any(other.first_visit > ended for other in others)


def _select_blocks_to_count(boilerplate: Boilerplate, blocks: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Return the blocks of a page to count: those counted before, and new ones at the start and the end of the page.

    Boilerplate is mostly at both ends. If all new blocks were counted, a table with thousands would displace it.
    """
    if len(blocks) <= 2 * MAX_NEW_BLOCKS:
        return blocks
    new = [n for n, (_, form) in enumerate(blocks) if form not in boilerplate.counts]
    left_out = set(new[MAX_NEW_BLOCKS:-MAX_NEW_BLOCKS])
    return [block for n, block in enumerate(blocks) if n not in left_out]


def _trim_counts(counts: Mapping[int, BlockCount]) -> Mapping[int, BlockCount]:
    """Return at most MAX_COUNTED_BLOCKS counts.

    Only blocks of the half that has not been found for longest are dropped, the least frequent first. So a redesigned
    site can fill the other half with its new boilerplate. Blocks that were boilerplate are dropped last, because the
    Snapshots of pages not visited since still contain them.
    """
    surplus = len(counts) - MAX_COUNTED_BLOCKS
    if surplus <= 0:
        return counts
    older = list(islice(counts.items(), max(len(counts) // 2, surplus)))
    dropped = [form for form, count in older if count.visits == 1 and not count.was_boilerplate][:surplus]
    if len(dropped) < surplus:
        dropped = [form for form, _ in nsmallest(surplus, older, key=_rank_count)]
    remaining = dict(counts)
    for form in dropped:
        del remaining[form]
    return remaining


def _rank_count(item: tuple[int, BlockCount]) -> tuple[bool, int]:
    return item[1].was_boilerplate, item[1].visits
