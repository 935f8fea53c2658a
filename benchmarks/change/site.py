"""A generated site: real pages in one template, with widgets and edits. Responses depend only on page and time."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime

from benchmarks.change.content import Content, Manner, facts_box, seam
from benchmarks.change.dialect import Dialect, Layout
from benchmarks.change.frame import Frame, page
from benchmarks.change.serialise import REWRITES, encoded
from benchmarks.change.widgets import Place, Scene, rendered, variant
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url

ELAPSED = timedelta(milliseconds=80)
WIDGET_AFTER = 1  # paragraphs; the facts box is inserted elsewhere


@dataclass(frozen=True, slots=True)
class Section:
    """Pages that share a template.

    noise: the only kind of noise from visit to visit, or "mixed".
    widgets: kinds with their places.
    rewrites: kinds of rewrites of the whole page.
    """

    key: str
    path: str
    noise: str
    widgets: tuple[tuple[str, Place], ...]
    rewrites: frozenset[str]
    manner: Manner


@dataclass(frozen=True, slots=True)
class Page:
    """A page with its history.

    kind: the kind of its edits, or empty.
    contents: before the first edit and after each edit.
    edited_at: the times of the edits, one fewer than contents.
    visits: the number of visits.
    """

    url: Url
    section: Section
    kind: str
    contents: tuple[Content, ...]
    edited_at: tuple[datetime, ...]
    visits: int

    def version(self, at: datetime) -> int:
        """Return the number of edits up to a time."""
        return bisect_right(self.edited_at, at)


@dataclass(frozen=True, slots=True)
class Reform:
    """One change of the template of a whole site. kind: "menu-entry", "footer", "notice", "restyled" or empty."""

    kind: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Site:
    """A generated site.

    rounds: the times at which all pages are visited in turn.
    words, reformed: the template before and after its change.
    """

    key: str
    host: str
    dialect: Dialect
    layout: Layout
    words: Frame
    reform: Reform
    reformed: Frame
    pages: tuple[Page, ...]
    rounds: tuple[datetime, ...]

    def response(self, of: Page, at: datetime) -> Fetched:
        """Return the response of the server. The same page and time give the same bytes."""
        scene = self.scene(of, at)
        html = self._html(of, scene)
        for number, (kind, rewrite) in enumerate(REWRITES.items()):
            if kind in of.section.rewrites:
                html = rewrite(html, self.scene(of, at, 100 + number))
        body, content_type = encoded(html, scene, varies="charset" in of.section.rewrites)
        date = format_datetime(at, usegmt=True)
        return Fetched(200, body, len(body), ELAPSED, content_type=content_type, date=date)

    def scene(self, of: Page, at: datetime, number: int = 0) -> Scene:
        paths = [other.url.removeprefix(f"https://{self.host}") for other in self.pages]
        return Scene(self.dialect, of.section.key, of.url, at, self.frame(at).names, number, paths)

    def frame(self, at: datetime) -> Frame:
        return self.reformed if at >= self.reform.at else self.words

    def variants(self, of: Page, at: datetime) -> tuple[int, ...]:
        """Return which variant of each A/B test a visit shows."""
        numbered = enumerate(of.section.widgets)
        return tuple(variant(self.scene(of, at, number)) for number, (kind, _) in numbered if kind == "a-b")

    def _html(self, of: Page, scene: Scene) -> str:
        content, section, frame = of.contents[of.version(scene.at)], of.section, self.frame(scene.at)
        slots: dict[Place, str] = {}
        for number, (kind, place) in enumerate(section.widgets):
            drawn = rendered(kind, place, self.scene(of, scene.at, number))
            slots[place] = slots.get(place, "") + drawn
        box = facts_box(
            content.facts, section.manner, self.dialect, names=frame.names, beside_price=slots.get(Place.PRICE, "")
        )
        return page(
            frame,
            title=content.title,
            description=content.description,
            byline=section.manner.by.format(a=content.facts.author),
            content=_filled(content.html, [(section.manner.after, box), (WIDGET_AFTER, slots.get(Place.WITHIN, ""))]),
            slots=lambda place: slots.get(place, ""),
        )


def _filled(html: str, pieces: Sequence[tuple[int, str]]) -> str:
    """Insert fragments of HTML after the given numbers of paragraphs."""
    for after, piece in sorted(pieces, reverse=True):
        at = seam(html, after)
        html = html[:at] + piece + html[at:]
    return html
