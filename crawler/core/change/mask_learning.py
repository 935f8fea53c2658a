"""Update of the noise mask after a visit, and the decision whether a second fetch would improve it."""

from collections.abc import Collection, Iterator
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from itertools import islice, pairwise

from msgspec import Struct
from msgspec.structs import replace

from crawler.core.change.boilerplate import compute_forms, learn_page
from crawler.core.change.difference import (
    NO_DIFFERENCE,
    Difference,
    compute_block_forms,
    compute_difference,
    differs_only_in_time,
    select_significant,
)
from crawler.core.change.edits import (
    ENOUGH_EDIT_PAGES,
    BlockKey,
    BoilerplateChange,
    BoilerplateEdit,
    TemplateEdit,
    add_template_edit,
    compute_translation_key,
    learn_edits,
    parse_language,
    pop_due_edit,
)
from crawler.core.change.mask import NoiseMask
from crawler.core.http.urls import PageKey, Url
from crawler.core.noise.alignment import learn_aliases
from crawler.core.noise.dates import learn_stamps
from crawler.core.noise.noise import VolatileContent, trim_volatile
from crawler.core.noise.relative_time import learn_relative_time
from crawler.core.noise.second_fetch import count_changes, learn_from_second_fetch
from crawler.core.noise.words import keep_newest
from crawler.core.page.block import Block, BlockKind, BlockList, BlockPair
from crawler.core.page.outline import is_watched
from crawler.core.page.snapshot import BlockForms

MAX_SECOND_FETCHES = 2  # per visit; with only one, both fetches may show the same of a few banners in rotation
MAX_SECOND_FETCHES_IN_DOUBT = 4  # if one pair of fetches differs and another does not
FREE_SECOND_FETCHES = 60  # second fetches of a domain that are allowed in any case
SECOND_FETCH_SHARE = 0.15  # further second fetches per visit that compared a page with its Snapshot
# Multiplies the quota for blocks that differed in an earlier second fetch: another one will probably mask them.
LIKELY_QUOTA_FACTOR = 2
# Maximum time between visits to two pages with the same template edit. A small budget visits all pages only in weeks.
MAX_EDIT_GAP = timedelta(days=30)
MIN_LIST_BLOCKS = 4  # blocks of one path and kind on a page; fewer may be fields of the page itself
# Blocks of one list that are examined. A menu has fewer, and an index of thousands would be expensive.
MAX_LIST_BLOCKS = 64
MIN_SHARED_PART = 0.6  # minimum share of a list's blocks that are on several pages
MIN_SHARE_AT_PATH = 0.1  # of the visits to pages with a block's path; a rarer block is on several pages by chance
MAX_TEMPLATE_EDITS = 2048  # counted per domain; the oldest are dropped first
MAX_CHANGES = 64  # per visit; if more of the first differences may be template edits, the page was rewritten


class Observation(Struct, frozen=True):
    """The blocks fetched by one visit, from which the domain's mask learns; see `update_mask`.

    after: the blocks of this visit, fetched at `at`.
    before: the blocks of the last Snapshot, taken at `then`; empty if there is none.
    second_fetches: the blocks of each second fetch of the page, seconds later.
    """

    page: PageKey
    after: BlockList
    at: datetime
    before: BlockList = ()
    then: datetime | None = None
    second_fetches: tuple[BlockList, ...] = ()
    url: Url | None = None

    @property
    def translation_key(self) -> PageKey:
        """Return the key that the page shares with its translations."""
        return self.page if self.url is None else compute_translation_key(self.url)

    @property
    def elapsed(self) -> timedelta:
        return self.at - self.then if self.then is not None else timedelta(0)


def needs_second_fetch(significant: Difference, mask: NoiseMask, *, second_fetches: int, has_returned: bool) -> bool:
    """Return whether the quota allows one more fetch, seconds later, that would show if differing blocks are volatile.

    second_fetches: the number of second fetches of this visit so far.
    has_returned: whether the page equals an earlier version; then it may alternate from fetch to fetch.
    """
    volatile, blocks = mask.volatile, significant.blocks
    factor = LIKELY_QUOTA_FACTOR if all(map(volatile.has_differed, blocks)) else 1
    is_exhausted = second_fetches >= MAX_SECOND_FETCHES_IN_DOUBT or not has_second_fetches_left(mask, factor=factor)
    if not significant or is_exhausted:
        return False
    if second_fetches >= MAX_SECOND_FETCHES:
        return any(map(volatile.is_suspect, blocks))
    if second_fetches and not has_returned:
        return any(map(volatile.is_untested, blocks))
    return has_returned or not all(map(volatile.is_tested, blocks))


def has_second_fetches_left(mask: NoiseMask, *, factor: int = 1) -> bool:
    """Return whether the quota allows another second fetch. factor: multiplies the usual quota."""
    return mask.second_fetches < factor * (FREE_SECOND_FETCHES + SECOND_FETCH_SHARE * mask.compared_visits)


def update_mask(mask: NoiseMask, observation: Observation) -> NoiseMask:
    """Return the mask after one more visit."""
    return update_mask_and_diff(mask, observation)[0]


def learn_first_visit(mask: NoiseMask, url: Url, seen: BlockForms) -> NoiseMask:
    """Return the mask after a first visit: what `update_mask` does if only the forms of the blocks are known."""
    boilerplate = learn_page(mask.boilerplate, compute_translation_key(url), seen.forms, seen.texts)
    return replace(mask, boilerplate=boilerplate, visits=mask.visits + 1)


def update_mask_and_diff(mask: NoiseMask, observation: Observation) -> tuple[NoiseMask, Difference]:
    """Return the mask after one more visit, and the difference from the last Snapshot under that mask."""
    volatile = mask.volatile
    if observation.before:
        known_paths = mask.boilerplate.visits_by_path
        aliases = learn_aliases(volatile.aliases, observation.before, observation.after, known_paths=known_paths)
        if aliases is not volatile.aliases:
            volatile = replace(volatile, aliases=aliases)
    observation = replace(
        observation,
        after=volatile.apply_aliases(observation.after),
        before=volatile.apply_aliases(observation.before),
        second_fetches=tuple(map(volatile.apply_aliases, observation.second_fetches)),
    )
    for first, second in pairwise((observation.after, *observation.second_fetches)):
        volatile = trim_volatile(_learn_second_fetch(volatile, observation.page, first, second))
    diff = significant_diff = NO_DIFFERENCE  # without a Snapshot, nothing can differ
    if observation.then is not None:
        volatile, diff = _learn_since_snapshot(volatile, observation)
    if observation.before and observation.then is not None:
        compared = replace(mask, volatile=volatile)
        significant_diff = select_significant(diff, compared, then=observation.then, now=observation.at)
        if not observation.second_fetches:
            volatile = count_changes(volatile, significant_diff.blocks)
        replaced = significant_diff.replaced
        if replaced and len(replaced) == len(significant_diff.sides) and not is_watched(observation.after):
            volatile = learn_stamps(volatile, replaced, then=observation.then, now=observation.at)
    seen = compute_forms(observation.after, volatile.mask_words)
    page, before = observation.translation_key, mask.boilerplate
    updated = replace(
        mask,
        volatile=volatile,
        boilerplate=learn_page(before, page, seen.forms, seen.texts),
        second_fetches=mask.second_fetches + len(observation.second_fetches),
        compared_visits=mask.compared_visits + bool(observation.before),
        visits=mask.visits + 1,
    )
    differing = _list_boilerplate_changes(diff if observation.before else NO_DIFFERENCE, updated, observation)
    edits = learn_edits(mask.edits, page, differing, before=before, after=updated.boilerplate)
    updated = replace(updated, edits=edits)
    if observation.before:
        updated = _count_template_edits(updated, diff, significant_diff, observation, {form for _, form in seen.forms})
    return updated, diff


def _learn_second_fetch(volatile: VolatileContent, page: PageKey, one: BlockList, other: BlockList) -> VolatileContent:
    """Return the volatile content after a second fetch.

    Guessed pairs are not used. A block that only moved on the page has no differing words.
    """
    diff = compute_difference(one, other, volatile)
    first_blocks, second_blocks = set(one), set(other)
    differing: list[BlockPair] = []
    for was, now in diff.sides:
        has_moved = was in second_blocks and now in first_blocks
        differing += ((was, None), (None, now)) if has_moved else ((was, now),)
    sure = [sides for sides in differing if diff.guessed.isdisjoint(sides)]
    first, second = ([block for block in blocks if block not in diff.guessed] for blocks in (one, other))
    return learn_from_second_fetch(volatile, page=page, differing=sure, first=first, second=second)


def _learn_since_snapshot(volatile: VolatileContent, observation: Observation) -> tuple[VolatileContent, Difference]:
    """Return the volatile content after comparison with the last Snapshot, and the difference under it."""
    diff = compute_difference(observation.before, observation.after, volatile)
    updated = volatile
    for before, after in diff.replaced:
        if diff.guessed.isdisjoint((before, after)):
            updated = learn_relative_time(updated, before, after, page=observation.page, elapsed=observation.elapsed)
    if compute_block_forms(diff.blocks, updated) != compute_block_forms(diff.blocks, volatile):
        diff = compute_difference(observation.before, observation.after, updated)
    return updated, diff


def _count_template_edits(
    mask: NoiseMask, diff: Difference, significant_diff: Difference, observation: Observation, forms: AbstractSet[int]
) -> NoiseMask:
    """Return the mask with this visit's template edits counted, and the confirmed ones pending."""
    significant_blocks = set(significant_diff.blocks)
    changes = []
    for sides in islice(diff.sides, MAX_CHANGES + 1):
        key = mask.compute_edit_key(sides)
        is_relevant = key in mask.template_edits or not significant_blocks.isdisjoint(sides)
        if is_relevant and _may_be_template_edit(sides, mask, pages=diff.block_lists):
            changes.append((key, sides))
    mask = learn_template_edits(mask, changes, observation, forms=forms)
    edits = mask.edits
    for key, (was, now) in changes:
        edit = mask.template_edits.get(key)
        if edit is not None and edit.is_confirmed:
            edits = add_template_edit(edits, _add_keys(was, now, mask), edit.pages)
    return replace(mask, edits=edits)


def _may_be_template_edit(sides: BlockPair, mask: NoiseMask, *, pages: tuple[BlockList, BlockList]) -> bool:
    """Return whether a change may be a template edit: a new link target, or an edited entry of a shared list.

    An entry in which a number differs is a price or a version, not a template edit.
    pages: all blocks of both versions.
    """
    if _is_link_target_change(sides):
        return True
    old, new = map(mask.select_numbers, sides)
    pairs = zip(sides, pages, strict=True)
    return old == new and any(block and _is_in_shared_list(block, page, mask) for block, page in pairs)


def _is_link_target_change(sides: BlockPair) -> bool:
    """Return whether only the target of a link was replaced."""
    return all(block is not None and block.kind is BlockKind.LINK for block in sides)


def _is_in_shared_list(block: Block, page: BlockList, mask: NoiseMask) -> bool:
    """Return whether most blocks of this block's path and kind are on several pages."""
    same_path = (each for each in page if each.css_path == block.css_path and each.kind is block.kind)
    list_blocks = list(islice(same_path, MAX_LIST_BLOCKS))
    forms = list(map(mask.compute_form, list_blocks))
    shared = sum(mask.boilerplate.is_shared(form, min_share=MIN_SHARE_AT_PATH) for form in forms)
    return len(list_blocks) >= MIN_LIST_BLOCKS and shared >= MIN_SHARED_PART * len(list_blocks)


def learn_template_edits(
    mask: NoiseMask, changes: Collection[tuple[int, BlockPair]], observation: Observation, *, forms: AbstractSet[int]
) -> NoiseMask:
    """Return the mask with its template edits after one more visit.

    changes: the possible template edits on this page, with their keys.  forms: the forms of all blocks of the new
    version.
    """
    page, language = observation.translation_key, parse_language(observation.url) if observation.url is not None else ""
    edits, keys = dict(mask.template_edits), {key for key, _ in changes}
    for key, edit in mask.template_edits.items():
        if edit.old_form in forms and edit.language == language and key not in keys and page not in edit.pages:
            edits[key] = replace(edit, visits_with_old_block=edit.visits_with_old_block + 1)
    for key, sides in changes if len(keys) <= MAX_CHANGES else ():
        template_edit = edits.pop(key, None)
        if template_edit is None or observation.at - template_edit.last_at > MAX_EDIT_GAP:
            old_form = None if sides[0] is None else mask.compute_form(sides[0])
            template_edit = TemplateEdit(language, old_form, _is_link_target_change(sides), (), observation.at)
        pages = template_edit.pages
        is_counted = page in pages or len(pages) >= ENOUGH_EDIT_PAGES
        edits[key] = replace(template_edit, pages=pages if is_counted else (*pages, page), last_at=observation.at)
    if edits == mask.template_edits:
        return mask
    return replace(mask, template_edits=keep_newest(edits, MAX_TEMPLATE_EDITS))


def pop_boilerplate_edit(mask: NoiseMask, *, at: datetime) -> tuple[BoilerplateEdit | None, NoiseMask]:
    """Return the edit of the site to report now, if any, and the mask in which it is marked as reported."""
    edit, edits = pop_due_edit(mask.edits, at=at)
    return edit, mask if edits is mask.edits else replace(mask, edits=edits)


def _list_boilerplate_changes(diff: Difference, mask: NoiseMask, seen: Observation) -> Iterator[BoilerplateChange]:
    """Yield all differing blocks with their keys, except volatile ones and those that differ only in a date or time."""
    for was, now in diff.sides:
        if was and now and seen.then and differs_only_in_time(was, now, mask, then=seen.then, now=seen.at):
            continue
        old, new = (None if block is None or mask.volatile.is_noise(block) else block for block in (was, now))
        yield _add_keys(old, new, mask)


def _add_keys(was: Block | None, now: Block | None, mask: NoiseMask) -> BoilerplateChange:
    old = None if was is None else (was, BlockKey(mask.compute_form(was), is_removed=True))
    return old, None if now is None else (now, BlockKey(mask.compute_form(now)))
