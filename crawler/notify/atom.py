"""Changes as an Atom feed (RFC 4287), for feed readers: of a domain, of what lies under a prefix, or of all."""

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any
from xml.etree import ElementTree as ET

from crawler import __version__
from crawler.core.change.word_diff import RunKind, diff_words, excerpt
from crawler.core.page.outline import BlockKind
from crawler.notify.payload import content_of
from crawler.notify.wording import BESIDE, MOST, history_of, title_of, what_of
from crawler.store.report import FeedItem

ATOM = "http://www.w3.org/2005/Atom"
MOST_EDITS = 10  # blocks of an entry
# Names of feeds and entries are made in this space (RFC 9562, 5.5): the same of the same change, wherever it is read.
SPACE = uuid.UUID("8f7b1f5c-6a0e-5a51-9f1e-2d8b7c7a4f10")
# What XML 1.0 does not have (2.2): controls, surrogates and two that are no characters.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TAGS = {RunKind.KEPT: "{}", RunKind.OLD: "<del>{}</del>", RunKind.NEW: "<ins>{}</ins>"}

ET.register_namespace("", ATOM)


@dataclass(frozen=True, slots=True)
class AtomScope:
    """What a feed is of. name: a domain, or what URLs begin with; empty for all domains.  address: of the feed itself.

    origin: of one's own pages, for links to a page's history; None where nothing serves them.
    """

    name: str = ""
    address: str | None = None
    origin: str | None = None


def atom_feed(items: Sequence[FeedItem], scope: AtomScope, *, at: datetime) -> bytes:
    """The feed of changes, the newest first, as a document. at: when it was made, for a feed without any entry."""
    feed = ET.Element(_name("feed"))
    _text(feed, "id", f"urn:uuid:{uuid.uuid5(SPACE, _xml(f'feed {scope.name}'))}")
    _text(feed, "title", f"Changes of {scope.name or 'all domains'}")
    _text(feed, "updated", _instant(max((item.at for item in items), default=at)))
    if scope.address is not None:
        _link(feed, "self", scope.address, "application/atom+xml")
    if scope.origin is not None:
        _link(feed, "alternate", f"{scope.origin}/", "text/html")
    ET.SubElement(feed, _name("generator"), version=__version__).text = "recrawl"
    author = ET.SubElement(feed, _name("author"))
    _text(author, "name", "recrawl")
    for item in items:
        _entry(feed, item, scope)
    return bytes(ET.tostring(feed, encoding="utf-8", xml_declaration=True))


def _entry(feed: ET.Element, item: FeedItem, scope: AtomScope) -> None:
    change = content_of(item)
    entry = ET.SubElement(feed, _name("entry"))
    said = f"{item.url} {item.change} {item.version} {item.at.isoformat()}"
    _text(entry, "id", f"urn:uuid:{uuid.uuid5(SPACE, _xml(said))}")
    _text(entry, "title", f"{what_of(change)}: {title_of(change)}")
    _text(entry, "updated", _instant(item.at))
    _link(entry, "alternate", item.url)
    if scope.origin is not None:
        _link(entry, "related", history_of(change, scope.origin), "text/html")
    for term in (item.change.value, item.domain):
        ET.SubElement(entry, _name("category"), term=_xml(term))
    content = _text(entry, "content", _html(change))
    content.set("type", "html")


def _html(change: dict[str, Any]) -> str:
    """What differs, as HTML of which nothing is a stranger's but its text."""
    parts = [f"<p>{escape(what_of(change))}: {escape(title_of(change))}</p>"]
    if change["moved_to"]:
        parts.append(f"<p>to {escape(change['moved_to'])}</p>")
    if change["pages"]:
        parts.append(f"<p>on {change['pages']:,} pages</p>")
    for edit in change["blocks"][:MOST_EDITS]:
        runs = diff_words(edit["was"] or "", edit["now"] or "", part=BlockKind(edit["part"]))
        shown = "".join(_TAGS[run.kind].format(escape(run.text)) for run in excerpt(runs, beside=BESIDE, most=MOST))
        parts.append(f"<p>{shown}</p>")
    left = len(change["blocks"]) - MOST_EDITS
    if left > 0:
        parts.append(f"<p>and {left} more</p>")
    return "".join(parts)


def _name(tag: str) -> str:
    return f"{{{ATOM}}}{tag}"


def _text(parent: ET.Element, tag: str, text: str) -> ET.Element:
    made = ET.SubElement(parent, _name(tag))
    made.text = _xml(text)
    return made


def _link(parent: ET.Element, relation: str, href: str, media_type: str = "") -> None:
    link = ET.SubElement(parent, _name("link"), rel=relation, href=_xml(href))
    if media_type:
        link.set("type", media_type)


def _xml(text: str) -> str:
    """A text with what XML has no place for replaced."""
    return _NOT_XML.sub("\ufffd", text)


def _instant(at: datetime) -> str:
    """RFC 3339, as Atom wants it."""
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")
