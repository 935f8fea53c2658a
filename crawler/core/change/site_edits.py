"""What a site does to its frame: a menu that gets an entry on all pages is one edit of the site, told once.

A page's own news is told of the page. What all pages change alike is told of none of them (boilerplate.py), so that it
has to be told of the site: as soon as the frame holds what came, or has lost what went.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from crawler.core.change.boilerplate import ENOUGH_PAGES, TURNS, Boilerplate
from crawler.core.http import PageKey
from crawler.core.page import Block

MOST_MET = 2048  # pieces that came or went on too few pages as yet; the oldest are forgotten first
MOST_TOLD = 2048
QUIET = timedelta(days=30)  # a place that was told of TURNS times, each sooner after the last, is told of no more

Key = int  # of what came: its form; of what went: the form's complement


@dataclass(frozen=True, slots=True)
class BoilerplateChange:
    """What a page said in a place, or None, and what it says now, or None, with the numbers for them."""

    was: Block | None
    now: Block | None
    went: Key | None = None
    came: Key | None = None


@dataclass(frozen=True, slots=True)
class SiteEdit:
    """One edit of a site's frame: what it said and what it says now. pages: that were met with it so far, 3 or more."""

    pieces: tuple[tuple[Block | None, Block | None], ...]
    pages: int


@dataclass(frozen=True, slots=True)
class Edits:
    """What is known of the edits of one domain's frame; immutable, and bounded.

    met: pieces that came or went, each with the first few pages on which it did.  told: those that were told.
    turns: by path, how often in a row it was told of, and when last.  news: what is not told yet, each piece with the
    pages that have it; emptied whenever it is told.
    """

    met: Mapping[Key, tuple[PageKey, ...]] = field(default_factory=dict)
    told: Mapping[Key, None] = field(default_factory=dict)
    turns: Mapping[int, tuple[int, datetime]] = field(default_factory=dict)
    news: Mapping[Key, tuple[BoilerplateChange, frozenset[PageKey]]] = field(default_factory=dict)


NO_EDITS = Edits()


def boilerplate_change(was: tuple[Block, int] | None, now: tuple[Block, int] | None) -> BoilerplateChange:
    """A piece, from its places and their forms."""
    return BoilerplateChange(was and was[0], now and now[0], ~was[1] if was else None, now[1] if now else None)


def learn_edits(
    edits: Edits, page: PageKey, pieces: Iterable[BoilerplateChange], *, before: Boilerplate, after: Boilerplate
) -> Edits:
    """What teaches a page that differs from its last Snapshot. before, after: the frame, without this look and with it.

    What the frame held already when it came to a page is that page's news, and so is what went without having been the
    frame's.
    """
    met, news = dict(edits.met), dict(edits.news)

    def is_edit(key: Key | None) -> bool:
        if key is None or key in edits.told:
            return False
        is_fresh = before.contains(~key) if key < 0 else not before.contains(key)
        if key not in met and not is_fresh:
            return False
        pages = met.pop(key, ())
        met[key] = pages if page in pages or len(pages) >= ENOUGH_PAGES else (*pages, page)
        return len(met[key]) >= ENOUGH_PAGES and (after.has_dropped(~key) if key < 0 else after.contains(key))

    for piece in pieces:
        went, came = is_edit(piece.went), is_edit(piece.came)
        came = came or (went and len(met.get(piece.came or 0, ())) >= ENOUGH_PAGES)  # as it did before, some time
        if went or came:
            _note(news, replace(piece, was=piece.was if went else None, now=piece.now if came else None), page, met)
    for key in list(met)[: max(len(met) - MOST_MET, 0)]:
        del met[key]
    return replace(edits, met=met, news=news)


def _note(
    news: dict[Key, tuple[BoilerplateChange, frozenset[PageKey]]],
    piece: BoilerplateChange,
    page: PageKey,
    met: Mapping[Key, tuple[PageKey, ...]],
) -> None:
    """Add a page to those that have a piece. What the first of them said in its place stands for all."""
    key = piece.came if piece.now is not None else piece.went
    assert key is not None
    known, pages = news.get(key, (piece, frozenset(met[key])))
    if known.was is None and piece.was is not None:
        known = replace(known, was=piece.was, went=piece.went)
    news[key] = known, pages | {page}


def take_due(edits: Edits, *, at: datetime) -> tuple[SiteEdit | None, Edits]:
    """What is to be told of the site, and what is known once it is told."""
    if not edits.news:
        return None, edits
    found = [*edits.news.values()]
    paths = {place.css_path for piece, _ in found for place in (piece.was, piece.now) if place is not None}
    turns = dict(edits.turns)
    for path in paths:
        many, last = turns.pop(path, (0, at))
        turns[path] = (many + 1 if at - last < QUIET else 1, at)
    told = dict(edits.told)
    for key in (key for piece, _ in found for key in _keys(piece)):
        told.pop(~key, None)  # what came may go, and come again
        told[key] = None
    known = Edits(
        met={key: pages for key, pages in edits.met.items() if key not in told},
        told=dict.fromkeys(list(told)[-MOST_TOLD:]),
        turns=dict(list(turns.items())[-MOST_TOLD:]),
    )
    left = [each for each in found if not _is_daily(each[0], turns)]
    pages = frozenset().union(*(pages for _, pages in left))
    return SiteEdit(_once(piece for piece, _ in left), len(pages)) if left else None, known


def _keys(piece: BoilerplateChange) -> list[Key]:
    """Of what there is of it."""
    sides = ((piece.was, piece.went), (piece.now, piece.came))
    return [key for place, key in sides if place is not None and key is not None]


def _is_daily(piece: BoilerplateChange, turns: Mapping[int, tuple[int, datetime]]) -> bool:
    """Whether the site says something else here all the time."""
    place = piece.now or piece.was
    return place is not None and turns[place.css_path][0] > TURNS


def _once(pieces: Iterable[BoilerplateChange]) -> tuple[tuple[Block | None, Block | None], ...]:
    """Each piece once, and what went without anything in its place only where nothing else says that it went."""
    found = list(pieces)
    replaced = {piece.went for piece in found if piece.now is not None and piece.was is not None}
    return tuple((each.was, each.now) for each in found if each.now is not None or each.went not in replaced)
