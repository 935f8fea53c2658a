"""The extractors to compare: recrawl's, and other packages that find the content of a single page."""

from collections.abc import Callable, Mapping

from selectolax.lexbor import LexborHTMLParser

from benchmarks.content.sets import CONTENT_TYPE, Page
from crawler.core.page.charset import decode_body
from crawler.core.page.scan import scan_tree


def all_text(page: Page) -> str:
    return "\n".join(scan_tree(LexborHTMLParser(decoded(page))).texts)


def trafilatura(page: Page) -> str:
    """Return the text as `trafilatura.extract` returns it in its default settings."""
    from trafilatura import extract  # noqa: PLC0415  installed for benchmarks only, and slow to import

    return extract(decoded(page), url=page.url) or ""


def resiliparse(page: Page) -> str:
    from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415  installed for benchmarks only

    return str(extract_plain_text(decoded(page), main_content=True))


def readability(page: Page) -> str:
    """Return the text of the HTML that readability finds."""
    from lxml.etree import ParserError  # noqa: PLC0415
    from readability import Document  # noqa: PLC0415  installed for benchmarks only
    from readability.readability import Unparseable  # noqa: PLC0415

    try:
        summary = Document(decoded(page)).summary()
    except (Unparseable, ParserError):
        return ""
    return "\n".join(scan_tree(LexborHTMLParser(summary)).texts)


def decoded(page: Page) -> str:
    return decode_body(page.body, CONTENT_TYPE, "html")[1]


PEERS: Mapping[str, Callable[[Page], str]] = {
    "trafilatura": trafilatura,
    "resiliparse": resiliparse,
    "readability": readability,
}
