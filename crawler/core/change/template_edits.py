"""Template edits: changes in lists that pages share, such as menus, known by their place and by a second page.

Boilerplate is what nearly all pages with a path say. Two languages that share a path, or the menu of one section, never
come to that. So an edit counts by itself: the same block that came, went or was replaced, in a list whose other
entries stand on several pages, or the same new target of a link.
"""

import re
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from crawler.core.change.boilerplate import Boilerplate, form_of
from crawler.core.change.variants import numbers_of
from crawler.core.http import PageKey, Url, key_of, path_and_query
from crawler.core.noise.bounds import newest
from crawler.core.noise.noise import Volatile
from crawler.core.page import Block, BlockKind, BlockList, number_of

ENOUGH_ALIKE = 2  # distinct pages with one edit: its place is evidence already
WITHIN = timedelta(days=30)  # between two pages with an edit; a small budget takes weeks for all pages
SHORTEST_LIST = 4  # blocks of one path and kind on a page; fewer may be fields of the page itself
LONGEST_LIST = 64  # of these that are looked at; a menu has fewer, and an index of thousands would cost much
MOSTLY = 0.6  # share of these that stand on several pages
SELDOM = 0.1  # share of the looks at its path up to which a block is on several pages by chance
MOST_EDITS = 2048  # of one domain that are counted; the oldest are forgotten first
MOST_CHANGES = 64  # of one look; a page that is written anew has no template edits
LANGUAGE = re.compile(r"/([a-z]{2}(?:-[a-z]{2,4})?)/")  # the first folder of a translated page
INDEX = re.compile(r"/index\.[a-z]+$")

Sides = tuple[Block | None, Block | None]  # what was said, and what is said now


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


TemplateEdits = Mapping[int, TemplateEdit]  # by edit_key


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


def edit_key(sides: Sides, volatile: Volatile) -> int:
    """Return a number for one change, the same on each page."""
    return number_of(f"{_form(sides[0], volatile)} {_form(sides[1], volatile)}")


def is_target(sides: Sides) -> bool:
    """Return whether nothing but the target of a link was replaced."""
    return all(block is not None and block.kind is BlockKind.LINK for block in sides)


def may_be_template_edit(
    sides: Sides, volatile: Volatile, boilerplate: Boilerplate, *, before: BlockList, after: BlockList
) -> bool:
    """Return whether a change is one of a link's target, or of an entry of a list that pages share.

    A number that differs is no such change: it is a price or a version.
    """
    if is_target(sides):
        return True
    was, now = sides
    numbers = [() if block is None else numbers_of(volatile.masked(block)) for block in sides]
    if numbers[0] != numbers[1]:
        return False
    return any(
        block is not None and _is_in_shared_list(block, page, volatile, boilerplate)
        for block, page in ((was, before), (now, after))
    )


def _is_in_shared_list(block: Block, page: BlockList, volatile: Volatile, boilerplate: Boilerplate) -> bool:
    """Return whether most blocks beside this one, of its path and kind, stand on several pages."""
    of_path = (each for each in page if each.css_path == block.css_path and each.kind is block.kind)
    beside = list(islice(of_path, LONGEST_LIST))
    shared = sum(boilerplate.is_shared(form_of(each, volatile.masked(each)), least=SELDOM) for each in beside)
    return len(beside) >= SHORTEST_LIST and shared >= MOSTLY * len(beside)


def learn_template_edits(
    known: TemplateEdits,
    changes: Collection[tuple[int, Sides]],
    *,
    page: PageKey,
    language: str,
    forms: AbstractSet[int],
    volatile: Volatile,
    at: datetime,
) -> TemplateEdits:
    """Return the template edits after one more look.

    changes: on this page that may be template edits, with their keys.  forms: of all blocks that it has now.
    """
    keys = {key for key, _ in changes}
    kept = [
        key
        for key, edit in known.items()
        if edit.was in forms and edit.language == language and key not in keys and page not in edit.pages
    ]
    if not kept and not changes:
        return known
    edits = {**known, **{key: replace(known[key], kept=known[key].kept + 1) for key in kept}}
    for key, sides in changes if len(keys) <= MOST_CHANGES else ():
        edit = edits.pop(key, None)
        if edit is None or at - edit.last > WITHIN:
            edit = TemplateEdit(language, _form(sides[0], volatile), is_target(sides), (), at)
        pages = edit.pages if page in edit.pages or len(edit.pages) >= ENOUGH_ALIKE else (*edit.pages, page)
        edits[key] = replace(edit, pages=pages, last=at)
    return newest(edits, MOST_EDITS)


def _form(block: Block | None, volatile: Volatile) -> int | None:
    return None if block is None else form_of(block, volatile.masked(block))
