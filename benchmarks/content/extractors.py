"""The extractors to compare: recrawl's, and packages that find the content of a single page."""

from collections.abc import Callable, Mapping

from selectolax.lexbor import LexborHTMLParser

from benchmarks.content.learned import Learned, find_boilerplate, select_own
from benchmarks.content.sets import CONTENT_TYPE, Page
from crawler.core.page.charset import decode_body
from crawler.core.page.content import extract_content
from crawler.core.page.fingerprint import hash_text
from crawler.core.page.html import parse_html
from crawler.core.page.main_content import build_content_text, choose_content
from crawler.core.page.scan import PageScan, RecordKind, scan_tree

Extractor = Callable[[Page, Learned], str]


def main_text(page: Page, _: Learned) -> str:
    return extract_content(page.body, url=page.url, content_type=CONTENT_TYPE).main


def content(page: Page, _: Learned) -> str:
    scan = parse_html(page.body, CONTENT_TYPE).scan
    return build_content_text(scan, choose_content(scan, title=find_title(scan)))


def content_of_domain(page: Page, known: Learned) -> str:
    """Return the content text, chosen with the lines that are boilerplate of the domain."""
    scan = parse_html(page.body, CONTENT_TYPE).scan
    boilerplate = zip(scan.texts, *find_boilerplate(scan, known), strict=True)
    shared = {hash_text(text) for text, is_shared, is_in_slot in boilerplate if is_shared or is_in_slot}
    return build_content_text(scan, choose_content(scan, title=find_title(scan), shared=shared))


def own_lines(page: Page, known: Learned) -> str:
    """Return all lines that are not boilerplate of the domain."""
    scan = parse_html(page.body, CONTENT_TYPE).scan
    return "\n".join([scan.texts[line] for line in select_own(scan, known)])


def find_title(scan: PageScan) -> str:
    return next((record.values[0] for record in scan.records if record.kind == RecordKind.TITLE), "")


def trafilatura(page: Page, _: Learned) -> str:
    """Return the text as `trafilatura.extract` returns it in its default settings."""
    from trafilatura import extract  # noqa: PLC0415  installed for benchmarks only

    return extract(decode(page), url=page.url) or ""


def resiliparse(page: Page, _: Learned) -> str:
    from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415  slow to import

    return str(extract_plain_text(decode(page), main_content=True))


def readability(page: Page, _: Learned) -> str:
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
    "own lines": own_lines,
    "trafilatura": trafilatura,
    "resiliparse": resiliparse,
    "readability": readability,
}
