"""URL lists: sitemaps, sitemap indexes, feeds and plain files of URLs.

They are read as a stream and within bounds. Deviations from the standards are accepted if they are unambiguous.

Sources: sitemaps.org/protocol.html (sitemaps, indexes, text files, gzip, limits); Google's extensions for news and for
alternates by hreflang; RSS 0.90, 0.91, 1.0 and 2.0; RFC 4287 and Atom 0.3; RFC 5005, 3 and 4 (further pages of feeds).
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from enum import StrEnum
from hashlib import blake2b

from msgspec import Struct, field

from crawler.core.http.urls import Url, normalize_url
from crawler.core.page.lists.dates import ListDate, parse_list_date
from crawler.core.page.lists.list_text import ListReadError, decode_list, find_root, to_xml_bytes
from crawler.core.page.lists.sitemap_and_feed_xml import RawEntry, parse_entries

MAX_LIST_BYTES = 50 << 20  # of one decompressed list, by the protocol
MAX_ENTRIES = 50_000  # of one list, by the protocol; the same limit applies to alternates
MAX_URL_CHARS = 16 << 20  # of all absolute URLs of a list, because a long base is repeated in each
MAX_LINE_CHARS = 32_768

# The claimed time between two changes; "always" is taken as hourly.
_INTERVALS = {
    **dict.fromkeys(("always", "hourly"), timedelta(hours=1)),
    "daily": timedelta(days=1),
    "weekly": timedelta(days=7),
    "monthly": timedelta(days=30),
    **dict.fromkeys(("yearly", "annually", "never"), timedelta(days=365)),
}
DEFAULT_PRIORITY = 0.5  # by the protocol
MAX_PRIORITY_FACTOR = 2.0  # by which a priority multiplies or divides the claimed time between two changes


class ListKind(StrEnum):
    """The kind of a URL list."""

    SITEMAP = "sitemap"
    INDEX = "index"  # a sitemap of sitemaps
    FEED = "feed"
    TEXT = "text"  # one URL per line


_KINDS = {"urlset": ListKind.SITEMAP, "sitemapindex": ListKind.INDEX, "": ListKind.TEXT}


class ListEntry(Struct, frozen=True):
    """A URL in a list.

    date: the page's claimed last change.  change_interval: the claimed time between changes, from changefreq and
    priority.
    is_list: whether it leads to another list, not to a page.
    """

    url: Url
    date: ListDate | None = None
    change_interval: timedelta | None = None
    is_list: bool = False


class UrlList(Struct, frozen=True):
    """A list that was read.

    kind: None for a body that is not a list, or that is rejected.  entries: distinct, in the list's order.
    finding: why the list was not read, or not to its end; else "".
    unusable: the number of entries without a URL that can be crawled.  digest: a hash of the URLs and dates.
    """

    kind: ListKind | None
    entries: tuple[ListEntry, ...] = ()
    finding: str = ""
    unusable: int = 0
    digest: bytes = b""


def read_url_list(body: bytes, *, url: Url, content_type: str) -> UrlList:
    """Read the entries of a sitemap, an index, a feed or a text file of URLs. Never raises.

    url: the base of relative addresses.  content_type: the HTTP header, unchanged.
    Gzip is decompressed, even if nested. Nothing is fetched. A list that declares entities or is compressed too often
    is rejected. If a list is truncated or exceeds another bound, the entries before that point count.
    """
    return read_list_text(decode_list(body, content_type=content_type, max_bytes=MAX_LIST_BYTES), url=url)


def read_list_text(chunks: Iterator[str], *, url: Url) -> UrlList:
    """Read the entries of a list whose text comes in chunks; see `read_url_list`."""
    builder = _ListBuilder()
    kind, finding = None, ""
    try:
        root, text = find_root(chunks)
        kind = _KINDS.get(root, ListKind.FEED)
        lines = (RawEntry(url, texts={"loc": line}) for line in _split_lines(text) if line)
        for raw in parse_entries(to_xml_bytes(text), base=url) if root else lines:
            builder.add(raw)
    except ListReadError as stopped:
        finding = stopped.finding
        if stopped.is_rejected:
            return UrlList(None, finding=finding)
    return UrlList(kind, tuple(builder.entries.values()), finding, builder.unusable, builder.compute_digest())


def _split_lines(chunks: Iterator[str]) -> Iterator[str]:
    pending = ""
    for chunk in chunks:
        *lines, pending = (pending + chunk).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        yield from (line.strip() for line in lines)
        if len(pending) > MAX_LINE_CHARS:
            raise ListReadError("line_too_long")
    yield pending.strip()


class _ListBuilder(Struct):
    """The distinct entries read so far."""

    entries: dict[Url, ListEntry] = field(default_factory=dict)
    listed_urls: set[Url] = field(default_factory=set)  # URLs with their own entry; all others are only alternates
    unusable: int = 0
    chars: int = 0

    def add(self, raw: RawEntry) -> None:
        """Add an entry and its alternates. Raises ListReadError if there are too many, or too many characters."""
        if len(self.listed_urls) + self.unusable >= MAX_ENTRIES:
            raise ListReadError("too_many_entries")
        url = _resolve_url(raw.address, raw.base)
        if url is None:
            self.unusable += 1
        elif url not in self.listed_urls:
            self.listed_urls.add(url)
            self._store_entry(ListEntry(url, parse_list_date(raw.date), _parse_interval(raw), raw.is_list))
        for address in raw.alternates:
            other = _resolve_url(address, raw.base)
            has_room = len(self.entries) < len(self.listed_urls) + MAX_ENTRIES
            if other is not None and other not in self.entries and has_room:
                self._store_entry(ListEntry(other))

    def _store_entry(self, entry: ListEntry) -> None:
        if entry.url not in self.entries:
            self.chars += len(entry.url)
            if self.chars > MAX_URL_CHARS:
                raise ListReadError("too_large")
        self.entries[entry.url] = entry

    def compute_digest(self) -> bytes:
        """Return a hash of the entries' URLs and dates."""
        state = blake2b(digest_size=16)
        for entry in self.entries.values():
            state.update(f"{entry.url} {entry.date and entry.date.at.isoformat()}\n".encode())
        return state.digest()


def _resolve_url(address: str, base: Url) -> Url | None:
    # Undo double escaping: no valid address contains an escaped ampersand.
    return normalize_url(address.replace("&amp;", "&"), base=base) if address else None


def _parse_interval(raw: RawEntry) -> timedelta | None:
    """Return the claimed time between two changes. Priority at most halves or doubles it."""
    interval = _INTERVALS.get(raw.texts.get("changefreq", "").lower())
    if interval is None:
        return None
    with suppress(ValueError):
        if 0 < (priority := float(raw.texts.get("priority", DEFAULT_PRIORITY))) <= 1:
            return interval * min(max(DEFAULT_PRIORITY / priority, 1 / MAX_PRIORITY_FACTOR), MAX_PRIORITY_FACTOR)
    return interval
