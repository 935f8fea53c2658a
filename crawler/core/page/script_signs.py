"""Signs in a page's HTML that scripts write a part of what readers see.

A sign is not proof, only a reason to render one page of a URL template and compare (core/rendering). A page without
signs is complete without scripts, as far as its HTML shows.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from crawler.core.http.urls import Url, normalize_urls
from crawler.core.page.compiled_scan import JoinedLines, load_library
from crawler.core.page.html import Markup
from crawler.core.page.scan import EMPTY_ROOT, NOSCRIPT_MESSAGE, PLACEHOLDER, Record, RecordKind

MAX_SHELL_CHARS = 200  # of main text; in a page with more, scripts are not expected to write all of it
MIN_TEXT_SHARE = 0.01  # of the HTML's characters; a page with less text is mostly code and data
MIN_DATA_LINKS = 3  # paths in the page's data (its inline scripts) that are not among its links
MAX_BLANK_CHARS = 200  # of whitespace in an empty custom element
MAX_DATA_LINKS = 100  # about how many paths are collected from one page's data


class ScriptSign(StrEnum):
    """A sign that scripts write a part of a page."""

    SHELL = "shell"  # the page has almost no text
    LITTLE_TEXT = "little_text"  # the page has little text in relation to its size
    EMPTY_ELEMENT = "empty_place"  # an element that scripts probably fill, such as an application's root or a list
    PLACEHOLDER = "placeholder"  # "Loading ...", or template syntax in the text
    NOSCRIPT = "noscript"  # a message for readers without scripts
    DATA_LINKS = "data_links"  # paths that occur only in the page's data


# What a browser executes. Script elements with data (JSON, templates) are excluded.
_SCRIPT = re.compile(
    rb"""<script(?=[\s/>])(?![^>]{0,300}\stype\s*=\s*["']?\s*(?:application/(?:ld\+)?json|text/(?:x-)?template|text/html))"""
    rb"""|<(?:body|svg|img|iframe|link)(?=\s)[^>]{0,300}?\son(?:load|error)\s*=""",
    re.IGNORECASE,
)
_CUSTOM_ELEMENT_END = re.compile(r"</[a-z][a-z0-9]*-")
_NO_CONTENT = re.compile(  # ids of elements that authors leave empty
    r"(?:^|[-_])(?:ads?|banner|modal|dialog|overlay|popup|tooltip|toast|portal|cookie|consent|gdpr|chat|fb-root|top"
    r"|clear|spacer|anchor|map|player|captcha|recaptcha|tracking|pixel|backdrop|lightbox|sidebar|nav|menu)s?\d*(?:$|[-_])"
)
_WAIT = re.compile(
    r"\n(?:[Ll]oading|[Pp]lease wait|Wird geladen|Chargement|Cargando|Caricamento|Carregando|Laden|Загрузка"
    r"|読み込み中|加载中)"
    r"(?: ?[.…]+(?: ?[Pp]lease wait[.…]*)?)?\n"
)
_TEMPLATE_SYNTAX = re.compile(r"\{\{\s*[\w.$]+[^{}]*\}\}")
# A quoted path of a page in JSON or scripts; slashes may be escaped. It begins with a literal slash, which makes a
# search three times as fast as one that begins with the quotation mark.
_PATH_CHARS = re.compile(r"(?:[\w\-.~%/]|\\/){2,200}")
_PATH = re.compile(rf"""/(?:(?<=["']/)|(?<=["']\\/))(?!\\?/)({_PATH_CHARS.pattern})["']""")
_NO_PAGE = re.compile(r"(?i)\.(?:js|mjs|css|json|map|png|jpe?g|gif|svg|webp|avif|ico|woff2?|ttf|mp[34]|webm|xml)$")
_API = re.compile(r"(?i)^/(?:_|api/|static/|assets/|graphql|wp-json|wp-content|wp-includes|wp-admin|cdn-cgi)")


def has_scripts(body: bytes) -> bool:
    """Return whether a page has anything that a browser executes on load."""
    library = load_library()
    if library is not None and not library.may_have_scripts(body, len(body)):  # takes a tenth of the time of the search
        return False
    return _SCRIPT.search(body) is not None


def find_script_signs(
    markup: Markup, records: Sequence[Record], lines: JoinedLines, *, links: Iterable[Url], base: Url
) -> tuple[ScriptSign, ...]:
    """Return the signs that the scripts of a page that has some write a part of it.

    records, lines, links: the page's content without scripts.  base: the base of relative links.
    """
    signs, main = markup.head.signs, lines.main.decode("utf-8", "surrogatepass")
    found = {
        ScriptSign.SHELL: len(main) <= MAX_SHELL_CHARS,
        ScriptSign.LITTLE_TEXT: lines.chars < MIN_TEXT_SHARE * len(markup.source),
        ScriptSign.EMPTY_ELEMENT: _has_empty_element(markup, signs, records),
        ScriptSign.PLACEHOLDER: bool(signs & PLACEHOLDER) or _has_placeholder(main),
        ScriptSign.NOSCRIPT: bool(signs & NOSCRIPT_MESSAGE),
        ScriptSign.DATA_LINKS: _has_links_in_data(markup, links, base),
    }
    return tuple(sign for sign, is_present in found.items() if is_present)


def _has_empty_element(markup: Markup, signs: int, records: Sequence[Record]) -> bool:
    if signs & EMPTY_ROOT or _has_empty_custom_element(markup):
        return True
    ids = (values[0].lower() for kind, values in records if kind == RecordKind.BLANK)
    return any(not _NO_CONTENT.search(each) for each in ids)


def _has_empty_custom_element(markup: Markup) -> bool:
    """Return whether there is a custom element that is empty or ends with another element."""
    library = load_library()
    if library is not None:
        return bool(library.has_empty_custom_element(markup.data, len(markup.data)))
    source = markup.source
    ends = (end.start() for end in _CUSTOM_ELEMENT_END.finditer(source))
    before = (source[max(0, end - MAX_BLANK_CHARS) : end] for end in ends)
    return any(each.rstrip().endswith(">") for each in before)


def _has_placeholder(main: str) -> bool:
    return bool(_WAIT.search(f"\n{main}\n") or _TEMPLATE_SYNTAX.search(main))


def _has_links_in_data(markup: Markup, links: Iterable[Url], base: Url) -> bool:
    paths: dict[str, None] = {}
    for found in _find_data_paths(markup):
        for path in found:
            plain = "/" + path.replace("\\/", "/")
            if not (_NO_PAGE.search(plain) or _API.search(plain)):
                paths[plain] = None
        if len(paths) >= MAX_DATA_LINKS:
            break
    if len(paths) < MIN_DATA_LINKS:
        return False
    linked = {url.rstrip("/") for url in links}
    return sum(url.rstrip("/") not in linked for url in normalize_urls(paths, base=base)) >= MIN_DATA_LINKS


def _find_data_paths(markup: Markup) -> Iterator[list[str]]:
    """Yield the paths in each inline script."""
    compiled = markup.compiled
    if compiled is None:
        yield from (_PATH.findall(values[1]) for kind, values in markup.scan.records if kind == RecordKind.SCRIPT)
    else:
        for found in compiled.find_data_paths():
            yield [path for path in found if path.isascii() or _PATH_CHARS.fullmatch(path)]
