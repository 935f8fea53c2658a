"""Update the noise mask by one comparison, and tell whether a second fetch would teach it more."""

from collections.abc import Collection, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice, pairwise

from crawler.core.change.boilerplate import form_of, learn_page
from crawler.core.change.difference import SAME, Difference, block_forms, block_tells_the_day, difference, significant
from crawler.core.change.edits import (
    ENOUGH_ALIKE,
    BoilerplateChange,
    SiteEdit,
    TemplateEdit,
    add_template_edit,
    language_of,
    learn_edits,
    name_of,
    take_due,
)
from crawler.core.change.mask import NoiseMask
from crawler.core.http.urls import PageKey, Url
from crawler.core.noise.alignment import learn_aliases
from crawler.core.noise.dates import learn_stamps
from crawler.core.noise.noise import Volatile, trimmed
from crawler.core.noise.relative_time import learn_elapsed
from crawler.core.noise.repeat_fetch import count_changes, learn_from_repeat
from crawler.core.noise.words import newest, numbers_of
from crawler.core.page.outline import Block, BlockKind, BlockList, Sides, is_watched

MOST_SECOND_FETCHES = 2  # beside the first fetch; of a few banners in turn, two can be equal
MOST_IN_DOUBT = 4  # second fetches, where one pair of fetches differs and another does not
ENOUGH_PAIRS = 60  # second fetches of a domain, before they are rationed; it takes two to prove anything
PAIRED_SHARE = 0.15  # second fetches for each comparison after that
LIKELY = 2  # times that ration, where such blocks differed in a second fetch before: one more will probably mask them
WITHIN = timedelta(days=30)  # between two pages with an edit; a small budget takes weeks for all pages
SHORTEST_LIST = 4  # blocks of one path and kind on a page; fewer may be fields of the page itself
LONGEST_LIST = 64  # of these that are looked at; a menu has fewer, and an index of thousands would cost much
MOSTLY = 0.6  # share of these that stand on several pages
SELDOM = 0.1  # share of the looks at its path up to which a block is on several pages by chance
MOST_EDITS = 2048  # of one domain that are counted; the oldest are forgotten first
MOST_CHANGES = 64  # of one look; a page that is written anew has no template edits


@dataclass(frozen=True, slots=True)
class Observation:
    """The blocks that one look brought, from which the domain's mask learns; see `update_mask`.

    after: of this look, taken `at`.  before: of the last Snapshot, taken `then`; empty without one.
    second_fetches: of the same page seconds later, each time.
    """

    page: PageKey
    after: BlockList
    at: datetime
    before: BlockList = ()
    then: datetime | None = None
    second_fetches: tuple[BlockList, ...] = ()
    url: Url | None = None

    @property
    def name(self) -> PageKey:
        """The page, its translations included."""
        return self.page if self.url is None else name_of(self.url)

    @property
    def elapsed(self) -> timedelta:
        return self.at - self.then if self.then is not None else timedelta(0)


def needs_second_fetch(left: Difference, mask: NoiseMask, *, taken: int, returned: bool) -> bool:
    """Whether one more fetch, seconds later, would tell more about what differs.

    left: the significant part of the difference.  taken: second fetches so far.
    returned: the page is as it was in an earlier version. Then it goes back and forth, perhaps from fetch to fetch.
    """
    is_likely = all(mask.volatile.has_moved(block) for block in left.blocks)
    if not left or taken >= MOST_IN_DOUBT or not has_second_fetches_left(mask, times=LIKELY if is_likely else 1):
        return False
    if taken >= MOST_SECOND_FETCHES:
        return any(mask.volatile.is_suspect(block) for block in left.blocks)
    if taken and not returned:
        return any(mask.volatile.is_unknown(block) for block in left.blocks)
    return returned or any(not mask.volatile.is_tested(block) for block in left.blocks)


def has_second_fetches_left(mask: NoiseMask, *, times: int = 1) -> bool:
    """Whether the ration of second fetches allows one more. times: the usual ration."""
    return mask.second_fetches < times * (ENOUGH_PAIRS + PAIRED_SHARE * mask.compared)


def update_mask(mask: NoiseMask, seen: Observation) -> NoiseMask:
    """The mask after one more look."""
    return update_with_difference(mask, seen)[0]


def update_with_difference(mask: NoiseMask, seen: Observation) -> tuple[NoiseMask, Difference]:
    """The mask after one more look, and the difference from the last Snapshot under that mask."""
    volatile = mask.volatile
    if seen.before:
        aliases = learn_aliases(volatile.aliases, seen.before, seen.after, met=mask.boilerplate.looks)
        if aliases is not volatile.aliases:
            volatile = replace(volatile, aliases=aliases)
    seen = replace(
        seen,
        after=volatile.named(seen.after),
        before=volatile.named(seen.before),
        second_fetches=tuple(map(volatile.named, seen.second_fetches)),
    )
    for first, second in pairwise((seen.after, *seen.second_fetches)):
        volatile = trimmed(_with_second_fetch(volatile, seen.page, first, second))
    found = left = SAME  # where there is no Snapshot yet, and so nothing that could differ
    if seen.then is not None:
        volatile, found = _with_elapsed(volatile, seen)
    if seen.before and seen.then is not None:
        compared = NoiseMask(volatile, mask.boilerplate, template_edits=mask.template_edits)
        left = significant(found, compared, then=seen.then, now=seen.at)
        if not seen.second_fetches:
            volatile = count_changes(volatile, left.blocks)
        replaced = left.replaced
        if replaced and len(replaced) == len(left.sides) and not is_watched(seen.after):
            volatile = learn_stamps(volatile, replaced, then=seen.then, now=seen.at)
    forms = [(block.css_path, form_of(block, volatile.masked(block))) for block in seen.after]
    updated = replace(
        mask,
        volatile=volatile,
        boilerplate=learn_page(mask.boilerplate, seen.name, forms),
        second_fetches=mask.second_fetches + len(seen.second_fetches),
        compared=mask.compared + bool(seen.before),
        looks=mask.looks + 1,
    )
    differing = _boilerplate_changes(found if seen.before else SAME, updated, seen)
    edits = learn_edits(mask.edits, seen.name, differing, before=mask.boilerplate, after=updated.boilerplate)
    updated = replace(updated, edits=edits)
    if seen.before:
        updated = _with_template_edits(updated, found, left, seen, {form for _, form in forms})
    return updated, found


def _with_second_fetch(volatile: Volatile, page: PageKey, first: BlockList, second: BlockList) -> Volatile:
    """The volatile places after a second fetch.

    Nothing is learnt from guessed pairs. A block that only moved on the page has no words that differ.
    """
    found = difference(first, second, volatile)
    here, there = set(first), set(second)
    differing: list[Sides] = []
    for was, now in found.sides:
        has_moved = was in there and now in here
        differing += ((was, None), (None, now)) if has_moved else ((was, now),)
    sure = [sides for sides in differing if found.guessed.isdisjoint(sides)]
    one, other = ([block for block in blocks if block not in found.guessed] for blocks in (first, second))
    return learn_from_repeat(volatile, page=page, differing=sure, first=one, second=other)


def _with_elapsed(volatile: Volatile, seen: Observation) -> tuple[Volatile, Difference]:
    """The volatile places after learning from the time since the last Snapshot, and the difference under them."""
    found = difference(seen.before, seen.after, volatile)
    updated = volatile
    for before, after in found.replaced:
        if found.guessed.isdisjoint((before, after)):
            updated = learn_elapsed(updated, before, after, page=seen.page, elapsed=seen.elapsed)
    if block_forms(found.blocks, updated) != block_forms(found.blocks, volatile):
        found = difference(seen.before, seen.after, updated)
    return updated, found


def _with_template_edits(
    mask: NoiseMask, found: Difference, left: Difference, seen: Observation, forms: AbstractSet[int]
) -> NoiseMask:
    """The mask after counting what came, went or was replaced in a place of the template."""
    own = set(left.blocks)
    changes = []
    for sides in islice(found.sides, MOST_CHANGES + 1):
        key = mask.edit_key(sides)
        is_open = key in mask.template_edits or not own.isdisjoint(sides)
        if is_open and _may_be_template_edit(sides, mask, pages=found.pages):
            changes.append((key, sides))
    mask = learn_template_edits(mask, changes, seen, forms=forms)
    edits = mask.edits
    for key, (was, now) in changes:
        known = mask.template_edits.get(key)
        if known is not None and known.is_known:
            edits = add_template_edit(edits, _with_keys(was, now, mask), known.pages)
    return replace(mask, edits=edits)


def _may_be_template_edit(sides: Sides, mask: NoiseMask, *, pages: tuple[BlockList, BlockList]) -> bool:
    """Return whether a change is one of a link's target, or of an entry of a list that pages share.

    pages: all blocks then and now.  A number that differs is no such change: it is a price or a version.
    """
    if _is_target(sides):
        return True
    numbers = [() if block is None else numbers_of(mask.volatile.masked(block)) for block in sides]
    if numbers[0] != numbers[1]:
        return False
    return any(block and _is_in_shared_list(block, page, mask) for block, page in zip(sides, pages, strict=True))


def _is_target(sides: Sides) -> bool:
    """Return whether nothing but the target of a link was replaced."""
    return all(block is not None and block.kind is BlockKind.LINK for block in sides)


def _is_in_shared_list(block: Block, page: BlockList, mask: NoiseMask) -> bool:
    """Return whether most blocks beside this one, of its path and kind, stand on several pages."""
    of_path = (each for each in page if each.css_path == block.css_path and each.kind is block.kind)
    beside = list(islice(of_path, LONGEST_LIST))
    shared = sum(mask.boilerplate.is_shared(mask.form_of(each), least=SELDOM) for each in beside)
    return len(beside) >= SHORTEST_LIST and shared >= MOSTLY * len(beside)


def learn_template_edits(
    mask: NoiseMask, changes: Collection[tuple[int, Sides]], seen: Observation, *, forms: AbstractSet[int]
) -> NoiseMask:
    """Return the mask with its template edits after one more look.

    changes: on this page that may be template edits, with their keys.  forms: of all blocks that it has now.
    """
    page, language = seen.name, language_of(seen.url) if seen.url is not None else ""
    edits, keys = dict(mask.template_edits), {key for key, _ in changes}
    for key, edit in mask.template_edits.items():
        if edit.was in forms and edit.language == language and key not in keys and page not in edit.pages:
            edits[key] = replace(edit, kept=edit.kept + 1)
    for key, sides in changes if len(keys) <= MOST_CHANGES else ():
        known = edits.pop(key, None)
        if known is None or seen.at - known.last > WITHIN:
            was = None if sides[0] is None else mask.form_of(sides[0])
            known = TemplateEdit(language, was, _is_target(sides), (), seen.at)
        is_counted = page in known.pages or len(known.pages) >= ENOUGH_ALIKE
        edits[key] = replace(known, pages=known.pages if is_counted else (*known.pages, page), last=seen.at)
    return mask if edits == mask.template_edits else replace(mask, template_edits=newest(edits, MOST_EDITS))


def take_site_edits(mask: NoiseMask, *, at: datetime) -> tuple[SiteEdit | None, NoiseMask]:
    """The site edit that is due to be reported, or None, and the mask in which it is marked as reported."""
    edit, edits = take_due(mask.edits, at=at)
    return edit, mask if edits is mask.edits else replace(mask, edits=edits)


def _boilerplate_changes(found: Difference, mask: NoiseMask, seen: Observation) -> Iterator[BoilerplateChange]:
    """All blocks that differ, without volatile blocks and blocks that say the day."""
    then = seen.then
    for was, now in found.sides:
        if was and now and then and block_tells_the_day(was, now, mask, then=then, now=seen.at):
            continue
        old, new = (None if block is None or mask.volatile.is_noise(block) else block for block in (was, now))
        yield _with_keys(old, new, mask)


def _with_keys(was: Block | None, now: Block | None, mask: NoiseMask) -> BoilerplateChange:
    return None if was is None else (was, ~mask.form_of(was)), None if now is None else (now, mask.form_of(now))
