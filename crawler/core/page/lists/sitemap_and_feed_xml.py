"""Streaming parser for sitemaps, feeds and OPML, which yields each entry as soon as it ends."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from html.entities import html5
from typing import Any

from msgspec import Struct, field

from crawler.core.http.urls import Url, normalize_url
from crawler.core.page.lists.list_text import AMPERSAND, ListReadError

MAX_DEPTH = 64  # feeds have five levels, and some contain web pages
MAX_ELEMENTS = 2_000_000  # forty for each entry of the longest list
MAX_TEXT_CHARS = 32_768  # of an address or a date
MAX_ALTERNATES = 100  # of one entry; hardly any site has more languages

_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_ENTRIES = frozenset({"url", "sitemap", "item", "entry"})
_CONTAINERS = frozenset({"channel", "feed"})
_NEXT_RELATIONS = frozenset({"next", "prev-archive"})  # RFC 5005, 3 and 4
# Elements with the last change of an entry's page, in order of preference.
_DATES = ("lastmod", "updated", "modified", "pubdate", "date", "published", "issued", "publication_date")
# Elements with the address of an entry, in order of preference. With an origlink, the link leads to a click counter.
_ADDRESSES = ("loc", "origlink", "link", "guid", "id", "about")
_SCHEDULE_ELEMENTS = frozenset({"changefreq", "priority"})
_READ_ELEMENTS = frozenset({*_DATES, *_ADDRESSES, *_SCHEDULE_ELEMENTS})
_NAMED_ENTITY = re.compile(rf"{AMPERSAND}([A-Za-z][A-Za-z0-9]{{1,31}};)")
_HTTP = ("http://", "https://")


class RawEntry(Struct):
    """An entry as written.

    base: the base of its relative addresses.  texts: the first relevant text of each element, by name.
    alternates: addresses of the same page in other languages or forms.  is_list: whether it leads to another list.
    """

    base: Url
    is_list: bool = False
    texts: dict[str, str] = field(default_factory=dict)
    alternates: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        return next((self.texts[name] for name in _ADDRESSES if self.texts.get(name)), "")

    @property
    def date(self) -> str:
        return next((self.texts[name] for name in _DATES if self.texts.get(name)), "")


def parse_entries(chunks: Iterator[bytes], *, base: Url) -> Iterator[RawEntry]:
    """Yield the entries of a list, whose markup is in UTF-8 and has no XML declaration.

    Raises ListReadError at a bound, or if the list is truncated. Names match without namespace and regardless of case,
    because many lists have a wrong namespace or none. Malformed markup is read as far as libxml2 can recover it.
    """
    from lxml import etree  # noqa: PLC0415  it takes 4 MB, and many processes read no list

    target = _EntryTarget(base)
    # No internal entities exist, because `find_root` drops declarations.
    bounds: dict[str, Any] = {"resolve_entities": "internal", "no_network": True, "load_dtd": False, "huge_tree": False}
    no_noise = {"remove_comments": True, "remove_pis": True}
    parser = etree.XMLParser(target=target, encoding="utf-8", recover=True, **no_noise, **bounds)
    try:
        for chunk in filter(None, chunks):
            parser.feed(chunk)
            yield from target.pop_entries()
            if target.is_over:
                return
        parser.close()
    except (etree.XMLSyntaxError, ListReadError) as error:
        yield from target.pop_entries()
        raise error if isinstance(error, ListReadError) else ListReadError("torn") from error
    yield from target.pop_entries()
    if not target.is_over:
        raise ListReadError("torn")


class _EntryTarget:
    """The target of lxml's parser events; no tree is built."""

    def __init__(self, base: Url) -> None:
        self.is_over = False
        self._names: list[str] = []
        self._bases = [base]
        self._elements = 0
        self._draft: RawEntry | None = None  # the entry being read
        self._done: list[RawEntry] = []
        self._text: list[str] | None = None  # of the last started element, if it is one to read
        self._chars = 0
        self._is_permalink = True  # whether the guid being read may be an address

    def pop_entries(self) -> list[RawEntry]:
        """Return the entries that ended since the last call."""
        done, self._done = self._done, []
        return done

    def start(self, tag: str, attributes: Mapping[str, str], _namespaces: object = None) -> None:
        self._elements += 1
        if len(self._names) == MAX_DEPTH:
            raise ListReadError("too_deep")
        if self._elements > MAX_ELEMENTS:
            raise ListReadError("too_many_elements")
        name = _get_local_name(tag)
        parent = self._names[-1] if self._names else ""
        base_text = attributes.get(_BASE) if attributes else None
        base = normalize_url(_clean_text(base_text), base=self._bases[-1]) if base_text else None
        self._names.append(name)
        self._bases.append(base or self._bases[-1])
        self._text = None
        if name in _ENTRIES:
            self._finish_entry()
            self._draft = RawEntry(self._bases[-1], is_list=name == "sitemap")
            about = _get_attribute(attributes, "about")
            if about.startswith(_HTTP):
                self._draft.texts["about"] = about
        elif name == "outline" and (
            href := _get_attribute(attributes, "htmlurl") or _get_attribute(attributes, "xmlurl")
        ):
            self._done.append(RawEntry(self._bases[-1], texts={"link": href}))  # OPML 2.0
        elif name == "link" and (href := _get_attribute(attributes, "href")):
            self._add_link(parent, _get_attribute(attributes, "rel").lower().split(), href)
        elif self._draft is not None and name in _READ_ELEMENTS and (parent in _ENTRIES or parent == "news"):
            self._text, self._chars = [], 0
            self._is_permalink = _get_attribute(attributes, "ispermalink").lower() != "false"

    def data(self, text: str) -> None:
        if self._text is not None and self._chars <= MAX_TEXT_CHARS:
            self._text.append(text)
            self._chars += len(text)

    def end(self, _tag: str) -> None:
        name = self._names.pop() if self._names else ""
        if len(self._bases) > 1:
            self._bases.pop()
        if self._text is not None and self._draft is not None:
            self._add_text(name, _clean_text("".join(self._text)))
        self._text = None
        if name in _ENTRIES:
            self._finish_entry()
        self.is_over = self.is_over or not self._names

    def close(self) -> None:
        pass

    def _add_text(self, name: str, text: str) -> None:
        assert self._draft is not None
        is_address = name not in {"guid", "id"} or (self._is_permalink and text.startswith(_HTTP))
        if text and is_address and self._chars <= MAX_TEXT_CHARS:
            self._draft.texts.setdefault(name, text)

    def _add_link(self, parent: str, relations: list[str], href: str) -> None:
        """Add a link element: an Atom link, a sitemap's link to a translation, or a link to a feed's next page."""
        draft = self._draft
        if draft is None:
            if parent in _CONTAINERS and not _NEXT_RELATIONS.isdisjoint(relations):
                self._done.append(RawEntry(self._bases[-1], is_list=True, texts={"link": href}))
        elif relations and "alternate" not in relations:
            return
        elif parent in {"entry", "item"} and "link" not in draft.texts:
            draft.texts["link"], draft.base = href, self._bases[-1]
        elif parent in {"entry", "url"} and len(draft.alternates) < MAX_ALTERNATES:
            draft.alternates.append(href)

    def _finish_entry(self) -> None:
        """Finish the entry being read, if any. An entry that was never closed ends where the next one begins."""
        if self._draft is not None:
            self._done.append(self._draft)
            self._draft = None


@lru_cache(1024)
def _get_local_name(tag: str) -> str:
    """Return the name of an element or attribute without its namespace or undeclared prefix, in lower case."""
    return tag.rpartition("}")[2].rpartition(":")[2].lower()


def _get_attribute(attributes: Mapping[str, str], name: str) -> str:
    return _clean_text(next((value for key, value in attributes.items() if _get_local_name(key) == name), ""))


def _clean_text(text: str) -> str:
    """Strip whitespace from a text, and restore the ampersands that were hidden from the parser."""
    if AMPERSAND in text:
        text = _NAMED_ENTITY.sub(lambda match: html5.get(match[1], match[0]), text).replace(AMPERSAND, "&")
    return text.strip()
