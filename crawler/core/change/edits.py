"""Edits of the site rather than of a page, such as a new entry of the menu: each is reported once, for the site.

Site edits change the boilerplate on all pages. They are reported as soon as a new block has become boilerplate, or an
old one has gone. Template edits change lists that pages share, known by their place and by a second page: two languages
that share a path, or the menu of one section, never say what nearly all pages say. So an edit counts by itself: the
same block that came, went or was replaced, in a list whose other entries stand on several pages, or the same new target
of a link.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from crawler.core.change.boilerplate import ENOUGH_PAGES, ENOUGH_TURNS, Boilerplate
from crawler.core.http.urls import PageKey, Url, key_of, path_and_query
from crawler.core.noise.words import newest
from crawler.core.page.outline import Block

ENOUGH_ALIKE = 2  # distinct pages with one edit: its place is evidence already
LANGUAGE = re.compile(r"/([a-z]{2}(?:-[a-z]{2,4})?)/")  # the first folder of a translated page
INDEX = re.compile(r"/index\.[a-z]+$")


@dataclass(frozen=True, slots=True)
class TemplateEdit:
    """An edit and the first pages that were met with it, at most ENOUGH_ALIKE.

    language: of the first page.  was: form of the block that went, or None.  last: when a page was last met with it.
    is_target: of the target of a link.  kept: looks at other pages of the language that still had the old block.
    """

    language: str
    was: int | None
    is_target: bool
    pages: tuple[PageKey, ...]
    last: datetime
    kept: int = 0

    @property
    def is_known(self) -> bool:
        """Whether the site made this edit, not a page. A link may stay on others: it is no part of a list."""
        return len(self.pages) >= ENOUGH_ALIKE and (self.is_target or self.kept <= len(self.pages))


TemplateEdits = Mapping[int, TemplateEdit]  # by NoiseMask.edit_key


def language_of(url: Url) -> str:
    """Return the language that a URL names by its first folder, or an empty string."""
    found = LANGUAGE.match(path_and_query(url).lower())
    return found[1] if found else ""


def name_of(url: Url) -> PageKey:
    """Return a key that a page shares with its translations and with its index.html.

    What they have in common is said by one page, as far as boilerplate goes.
    """
    path = path_and_query(url)
    if LANGUAGE.match(path.lower()):
        path = path[path.index("/", 1) :]
    return key_of(Url(INDEX.sub("/", path)))


MOST_MET = 2048  # blocks that came or went on too few pages as yet; the oldest are forgotten first
MOST_REPORTED = 2048
QUIET = timedelta(days=30)  # a path reported more than ENOUGH_TURNS times, each sooner after the last, is muted

Key = int  # of a block that came: its form; of one that went: the form's complement (~form)


KeyedBlock = tuple[Block, Key]
BoilerplateChange = tuple[KeyedBlock | None, KeyedBlock | None]  # the block that went and the one in its place now


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


def learn_edits(
    edits: Edits, page: PageKey, changes: Iterable[BoilerplateChange], *, before: Boilerplate, after: Boilerplate
) -> Edits:
    """Count pages on which a boilerplate block appeared or vanished; from ENOUGH_PAGES on it is one site edit.

    changes: what differs on the page.  before, after: the boilerplate without this look and with it.
    Not counted: blocks that were boilerplate before (the page merely gained them), and vanished blocks that never were.
    """
    met, pending = dict(edits.met), dict(edits.pending)

    def is_edit(side: KeyedBlock | None) -> bool:
        if side is None or side[1] in edits.reported:
            return False
        key = side[1]
        is_fresh = before.contains(~key) if key < 0 else not before.contains(key)
        if key not in met and not is_fresh:
            return False
        pages = met.pop(key, ())
        met[key] = pages if page in pages or len(pages) >= ENOUGH_PAGES else (*pages, page)
        return len(met[key]) >= ENOUGH_PAGES and (after.has_dropped(~key) if key < 0 else after.contains(key))

    for was, now in changes:
        went, came = is_edit(was), is_edit(now)
        if went and now is not None:
            came = came or len(met.get(now[1], ())) >= ENOUGH_PAGES  # it came on enough pages before
        edited = now if came else was if went else None
        if edited is not None:
            first = was if went else None, now if came else None
            (old, new), pages = pending.get(edited[1], (first, frozenset(met[edited[1]])))
            # The block that the first of the pages had before stands for all.
            pending[edited[1]] = (old or first[0], new), pages | {page}
    return replace(edits, met=newest(met, MOST_MET), pending=pending)


def add_template_edit(edits: Edits, change: BoilerplateChange, pages: tuple[PageKey, ...]) -> Edits:
    """Have an edit reported once that some pages share though nearly all do not."""
    keys = _keys(change)
    if not keys or any(key in edits.reported or key in edits.pending for key in keys):
        return edits
    return replace(edits, pending={**edits.pending, keys[-1]: (change, frozenset(pages))})


def take_due(edits: Edits, *, at: datetime) -> tuple[SiteEdit | None, Edits]:
    """The site edit that is due to be reported, or None, and the Edits in which it is marked as reported."""
    if not edits.pending:
        return None, edits
    found = [*edits.pending.values()]
    paths = {block.css_path for change, _ in found for block, _ in filter(None, change)}
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
        reported=newest(reported, MOST_REPORTED),
        repeats=newest(repeats, MOST_REPORTED),
    )
    left = [each for each in found if not _is_daily(each[0], repeats)]
    pages = frozenset().union(*(pages for _, pages in left))
    return SiteEdit(_distinct(change for change, _ in left), len(pages)) if left else None, known


def _keys(change: BoilerplateChange) -> list[Key]:
    return [key for _, key in filter(None, change)]


def _is_daily(change: BoilerplateChange, repeats: Mapping[int, tuple[int, datetime]]) -> bool:
    """Whether the site changes the text at this path all the time."""
    block, _ = next(filter(None, reversed(change)))
    return repeats[block.css_path][0] > ENOUGH_TURNS


def _distinct(changes: Iterable[BoilerplateChange]) -> tuple[tuple[Block | None, Block | None], ...]:
    """The pairs of blocks of an edit. A block that went is left out where another pair says what took its place."""
    found = list(changes)
    replaced = {was[1] for was, now in found if was is not None and now is not None}
    left = [(was, now) for was, now in found if now is not None or was is None or was[1] not in replaced]
    return tuple((was and was[0], now and now[0]) for was, now in left)
