"""The frame of a domain's pages: what stands on all of them alike, and when the site itself has changed it.

Learnt page by page. A piece belongs to the frame while nearly every page that has its path says the same there. So a
menu that is edited on all pages is one change of the site and none of its pages'; while "sold out" on one page of fifty
that say "in stock" is news of that page, however often either is said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from crawler.core.http import PageKey
from crawler.core.page import Block, number_of
from crawler.core.volatile import Words

MOST_STANDS = 2048  # pieces of one domain that are counted, and as many paths
MOST_NEW = 256  # of one page that were not met before, from its beginning, and as many from its end
ENOUGH_PAGES = 3  # distinct ones
NEARLY_ALL = 0.8  # of the looks at pages with this path
TURNS = 3  # texts that a path of the frame has had, one after the other: it is one for news of the day
SEVERAL = 2  # distinct pages, none of which says news of its own where they all say the same


@dataclass(frozen=True, slots=True)
class BlockCount:
    """How a piece was met. pages: the first few distinct ones.  first, last: by the count of looks at its path."""

    path: int
    pages: tuple[PageKey, ...]
    first: int
    last: int
    looks: int
    was_boilerplate: bool = False


@dataclass(frozen=True, slots=True)
class Boilerplate:
    """What is known of one domain's frame; immutable, and bounded.

    stands: of pieces, by form_of.  looks: at pages that have a path, by path.
    turned: how many pieces of the frame a path has had, one after the other; those that stand side by side are one.
    """

    counts: Mapping[int, BlockCount] = field(default_factory=dict)
    looks: Mapping[int, int] = field(default_factory=dict)
    turned: Mapping[int, int] = field(default_factory=dict)

    def contains(self, form: int) -> bool:
        """Whether this piece stands on nearly all pages now."""
        return _is_frame(self.counts.get(form), self.looks)

    def contained(self, form: int) -> bool:
        """Whether it ever did."""
        stand = self.counts.get(form)
        return stand is not None and stand.was_boilerplate

    def has_dropped(self, form: int) -> bool:
        """Whether it did, and the last few pages that could have had it have not."""
        stand = self.counts.get(form)
        return (
            stand is not None and stand.was_boilerplate and self.looks.get(stand.path, 0) - stand.last >= ENOUGH_PAGES
        )

    def turns(self, path: int) -> bool:
        """Whether the frame says something else here now and then."""
        return self.turned.get(path, 0) >= TURNS

    def turns_to(self, form: int) -> bool:
        """Whether this is what it says here now: not one page alone, and nearly all that were looked at since."""
        stand = self.counts.get(form)
        return _stands(stand, self.looks, pages=SEVERAL) and stand is not None and self.turns(stand.path)


NO_BOILERPLATE = Boilerplate()


def form_of(place: Block, words: Words) -> int:
    """A number for what is said in a place, by its words under a mask."""
    return number_of(f"{place.css_path} {place.kind} {' '.join(words)}")


def _is_frame(stand: BlockCount | None, looks: Mapping[int, int]) -> bool:
    return _stands(stand, looks, pages=ENOUGH_PAGES)


def _stands(stand: BlockCount | None, looks: Mapping[int, int], *, pages: int) -> bool:
    """Whether so many pages say a piece, and nearly all looks at its path met it since the first that did."""
    if stand is None or len(stand.pages) < pages or looks.get(stand.path, 0) < stand.last:
        return False
    since = looks.get(stand.path, 0) - stand.first + 1
    return stand.looks >= NEARLY_ALL * since and since - 1 + stand.first - stand.last < ENOUGH_PAGES


def learn_page(boilerplate: Boilerplate, page: PageKey, pieces: Sequence[tuple[int, int]]) -> Boilerplate:
    """What one look at a page teaches. pieces: the path and the form of each of its places, in the page's order."""
    pieces = _counted(boilerplate, pieces)
    looks = dict(boilerplate.looks)
    for path in {path for path, _ in pieces}:
        looks[path] = looks.pop(path, 0) + 1
    for path in list(looks)[: max(len(looks) - MOST_STANDS, 0)]:  # not met for the longest time
        del looks[path]
    stands = dict(boilerplate.counts)
    turned = dict(boilerplate.turned)
    for form, path in {form: path for path, form in pieces if path in looks}.items():
        stand = stands.pop(form, None)
        if stand is None or stand.last > looks[path]:  # or its path was forgotten meanwhile
            stand = BlockCount(path, (), first=looks[path], last=looks[path], looks=0)
        gap = looks[path] - stand.last - 1
        pages = stand.pages if page in stand.pages or len(stand.pages) >= ENOUGH_PAGES else (*stand.pages, page)
        stand = replace(stand, pages=pages, last=looks[path], looks=stand.looks + 1)
        if not stand.was_boilerplate and _is_frame(stand, looks):
            stand = replace(stand, was_boilerplate=True)
            turned[path] = turned.get(path, 0) + 1 if _follows(stand, stands) else max(1, turned.get(path, 0))
        # It comes and goes on pages that are looked at in a row: the first few had it by chance.
        elif stand.was_boilerplate and 0 < gap < ENOUGH_PAGES and not _is_frame(stand, looks):
            stand = replace(stand, was_boilerplate=False)
        stands[form] = stand
    if len(turned) > MOST_STANDS:
        turned = {path: many for path, many in turned.items() if path in looks}
    return Boilerplate(_bounded(stands), looks, turned)


def _follows(stand: BlockCount, stands: Mapping[int, BlockCount]) -> bool:
    """Whether a piece began after one of the frame at its path had ended, and is the first that did.

    Entries of a menu stand beside each other. Of three new ones after one was taken out, one at most is in its place.
    """
    others = [other for other in stands.values() if other.was_boilerplate and other.path == stand.path]
    ended = max((other.last for other in others if other.last < stand.first), default=None)
    return ended is not None and not any(other.first > ended for other in others)


def _counted(boilerplate: Boilerplate, pieces: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Those of a page that are counted: what was met before, and of the rest the page's two ends, where a frame is.

    A page of thousands of pieces, a table or an index, would push out all that is known of the frame; that would be
    learnt anew from the next pages, and seem to turn.
    """
    if len(pieces) <= 2 * MOST_NEW:
        return pieces
    new = [n for n, (_, form) in enumerate(pieces) if form not in boilerplate.counts]
    left_out = set(new[MOST_NEW:-MOST_NEW])
    return [piece for n, piece in enumerate(pieces) if n not in left_out]


def _bounded(stands: dict[int, BlockCount]) -> dict[int, BlockCount]:
    """Of the half that was not met for the longest time those go that were met on the fewest pages.

    So a site that is made anew can fill the other half with what its frame says now.
    """
    surplus = len(stands) - MOST_STANDS
    if surplus > 0:
        older = list(stands)[: max(len(stands) // 2, surplus)]
        for form in sorted(older, key=lambda form: len(stands[form].pages))[:surplus]:
            del stands[form]
    return stands
