"""Web pages as markup: decoded, and parsed when a reader needs it, in bounded time and memory (page_cost.py)."""

from codecs import BOM_UTF8
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from crawler.core.http.urls import Url, normalize_url
from crawler.core.page.charset import decode_body
from crawler.core.page.compiled_scan import CompiledScan, cut_to_affordable, scan_compiled, scan_tree
from crawler.core.page.scan import PageScan

MIN_TEXT_CHARS = 300  # of a page with content, without whitespace


@dataclass(slots=True)
class Markup:
    """A web page as text, parsed when it is needed. Several readers share the tree, so none may change it.

    charset: the name of a Python codec.
    source, data: the whole page, and the same in UTF-8; the tree and the scan may end earlier, see `cut_to_affordable`.
    """

    charset: str
    source: str = field(repr=False)
    data: bytes = field(repr=False)
    _tree: LexborHTMLParser | None = field(default=None, init=False, repr=False)
    _scan: PageScan | None = field(default=None, init=False, repr=False)
    _compiled: CompiledScan | None = field(default=None, init=False, repr=False)

    @property
    def tree(self) -> LexborHTMLParser:
        """Return the tree. Raise MemoryError if there is no memory for it."""
        if self._tree is None:
            try:
                self._tree = LexborHTMLParser(cut_to_affordable(self.source, self.data))
            except SelectolaxError as error:  # raised only if memory runs out
                raise MemoryError from error
        return self._tree

    @property
    def scan(self) -> PageScan:
        """Return what one pass over the page finds. Raise MemoryError if there is no memory for it."""
        if self._scan is None:
            compiled = self.compiled
            self._scan = scan_tree(self.tree) if compiled is None else compiled.build()
        return self._scan

    @property
    def compiled(self) -> CompiledScan | None:
        """Return the same in the memory of the library, which takes less time; None if there is no library."""
        if self._compiled is None and self._scan is None:
            self._compiled = scan_compiled(self.tree)
        return self._compiled

    @property
    def head(self) -> CompiledScan | PageScan:
        """Return the scan for readers of records and anchors, which need no PageScan."""
        return self.compiled or self.scan

    @property
    def content_scan(self) -> PageScan:
        """Return the scan to choose the content from: with the text for readers without scripts if it is most of all.

        Some forums put whole discussions there.
        """
        scan = self.scan
        if sum(scan.line_chars) >= MIN_TEXT_CHARS or b"<noscript" not in self.data:
            return scan
        complete = scan_tree(self.tree, with_noscript=True)
        return complete if sum(complete.line_chars) >= MIN_TEXT_CHARS else scan

    @property
    def compiled_content(self) -> CompiledScan | None:
        """Return the same in the memory of the library; None if there is no library."""
        compiled = self.compiled
        if compiled is None or compiled.count_chars() >= MIN_TEXT_CHARS or b"<noscript" not in self.data:
            return compiled
        complete = scan_compiled(self.tree, with_noscript=True)
        return complete if complete is not None and complete.count_chars() >= MIN_TEXT_CHARS else compiled


def parse_html(body: bytes, content_type: str) -> Markup:
    """Return the markup of a web page. Any bytes are valid input."""
    charset, source = decode_body(body, content_type, "html")
    is_utf8 = charset == "utf-8" and (body.isascii() or "\ufffd" not in source)  # else invalid bytes were replaced
    data = body.removeprefix(BOM_UTF8) if is_utf8 else source.encode("utf-8", "surrogatepass")
    return Markup(charset, source, data)


def resolve_base(href: str | None, url: Url) -> Url:
    """Return the base of a page's relative links. href: that of its first base element.  url: the page's URL."""
    return (normalize_url(href, base=url) if href is not None else None) or url
