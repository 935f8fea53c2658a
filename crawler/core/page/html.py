"""Web pages as markup: decoded, and parsed when a reader needs it, in bounded time and memory (page_cost.py)."""

from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from crawler.core.http.urls import Url, normalize_url
from crawler.core.page.charset import decode_body
from crawler.core.page.compiled_scan import count_affordable_chars, scan_tree
from crawler.core.page.scan import PageScan

MIN_TEXT_CHARS = 300  # of a page with content, without whitespace


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

    @property
    def content_scan(self) -> PageScan:
        """Return the scan to choose the content from: with the text for readers without scripts if it is most of all.

        Some forums put whole discussions there.
        """
        scan = self.scan
        if "<noscript" not in self.source or sum(scan.line_chars) >= MIN_TEXT_CHARS:
            return scan
        complete = scan_tree(self.tree, with_noscript=True)
        return complete if sum(complete.line_chars) >= MIN_TEXT_CHARS else scan


def parse_html(body: bytes, content_type: str) -> Markup:
    """Return the markup of a web page. Any bytes are valid input."""
    return Markup(*decode_body(body, content_type, "html"))


def resolve_base(href: str | None, url: Url) -> Url:
    """Return the base of a page's relative links. href: that of its first base element.  url: the page's URL."""
    return (normalize_url(href, base=url) if href is not None else None) or url
