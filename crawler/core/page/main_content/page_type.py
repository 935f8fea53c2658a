"""The type of a web page: what it is for its readers."""

import re
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache

import numpy as np

from crawler.core.page.main_content.features import Floats, LineFeatures
from crawler.core.page.main_content.hints import BIT_COUNT, DATE, KIND_COUNT, NUMBER, PRICE, SENTENCE
from crawler.core.page.scan import PageScan, Record, RecordKind

MAX_DATA_CHARS = 20_000  # of an inline script
MAX_KNOWN_CHARS = 300  # of the names of a page whose signs are remembered for other pages
_SCHEMA_TYPE = re.compile(r'"@type"\s*:\s*"(\w+)"')
# Words in the types of structured data, of Open Graph, and in the names of generators.
SIGNS = (
    re.compile("(?i)product|offer"),
    re.compile("(?i)article|blogposting|reportage"),
    re.compile("(?i)discussion|qapage|question|socialmedia|comment"),
    re.compile("(?i)itemlist|collection|searchresults"),
    re.compile("(?i)techarticle|apireference|howto|sphinx|docusaurus|mkdocs|hugo|javadoc|doxygen|gitbook"),
    re.compile("(?i)service|localbusiness|professional"),
    re.compile("(?i)discourse|phpbb|vbulletin|xenforo|mybb|flarum|invision|vanilla"),
    re.compile("(?i)website|organization"),
)
MEASURE_COUNT = BIT_COUNT + len(SIGNS) + 9
MANY_LINES = 300
_BITS = np.array([1 << bit for bit in range(BIT_COUNT)])


class PageType(StrEnum):
    """What a page is for its readers."""

    ARTICLE = "article"
    DOCUMENTATION = "documentation"
    FORUM = "forum"
    PRODUCT = "product"
    LISTING = "listing"
    COLLECTION = "collection"
    SERVICE = "service"


def measure_page(scan: PageScan, features: LineFeatures) -> Floats:
    """Return the measures that tell the type of a page, each from 0 to 1."""
    chars = features.chars + 1.0
    total = chars.sum()
    masks, lines = np.unique(np.array(features.masks), return_inverse=True)
    shares = np.bincount(lines, chars) / total
    parts = shares @ ((masks[:, None] & _BITS) != 0)
    kinds = np.bincount(features.codes[3], minlength=2 * KIND_COUNT) / len(chars)
    items = np.bincount(features.item_kinds, chars, minlength=3) / total
    is_long = features.sizes >= 8  # 128 characters
    counts = [
        float(chars @ is_long) / total,
        sum(scan.line_link_chars) / total,
        min(len(chars) / MANY_LINES, 1.0),
        kinds[2 * PRICE] + kinds[2 * PRICE + 1],
        kinds[2 * DATE] + kinds[2 * DATE + 1],
        kinds[2 * NUMBER] + kinds[2 * NUMBER + 1],
        kinds[2 * SENTENCE] + kinds[2 * SENTENCE + 1],
        items[2],
        items[1],
    ]
    return np.concatenate((parts, find_signs(scan.records), counts))


def find_signs(records: Sequence[Record]) -> tuple[bool, ...]:
    """Return for each sign whether the records of a page have it."""
    meta, script = int(RecordKind.META), int(RecordKind.SCRIPT)
    names: list[str] = []
    for kind, values in records:
        if kind == meta:
            if values[3] == "og:type" or values[1] == "generator":
                names.append(values[0][:100])
        elif kind == script and "ld+json" in values[0]:
            names += _SCHEMA_TYPE.findall(values[1][:MAX_DATA_CHARS])
    text = " ".join(dict.fromkeys(names))
    return _search_known(text) if len(text) <= MAX_KNOWN_CHARS else _search_signs(text)


def _search_signs(text: str) -> tuple[bool, ...]:
    return tuple([sign.search(text) is not None for sign in SIGNS])


_search_known = lru_cache(maxsize=1 << 10)(_search_signs)
