"""Find signs, in the HTML of a page, that its scripts write a part of what a reader sees.

No sign proves it: a sign is a reason to render one page of a template and to see (core/rendering). A page without any
sign is complete as it is, as far as its HTML tells.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

from selectolax.lexbor import LexborHTMLParser

from crawler.core.http.urls import Url, normalize_urls
from crawler.core.page.html import Markup

MAX_SHELL_CHARS = 200  # of text, in a page that leaves the rest to its scripts
MIN_TEXT_SHARE = 0.01  # of the HTML's characters; a page with less text is mostly programs and data
MAX_ROOT_CHARS = 100  # of text in the root of an application that is not written yet: "Loading, please wait"
MIN_MESSAGE_WORDS = 4  # of a message for readers without scripts
MIN_DATA_LINKS = 3  # paths in the data of a page that none of its links leads to
MAX_DATA_CHARS = 500_000  # of the data of one page that are read
MAX_DATA_LINKS = 100  # paths that are taken from them


class ScriptSign(StrEnum):
    """Sign that scripts write a part of a page."""

    SHELL = "shell"  # the page says next to nothing
    LITTLE_TEXT = "little_text"  # for its size
    EMPTY_ELEMENT = "empty_place"  # the root of an application, a list or an element of its own without any content
    PLACEHOLDER = "placeholder"  # "Loading ...", or a template's syntax in the text
    NOSCRIPT = "noscript"  # a message for readers without scripts
    DATA_LINKS = "data_links"  # paths that stand in the page's data only


# What a browser runs; data in script elements (JSON, templates) is not.
_SCRIPT = re.compile(
    rb"""<script(?=[\s/>])(?![^>]{0,300}\stype\s*=\s*["']?\s*(?:application/(?:ld\+)?json|text/(?:x-)?template|text/html))"""
    rb"""|<(?:body|svg|img|iframe|link)(?=\s)[^>]{0,300}?\son(?:load|error)\s*=""",
    re.IGNORECASE,
)
# The element that the usual frameworks and their starting templates mount an application in.
_ROOT_IDS = ("root", "app", "__next", "__nuxt", "___gatsby", "__docusaurus", "svelte", "main-app", "react-root")
_ROOTS = ",".join(f"#{name}" for name in _ROOT_IDS)
_HAS_ROOT = re.compile(rf"""id=["']?(?:{"|".join(_ROOT_IDS)})["'\s>]""")
# Nobody writes a list, a table or an article without anything in it for readers. Dialogs and menus are written so.
_FILLED = ",".join(f"{tag}:blank" for tag in ("main", "article", "ul", "ol", "dl", "table", "tbody"))
_EMPTY_ELEMENTS = f"{_FILLED},div[id]:blank,section[id]:blank"  # a script finds a block by its name
_CUSTOM_ELEMENT = re.compile(r">\s*</[a-z][a-z0-9]*-")
_NO_CONTENT = re.compile(
    r"(?:^|[-_])(?:ads?|banner|modal|dialog|overlay|popup|tooltip|toast|portal|cookie|consent|gdpr|chat|fb-root|top"
    r"|clear|spacer|anchor|map|player|captcha|recaptcha|tracking|pixel|backdrop|lightbox|sidebar|nav|menu)s?\d*(?:$|[-_])"
)
_PLACEHOLDER_MARKS = ("aria-busy", "skeleton", "spinner", "shimmer", "v-cloak", "ng-cloak")
_PLACEHOLDER_SELECTOR = (
    '[aria-busy="true" i],[class*="skeleton"],[class*="spinner"],[class*="shimmer"],[v-cloak],[ng-cloak]'
)
_WAIT = re.compile(
    r"(?m)^(?:[Ll]oading|[Pp]lease wait|Wird geladen|Chargement|Cargando|Caricamento|Carregando|Laden|Загрузка"
    r"|読み込み中|加载中)"
    r"(?: ?[.…]+(?: ?[Pp]lease wait[.…]*)?)?$"
)
_TEMPLATE_SYNTAX = re.compile(r"\{\{\s*[\w.$]+[^{}]*\}\}")
# A path of a page between quotes, as JSON and scripts write it; slashes may be escaped.
_PATH = re.compile(r"""["'](\\?/(?!\\?/)(?:[\w\-.~%/]|\\/){2,200})["']""")
_NO_PAGE = re.compile(r"(?i)\.(?:js|mjs|css|json|map|png|jpe?g|gif|svg|webp|avif|ico|woff2?|ttf|mp[34]|webm|xml)$")
_API = re.compile(r"(?i)^/(?:_|api/|static/|assets/|graphql|wp-json|wp-content|wp-includes|wp-admin|cdn-cgi)")


def has_scripts(body: bytes) -> bool:
    """Return whether a page has anything that a browser would run at once."""
    return _SCRIPT.search(body) is not None


def find_script_signs(
    body: bytes, markup: Markup, *, text: str, main: str, links: Iterable[Url], base: Url
) -> tuple[ScriptSign, ...]:
    """Return the signs that a page's scripts write a part of it; none for a page without scripts.

    text, main, links: of the page as it is without its scripts.  base: of relative links.
    """
    if not has_scripts(body):
        return ()
    tree, source = markup.tree, markup.source
    signs = {
        ScriptSign.SHELL: len(main) <= MAX_SHELL_CHARS,
        ScriptSign.LITTLE_TEXT: len(text) < MIN_TEXT_SHARE * len(source),
        ScriptSign.EMPTY_ELEMENT: _has_empty_element(markup),
        ScriptSign.PLACEHOLDER: _has_placeholder(markup, main),
        # Pictures and frames that count visitors are no message.
        ScriptSign.NOSCRIPT: "<noscript" in source
        and any(len(node.text().split()) >= MIN_MESSAGE_WORDS for node in tree.css("body noscript")),
        ScriptSign.DATA_LINKS: _has_links_in_data(tree, links, base),
    }
    return tuple(sign for sign, is_present in signs.items() if is_present)


def _has_empty_element(markup: Markup) -> bool:
    tree = markup.tree
    if _HAS_ROOT.search(markup.source):
        roots = (node for node in tree.css(_ROOTS) if node.tag != "body")
        if any(len(node.text(strip=True)) <= MAX_ROOT_CHARS and node.css_first("a[href]") is None for node in roots):
            return True
    if _CUSTOM_ELEMENT.search(markup.source):
        return True
    return any(not _NO_CONTENT.search((node.attrs.get("id") or "").lower()) for node in tree.css(_EMPTY_ELEMENTS))


def _has_placeholder(markup: Markup, main: str) -> bool:
    if _WAIT.search(main) or _TEMPLATE_SYNTAX.search(main):
        return True
    return (
        any(mark in markup.source for mark in _PLACEHOLDER_MARKS)
        and markup.tree.css_first(_PLACEHOLDER_SELECTOR) is not None
    )


def _has_links_in_data(tree: LexborHTMLParser, links: Iterable[Url], base: Url) -> bool:
    paths: dict[str, None] = {}
    chars_left = MAX_DATA_CHARS
    for node in tree.css("script:not([src])"):
        data = (node.text() or "")[:chars_left]
        chars_left -= len(data)
        for path in _PATH.findall(data):
            plain = path.replace("\\/", "/")
            if not (_NO_PAGE.search(plain) or _API.search(plain)):
                paths[plain] = None
        if chars_left <= 0 or len(paths) >= MAX_DATA_LINKS:
            break
    if len(paths) < MIN_DATA_LINKS:
        return False
    linked = {url.rstrip("/") for url in links}
    return sum(url.rstrip("/") not in linked for url in normalize_urls(paths, base=base)) >= MIN_DATA_LINKS
