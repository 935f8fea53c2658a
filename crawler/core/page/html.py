"""Parse a web page into a tree, as far as that is affordable; the cost is estimated first.

HTML as browsers parse it is quadratic in the depth of open elements and in the attributes of one tag, and in twenty
kilobytes of unclosed formatting elements there are two million nodes. No honest page comes near; a page that does is
read as far as can be afforded.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from crawler.core.http.urls import Url, normalize_url
from crawler.core.page.charset import decode_body

FREE_TAGS = 1000  # with fewer, nothing costs more than a second and 100 MB, and to count would not pay
FREE_CHARS = 65_536
TREE_STEPS = 20_000_000  # a tenth of a second in the parser
FORMATTED_NODES = 200_000  # 75 MB
READING_BYTES = 120_000_000  # of memory, for a page with all that is made of it; two seconds
BYTES_PER_TAG = 500
BYTES_PER_CHAR = 8
MANY_ATTRIBUTES_CHARS = 2000  # no shorter tag has so many attributes that it matters

_FORMATTING = frozenset(
    {"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"}
)
# Elements without content, and elements that the next one of their kind ends: they add no depth.
_SHALLOW = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
    | {"body", "head", "html", "li", "dt", "dd", "optgroup", "option", "p", "rp", "rt"}
    | {"tbody", "td", "tfoot", "th", "thead", "tr"}
)
_RAW = ("iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp")  # in them a tag is text
_TAG = re.compile(
    r"""<(?: !-- | (/?) ([a-zA-Z][^\s/>]*+) ( [^>=]*+ (?: = (?: \s*+ (?: "[^"]*+" | '[^']*+' ) )?+ [^>=]*+ )*+ ) )""",
    re.VERBOSE,
)
_ENDS = {"": re.compile("--!?>"), **{name: re.compile(f"(?i)</{name}") for name in _RAW}}  # no name: of a comment


@dataclass(frozen=True, slots=True)
class Markup:
    """A parsed web page. Several readers share the tree, so none may change it.

    charset: the name of a Python codec.  source: all of it, as text; the tree ends where it is not affordable any more.
    """

    charset: str
    source: str = field(repr=False)
    tree: LexborHTMLParser = field(repr=False)


def parse_html(body: bytes, content_type: str) -> Markup:
    """Parse a web page, whatever the bytes; MemoryError is all that it can raise."""
    charset, source = decode_body(body, content_type, "html")
    try:
        return Markup(charset, source, LexborHTMLParser(source[: count_affordable_chars(source)]))
    except SelectolaxError as error:  # there is nothing else that it fails of
        raise MemoryError from error


def get_text(node: LexborNode) -> str:
    """The text of a text node. MemoryError where there was no memory for it, which the parser tells by silence."""
    text = node.text_content
    if text is None:
        raise MemoryError
    return text


def get_base_url(tree: LexborHTMLParser, url: Url) -> Url:
    """What the relative links of a page are relative to. url: of the page."""
    node = tree.css_first("base[href]")
    return (normalize_url(node.attrs.get("href") or "", base=url) if node is not None else None) or url


def iter_ancestors(node: LexborNode) -> Iterator[LexborNode]:
    """The elements that an element stands in, from the innermost."""
    ancestor = node.parent
    while ancestor is not None:
        yield ancestor
        ancestor = ancestor.parent


def count_affordable_chars(html: str) -> int:
    """The number of characters of a page, from its start, that can be parsed in bounded time and memory; mostly all.

    Estimated from the tags alone: the steps are the sum, over all tags, of the elements that are then open.
    """
    if len(html) <= FREE_CHARS and html.count("<") <= FREE_TAGS:
        return len(html)
    max_tags = (READING_BYTES - BYTES_PER_CHAR * len(html)) // BYTES_PER_TAG
    opened: dict[str, int] = {}
    depth = formatting = steps = nodes = count = 0
    tags = _TAG.finditer(html)
    while tag := next(tags, None):
        closing, name, rest = tag.groups("")
        name = name.lower()
        if closing:
            if opened.get(name):
                opened[name] -= 1
                depth -= 1
                formatting -= name in _FORMATTING
        elif name in _ENDS:
            end = _ENDS[name].search(html, tag.end())
            if end is None:
                break
            tags = _TAG.finditer(html, end.end())
        elif name not in _SHALLOW and not (rest.endswith("/") and (opened.get("svg") or opened.get("math"))):
            opened[name] = opened.get(name, 0) + 1
            depth += 1
            formatting += name in _FORMATTING
        if len(rest) > MANY_ATTRIBUTES_CHARS:
            steps += len(rest.split()) ** 2 // 4
        steps += depth
        nodes += formatting
        count += not closing
        if count > max_tags or steps > TREE_STEPS or nodes > FORMATTED_NODES:
            return tag.start()
    return len(html)
