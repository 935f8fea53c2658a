"""URL lists: what a site says itself about its pages, in sitemaps, sitemap indexes, feeds and plain files of URLs.

They are read as a stream and within bounds. What sites write in spite of the standards is understood where it can mean
one thing only.

Sources: sitemaps.org/protocol.html (sitemaps, indexes, text files, gzip, limits); Google's extensions for news and for
alternates by hreflang; RSS 0.90, 0.91, 1.0 and 2.0; RFC 4287 and Atom 0.3; RFC 5005, 3 and 4 (further pages of feeds).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from hashlib import blake2b

from crawler.core.http.urls import Url, normalize_url
from crawler.core.page.lists.dates import ListDate, parse_list_date
from crawler.core.page.lists.source import ListReadError, decode_list, find_root, to_xml_bytes
from crawler.core.page.lists.xml import RawEntry, parse_entries

MAX_LIST_BYTES = 50 << 20  # of one list, unpacked, by the protocol
MAX_ENTRIES = 50_000  # of one list, by the protocol; and so many alternates beside them
MAX_URL_CHARS = 16 << 20  # of all URLs of a list: a long base would make as much of each short one
MAX_LINE_CHARS = 32_768

# How often a page is said to change, as the time between two changes; "always" is hourly at best.
_INTERVALS = {
    **dict.fromkeys(("always", "hourly"), timedelta(hours=1)),
    "daily": timedelta(days=1),
    "weekly": timedelta(days=7),
    "monthly": timedelta(days=30),
    **dict.fromkeys(("yearly", "annually", "never"), timedelta(days=365)),
}
DEFAULT_PRIORITY = 0.5
MAX_PRIORITY_FACTOR = 2.0


class ListKind(StrEnum):
    """The kind of a URL list."""

    SITEMAP = "sitemap"
    INDEX = "index"  # a sitemap of sitemaps
    FEED = "feed"
    TEXT = "text"  # one URL on each line


_KINDS = {"urlset": ListKind.SITEMAP, "sitemapindex": ListKind.INDEX, "": ListKind.TEXT}


@dataclass(frozen=True, slots=True)
class ListEntry:
    """A URL that a list names.

    date: when the page is said to have changed last.  change_interval: the time between two of its changes, as
    changefreq and priority have it.  is_list: it leads to a further list, not to a page.
    """

    url: Url
    date: ListDate | None = None
    change_interval: timedelta | None = None
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class UrlList:
    """A list as it was read. kind: None for a body that is no list, or that is refused.

    entries: distinct, in the list's order.  finding: why it is not read, or not to its end; else "".
    unusable: entries that have no URL which could be crawled.  digest: of the entries; of equal lists it is equal.
    """

    kind: ListKind | None
    entries: tuple[ListEntry, ...] = field(default=(), repr=False)
    finding: str = ""
    unusable: int = 0
    digest: bytes = b""


def read_url_list(body: bytes, *, url: Url, content_type: str) -> UrlList:
    """The entries of a sitemap, an index, a feed or a text file of URLs. Never raises, whatever the bytes.

    url: where it was found, for relative addresses.  content_type: the HTTP header, as it came.
    gzip is taken off, also gzip within gzip. Entities are never expanded and nothing is fetched: a list that declares
    any is refused as a whole. Of one that ends early or goes beyond a bound, what came before counts.
    """
    return read_list_text(decode_list(body, content_type=content_type, max_bytes=MAX_LIST_BYTES), url=url)


def read_list_text(chunks: Iterator[str], *, url: Url) -> UrlList:
    """The entries of a list whose text comes in pieces; see `read_url_list`."""
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


@dataclass(slots=True)
class _ListBuilder:
    """The distinct entries read so far."""

    entries: dict[Url, ListEntry] = field(default_factory=dict)
    listed_urls: set[Url] = field(default_factory=set)  # by entries of their own; the others are alternates only
    unusable: int = 0
    chars: int = 0

    def add(self, raw: RawEntry) -> None:
        """Take in an entry and its alternates. Raises ListStopped at the end of what a list may hold."""
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
            if (
                other is not None
                and other not in self.entries
                and len(self.entries) < len(self.listed_urls) + MAX_ENTRIES
            ):
                self._store_entry(ListEntry(other))

    def _store_entry(self, entry: ListEntry) -> None:
        if entry.url not in self.entries:
            self.chars += len(entry.url)
            if self.chars > MAX_URL_CHARS:
                raise ListReadError("too_large")
        self.entries[entry.url] = entry

    def compute_digest(self) -> bytes:
        """A hash of what the entries say."""
        state = blake2b(digest_size=16)
        for entry in self.entries.values():
            state.update(f"{entry.url} {entry.date and entry.date.at.isoformat()}\n".encode())
        return state.digest()


def _resolve_url(address: str, base: Url) -> Url | None:
    # What was escaped twice: no address has this in it but by that mistake.
    return normalize_url(address.replace("&amp;", "&"), base=base) if address else None


def _parse_interval(raw: RawEntry) -> timedelta | None:
    """The time between two changes that an entry claims; priority makes it half or twice as long at most."""
    interval = _INTERVALS.get(raw.texts.get("changefreq", "").lower())
    if interval is None:
        return None
    try:
        priority = float(raw.texts.get("priority", DEFAULT_PRIORITY))
    except ValueError:
        priority = DEFAULT_PRIORITY
    if not 0 < priority <= 1:
        return interval
    return interval * min(max(DEFAULT_PRIORITY / priority, 1 / MAX_PRIORITY_FACTOR), MAX_PRIORITY_FACTOR)
