"""Parser of web pages that bounds time and memory by estimating the cost first.

Parsing HTML as browsers do takes quadratic time in the depth of open elements and in the attributes of one tag. Twenty
kilobytes of unclosed formatting elements yield two million nodes. No honest page comes near the bounds below. Of a page
beyond them, only the start is read.
"""

import re
from collections import Counter
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from crawler.core.http.urls import Url, normalize_url
from crawler.core.page.charset import decode_body
from crawler.core.page.scan import PageScan, scan_tree

# The cost of a page within both bounds is not estimated: it is at most a second and 100 MB.
FREE_TAGS = 1000
FREE_CHARS = 65_536
# Maximum estimates for any page:
TREE_STEPS = 20_000_000  # a tenth of a second of parsing
FORMATTED_NODES = 200_000  # copies of unclosed formatting elements, in 75 MB
READING_BYTES = 120_000_000  # of memory, for a page and everything built from it; two seconds
BYTES_PER_TAG = 500
BYTES_PER_CHAR = 8
MANY_ATTRIBUTES_CHARS = 2000  # shorter tags have too few attributes to matter

_FORMATTING = {"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"}
# Elements without content, and elements that the next one of their kind closes: they add no depth.
_SHALLOW = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
    | {"body", "head", "html", "li", "dt", "dd", "optgroup", "option", "p", "rp", "rt"}
    | {"tbody", "td", "tfoot", "th", "thead", "tr"}
)
_RAW = ("iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp")  # tags inside them are text
_TAG = re.compile(
    r"""<(?: !-- | (/?) ([a-zA-Z][^\s/>]*+) ( [^>=]*+ (?: = (?: \s*+ (?: "[^"]*+" | '[^']*+' ) )?+ [^>=]*+ )*+ ) )""",
    re.VERBOSE,
)
# Where elements with raw text end, by name; the empty name stands for comments.
_ENDS = {"": re.compile("--!?>"), **{name: re.compile(f"(?i)</{name}") for name in _RAW}}


@dataclass(slots=True)
class Markup:
    """A web page as text, parsed when it is needed. Several readers share the tree, so none may change it.

    charset: the name of a Python codec.
    source: the whole page; the tree and the scan may end earlier, see `count_affordable_chars`.
    """

    charset: str
    source: str = field(repr=False)
    _tree: LexborHTMLParser | None = field(default=None, init=False, repr=False)
    _scan: PageScan | None = field(default=None, init=False, repr=False)

    @property
    def tree(self) -> LexborHTMLParser:
        """Return the tree. Raise MemoryError if there is no memory for it."""
        if self._tree is None:
            try:
                self._tree = LexborHTMLParser(self.source[: count_affordable_chars(self.source)])
            except SelectolaxError as error:  # raised only if memory runs out
                raise MemoryError from error
        return self._tree

    @property
    def scan(self) -> PageScan:
        """Return what one pass over the page finds. Raise MemoryError if there is no memory for it."""
        if self._scan is None:
            self._scan = scan_tree(self.tree)
        return self._scan


def parse_html(body: bytes, content_type: str) -> Markup:
    """Return the markup of a web page. Any bytes are valid input."""
    return Markup(*decode_body(body, content_type, "html"))


def resolve_base(href: str | None, url: Url) -> Url:
    """Return the base of a page's relative links. href: that of its first base element.  url: the page's URL."""
    return (normalize_url(href, base=url) if href is not None else None) or url


def count_affordable_chars(html: str) -> int:
    """Return how many characters of a page, from its start, can be parsed in bounded time and memory; usually all.

    The estimate uses the tags and the length. The number of steps is the sum, over all tags, of the elements open at
    that point, plus a quadratic term for tags with many attributes.
    """
    if len(html) <= FREE_CHARS and html.count("<") <= FREE_TAGS:
        return len(html)
    max_tags = (READING_BYTES - BYTES_PER_CHAR * len(html)) // BYTES_PER_TAG
    opened: Counter[str] = Counter()
    depth = formatting = steps = nodes = count = 0
    tags = _TAG.finditer(html)
    while tag := next(tags, None):
        closing, name, rest = tag.groups("")
        name = name.lower()
        if closing:
            if opened[name]:
                opened[name] -= 1
                depth -= 1
                formatting -= name in _FORMATTING
        elif name in _ENDS:
            end = _ENDS[name].search(html, tag.end())
            if end is None:
                break
            tags = _TAG.finditer(html, end.end())
        elif name not in _SHALLOW and not (rest.endswith("/") and (opened["svg"] or opened["math"])):
            opened[name] += 1
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
