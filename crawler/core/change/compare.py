"""Two versions of a page, place by place: what went, what came, and what of it is news."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise

from crawler.core.change.boilerplate import NO_FRAME, Frame, form_of, learn_page
from crawler.core.change.site_edits import NO_EDITS, Edits, Piece, SiteEdit, learn_edits, piece_of, taken
from crawler.core.change.variants import Variants
from crawler.core.http.urls import PageKey
from crawler.core.page.outline import Outline, Part, Place
from crawler.core.volatile.alignment import counterparts, gaps
from crawler.core.volatile.dates import clock_in, tells_the_day
from crawler.core.volatile.path_aliases import learn_names
from crawler.core.volatile.relative_time import counts_time, learn_elapsed
from crawler.core.volatile.repeat_fetch import learn_changes, learn_pair
from crawler.core.volatile.room import fitted
from crawler.core.volatile.volatile import NOTHING_VOLATILE, Volatile
from crawler.core.volatile.words import words_of

MOST_GUESSED = 8  # places of one kind between two that stayed, of which some came or went: order tells which is which
MOST_AGAIN = 2  # looks beside the first; of a few banners in turn, two can be the same
MOST_DOUBTED = 4  # where one pair of them differs and another does not
ENOUGH_PAIRS = 60  # of a domain, before pairs are rationed; it takes two to prove anything
PAIRED_SHARE = 0.15  # of the comparisons after that
LIKELY = 2  # times as many where a pair has found such places differing: there one more will acquit most probably


@dataclass(frozen=True, slots=True)
class Mask:
    """What one domain's pages have that is no news; immutable.

    pairs: taken so far, of `compared` looks.  looks: that it was learnt from.  edits: of the frame, told and not.
    variants: of its pages, what they say by turns.
    """

    volatile: Volatile = NOTHING_VOLATILE
    frame: Frame = NO_FRAME
    pairs: int = 0
    compared: int = 0
    looks: int = 0
    edits: Edits = NO_EDITS
    variants: Variants = field(default_factory=dict)


NO_MASK = Mask()


@dataclass(frozen=True, slots=True)
class Difference:
    """What separates two outlines under a mask.

    replaced: what stood in a place, and what stands there now.  removed, added: what has no counterpart.
    guessed: places of many of one kind of which some came or went, so that which stands for which is a guess.
    """

    replaced: tuple[tuple[Place, Place], ...] = ()
    removed: tuple[Place, ...] = ()
    added: tuple[Place, ...] = ()
    guessed: frozenset[Place] = field(default=frozenset(), compare=False)

    def __bool__(self) -> bool:
        return bool(self.replaced or self.removed or self.added)

    @property
    def places(self) -> tuple[Place, ...]:
        return (*(place for pair in self.replaced for place in pair), *self.removed, *self.added)

    @property
    def parts(self) -> frozenset[Part]:
        return frozenset(place.part for place in self.places)


SAME = Difference()


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a look teaches of the domain's mask; see `learn`.

    after: the page as it is `at` this look.  before: as it was `then`.  again: as it was seconds later, each time.
    """

    page: PageKey
    after: Outline
    at: datetime
    before: Outline = ()
    then: datetime | None = None
    again: tuple[Outline, ...] = ()

    @property
    def elapsed(self) -> timedelta:
        return self.at - self.then if self.then is not None else timedelta(0)


def difference(before: Outline, after: Outline, volatile: Volatile) -> Difference:
    """All that differs, but for volatile words. Their order counts; where they stand in the tree does not."""
    before, after = volatile.named(before), volatile.named(after)
    replaced: list[tuple[Place, Place]] = []
    removed: list[Place] = []
    added: list[Place] = []
    guessed: set[Place] = set()
    for went, came in gaps(_forms(before, volatile), _forms(after, volatile)):
        old, new = before[went], after[came]
        guessed.update(_guessed(old, new))
        for n, m in counterparts(_kinds(old), _kinds(new)):
            if n is not None and m is not None:
                replaced.append((old[n], new[m]))
            elif n is not None:
                removed.append(old[n])
            elif m is not None:
                added.append(new[m])
    return Difference(tuple(replaced), tuple(removed), tuple(added), frozenset(guessed))


def _guessed(went: Outline, came: Outline) -> Iterator[Place]:
    """What stands among many of its kind that are more, or fewer, on the other side."""
    if min(len(went), len(came)) <= MOST_GUESSED:
        return
    were, are = Counter(_kinds(went)), Counter(_kinds(came))
    unsure = {kind for kind, many in were.items() if many != are[kind] and min(many, are[kind]) > MOST_GUESSED}
    yield from (place for place in (*went, *came) if (place.path, place.part) in unsure)


def _kinds(outline: Outline) -> list[tuple[int, Part]]:
    return [(place.path, place.part) for place in outline]


def _forms(outline: Outline, volatile: Volatile) -> list[tuple[Part, tuple[str, ...]]]:
    return [(place.part, volatile.masked(place)) for place in outline]


def news(found: Difference, mask: Mask, *, then: datetime, now: datetime) -> Difference:
    """What of a difference is the page's own: neither volatile, nor the frame's, nor the days of the two looks."""
    replaced: list[tuple[Place, Place]] = []
    removed = [place for place in found.removed if not _went_with_frame(place, mask)]
    added = [place for place in found.added if not _came_with_frame(place, mask)]
    for before, after in found.replaced:
        if _is_turned(before, after, mask) or _tells_the_day(before, after, mask, then=then, now=now):
            continue
        went, came = _went_with_frame(before, mask), _came_with_frame(after, mask)
        if not went and not came:
            replaced.append((before, after))
        elif not went:
            removed.append(before)
        elif not came:
            added.append(after)
    return Difference(tuple(replaced), tuple(removed), tuple(added))


def _form(place: Place, mask: Mask) -> int:
    return form_of(place, mask.volatile.masked(place))


def _went_with_frame(place: Place, mask: Mask) -> bool:
    return mask.volatile.is_noise(place) or mask.frame.has_lost(_form(place, mask))


def _came_with_frame(place: Place, mask: Mask) -> bool:
    return mask.volatile.is_noise(place) or mask.frame.holds(_form(place, mask))


def _is_turned(before: Place, after: Place, mask: Mask) -> bool:
    """Whether one piece of the frame took another's place, or a volatile place says it in other words."""
    frame, was, now = mask.frame, _form(before, mask), _form(after, mask)
    if frame.held(was) and (frame.held(now) or frame.turns_to(now)):
        return True
    if mask.volatile.has_gaps(after) and frame.has_switched(was, now):
        return True
    return mask.volatile.takes_the_place(before, after) or mask.volatile.is_by_turns(before, after)


def _tells_the_day(before: Place, after: Place, mask: Mask, *, then: datetime, now: datetime) -> bool:
    if before.part is not after.part or after.part is Part.LINK:
        return False
    one, other = mask.volatile.both(before, after)
    if before.part is Part.TEXT and len(one) == len(other):
        clock = clock_in(words_of(before), words_of(after), then=then, now=now)
        one, other = (tuple(word for n, word in enumerate(words) if n not in clock) for words in (one, other))
    if one == other or tells_the_day(one, other, then=then, now=now):
        return True
    # On another day a place says another date beside its volatile words, so that no pattern of its words fits.
    loose = mask.volatile.loosely(before, after)
    if loose is not None and loose[0] != loose[1] and tells_the_day(*loose, then=then, now=now):
        return True
    return counts_time(mask.volatile, before, after, elapsed=now - then)


def wants_pair(left: Difference, mask: Mask, *, taken: int, returned: bool) -> bool:
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


def has_pairs(mask: Mask, *, times: int = 1) -> bool:
    """Whether one more pair can be had, as far as they are rationed. times: as many as for any other look."""
    return mask.pairs < times * (ENOUGH_PAIRS + PAIRED_SHARE * mask.compared)


def _renamed(mask: Mask, lesson: Lesson) -> Volatile:
    """What is known, with the names that a look tells."""
    if not lesson.before:
        return mask.volatile
    names = learn_names(mask.volatile.names, lesson.before, lesson.after, met=mask.frame.looks)
    return mask.volatile if names is mask.volatile.names else replace(mask.volatile, names=names)


def learn(mask: Mask, lesson: Lesson) -> Mask:
    """The mask after one more look."""
    return learnt(mask, lesson)[0]


def learnt(mask: Mask, lesson: Lesson) -> tuple[Mask, Difference]:
    """The same, and what differs under it from the last Snapshot."""
    volatile = _renamed(mask, lesson)
    lesson = replace(
        lesson,
        after=volatile.named(lesson.after),
        before=volatile.named(lesson.before),
        again=tuple(map(volatile.named, lesson.again)),
    )
    for one, again in pairwise((lesson.after, *lesson.again)):
        volatile = fitted(_paired(volatile, lesson.page, one, again))
    volatile, found = _timed(volatile, lesson)
    if lesson.before and lesson.then is not None and not lesson.again:
        left = news(found, Mask(volatile, mask.frame), then=lesson.then, now=lesson.at)
        volatile = learn_changes(volatile, left.places)
    pieces = [(place.path, form_of(place, volatile.masked(place))) for place in lesson.after]
    taught = Mask(
        volatile=volatile,
        frame=learn_page(mask.frame, lesson.page, pieces),
        pairs=mask.pairs + len(lesson.again),
        compared=mask.compared + bool(lesson.before),
        looks=mask.looks + 1,
        variants=mask.variants,
    )
    differing = _pieces(found if lesson.before else SAME, taught, lesson)
    edits = learn_edits(mask.edits, lesson.page, differing, before=mask.frame, after=taught.frame)
    return replace(taught, edits=edits), found


def _paired(volatile: Volatile, page: PageKey, one: Outline, again: Outline) -> Volatile:
    """What a second look teaches. Of a guess nothing is learnt, and what moved on the page has no words that differ."""
    found = difference(one, again, volatile)
    here, there = set(one), set(again)
    moved = [pair for pair in found.replaced if pair[0] in there and pair[1] in here]
    sure = set(found.replaced).difference(moved)
    others = (*found.removed, *found.added, *(place for pair in moved for place in pair))
    return learn_pair(
        volatile,
        page=page,
        replaced=[pair for pair in found.replaced if pair in sure and found.guessed.isdisjoint(pair)],
        others=[place for place in others if place not in found.guessed],
        first=[place for place in one if place not in found.guessed],
        second=[place for place in again if place not in found.guessed],
    )


def _timed(volatile: Volatile, lesson: Lesson) -> tuple[Volatile, Difference]:
    """What the time since the last Snapshot teaches, and what differs from that."""
    found = difference(lesson.before, lesson.after, volatile)
    taught = volatile
    for before, after in found.replaced:
        if found.guessed.isdisjoint((before, after)):
            taught = learn_elapsed(taught, before, after, page=lesson.page, elapsed=lesson.elapsed)
    if _forms(found.places, taught) != _forms(found.places, volatile):
        found = difference(lesson.before, lesson.after, taught)
    return taught, found


def told(mask: Mask, *, at: datetime) -> tuple[SiteEdit | None, Mask]:
    """What is to be told of the site as such, and the mask that knows it for told."""
    edit, edits = taken(mask.edits, at=at)
    return edit, mask if edits is mask.edits else replace(mask, edits=edits)


def _pieces(found: Difference, mask: Mask, lesson: Lesson) -> Iterator[Piece]:
    """What differs, but for what is volatile and what tells the day."""

    def known(place: Place) -> tuple[Place, int] | None:
        return None if mask.volatile.is_noise(place) else (place, _form(place, mask))

    for was, now in found.replaced:
        if lesson.then is None or not _tells_the_day(was, now, mask, then=lesson.then, now=lesson.at):
            yield piece_of(known(was), known(now))
    yield from (piece_of(known(place), None) for place in found.removed)
    yield from (piece_of(None, known(place)) for place in found.added)
