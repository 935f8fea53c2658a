"""Widgets that differ from visit to visit without being content: parts of a template, drawn from its dialect."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from random import Random

from benchmarks.change.dialect import ROLES, Dialect, pick

MONTH_S = 30 * 86_400


class Place(StrEnum):
    """A place in the template for a widget."""

    HEAD = "head"  # within <head>
    TOP = "top"  # beside the site's name
    BYLINE = "byline"  # in the line of the author, inline
    PRICE = "price"  # in the line of the price, inline
    WITHIN = "within"  # between paragraphs of the content
    SIDE = "side"
    END = "end"  # after the content
    FOOT = "foot"


@dataclass(frozen=True, slots=True)
class Scene:
    """The context of a widget: the page, its section and the time.

    section: the seed of the section; draws from it are equal on all its pages.
    number: the number of the widget.
    """

    dialect: Dialect
    section: str
    page: str
    at: datetime
    names: Mapping[str, str]
    number: int = 0
    paths: Sequence[str] = ()  # of other pages, to link to

    def always(self, what: str = "") -> Random:
        """Return a generator that gives the same draws on all pages of the section at every visit."""
        return Random(f"{self.section}/{self.number}/{what}")

    def of_page(self, what: str = "") -> Random:
        return Random(f"{self.section}/{self.number}/{self.page}/{what}")

    def now(self, what: str = "") -> Random:
        """Return a generator that gives other draws at every visit, even a second later."""
        return Random(f"{self.section}/{self.number}/{self.page}/{what}/{self.at.timestamp()}")

    def seconds(self) -> float:
        return self.at.timestamp()


@lru_cache(maxsize=1024)
def class_names(dialect: Dialect, build: str) -> Mapping[str, str]:
    """Return the class names by role in one build of the style sheets."""
    rng = Random(build)
    style = pick(rng, dialect.styles)
    codes = (f"{rng.getrandbits(24):06x}" for _ in ROLES)
    return {
        role: style.format(role=stem, code=code) for role, stem, code in zip(ROLES, dialect.stems, codes, strict=True)
    }


Render = Callable[[Scene], str]
"""Render a widget as text or markup: inline, or in a block."""


def block(role: str, render: Render) -> Render:
    """Wrap a widget in a block."""
    return lambda scene: f'<div class="{scene.names[role]}">{render(scene)}</div>'


def inline(role: str, render: Render) -> Render:
    """Wrap a widget in an inline element."""
    return lambda scene: f' <span class="{scene.names[role]}">{render(scene)}</span>'


def clock(scene: Scene) -> str:
    return scene.dialect.instant(pick(scene.always(), scene.dialect.clock), scene.at)


def today(scene: Scene) -> str:
    """Show the day of the visit. A second fetch shows the same."""
    return scene.dialect.instant(pick(scene.always(), scene.dialect.today), scene.at)


def built_every(period: timedelta) -> Render:
    """Show when the page was last built. A second fetch shows the same unless a build comes between."""

    def built(scene: Scene) -> str:
        phase = scene.always("phase").uniform(0, period.total_seconds())
        at = scene.at - timedelta(seconds=(scene.seconds() - phase) % period.total_seconds())
        day = scene.dialect.instant(pick(scene.always(), scene.dialect.today), at)
        return f"{day} {at:%H:%M}" if scene.always("hours").random() < 0.5 else day

    return built


def seconds_ago(scene: Scene) -> str:
    """Show the seconds since an event that happens every few minutes."""
    phase, period = scene.of_page().randrange(1_000), scene.always("period").randrange(300, 3_000)
    said = pick(scene.always(), scene.dialect.seconds_ago)
    return said.format(n=scene.dialect.number(int(scene.seconds() + phase) % period))


def days_ago(scene: Scene) -> str:
    """Show the days since the page was written. A second fetch shows the same."""
    said = pick(scene.always(), scene.dialect.days_ago)
    return said.format(n=int(scene.seconds() - scene.of_page().randrange(300) * 86_400) // 86_400 % 1_000)


def views(scene: Scene) -> str:
    rng = scene.of_page()
    month = scene.seconds() % MONTH_S + MONTH_S
    counted = rng.randrange(100_000) + int(month * rng.uniform(0.5, 3))
    return pick(scene.always(), scene.dialect.views).format(n=scene.dialect.number(counted))


def readers(scene: Scene) -> str:
    said = pick(scene.always(), scene.dialect.readers)
    return said.format(n=scene.dialect.number(scene.now().randrange(2, 140)))


def render_time(scene: Scene) -> str:
    return pick(scene.always(), scene.dialect.render_time).format(n=scene.now().randrange(10, 400))


def ad(scene: Scene) -> str:
    rng = scene.now()
    shown, number = pick(rng, scene.dialect.ads), rng.randrange(10**6)
    picture = f'<img src="/ads/{number}.gif" alt="">' if scene.always().random() < 0.5 else ""
    return f'<a href="/click?id={number}">{picture}{shown}</a>'


def banner(scene: Scene) -> str:
    """Show one of a few banners."""
    banners = scene.dialect.banners
    shown = scene.now().randrange(len(banners))
    return f'<a href="/promo/{shown}.html"><strong>{banners[shown]}</strong></a>'


def suggestions(scene: Scene) -> str:
    """Link to a few other pages, drawn for each request."""
    items = "".join(f'<li><a href="{path}">{title_of(path)}</a></li>' for path in scene.now().sample(scene.paths, 4))
    return f"<h3>{pick(scene.always(), scene.dialect.more)}</h3><ul>{items}</ul>"


def title_of(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".html").replace("-", " ").replace("_", " ")


def csrf(scene: Scene) -> str:
    name, token = pick(scene.always(), scene.dialect.csrf), f"{scene.now().getrandbits(160):040x}"
    button = pick(scene.always("form"), scene.dialect.form)
    hidden = f'<input type="hidden" name="{name}" value="{token}">'
    return f'<form action="/form" method="post">{hidden}<input name="q"><button>{button}</button></form>'


def csrf_meta(scene: Scene) -> str:
    name = pick(scene.always(), scene.dialect.csrf)
    return f'<meta name="{name}" content="{scene.now().getrandbits(160):040x}">'


def comment(scene: Scene) -> str:
    return f"<!-- {scene.dialect.instant(pick(scene.always(), scene.dialect.comment), scene.at)} -->"


def inline_script(scene: Scene) -> str:
    rng = scene.now()
    state = f'{{"ts":{scene.seconds():.0f},"request":"{rng.getrandbits(64):016x}","bucket":{rng.randrange(9)}}}'
    return f"<script>window.__{scene.names['wrap'][:3]}={state};</script>"


def nonce(scene: Scene) -> str:
    name, value = pick(scene.always(), scene.dialect.nonce), f"{scene.now().getrandbits(96):024x}"
    return f'<script {name}="{value}" src="/app.js"></script><style {name}="{value}">p{{margin:0}}</style>'


def hidden(scene: Scene) -> str:
    """Return content that a browser hides: by an attribute, by a style or in a template."""
    said = f"{scene.now().randrange(10**6)} {pick(scene.now('ad'), scene.dialect.ads)}"
    forms = (f"<div hidden>{said}</div>", f'<div style="display:none">{said}</div>', f"<template>{said}</template>")
    return forms[scene.always().randrange(3)]


def generated_names(scene: Scene) -> str:
    """Link elements by ids that are generated for each response."""
    name = f"{scene.names['panel']}-{scene.now().getrandbits(32):08x}"
    label = pick(scene.always(), scene.dialect.form)
    return f'<label for="{name}">{label}</label><input id="{name}" aria-describedby="{name}-hint">'


def call(scene: Scene) -> str:
    """Show one of two wordings of an A/B test."""
    pair = scene.dialect.calls[scene.always().randrange(len(scene.dialect.calls))]
    return f'<a href="/join.html">{pair[variant(scene)]}</a>'


def variant(scene: Scene) -> int:
    return scene.now("variant").randrange(2)


_ANY = (Place.TOP, Place.SIDE, Place.FOOT)
_INLINE = frozenset({Place.BYLINE, Place.PRICE})
_HEAD = frozenset({"comment", "csrf-meta", "inline-script", "nonce"})  # rendered without a block

WIDGETS: Mapping[str, tuple[Render, str, Sequence[Place]]] = {
    "clock": (clock, "clock", _ANY),
    "today": (today, "today", (Place.TOP, Place.SIDE)),
    "built-hourly": (built_every(timedelta(hours=1)), "note", (Place.FOOT, Place.END, Place.BYLINE)),
    "built-daily": (built_every(timedelta(days=1)), "note", (Place.FOOT, Place.END, Place.BYLINE)),
    "built-weekly": (built_every(timedelta(days=7)), "note", (Place.FOOT, Place.END, Place.BYLINE)),
    "seconds-ago": (seconds_ago, "ago", (Place.BYLINE, Place.SIDE, Place.WITHIN)),
    "days-ago": (days_ago, "ago", (Place.BYLINE, Place.SIDE)),
    "views": (views, "views", (Place.BYLINE, Place.END, Place.FOOT)),
    "readers": (readers, "readers", (Place.WITHIN, Place.BYLINE, Place.SIDE)),
    "counter-in-price-line": (readers, "readers", (Place.PRICE,)),
    "render-time": (render_time, "note", (Place.FOOT,)),
    "ad": (ad, "ad", (Place.WITHIN, Place.SIDE, Place.TOP)),
    "banner": (banner, "banner", (Place.TOP, Place.WITHIN, Place.END)),
    "suggestions": (suggestions, "more", (Place.SIDE, Place.END)),
    "csrf": (csrf, "form", (Place.END, Place.SIDE)),
    "csrf-meta": (csrf_meta, "form", (Place.HEAD,)),
    "comment": (comment, "note", (Place.HEAD, Place.FOOT, Place.WITHIN)),
    "inline-script": (inline_script, "note", (Place.HEAD, Place.END)),
    "nonce": (nonce, "note", (Place.HEAD, Place.END)),
    "hidden": (hidden, "note", (Place.WITHIN, Place.END, Place.TOP)),
    "generated-names": (generated_names, "panel", (Place.WITHIN, Place.SIDE)),
    "a-b": (call, "banner", (Place.WITHIN, Place.TOP, Place.END)),
}


def rendered(kind: str, place: Place, scene: Scene) -> str:
    render, role, _ = WIDGETS[kind]
    if kind in _HEAD:
        return render(scene)
    return (inline if place in _INLINE else block)(role, render)(scene)
