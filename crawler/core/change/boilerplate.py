"""The boilerplate of a domain: blocks that stand on nearly all its pages, and when the site itself has changed them.

Boilerplate is learnt page by page. A block belongs to it while nearly every page that has the block's path says the
same there. So a menu that is edited on all pages is one edit of the site and no change of its pages; while "sold out"
on one page of fifty that say "in stock" is a change of that page, however often either is said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from crawler.core.http.urls import PageKey
from crawler.core.noise.words import Words, newest
from crawler.core.page.fingerprint import number_of
from crawler.core.page.outline import Block

MOST_COUNTED = 2048  # blocks of one domain that are counted, and as many paths
MOST_NEW = 256  # blocks of one page that were not met before, from its beginning, and as many from its end
ENOUGH_PAGES = 3  # distinct pages with a block, to call it boilerplate
NEARLY_ALL = 0.8  # share of the looks at pages with the block's path
COMMON = 0.05  # share of all looks at pages that have the path
ENOUGH_TURNS = 3  # boilerplate texts that a path has had one after the other: it is one for news of the day
SEVERAL_PAGES = 2  # distinct pages with a block at such a path: then it is no page's own


@dataclass(frozen=True, slots=True)
class BlockCount:
    """How often a block was met. pages: the first few distinct ones with it, at most ENOUGH_PAGES.

    first, last: when it was met, as number of the look at its path.  looks: that met it.
    was_boilerplate: the block is boilerplate, or was once.
    """

    path: int
    pages: tuple[PageKey, ...]
    first: int
    last: int
    looks: int
    was_boilerplate: bool = False


@dataclass(frozen=True, slots=True)
class Boilerplate:
    """The blocks of one domain, counted; immutable, and bounded.

    counts: of blocks, by form_of.  looks: at pages that have a path, by path.
    turned: how many boilerplate blocks a path has had, one after the other; blocks side by side count as one.
    total: looks at any page.
    """

    counts: Mapping[int, BlockCount] = field(default_factory=dict)
    looks: Mapping[int, int] = field(default_factory=dict)
    turned: Mapping[int, int] = field(default_factory=dict)
    total: int = 0

    def contains(self, form: int) -> bool:
        """Whether a block stands on nearly all pages now."""
        count = self.counts.get(form)
        return self._is_common(count) and _is_boilerplate(count, self.looks)

    def is_shared(self, form: int, *, least: float) -> bool:
        """Whether ENOUGH_PAGES pages have a block, and of the looks at its path since the first at least that share."""
        count = self.counts.get(form)
        if count is None or len(count.pages) < ENOUGH_PAGES:
            return False
        return count.was_boilerplate or count.looks >= least * (self.looks.get(count.path, 0) - count.first + 1)

    def contained(self, form: int) -> bool:
        """Whether a block ever stood on nearly all pages."""
        count = self.counts.get(form)
        return count is not None and count.was_boilerplate

    def has_dropped(self, form: int) -> bool:
        """Whether a block was boilerplate, and the last few pages with its path did not have it."""
        count = self.counts.get(form)
        if not self._is_common(count) or not count.was_boilerplate:
            return False
        return self.looks.get(count.path, 0) - count.last >= ENOUGH_PAGES

    def _is_common(self, count: BlockCount | None) -> TypeGuard[BlockCount]:
        """Whether a block's path is no peculiarity of a few pages, such as the same index in each language."""
        return count is not None and self.looks.get(count.path, 0) >= COMMON * self.total

    def turns_to(self, form: int) -> bool:
        """Whether a block is the current text of a path where the boilerplate changes, such as news of the day.

        It stands on SEVERAL_PAGES, and on nearly all since.
        """
        count = self.counts.get(form)
        if count is None or self.turned.get(count.path, 0) < ENOUGH_TURNS:
            return False
        return _is_boilerplate(count, self.looks, pages=SEVERAL_PAGES)


NO_BOILERPLATE = Boilerplate()


def form_of(block: Block, words: Words) -> int:
    """A number for a block's path, kind and words. words: of the block, under a mask."""
    return number_of(f"{block.css_path} {block.kind} {' '.join(words)}")


def _is_boilerplate(count: BlockCount, looks: Mapping[int, int], *, pages: int = ENOUGH_PAGES) -> bool:
    """Whether so many pages have a block, and nearly all looks at its path have met it since the first that did."""
    if len(count.pages) < pages or looks.get(count.path, 0) < count.last:
        return False
    since = looks.get(count.path, 0) - count.first + 1
    return count.looks >= NEARLY_ALL * since and since - 1 + count.first - count.last < ENOUGH_PAGES


def learn_page(boilerplate: Boilerplate, page: PageKey, blocks: Sequence[tuple[int, int]]) -> Boilerplate:
    """The boilerplate after one more look at a page. blocks: path and form of each block, in the page's order."""
    blocks = _blocks_to_count(boilerplate, blocks)
    looks = dict(boilerplate.looks)
    for path in {path for path, _ in blocks}:
        looks[path] = looks.pop(path, 0) + 1
    looks = newest(looks, MOST_COUNTED)
    counts = dict(boilerplate.counts)
    turned = dict(boilerplate.turned)
    for form, path in {form: path for path, form in blocks if path in looks}.items():
        count = counts.pop(form, None)
        if count is None or count.last > looks[path]:  # or its path was forgotten meanwhile
            count = BlockCount(path, (), first=looks[path], last=looks[path], looks=0)
        gap = looks[path] - count.last - 1
        pages = count.pages if page in count.pages or len(count.pages) >= ENOUGH_PAGES else (*count.pages, page)
        # Not `replace`, which takes three times as long, for each block of a page.
        count = BlockCount(count.path, pages, count.first, looks[path], count.looks + 1, count.was_boilerplate)
        if not count.was_boilerplate and _is_boilerplate(count, looks):
            count = replace(count, was_boilerplate=True)
            turned[path] = turned.get(path, 0) + 1 if _follows(count, counts) else max(1, turned.get(path, 0))
        # The block comes and goes on pages that are looked at in a row: the first few had it by chance.
        elif count.was_boilerplate and 0 < gap < ENOUGH_PAGES and not _is_boilerplate(count, looks):
            count = replace(count, was_boilerplate=False)
        counts[form] = count
    if len(turned) > MOST_COUNTED:
        turned = {path: many for path, many in turned.items() if path in looks}
    return Boilerplate(_trimmed(counts), looks, turned, boilerplate.total + 1)


def _follows(count: BlockCount, counts: Mapping[int, BlockCount]) -> bool:
    """Whether a block is the first at its path after a boilerplate block there had ended.

    Entries of a menu stand beside each other. Of three new ones after one was taken out, at most one is in its place.
    """
    others = [other for other in counts.values() if other.was_boilerplate and other.path == count.path]
    ended = max((other.last for other in others if other.last < count.first), default=None)
    return ended is not None and not any(other.first > ended for other in others)


def _blocks_to_count(boilerplate: Boilerplate, blocks: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """The blocks of a page that are counted: all that were met before, and new ones near the page's two ends.

    A table or an index of thousands of blocks would push out all counts of boilerplate otherwise. Boilerplate stands
    at the ends of a page, mostly.
    """
    if len(blocks) <= 2 * MOST_NEW:
        return blocks
    new = [n for n, (_, form) in enumerate(blocks) if form not in boilerplate.counts]
    left_out = set(new[MOST_NEW:-MOST_NEW])
    return [block for n, block in enumerate(blocks) if n not in left_out]


def _trimmed(counts: Mapping[int, BlockCount]) -> Mapping[int, BlockCount]:
    """At most MOST_COUNTED counts: of the half that was not met for the longest time, those met least often go.

    What was boilerplate once stays longest: pages that were not read anew since still have it in their Snapshots.
    A site that is made anew can fill the other half with its new boilerplate.
    """
    surplus = len(counts) - MOST_COUNTED
    if surplus <= 0:
        return counts
    older = list(counts)[: max(len(counts) // 2, surplus)]
    kept = dict(counts)
    for form in sorted(older, key=lambda form: (counts[form].was_boilerplate, counts[form].looks))[:surplus]:
        del kept[form]
    return kept
