"""Looks at a site's pages in rounds, each with what a reader would say of it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from benchmarks.change.site import Page, Site
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url

BETWEEN_PAGES = timedelta(seconds=11)
AGAIN_S = (4.0, 20.0)  # how long after a look another one can be had
SCORED_AT_AN_END = 8  # looks of a long life; those between would drown the other kinds


@dataclass(frozen=True, slots=True)
class Look:
    """What a detector is given. again: a second full look, some seconds later; every call costs a request."""

    page: Url
    at: datetime
    answer: Fetched = field(repr=False)
    again: Callable[[], Fetched] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A look with the truth. number: 0 for the first.  changed: since the look before; None: not to be scored.

    kind: of the edit or, where there is none, of what else may differ.
    """

    look: Look
    page: Page = field(repr=False)
    number: int
    kind: str
    changed: bool | None


def rounds(site: Site) -> Iterator[Sequence[Labelled]]:
    """All looks, round by round; the pages of a round in no order."""
    seen: dict[Url, set[tuple[int, tuple[int, ...]]]] = {page.url: set() for page in site.pages}
    for number, begins in enumerate(site.rounds):
        pages = [page for page in site.pages if number < page.visits]
        Random(f"{site.key}/{number}").shuffle(pages)
        yield [
            labelled(site, page, number, begins + at * BETWEEN_PAGES, seen[page.url]) for at, page in enumerate(pages)
        ]


def labelled(site: Site, page: Page, number: int, at: datetime, seen: set[tuple[int, tuple[int, ...]]]) -> Labelled:
    """seen: versions with the halves of A/B tests that they were seen in; this look is added."""
    version, shown = page.version(at), (page.version(at), site.variants(page, at))
    is_new_half = shown not in seen
    seen.add(shown)
    before = page.version(site.rounds[number - 1]) if number else version
    look = Look(page.url, at, site.answer(page, at), Again(site, page, at))
    if version != before:
        return Labelled(look, page, number, page.kind, _scored(page, number) or None)
    # The other half of an A/B test is news until it has been seen once.
    is_open = number == 0 or is_new_half
    return Labelled(look, page, number, noise(site, page, number), None if is_open else False)


def _scored(page: Page, number: int) -> bool:
    return number < SCORED_AT_AN_END or number > page.visits - SCORED_AT_AN_END


def noise(site: Site, page: Page, number: int) -> str:
    """What may differ between this look and the one before, other than what the page says."""
    was_reformed = site.rounds[number - 1] < site.reform.at <= site.rounds[number]
    return site.reform.kind if site.reform.kind and was_reformed else page.section.noise


@dataclass(slots=True)
class Again:
    """Second looks at a page; counts them."""

    site: Site = field(repr=False)
    page: Page = field(repr=False)
    at: datetime
    taken: int = 0

    def __call__(self) -> Fetched:
        self.taken += 1
        wait = Random(f"{self.page.url}/{self.at}/{self.taken}").uniform(*AGAIN_S)
        self.at += timedelta(seconds=wait)
        return self.site.answer(self.page, self.at)


def look_before(site: Site, each: Labelled) -> Look:
    """The look before a page's second or later look, to the day: the page may have been looked at in another turn."""
    at = site.rounds[each.number - 1]
    return Look(each.page.url, at, site.answer(each.page, at), Again(site, each.page, at))
