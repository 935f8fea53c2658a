"""The content of a page: from bytes to text, links, blocks and a fingerprint.

`extract` takes any bytes and never raises: HTML, XML, feeds, JSON, PDF, plain text. `parse` adds the digests by which
two versions are told apart. Uses http alone.
"""

from crawler.core.page.content import HtmlEnd, PageContent, extract, has_password_field_in, html_end_of, main_html
from crawler.core.page.document import Document, document_of
from crawler.core.page.fingerprint import (
    IDEOGRAPHS,
    Fingerprint,
    digest,
    distance_bits,
    fingerprint_of,
    number_of,
    shingles_of_words,
    words_of_text,
)
from crawler.core.page.forms import LoginForm, login_form_in
from crawler.core.page.html import parse_html
from crawler.core.page.lists.dates import ListDate
from crawler.core.page.lists.source import is_list_body
from crawler.core.page.lists.url_list import MAX_LIST_BYTES, ListEntry, ListKind, UrlList, read_url_list
from crawler.core.page.media_type import kind_of
from crawler.core.page.outline import Block, BlockKind, BlockList, block_list, is_watched, left_out
from crawler.core.page.pick import selector_of
from crawler.core.page.script_signs import ScriptSign, has_scripts
from crawler.core.page.selectors import WHOLE, View, together
from crawler.core.page.snapshot import Parsed, Snapshot, Version, parse
