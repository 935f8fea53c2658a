"""PDF reader based on PDFium, see docs/decisions/0015-pdfs-are-read-by-pdfium.md.

PDFium is native code that reads untrusted files. A PDF built to crash it, or to keep it busy, affects only the process
that reads it (crawler/engine/parsing/parser_pool.py).
"""

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

import pypdfium2
from pypdfium2 import raw

from crawler.core.http.urls import MAX_LINKS, Url, normalize_urls
from crawler.core.page.document import Document, collapse_lines

MAX_PAGES = 3000  # read in about three seconds
MAX_CHARS = 4_000_000  # of all pages
MAX_URI_BYTES = 8192
MAX_TITLE_BYTES = 16_384
# Maximum distance of two lines of one paragraph, relative to the usual distance on the page. LaTeX separates headings,
# list items and paragraphs by 1.2 or more.
MAX_LINE_STEP = 1.15

_LINE_END = "\r\n"
_HYPHENS = str.maketrans("", "", "\ufffe\x02\xad")  # left by PDFium where it joins a hyphenated word


def read_pdf(body: bytes, *, url: Url) -> Document:
    """Return the title, text and links of a PDF. Never raises.

    Lines with normal spacing become one line of the text.
    A file that is damaged, needs a password or exceeds MAX_PAGES or MAX_CHARS has no text and no links, because a
    partial text must not pass for the whole.
    """
    with suppress(pypdfium2.PdfiumError), pypdfium2.PdfDocument(body) as file:
        return _read_document(file, url)
    return Document()


def _read_document(file: pypdfium2.PdfDocument, url: Url) -> Document:
    title = _read_title(file)
    if len(file) > MAX_PAGES:
        return Document(title)
    blocks, hrefs, chars_left = list[str](), list[str](), MAX_CHARS
    for page in file:
        text_page = page.get_textpage()
        chars_left -= text_page.count_chars()
        if chars_left < 0:
            return Document(title)
        blocks += _join_lines(text_page)
        hrefs += _list_hrefs(file, page)
        page.close()  # closes its text page too
    return Document(title, collapse_lines(blocks), links=normalize_urls(hrefs, base=url))


def _read_title(file: pypdfium2.PdfDocument) -> str:
    size = min(raw.FPDF_GetMetaText(file, b"Title", None, 0), MAX_TITLE_BYTES)
    title = ctypes.create_string_buffer(size)
    if raw.FPDF_GetMetaText(file, b"Title", title, size) > size:
        return ""
    return collapse_lines([title.raw.decode("utf-16-le", "replace").partition("\0")[0]])


def _join_lines(text_page: pypdfium2.PdfTextPage) -> Iterator[str]:
    """Yield the text lines of a page, with closely spaced lines joined."""
    lines = text_page.get_text_range().split(_LINE_END)
    baselines = list(_measure_baselines(text_page, lines))
    steps = sorted(previous - baseline for previous, baseline in pairwise(baselines) if previous > baseline)
    # The lower quartile, because most steps are wide on a page of short blocks.
    usual_step = steps[len(steps) // 4] if steps else 0.0
    block: list[str] = []
    for line, previous, baseline in zip(lines, baselines[:1] + baselines, baselines, strict=False):
        # The line is further down than usual, or up again in another column.
        if not -usual_step < previous - baseline <= MAX_LINE_STEP * usual_step:
            yield " ".join(block)
            block.clear()
        block.append(line.translate(_HYPHENS))
    yield " ".join(block)


def _measure_baselines(text_page: pypdfium2.PdfTextPage, lines: list[str]) -> Iterator[float]:
    """Yield the height of each line above the bottom of the page, in points; if unknown, that of the line before."""
    box = raw.FS_RECTF()
    position = 0
    for line in lines:
        index = raw.FPDFText_GetCharIndexFromTextIndex(text_page, position)
        raw.FPDFText_GetLooseCharBox(text_page, index, box)
        yield float(box.bottom)
        position += len(line.encode("utf-16-le")) // 2 + len(_LINE_END)  # PDFium counts in UTF-16


def _list_hrefs(file: pypdfium2.PdfDocument, page: pypdfium2.PdfPage) -> Iterator[str]:
    """Yield the targets of a page's links that lead out of the file."""
    position, link = ctypes.c_int(0), raw.FPDF_LINK()
    for _ in range(MAX_LINKS):
        if not raw.FPDFLink_Enumerate(page, position, link):
            break
        action = raw.FPDFLink_GetAction(link)
        size = raw.FPDFAction_GetURIPath(file, action, None, 0) if action else 0
        if 1 < size <= MAX_URI_BYTES:
            uri = ctypes.create_string_buffer(size)
            raw.FPDFAction_GetURIPath(file, action, uri, size)
            yield uri.value.decode("utf-8", "replace")
