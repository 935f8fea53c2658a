"""The extractors to compare: recrawl's, and packages that find the content of a single page."""

from collections.abc import Callable, Mapping

from selectolax.lexbor import LexborHTMLParser

from benchmarks.content.sets import CONTENT_TYPE, Page
from crawler.core.page.charset import decode_body
from crawler.core.page.content import extract_content
from crawler.core.page.html import parse_html
from crawler.core.page.main_content.choice import build_content_text, choose_content
from crawler.core.page.scan import PageScan, RecordKind, scan_tree
from crawler.core.page.shared_lines import NO_SHARED_LINES, SharedLines

Extractor = Callable[[Page, SharedLines], str]


def main_text(page: Page, _: SharedLines) -> str:
    return extract_content(page.body, url=page.url, content_type=CONTENT_TYPE).main


def content(page: Page, _: SharedLines) -> str:
    return content_of_domain(page, NO_SHARED_LINES)


def content_of_domain(page: Page, shared: SharedLines) -> str:
    """Return the content text, chosen with the lines that the domain's pages share."""
    scan = parse_html(page.body, CONTENT_TYPE).scan
    return build_content_text(scan, choose_content(scan, title=find_title(scan), shared=shared).lines)


def find_title(scan: PageScan) -> str:
    return next((record.values[0] for record in scan.records if record.kind == RecordKind.TITLE), "")


def trafilatura(page: Page, _: SharedLines) -> str:
    """Return the text as `trafilatura.extract` returns it in its default settings."""
    from trafilatura import extract  # noqa: PLC0415  installed for benchmarks only

    return extract(decode(page), url=page.url) or ""


def resiliparse(page: Page, _: SharedLines) -> str:
    from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415  slow to import

    return str(extract_plain_text(decode(page), main_content=True))


def readability(page: Page, _: SharedLines) -> str:
    """Return the text of the HTML that readability finds, or "" for a page that it cannot read."""
    from lxml.etree import ParserError  # noqa: PLC0415
    from readability import Document  # noqa: PLC0415  installed for benchmarks only
    from readability.readability import Unparseable  # noqa: PLC0415

    try:
        summary = Document(decode(page)).summary()
    except (Unparseable, ParserError):
        return ""
    return "\n".join(scan_tree(LexborHTMLParser(summary)).texts)


def decode(page: Page) -> str:
    return decode_body(page.body, CONTENT_TYPE, "html")[1]


EXTRACTORS: Mapping[str, Extractor] = {
    "main text": main_text,
    "content": content,
    "content, learned": content_of_domain,
    "trafilatura": trafilatura,
    "resiliparse": resiliparse,
    "readability": readability,
}
