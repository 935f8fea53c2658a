"""Visits to the pages of a site, in rounds, each with its label."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from benchmarks.change.site import Page, Site
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url

BETWEEN_PAGES = timedelta(seconds=11)
AGAIN_S = (4.0, 20.0)  # the time from a visit to its second fetch
SCORED_AT_AN_END = 8  # visits at each end of a long history; the middle ones would outnumber other kinds


@dataclass(frozen=True, slots=True)
class PageVisit:
    """The input of a detector. again: fetch the page a second time, some seconds later; each call costs a request."""

    page: Url
    at: datetime
    response: Fetched = field(repr=False)
    again: Callable[[], Fetched] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A visit with its label.

    number: 0 for the first visit.
    kind: the kind of edit or, without one, of noise.
    changed: whether the page was edited since the previous visit; None if it is not scored.
    """

    visit: PageVisit
    page: Page = field(repr=False)
    number: int
    kind: str
    changed: bool | None


def rounds(site: Site) -> Iterator[Sequence[Labelled]]:
    """Yield all visits, round by round. The order of pages in a round is random."""
    seen: dict[Url, set[tuple[int, tuple[int, ...]]]] = {page.url: set() for page in site.pages}
    for number, begins in enumerate(site.rounds):
        pages = [page for page in site.pages if number < page.visits]
        Random(f"{site.key}/{number}").shuffle(pages)
        yield [
            labelled(site, page, number, begins + at * BETWEEN_PAGES, seen[page.url]) for at, page in enumerate(pages)
        ]


def labelled(site: Site, page: Page, number: int, at: datetime, seen: set[tuple[int, tuple[int, ...]]]) -> Labelled:
    """Return a labeled visit.

    seen: versions with the variants of A/B tests in which they were seen; this visit is added.
    """
    version, shown = page.version(at), (page.version(at), site.variants(page, at))
    is_new_half = shown not in seen
    seen.add(shown)
    before = page.version(site.rounds[number - 1]) if number else version
    visit = PageVisit(page.url, at, site.response(page, at), Again(site, page, at))
    if version != before:
        return Labelled(visit, page, number, page.kind, _scored(page, number) or None)
    # A first visit is not scored, nor is the first visit that shows the other variant of an A/B test.
    is_open = number == 0 or is_new_half
    return Labelled(visit, page, number, noise(site, page, number), None if is_open else False)


def _scored(page: Page, number: int) -> bool:
    return number < SCORED_AT_AN_END or number > page.visits - SCORED_AT_AN_END


def noise(site: Site, page: Page, number: int) -> str:
    """Return the kind of noise that may differ between this visit and the previous one."""
    was_reformed = site.rounds[number - 1] < site.reform.at <= site.rounds[number]
    return site.reform.kind if site.reform.kind and was_reformed else page.section.noise


@dataclass(slots=True)
class Again:
    """Second fetches of a page, with their number."""

    site: Site = field(repr=False)
    page: Page = field(repr=False)
    at: datetime
    taken: int = 0

    def __call__(self) -> Fetched:
        self.taken += 1
        wait = Random(f"{self.page.url}/{self.at}/{self.taken}").uniform(*AGAIN_S)
        self.at += timedelta(seconds=wait)
        return self.site.response(self.page, self.at)


def visit_before(site: Site, each: Labelled) -> PageVisit:
    """Return a visit on the day of the previous one, not necessarily at the same time of day."""
    at = site.rounds[each.number - 1]
    return PageVisit(each.page.url, at, site.response(each.page, at), Again(site, each.page, at))
