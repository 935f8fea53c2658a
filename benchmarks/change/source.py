"""Real pages for generated sites: the HTML documentation in Debian packages."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from selectolax.lexbor import LexborHTMLParser, LexborNode

from benchmarks.change.elements import of_tags
from tests.engine.corpus import CorpusError, fetch

MAX_BYTES = 60_000
PARAGRAPHS = 5
PARAGRAPH_CHARS = 60
WORDS = 150
# Not content, or invisible without a script: an edit here would not be visible.
_UNSEEN = (
    "nav,script,style,noscript,template,svg,iframe,object,video,audio,textarea,[hidden],[style*=display i],link,meta"
)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_BAD = re.compile(r"</?(?:html|head|body|title|form)\b[^>]*>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Package:
    """A documentation package.

    content and without are CSS selectors: of the content, and of what to remove from it. The four packages look
    different: DocBook, Sphinx, handwritten, javadoc.
    """

    name: str
    content: str
    without: str


PACKAGES = (
    Package("postgresql-doc-15", "body", ".navheader,.navfooter,.toc"),
    Package("python3.11-doc", "div.body", ".headerlink"),
    Package("sqlite3-doc", "body", ".nosearch,.searchmenu,.menu,.desktoponly,.mobileonly"),
    Package("libcommons-lang3-java-doc", "main", ".sub-nav"),
)


@dataclass(frozen=True, slots=True)
class Source:
    """A real page: its file name, its title, and its content as the parser serializes it."""

    name: str
    title: str
    html: str


def sources(package: Package, rng: Random, *, count: int) -> list[Source]:
    """Return some pages of medium size that have something to edit. Raise CorpusError if there are too few."""
    found = []
    for file in rng.sample(files(package), len(files(package))):
        source = source_of(file, package)
        if source is not None:
            found.append(source)
        if len(found) == count:
            return found
    raise CorpusError(f"{package.name} has only {len(found)} suitable pages")


@cache
def files(package: Package) -> list[Path]:
    root = fetch(package.name)
    return sorted(file for file in root.rglob("*.html") if file.stat().st_size <= MAX_BYTES)


@cache
def source_of(file: Path, package: Package) -> Source | None:
    tree = LexborHTMLParser(file.read_text(encoding="utf-8", errors="replace"))
    content = tree.css_first(package.content)
    title = tree.css_first("title")
    if content is None or title is None or not title.text().strip():
        return None
    for node in content.css(f"{_UNSEEN},{package.without}"):
        node.decompose()
    if len(content.text().split()) < WORDS:
        return None
    html = inner(content)
    enough = len(of_tags(html, "p", chars=PARAGRAPH_CHARS)) >= PARAGRAPHS
    return Source(file.stem, " ".join(title.text().split()), html) if enough else None


def inner(node: LexborNode) -> str:
    """Return the inner HTML of an element in a normal form: quoted attributes, all end tags, no comments."""
    html = _COMMENT.sub("", node.html or "")
    return _BAD.sub("", html[html.index(">") + 1 : html.rindex("<")])
