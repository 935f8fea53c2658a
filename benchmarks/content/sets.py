"""Sets of real pages with their true content: the HTML documentation in Debian packages.

What is content was decided by looking at pages of each set. Not content are: menus, breadcrumbs, links to the previous
and next page, tables of contents, links to languages or source code, permalinks, copyright notices and the name of the
program that made the page.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from selectolax.lexbor import LexborHTMLParser

from crawler.core.http.urls import Url
from crawler.core.page.charset import decode_body
from crawler.core.page.scan import scan_tree
from tests.engine.corpus import CorpusError, unpacked

MIN_WORDS = 40  # of the content of a page
# Minimum share of the content among the words of its element. With less, the page is a table of contents, and whether
# that is its content is a matter of opinion.
MIN_SHARE = 0.5
CONTENT_TYPE = "text/html"
_PATTERNS = ("*.html", "*.htm")


@dataclass(frozen=True, slots=True)
class PageSet:
    """Pages of one domain.

    package: a Debian package.  folder: with the pages, a glob pattern in the package.
    content: a CSS selector of the content.  without: a selector of what is not content in it.
    """

    package: str
    folder: str
    content: str
    without: str

    @property
    def name(self) -> str:
        return self.package.removesuffix("-html").removesuffix("-doc")


@dataclass(frozen=True, slots=True)
class Page:
    """A page with its true content, one block per line."""

    url: Url
    body: bytes = field(repr=False)
    content: str = field(repr=False)


_SPHINX = ".headerlink,.toctree-wrapper,nav.contents,div.contents.topic"
SETS = (
    PageSet("postgresql-doc-15", "usr/share/doc/postgresql-doc-15/html", "body", ".navheader,.navfooter,.toc"),
    PageSet("python3.11-doc", "usr/share/doc/python3.11/html", "div.body", f"{_SPHINX},p.topic-title"),
    PageSet(
        "apache2-doc",
        "usr/share/doc/apache2-doc/manual/en",
        "#page-content",
        "button,.toplang,#quickview,.top,.permalink,.outofdate",
    ),
    PageSet(
        "sqlite3-doc",
        "usr/share/doc/sqlite3",
        "body",
        ".menu,.searchmenu,.tagline,.desktoponly,.mobileonly,.fancy_toc,.nosearch > a",
    ),
    PageSet("libcommons-lang3-java-doc", "usr/share/doc/libcommons-lang3-java/api/org", "main", ".sub-nav"),
    PageSet("octave-doc", "usr/share/doc/octave/octave.html", "body", ".header,.contents,ul.section-toc"),
    PageSet("git-doc", "usr/share/doc/git-doc", "body", "#footer,#toc"),
    PageSet("cmake-doc", "usr/share/doc/cmake-data/html", "div.body", _SPHINX),
    PageSet("python-django-doc", "usr/share/doc/python-django-doc/html", "#yui-main", f"{_SPHINX},.viewcode-back"),
    PageSet("libglib2.0-doc", "usr/share/gtk-doc/html/g*", "body", ".navigation,.footer,.toc"),
    PageSet("python-sqlalchemy-doc", "usr/share/doc/python-sqlalchemy-doc/html", "#docs-body", f"{_SPHINX},.sql_link"),
    PageSet("nodejs-doc", "usr/share/doc/nodejs/api", "#apicontent", ".mark,.srclink"),
    PageSet(
        "libboost1.74-doc",
        "usr/share/doc/libboost1.74-doc/doc/html",
        "body",
        "body > table:first-child,.spirit-nav,.copyright-footer,.toc",
    ),
    PageSet(
        "libsdl2-doc",
        "usr/share/doc/libsdl2-doc/html",
        ".header,.contents",
        ".header > .summary,.dynheader,.dyncontent,.permalink,.ttc",
    ),
    PageSet("python-pandas-doc", "usr/share/doc/python-pandas-doc/html", "main > div", f"{_SPHINX},.prev-next-area"),
    PageSet("qtbase5-doc-html", "usr/share/qt5/doc/*", ".mainContent", ".sidebar,.naviNextPrevious"),
    PageSet("erlang-doc", "usr/share/doc/erlang-doc/lib", "#content", ".footer,.title-anchors"),
    PageSet("linux-doc-6.1", "usr/share/doc/linux-doc-6.1/html", "[role=main]", _SPHINX),
    PageSet(
        "ghc-doc",
        "usr/share/doc/ghc-doc/html/libraries",
        "#content",
        "#table-of-contents,a.link,a.selflink",
    ),
    PageSet(
        "debian-handbook",
        "usr/share/doc/debian-handbook/html/en-US",
        "body",
        "#banner,#title,.docnav,.toc",
    ),
)


def pages(each: PageSet, *, most: int) -> Sequence[Page]:
    """Return at most this many pages of a set with enough content, in a fixed random order. Raise CorpusError."""
    root = unpacked(each.package)
    files = {file for pattern in _PATTERNS for folder in root.glob(each.folder) for file in folder.rglob(pattern)}
    found = sorted(file for file in files if file.is_file() and not file.is_symlink())
    chosen: list[Page] = []
    for file in Random(each.package).sample(found, len(found)):
        if len(chosen) == most:
            break
        body = file.read_bytes()
        content = true_content(body, each)
        if len(content.split()) >= MIN_WORDS:
            path = file.relative_to(root).as_posix()
            chosen.append(Page(Url(f"https://{each.package.replace('.', '-')}.test/{path}"), body, content))
    if not chosen:
        raise CorpusError(f"{each.package} has no page with the content {each.content}")
    return chosen


def true_content(body: bytes, each: PageSet) -> str:
    """Return the text of the content of a page, or "" if it has none, or less than MIN_SHARE of its element."""
    tree = LexborHTMLParser(decode_body(body, CONTENT_TYPE, "html")[1])
    watched, ignored = (
        frozenset(node.mem_id for node in tree.css(selector)) for selector in (each.content, each.without)
    )
    everything, content = (
        "\n".join(filter(None, scan_tree(tree, ignored=numbers, watched=watched).texts)) for numbers in ((), ignored)
    )
    return content if len(content.split()) >= MIN_SHARE * len(everything.split()) else ""
