"""Histories of statically built sites: which deploy changed the own text of which pages. Every deploy changes
boilerplate.

Two histories are real, from the released archives of documentation: how many paragraphs of each page's own text each
release changed. pytest.json covers the sources of 123 releases of pytest; sqlalchemy.json covers the HTML pages of 76
releases of SQLAlchemy; both use the newest release of a day. Learning of site activity was developed on the first. The
second is held out: do not tune on it. Synthetic histories draw deploys in bursts, with edits of one section or of all.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

HERE = Path(__file__).parent
FRAME_ONLY = 2  # deploys that change only boilerplate between two releases, on average
PAGES, SECTIONS, DEPLOYS = 160, 8, 160


@dataclass(frozen=True, slots=True)
class PageLife:
    """The history of a page.

    paragraphs: their number at first.
    born, gone: deploy numbers; gone is None if the page stays.
    edits: deploys that changed its own text, ascending, with the number of changed paragraphs.
    """

    name: str
    paragraphs: int
    born: int
    gone: int | None
    edits: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class History:
    """The history of a site. days: the days of its deploys, ascending, from 0."""

    days: tuple[float, ...]
    pages: tuple[PageLife, ...]

    @property
    def with_edits(self) -> int:
        """Return how many deploys changed the own text of any page."""
        return len({deploy for page in self.pages for deploy in page.edits})


def real(of: str, rng: Random, days: float | None, *, frame_only: int = FRAME_ONLY) -> History:
    """Return the real history of a documentation site, with boilerplate-only deploys between the releases.

    days: scale the history to this length; None keeps the original days.  frame_only: boilerplate-only deploys per
    release.
    """
    known = json.loads((HERE / f"{of}.json").read_text())
    length = known["days"][-1] + 1
    scale = 1.0 if days is None else days / length
    releases = [day * scale for day in known["days"]]
    builds = [rng.uniform(0, scale * length) for _ in range(frame_only * len(releases))]
    instants = sorted([*releases, *builds])
    place = [instants.index(at) for at in releases]
    pages = tuple(
        PageLife(
            name=page["name"],
            paragraphs=page["paragraphs"],
            born=place[page["born"]],
            gone=None if page["gone"] is None else place[page["gone"]],
            edits={place[deploy]: new for deploy, new, _ in page["edits"]},
        )
        for page in known["pages"]
    )
    return History(tuple(instants), pages)


def sections(rng: Random, days: float) -> History:
    """Draw a history in which a quarter of the deploys edits half of one section; other pages are edited rarely."""

    def edited(page: int, favorite: int) -> bool:
        return rng.random() < (0.5 if page % SECTIONS == favorite else 0.01)

    return _made(rng, days, share=0.25, edited=edited)


def bursts(rng: Random, days: float) -> History:
    """Draw a history in which one deploy in ten edits pages, sometimes nearly all of them."""
    chances = [rng.betavariate(0.3, 1.5) for _ in range(PAGES)]
    hits = [rng.betavariate(0.4, 0.8) for _ in range(SECTIONS)]

    def edited(page: int, favorite: int) -> bool:
        return rng.random() < max(chances[page], hits[favorite])

    return _made(rng, days, share=0.1, edited=edited)


def alone(rng: Random, days: float) -> History:
    """Draw a history in which pages are edited independently, which makes deploys uninformative."""
    rates = [0.1 * rng.lognormvariate(-1.0, 1.2) for _ in range(PAGES)]

    def edited(page: int, favorite: int) -> bool:  # noqa: ARG001  whatever is the deploy's favorite
        return rng.random() < min(rates[page], 1.0)

    return _made(rng, days, share=1.0, edited=edited, deploys=3 * DEPLOYS)


def _made(
    rng: Random, days: float, *, share: float, edited: Callable[[int, int], bool], deploys: int = DEPLOYS
) -> History:
    instants = [0.0, *sorted(rng.uniform(0, days) for _ in range(deploys))]
    edits: list[dict[int, int]] = [{} for _ in range(PAGES)]
    for deploy in range(1, len(instants)):
        if rng.random() < share:
            favorite = rng.randrange(SECTIONS)
            for page in range(PAGES):
                if edited(page, favorite):
                    edits[page][deploy] = rng.randint(1, 3)
    pages = [
        PageLife(name=f"part-{n % SECTIONS}/page-{n}", paragraphs=rng.randint(5, 25), born=0, gone=None, edits=edits[n])
        for n in range(PAGES)
    ]
    return History(tuple(instants), tuple(pages))


KINDS: Mapping[str, Callable[[Random, float], History]] = {
    "pytest": partial(real, "pytest"),
    "sqlalchemy": partial(real, "sqlalchemy"),
    "sections": sections,
    "bursts": bursts,
    "alone": alone,
}
