"""Site edits: a change of the boilerplate on all pages, such as a new entry of the menu, reported once for the site.

A page's own change is reported for the page. A change that all pages share is reported for none of them
(boilerplate.py). So the site gets a report: as soon as a new block has become boilerplate, or an old one has gone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from crawler.core.change.boilerplate import ENOUGH_PAGES, ENOUGH_TURNS, Boilerplate
from crawler.core.http import PageKey
from crawler.core.page import Block

MOST_MET = 2048  # blocks that came or went on too few pages as yet; the oldest are forgotten first
MOST_REPORTED = 2048
QUIET = timedelta(days=30)  # a path reported more than ENOUGH_TURNS times, each sooner after the last, is muted

Key = int  # of a block that came: its form; of one that went: the form's complement (~form)


@dataclass(frozen=True, slots=True)
class BoilerplateChange:
    """A block that went and the one in its place now, either None, with their keys: `went` of was, `came` of now."""

    was: Block | None
    now: Block | None
    went: Key | None = None
    came: Key | None = None


@dataclass(frozen=True, slots=True)
class SiteEdit:
    """One edit of a site's boilerplate. blocks: pairs of the block before and the block now, either None.

    pages: number of pages that were met with the edit so far, 2 or more.
    """

    blocks: tuple[tuple[Block | None, Block | None], ...]
    pages: int


@dataclass(frozen=True, slots=True)
class Edits:
    """The edits of one domain's boilerplate so far; immutable, and bounded.

    met: blocks that came or went, each with the first few pages on which it did.  reported: keys of reported blocks.
    repeats: by path, how often in a row it was reported, and when last.
    pending: edits not reported yet, each with the pages that have it; emptied with each report.
    """

    met: Mapping[Key, tuple[PageKey, ...]] = field(default_factory=dict)
    reported: Mapping[Key, None] = field(default_factory=dict)
    repeats: Mapping[int, tuple[int, datetime]] = field(default_factory=dict)
    pending: Mapping[Key, tuple[BoilerplateChange, frozenset[PageKey]]] = field(default_factory=dict)


NO_EDITS = Edits()


def boilerplate_change(was: tuple[Block, int] | None, now: tuple[Block, int] | None) -> BoilerplateChange:
    """A BoilerplateChange from the two blocks, each with its form."""
    return BoilerplateChange(was and was[0], now and now[0], ~was[1] if was else None, now[1] if now else None)


def learn_edits(
    edits: Edits, page: PageKey, changes: Iterable[BoilerplateChange], *, before: Boilerplate, after: Boilerplate
) -> Edits:
    """Count pages on which a boilerplate block appeared or vanished; from ENOUGH_PAGES on it is one site edit.

    pieces: what differs on the page.  before, after: the boilerplate without this look and with it.
    Not counted: blocks that were boilerplate before (the page merely gained them), and vanished blocks that never were.
    """
    met, pending = dict(edits.met), dict(edits.pending)

    def is_edit(key: Key | None) -> bool:
        if key is None or key in edits.reported:
            return False
        is_fresh = before.contains(~key) if key < 0 else not before.contains(key)
        if key not in met and not is_fresh:
            return False
        pages = met.pop(key, ())
        met[key] = pages if page in pages or len(pages) >= ENOUGH_PAGES else (*pages, page)
        return len(met[key]) >= ENOUGH_PAGES and (after.has_dropped(~key) if key < 0 else after.contains(key))

    for change in changes:
        went, came = is_edit(change.went), is_edit(change.came)
        came = came or (went and len(met.get(change.came or 0, ())) >= ENOUGH_PAGES)  # it came on enough pages before
        if went or came:
            _add_page(
                pending, replace(change, was=change.was if went else None, now=change.now if came else None), page, met
            )
    for key in list(met)[: max(len(met) - MOST_MET, 0)]:
        del met[key]
    return replace(edits, met=met, pending=pending)


def add_template_edit(edits: Edits, change: BoilerplateChange, pages: tuple[PageKey, ...]) -> Edits:
    """Have an edit reported once that some pages share though nearly all do not (template_edits.py)."""
    keys = _keys(change)
    if not keys or any(key in edits.reported or key in edits.pending for key in keys):
        return edits
    return replace(edits, pending={**edits.pending, keys[-1]: (change, frozenset(pages))})


def _add_page(
    pending: dict[Key, tuple[BoilerplateChange, frozenset[PageKey]]],
    change: BoilerplateChange,
    page: PageKey,
    met: Mapping[Key, tuple[PageKey, ...]],
) -> None:
    """Add a page to the pages of an edit. The block that the first of them had before stands for all."""
    key = change.came if change.now is not None else change.went
    assert key is not None
    known, pages = pending.get(key, (change, frozenset(met[key])))
    if known.was is None and change.was is not None:
        known = replace(known, was=change.was, went=change.went)
    pending[key] = known, pages | {page}


def take_due(edits: Edits, *, at: datetime) -> tuple[SiteEdit | None, Edits]:
    """The site edit that is due to be reported, or None, and the Edits in which it is marked as reported."""
    if not edits.pending:
        return None, edits
    found = [*edits.pending.values()]
    paths = {block.css_path for change, _ in found for block in (change.was, change.now) if block is not None}
    repeats = dict(edits.repeats)
    for path in paths:
        many, last = repeats.pop(path, (0, at))
        repeats[path] = (many + 1 if at - last < QUIET else 1, at)
    reported = dict(edits.reported)
    for key in (key for change, _ in found for key in _keys(change)):
        reported.pop(~key, None)  # a block that came may go, and come again
        reported[key] = None
    known = Edits(
        met={key: pages for key, pages in edits.met.items() if key not in reported},
        reported=dict.fromkeys(list(reported)[-MOST_REPORTED:]),
        repeats=dict(list(repeats.items())[-MOST_REPORTED:]),
    )
    left = [each for each in found if not _is_daily(each[0], repeats)]
    pages = frozenset().union(*(pages for _, pages in left))
    return SiteEdit(_distinct(change for change, _ in left), len(pages)) if left else None, known


def _keys(change: BoilerplateChange) -> list[Key]:
    """The keys of the blocks that a change has."""
    sides = ((change.was, change.went), (change.now, change.came))
    return [key for block, key in sides if block is not None and key is not None]


def _is_daily(change: BoilerplateChange, repeats: Mapping[int, tuple[int, datetime]]) -> bool:
    """Whether the site changes the text at this path all the time."""
    block = change.now or change.was
    return block is not None and repeats[block.css_path][0] > ENOUGH_TURNS


def _distinct(changes: Iterable[BoilerplateChange]) -> tuple[tuple[Block | None, Block | None], ...]:
    """The pairs of blocks of an edit. A block that went is left out where another pair says what took its place."""
    found = list(changes)
    replaced = {change.went for change in found if change.now is not None and change.was is not None}
    return tuple((each.was, each.now) for each in found if each.now is not None or each.went not in replaced)
