"""The boilerplate of a domain: blocks that stand on nearly all its pages, and when the site itself has changed them.

Boilerplate is learnt page by page. A block belongs to it while nearly every page that has the block's path says the
same there. So a menu that is edited on all pages is one edit of the site and no change of its pages; while "sold out"
on one page of fifty that say "in stock" is a change of that page, however often either is said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from crawler.core.http.urls import PageKey
from crawler.core.noise.words import Words, keep_newest
from crawler.core.page.fingerprint import hash_text
from crawler.core.page.outline import Block

MAX_COUNTED_BLOCKS = 2048  # blocks of one domain that are counted, and as many paths
MAX_NEW_BLOCKS = 256  # blocks of one page that were not met before, from its beginning, and as many from its end
ENOUGH_PAGES = 3  # distinct pages with a block, to call it boilerplate
MIN_BOILERPLATE_SHARE = 0.8  # share of the looks at pages with the block's path
MIN_PATH_SHARE = 0.05  # share of all looks at pages that have the path
ENOUGH_REPLACEMENTS = 3  # boilerplate texts that a path has had one after the other: it is one for news of the day
MIN_ROTATING_PAGES = 2  # distinct pages with a block at such a path: then it is no page's own


@dataclass(frozen=True, slots=True)
class BlockCount:
    """How often a block was met. pages: the first few distinct ones with it, at most ENOUGH_PAGES.

    first_visit, last_visit: when it was met, as number of the look at its path.  visits: that met it.
    was_boilerplate: the block is boilerplate, or was once.
    """

    path: int
    pages: tuple[PageKey, ...]
    first_visit: int
    last_visit: int
    visits: int
    was_boilerplate: bool = False


@dataclass(frozen=True, slots=True)
class Boilerplate:
    """The blocks of one domain, counted; immutable, and bounded.

    counts: of blocks, by form_of.  visits_by_path: at pages that have a path, by path.
    replacements: how many boilerplate blocks a path has had, one after the other; blocks side by side count as one.
    total_visits: looks at any page.
    """

    counts: Mapping[int, BlockCount] = field(default_factory=dict)
    visits_by_path: Mapping[int, int] = field(default_factory=dict)
    replacements: Mapping[int, int] = field(default_factory=dict)
    total_visits: int = 0

    def contains(self, form: int) -> bool:
        """Whether a block stands on nearly all pages now."""
        count = self.counts.get(form)
        return self._has_common_path(count) and _is_boilerplate(count, self.visits_by_path)

    def is_shared(self, form: int, *, min_share: float) -> bool:
        """Whether ENOUGH_PAGES pages have a block, and of the looks at its path since the first at least that share."""
        count = self.counts.get(form)
        if count is None or len(count.pages) < ENOUGH_PAGES:
            return False
        return count.was_boilerplate or count.visits >= min_share * (
            self.visits_by_path.get(count.path, 0) - count.first_visit + 1
        )

    def was_boilerplate(self, form: int) -> bool:
        """Whether a block ever stood on nearly all pages."""
        count = self.counts.get(form)
        return count is not None and count.was_boilerplate

    def has_dropped(self, form: int) -> bool:
        """Whether a block was boilerplate, and the last few pages with its path did not have it."""
        count = self.counts.get(form)
        if not self._has_common_path(count) or not count.was_boilerplate:
            return False
        return self.visits_by_path.get(count.path, 0) - count.last_visit >= ENOUGH_PAGES

    def _has_common_path(self, count: BlockCount | None) -> TypeGuard[BlockCount]:
        """Whether a block's path is no peculiarity of a few pages, such as the same index in each language."""
        return count is not None and self.visits_by_path.get(count.path, 0) >= MIN_PATH_SHARE * self.total_visits

    def is_rotating_text(self, form: int) -> bool:
        """Whether a block is the current text of a path where the boilerplate changes, such as news of the day.

        It stands on MIN_ROTATING_PAGES, and on nearly all since.
        """
        count = self.counts.get(form)
        if count is None or self.replacements.get(count.path, 0) < ENOUGH_REPLACEMENTS:
            return False
        return _is_boilerplate(count, self.visits_by_path, min_pages=MIN_ROTATING_PAGES)


NO_BOILERPLATE = Boilerplate()


def compute_form(block: Block, words: Words) -> int:
    """A number for a block's path, kind and words. words: of the block, under a mask."""
    return hash_text(f"{block.css_path} {block.kind} {' '.join(words)}")


def _is_boilerplate(count: BlockCount, visits_by_path: Mapping[int, int], *, min_pages: int = ENOUGH_PAGES) -> bool:
    """Whether so many pages have a block, and nearly all looks at its path have met it since the first that did."""
    if len(count.pages) < min_pages or visits_by_path.get(count.path, 0) < count.last_visit:
        return False
    visits_since = visits_by_path.get(count.path, 0) - count.first_visit + 1
    return (
        count.visits >= MIN_BOILERPLATE_SHARE * visits_since
        and visits_since - 1 + count.first_visit - count.last_visit < ENOUGH_PAGES
    )


def learn_page(boilerplate: Boilerplate, page: PageKey, blocks: Sequence[tuple[int, int]]) -> Boilerplate:
    """The boilerplate after one more look at a page. blocks: path and form of each block, in the page's order."""
    blocks = _select_blocks_to_count(boilerplate, blocks)
    visits = dict(boilerplate.visits_by_path)
    for path in {path for path, _ in blocks}:
        visits[path] = visits.pop(path, 0) + 1
    visits = keep_newest(visits, MAX_COUNTED_BLOCKS)
    counts = dict(boilerplate.counts)
    replacements = dict(boilerplate.replacements)
    for form, path in {form: path for path, form in blocks if path in visits}.items():
        count = counts.pop(form, None)
        if count is None or count.last_visit > visits[path]:  # or its path was forgotten meanwhile
            count = BlockCount(path, (), first_visit=visits[path], last_visit=visits[path], visits=0)
        gap = visits[path] - count.last_visit - 1
        pages = count.pages if page in count.pages or len(count.pages) >= ENOUGH_PAGES else (*count.pages, page)
        # Not `replace`, which takes three times as long, for each block of a page.
        count = BlockCount(count.path, pages, count.first_visit, visits[path], count.visits + 1, count.was_boilerplate)
        if not count.was_boilerplate and _is_boilerplate(count, visits):
            count = replace(count, was_boilerplate=True)
            replacements[path] = (
                replacements.get(path, 0) + 1
                if _replaces_boilerplate(count, counts)
                else max(1, replacements.get(path, 0))
            )
        # The block comes and goes on pages that are looked at in a row: the first few had it by chance.
        elif count.was_boilerplate and 0 < gap < ENOUGH_PAGES and not _is_boilerplate(count, visits):
            count = replace(count, was_boilerplate=False)
        counts[form] = count
    if len(replacements) > MAX_COUNTED_BLOCKS:
        replacements = {path: replaced for path, replaced in replacements.items() if path in visits}
    return Boilerplate(_trim_counts(counts), visits, replacements, boilerplate.total_visits + 1)


def _replaces_boilerplate(count: BlockCount, counts: Mapping[int, BlockCount]) -> bool:
    """Whether a block is the first at its path after a boilerplate block there had ended.

    Entries of a menu stand beside each other. Of three new ones after one was taken out, at most one is in its place.
    """
    others = [other for other in counts.values() if other.was_boilerplate and other.path == count.path]
    ended = max((other.last_visit for other in others if other.last_visit < count.first_visit), default=None)
    return ended is not None and not any(other.first_visit > ended for other in others)


def _select_blocks_to_count(boilerplate: Boilerplate, blocks: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """The blocks of a page that are counted: all that were met before, and new ones near the page's two ends.

    A table or an index of thousands of blocks would push out all counts of boilerplate otherwise. Boilerplate stands
    at the ends of a page, mostly.
    """
    if len(blocks) <= 2 * MAX_NEW_BLOCKS:
        return blocks
    new = [n for n, (_, form) in enumerate(blocks) if form not in boilerplate.counts]
    left_out = set(new[MAX_NEW_BLOCKS:-MAX_NEW_BLOCKS])
    return [block for n, block in enumerate(blocks) if n not in left_out]


def _trim_counts(counts: Mapping[int, BlockCount]) -> Mapping[int, BlockCount]:
    """At most MOST_COUNTED counts: of the half that was not met for the longest time, those met least often go.

    What was boilerplate once stays longest: pages that were not read anew since still have it in their Snapshots.
    A site that is made anew can fill the other half with its new boilerplate.
    """
    surplus = len(counts) - MAX_COUNTED_BLOCKS
    if surplus <= 0:
        return counts
    older = list(counts)[: max(len(counts) // 2, surplus)]
    remaining = dict(counts)
    for form in sorted(older, key=lambda form: (counts[form].was_boilerplate, counts[form].visits))[:surplus]:
        del remaining[form]
    return remaining
