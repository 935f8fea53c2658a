"""What one comparison teaches the mask, and whether a second fetch would teach more."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from crawler.core.change.boilerplate import form_of, learn_page
from crawler.core.change.difference import SAME, Difference, _form, _forms, _tells_the_day, difference, significant
from crawler.core.change.mask import NoiseMask
from crawler.core.change.site_edits import BoilerplateChange, SiteEdit, boilerplate_change, learn_edits, take_due
from crawler.core.http import PageKey
from crawler.core.page import Block, BlockList
from crawler.core.volatile import Volatile, learn_aliases, learn_changes, learn_elapsed, learn_from_repeat, trimmed

MOST_AGAIN = 2  # looks beside the first; of a few banners in turn, two can be the same

MOST_DOUBTED = 4  # where one pair of them differs and another does not

ENOUGH_PAIRS = 60  # of a domain, before pairs are rationed; it takes two to prove anything

PAIRED_SHARE = 0.15  # of the comparisons after that

LIKELY = 2  # times as many where a pair has found such places differing: there one more will acquit most probably


@dataclass(frozen=True, slots=True)
class Observation:
    """What a look teaches of the domain's mask; see `learn`.

    after: the page as it is `at` this look.  before: as it was `then`.  again: as it was seconds later, each time.
    """

    page: PageKey
    after: BlockList
    at: datetime
    before: BlockList = ()
    then: datetime | None = None
    second_fetches: tuple[BlockList, ...] = ()

    @property
    def elapsed(self) -> timedelta:
        return self.at - self.then if self.then is not None else timedelta(0)


def wants_pair(left: Difference, mask: NoiseMask, *, taken: int, returned: bool) -> bool:
    """Whether one more look, seconds later, would tell more about what differs.

    taken: looks that were taken for this already.  returned: the page is as it was in an earlier version: it goes back
    and forth, perhaps from look to look.
    """
    is_likely = all(mask.volatile.has_moved(place) for place in left.places)
    if not left or taken >= MOST_DOUBTED or not has_pairs(mask, times=LIKELY if is_likely else 1):
        return False
    if taken >= MOST_AGAIN:
        return any(mask.volatile.is_suspect(place) for place in left.places)
    if taken and not returned:
        return any(mask.volatile.is_unknown(place) for place in left.places)
    return returned or any(not mask.volatile.is_tested(place) for place in left.places)


def has_pairs(mask: NoiseMask, *, times: int = 1) -> bool:
    """Whether one more pair can be had, as far as they are rationed. times: as many as for any other look."""
    return mask.pairs < times * (ENOUGH_PAIRS + PAIRED_SHARE * mask.compared)


def _renamed(mask: NoiseMask, lesson: Observation) -> Volatile:
    """What is known, with the names that a look tells."""
    if not lesson.before:
        return mask.volatile
    names = learn_aliases(mask.volatile.aliases, lesson.before, lesson.after, met=mask.boilerplate.looks)
    return mask.volatile if names is mask.volatile.aliases else replace(mask.volatile, aliases=names)


def update_mask(mask: NoiseMask, lesson: Observation) -> NoiseMask:
    """The mask after one more look."""
    return update_with_difference(mask, lesson)[0]


def update_with_difference(mask: NoiseMask, lesson: Observation) -> tuple[NoiseMask, Difference]:
    """The same, and what differs under it from the last Snapshot."""
    volatile = _renamed(mask, lesson)
    lesson = replace(
        lesson,
        after=volatile.named(lesson.after),
        before=volatile.named(lesson.before),
        second_fetches=tuple(map(volatile.named, lesson.second_fetches)),
    )
    for one, again in pairwise((lesson.after, *lesson.second_fetches)):
        volatile = trimmed(_paired(volatile, lesson.page, one, again))
    volatile, found = _timed(volatile, lesson)
    if lesson.before and lesson.then is not None and not lesson.second_fetches:
        left = significant(found, NoiseMask(volatile, mask.boilerplate), then=lesson.then, now=lesson.at)
        volatile = learn_changes(volatile, left.places)
    pieces = [(place.css_path, form_of(place, volatile.masked(place))) for place in lesson.after]
    taught = NoiseMask(
        volatile=volatile,
        boilerplate=learn_page(mask.boilerplate, lesson.page, pieces),
        pairs=mask.pairs + len(lesson.second_fetches),
        compared=mask.compared + bool(lesson.before),
        looks=mask.looks + 1,
        variants=mask.variants,
    )
    differing = _pieces(found if lesson.before else SAME, taught, lesson)
    edits = learn_edits(mask.edits, lesson.page, differing, before=mask.boilerplate, after=taught.boilerplate)
    return replace(taught, edits=edits), found


def _paired(volatile: Volatile, page: PageKey, one: BlockList, again: BlockList) -> Volatile:
    """What a second look teaches. Of a guess nothing is learnt, and what moved on the page has no words that differ."""
    found = difference(one, again, volatile)
    here, there = set(one), set(again)
    moved = [pair for pair in found.replaced if pair[0] in there and pair[1] in here]
    sure = set(found.replaced).difference(moved)
    others = (*found.removed, *found.added, *(place for pair in moved for place in pair))
    return learn_from_repeat(
        volatile,
        page=page,
        replaced=[pair for pair in found.replaced if pair in sure and found.guessed.isdisjoint(pair)],
        others=[place for place in others if place not in found.guessed],
        first=[place for place in one if place not in found.guessed],
        second=[place for place in again if place not in found.guessed],
    )


def _timed(volatile: Volatile, lesson: Observation) -> tuple[Volatile, Difference]:
    """What the time since the last Snapshot teaches, and what differs from that."""
    found = difference(lesson.before, lesson.after, volatile)
    taught = volatile
    for before, after in found.replaced:
        if found.guessed.isdisjoint((before, after)):
            taught = learn_elapsed(taught, before, after, page=lesson.page, elapsed=lesson.elapsed)
    if _forms(found.places, taught) != _forms(found.places, volatile):
        found = difference(lesson.before, lesson.after, taught)
    return taught, found


def take_site_edits(mask: NoiseMask, *, at: datetime) -> tuple[SiteEdit | None, NoiseMask]:
    """What is to be told of the site as such, and the mask that knows it for told."""
    edit, edits = take_due(mask.edits, at=at)
    return edit, mask if edits is mask.edits else replace(mask, edits=edits)


def _pieces(found: Difference, mask: NoiseMask, lesson: Observation) -> Iterator[BoilerplateChange]:
    """What differs, but for what is volatile and what tells the day."""

    def known(place: Block) -> tuple[Block, int] | None:
        return None if mask.volatile.is_noise(place) else (place, _form(place, mask))

    for was, now in found.replaced:
        if lesson.then is None or not _tells_the_day(was, now, mask, then=lesson.then, now=lesson.at):
            yield boilerplate_change(known(was), known(now))
    yield from (boilerplate_change(known(place), None) for place in found.removed)
    yield from (boilerplate_change(None, known(place)) for place in found.added)
