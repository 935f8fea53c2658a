"""The HTML of one version of a sheet, split where responses of the same version may differ."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from posixpath import dirname

from labs.demo.site.chance import chance
from labs.demo.site.draft import Draft, draft
from labs.demo.site.prose import TOPICS, sentence
from labs.demo.site.sheet import Sheet, SheetKind
from labs.demo.site.site import Site

CURRENCY = "crowns"
_MENU = (
    ("/", "Home"),
    ("/news/", "News"),
    ("/articles/", "Articles"),
    ("/shop/", "Shop"),
    ("/archive/", "Archive"),
    ("/glossary/", "Glossary"),
    ("/about/", "About"),
)
STYLE = """body{font:17px/1.5 Georgia,serif;max-width:60rem;margin:0 auto;padding:1rem;color:#222}
nav ul{display:flex;gap:1rem;list-style:none;padding:0}main{border-top:1px solid #bbb}
aside,footer{border-top:1px solid #bbb;font-size:.85em;color:#555}.price{font-weight:bold}
"""


@dataclass(frozen=True, slots=True)
class PageParts:
    """A page without the clock or token in its footer: body = before + clock or token + after."""

    before: str
    after: str


def render(site: Site, sheet: Sheet, version: int) -> PageParts:
    """Render the page at a version; equal arguments give equal pages."""
    words = draft(site.seed, sheet, version if not sheet.lists else 0)
    menu = "".join(f'<li><a href="{path}">{name}</a></li>' for path, name in _MENU)
    before = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(sheet.title)} | The Millbrook Almanac</title>\n"
        f'<meta name="description" content="{escape(words.paragraphs[0][0])}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="stylesheet" href="/style.css">\n</head>\n<body>\n'
        f'<header>\n<p class="brand">The Millbrook Almanac</p>\n<nav>\n<ul>{menu}</ul>\n</nav>\n</header>\n'
        f"<main>\n<article>\n<h1>{escape(sheet.title)}</h1>\n"
        f"{''.join(article(site, sheet, words, version))}</article>\n</main>\n{beside(site, sheet)}"
        "<footer>\n<p>Printed and kept by the Millbrook reading society. "
        '<a href="/contact/">Write to us</a>.</p>\n'
    )
    return PageParts(before, "</footer>\n</body>\n</html>\n")


def article(site: Site, sheet: Sheet, words: Draft, version: int) -> Iterator[str]:
    """Yield the lines of the main text: paragraphs with links at their ends, then parts that depend on the kind."""
    if sheet.kind in {SheetKind.ARTICLE, SheetKind.NEWS}:
        yield f'<p class="byline">First printed on <time>{sheet.written:%Y-%m-%d}</time></p>\n'
    if words.prices:
        yield f'<p class="price">{words.prices[-1] / 100:.2f} {CURRENCY}</p>\n'
    links = iter(in_text(sheet))
    for paragraph in words.paragraphs:
        target = next(links, None)
        more = f" See also {anchor(site, sheet, target)}." if target else ""
        yield f"<p>{escape(' '.join(paragraph))}{more}</p>\n"
    for target in links:
        yield f"<p>Read on: {anchor(site, sheet, target)}.</p>\n"
    if sheet.lists:
        yield "".join(items(site, sheet, version))
    else:
        notes = "".join(f"<li>{escape(note)}</li>\n" for note in words.notes)
        yield f"<h2>Notes</h2>\n<ul>\n{notes}</ul>\n"


def in_text(sheet: Sheet) -> tuple[str, ...]:
    """Return the links in the text; an article keeps its last three for the column beside it."""
    return sheet.links[:-3] if has_column(sheet) else sheet.links


def has_column(sheet: Sheet) -> bool:
    return not sheet.lists and len(sheet.links) > 3


def beside(site: Site, sheet: Sheet) -> str:
    if not has_column(sheet):
        return ""
    related = "".join(f"<li>{anchor(site, sheet, path)}</li>\n" for path in sheet.links[-3:])
    return f"<aside>\n<h2>Related</h2>\n<ul>\n{related}</ul>\n</aside>\n"


def items(site: Site, sheet: Sheet, version: int) -> Iterator[str]:
    """Yield the items of a listing at a version: everything that has appeared by then, with a summary."""
    at = max(site.start, sheet.version_began(version))
    children = [site.sheet(path) for path in sheet.lists]
    shown = [child for child in children if child.since is None or child.since <= at]
    yield "<ul>\n"
    for child in shown:
        topic = next(topic for topic in TOPICS if topic.name == child.topic)
        summary = sentence(chance(site.seed, "summary", child.path), topic)
        yield f"<li>{anchor(site, sheet, child.path)}: {escape(summary)}</li>\n"
    yield "</ul>\n"


def anchor(site: Site, sheet: Sheet, path: str) -> str:
    """Return a link, relative if both pages are in the same folder."""
    target = site.find(path)
    text = target.title if target else path
    folder = dirname(sheet.path)
    href = path.removeprefix(f"{folder}/") if folder != "/" and dirname(path) == folder else path
    return f'<a href="{escape(href)}">{escape(text)}</a>'
