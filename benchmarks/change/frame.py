"""The template around the content on every page of a site, with slots for widgets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from benchmarks.change.dialect import Dialect, Layout
from benchmarks.change.widgets import Place


@dataclass(frozen=True, slots=True)
class Frame:
    """The template of a site on one day.

    menu: pairs of path and text.  notice: a message to all readers, or empty.
    """

    dialect: Dialect
    layout: Layout
    names: Mapping[str, str]
    build: str  # the build of its style sheet
    site: str
    menu: Sequence[tuple[str, str]]
    notice: str
    footer: str


Slots = Callable[[Place], str]


def page(frame: Frame, *, title: str, description: str, byline: str, content: str, slots: Slots) -> str:
    """Return the whole document."""
    name = frame.names
    links = "".join(f'<li><a href="{path}">{words}</a></li>' for path, words in frame.menu)
    note = f'<div class="{name["notice"]}">{frame.notice}</div>' if frame.notice else ""
    line = f'<p class="{name["by"]}">{byline}{slots(Place.BYLINE)}</p>'
    body = _LAYOUTS[frame.layout](
        name,
        top=f'<a href="/">{frame.site}</a>{slots(Place.TOP)}',
        nav=f"<ul>{links}</ul>",
        note=note,
        main=line + content + slots(Place.END),
        side=slots(Place.SIDE),
        foot=f"<p>{frame.footer}</p>{slots(Place.FOOT)}",
    )
    head = f'<title>{escape(title)}</title><meta name="description" content="{escape(description)}">'
    style = f'<link rel="stylesheet" href="/style-{frame.build}.css">{slots(Place.HEAD)}'
    return (
        f'<!DOCTYPE html>\n<html lang="{frame.dialect.language}"><head><meta charset="utf-8">\n'
        f"{head}\n{style}\n</head>\n"
        f'<body class="{name["wrap"]}">\n{body}\n</body></html>\n'
    )


def _landmarks(name: Mapping[str, str], *, top: str, nav: str, note: str, main: str, side: str, foot: str) -> str:
    """Lay out the page with the semantic elements of HTML."""
    return (
        f'<header class="{name["header"]}">{top}</header>\n<nav class="{name["nav"]}">{nav}</nav>\n{note}'
        f'<main class="{name["main"]}"><article>{main}</article></main>\n'
        f'<aside class="{name["side"]}">{side}</aside>\n<footer class="{name["foot"]}">{foot}</footer>'
    )


def _boxes(name: Mapping[str, str], *, top: str, nav: str, note: str, main: str, side: str, foot: str) -> str:
    """Lay out the page with plain <div> boxes."""
    return (
        f'<div class="{name["header"]}">{top}</div>\n{note}<div class="{name["nav"]}">{nav}</div>\n'
        f'<div><div class="{name["side"]}">{side}</div>\n<div class="{name["main"]}">{main}</div></div>\n'
        f'<div class="{name["foot"]}">{foot}</div>'
    )


def _table(name: Mapping[str, str], *, top: str, nav: str, note: str, main: str, side: str, foot: str) -> str:
    """Lay out the page with a table, as older sites do."""
    return (
        f'<table width="100%"><tbody><tr><td colspan="3" class="{name["header"]}">{top}</td></tr>\n'
        f'<tr><td class="{name["nav"]}">{nav}</td><td class="{name["main"]}">{note}{main}</td>'
        f'<td class="{name["side"]}">{side}</td></tr>\n'
        f'<tr><td colspan="3" class="{name["foot"]}">{foot}</td></tr></tbody></table>'
    )


_LAYOUTS = {"landmarks": _landmarks, "boxes": _boxes, "table": _table}
