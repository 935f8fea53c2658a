"""Edits of the site rather than of a page, such as a new menu entry. Each edit is reported once, for the site.

Boilerplate edits change boilerplate. They are reported as soon as a new block has become boilerplate, or an old one is
no longer boilerplate. Template edits change lists that too few pages share for boilerplate, such as the menu of one
language or section. Two things together show a template edit: its position (in a list whose other entries are on
several pages, or as the target of a link), and a second page with the same edit.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from crawler.core.change.boilerplate import ENOUGH_PAGES, ENOUGH_REPLACEMENTS, Boilerplate
from crawler.core.http.urls import PageKey, Url, compute_page_key, get_path_and_query
from crawler.core.noise.words import keep_newest
from crawler.core.page.block import Block

ENOUGH_EDIT_PAGES = 2  # distinct pages with one template edit; two suffice, because the position is evidence too
LANGUAGE = re.compile(r"/([a-z]{2}(?:-[a-z]{2,4})?)/")  # the first path segment of a translated page
INDEX = re.compile(r"/index\.[a-z]+$")


class TemplateEdit(Struct, frozen=True):
    """A template edit and the first pages that have it, at most ENOUGH_EDIT_PAGES.

    language: the language of the first page.
    old_form: the removed or replaced block, as hashed by boilerplate.compute_form; None if a block was only added.
    last_at: when a page with the edit was last visited.  is_link_target: whether only a link's target changed.
    visits_with_old_block: visits to other pages in the language that still had the old block.
    """

    language: str
    old_form: int | None
    is_link_target: bool
    pages: tuple[PageKey, ...]
    last_at: datetime
    visits_with_old_block: int = 0

    @property
    def is_confirmed(self) -> bool:
        """Return whether enough pages have this edit, and not too many others still have the old block.

        The old target of a link may stay on other pages, because a link is not part of a list.
        """
        count = len(self.pages)
        return count >= ENOUGH_EDIT_PAGES and (self.is_link_target or self.visits_with_old_block <= count)


TemplateEdits = Mapping[int, TemplateEdit]  # by NoiseMask.compute_edit_key


def parse_language(url: Url) -> str:
    """Return the language in the first path segment of a URL, or an empty string."""
    match = LANGUAGE.match(get_path_and_query(url).lower())
    return match[1] if match else ""


def compute_translation_key(url: Url) -> PageKey:
    """Return a key that a page shares with its translations and with its index.html.

    To recognize boilerplate and edits, all of these count as one page.
    """
    path = get_path_and_query(url)
    if LANGUAGE.match(path.lower()):
        path = path[path.index("/", 1) :]
    return compute_page_key(Url(INDEX.sub("/", path)))


MAX_CANDIDATES = 2048  # blocks added or removed on too few pages so far; the oldest are dropped first
MAX_REPORTED = 2048  # reported blocks; the oldest are dropped first
# Of edits in a row at one path, each within this time after the last, only the first ENOUGH_REPLACEMENTS are reported.
MUTE_WINDOW = timedelta(days=30)


class BlockKey(NamedTuple):
    """An added or a removed block. form: see compute_form."""

    form: int
    is_removed: bool = False


KeyedBlock = tuple[Block, BlockKey]
BoilerplateChange = tuple[KeyedBlock | None, KeyedBlock | None]  # the old block and the block that replaced it


class BoilerplateEdit(Struct, frozen=True):
    """One edit of a site to report: a boilerplate edit, or a template edit.

    blocks: pairs of the old and the new block, either of which may be None.
    pages: number of pages with the edit so far, at least 2.
    """

    blocks: tuple[tuple[Block | None, Block | None], ...]
    pages: int


class BoilerplateEdits(Struct, frozen=True):
    """The edits of one domain so far. Immutable and bounded.

    candidates: added or removed blocks, each with the first few pages where this happened.
    reported: the keys of reported blocks.  repeats: the number of edits in a row at each path, and the time of the
    last (see MUTE_WINDOW).
    pending: edits not reported yet, with the pages that have them; cleared by each report.
    """

    candidates: Mapping[BlockKey, tuple[PageKey, ...]] = field(default_factory=dict)
    reported: Mapping[BlockKey, None] = field(default_factory=dict)
    repeats: Mapping[int, tuple[int, datetime]] = field(default_factory=dict)
    pending: Mapping[BlockKey, tuple[BoilerplateChange, frozenset[PageKey]]] = field(default_factory=dict)


NO_EDITS = BoilerplateEdits()


def learn_edits(
    edits: BoilerplateEdits,
    page: PageKey,
    changes: Iterable[BoilerplateChange],
    *,
    before: Boilerplate,
    after: Boilerplate,
) -> BoilerplateEdits:
    """Count the pages on which a block appeared or disappeared; with ENOUGH_PAGES, it may be a boilerplate edit.

    changes: the differing blocks of the page.  before, after: the boilerplate without and with this visit.
    Counting starts only with an added block that was not boilerplate, or with a removed block that was.
    """
    candidates, pending = dict(edits.candidates), dict(edits.pending)

    def count_edit(side: KeyedBlock | None) -> bool:
        if side is None or side[1] in edits.reported:
            return False
        key = side[1]
        is_candidate = before.contains(key.form) is key.is_removed
        if key not in candidates and not is_candidate:
            return False
        pages = candidates.pop(key, ())
        candidates[key] = pages if page in pages or len(pages) >= ENOUGH_PAGES else (*pages, page)
        has_edit = after.has_dropped if key.is_removed else after.contains
        return len(candidates[key]) >= ENOUGH_PAGES and has_edit(key.form)

    for was, now in changes:
        is_removal, is_addition = count_edit(was), count_edit(now)
        if is_removal and now is not None:
            # The new block is part of the edit too if it was added on enough pages before.
            is_addition = is_addition or len(candidates.get(now[1], ())) >= ENOUGH_PAGES
        edited = now if is_addition else was if is_removal else None
        if edited is not None:
            first = was if is_removal else None, now if is_addition else None
            (old, new), pages = pending.get(edited[1], (first, frozenset(candidates[edited[1]])))
            # The old block of the first page represents those of all pages.
            pending[edited[1]] = (old or first[0], new), pages | {page}
    return replace(edits, candidates=keep_newest(candidates, MAX_CANDIDATES), pending=pending)


def add_template_edit(edits: BoilerplateEdits, change: BoilerplateChange, pages: Iterable[PageKey]) -> BoilerplateEdits:
    """Make a template edit pending, unless it is pending or was reported."""
    keys = _list_keys(change)
    if not keys or any(key in edits.reported or key in edits.pending for key in keys):
        return edits
    return replace(edits, pending={**edits.pending, keys[-1]: (change, frozenset(pages))})


def pop_due_edit(edits: BoilerplateEdits, *, at: datetime) -> tuple[BoilerplateEdit | None, BoilerplateEdits]:
    """Return the pending edits but the muted ones as one edit, or None, and the edits with all marked as reported."""
    if not edits.pending:
        return None, edits
    pending = [*edits.pending.values()]
    paths = {block.css_path for change, _ in pending for block, _ in filter(None, change)}
    repeats = dict(edits.repeats)
    for path in paths:
        count, last = repeats.pop(path, (0, at))
        repeats[path] = (count + 1 if at - last < MUTE_WINDOW else 1, at)
    reported = dict(edits.reported)
    for key in chain.from_iterable(_list_keys(change) for change, _ in pending):
        reported.pop(BlockKey(key.form, not key.is_removed), None)  # an added block may be removed and added again
        reported[key] = None
    updated = BoilerplateEdits(
        candidates={key: pages for key, pages in edits.candidates.items() if key not in reported},
        reported=keep_newest(reported, MAX_REPORTED),
        repeats=keep_newest(repeats, MAX_REPORTED),
    )
    rare = [each for each in pending if not _is_muted(each[0], repeats)]
    pages = frozenset().union(*(pages for _, pages in rare))
    return BoilerplateEdit(_drop_replaced([change for change, _ in rare]), len(pages)) if rare else None, updated


def _is_muted(change: BoilerplateChange, repeats: Mapping[int, tuple[int, datetime]]) -> bool:
    """Return whether the site edits this path too often to report it; see MUTE_WINDOW."""
    block, _ = next(filter(None, reversed(change)))
    return repeats[block.css_path][0] > ENOUGH_REPLACEMENTS


def _list_keys(change: BoilerplateChange) -> list[BlockKey]:
    return [key for _, key in filter(None, change)]


def _drop_replaced(pairs: Sequence[BoilerplateChange]) -> tuple[tuple[Block | None, Block | None], ...]:
    """Return the pairs of an edit's blocks, without a removed block that another pair shows as replaced."""
    replaced = {was[1] for was, now in pairs if was is not None and now is not None}
    remaining = [(was, now) for was, now in pairs if now is not None or was is None or was[1] not in replaced]
    return tuple((was and was[0], now and now[0]) for was, now in remaining)
