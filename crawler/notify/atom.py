"""Changes as an Atom feed (RFC 4287) of one domain, of a URL prefix, or of all domains."""

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any
from xml.etree import ElementTree as ET

from crawler import __version__
from crawler.core.change.word_diff import RunKind, diff_words
from crawler.core.page.block import BlockKind
from crawler.notify import message_text
from crawler.notify.message_text import describe_change, format_title
from crawler.notify.payload import build_content
from crawler.store.report import FeedItem

ATOM = "http://www.w3.org/2005/Atom"
MAX_EDITS = 10  # changed blocks in one entry
# The namespace of the ids of feeds and entries (RFC 9562, 5.5): a change has the same id in every feed.
UUID_NAMESPACE = uuid.UUID("8f7b1f5c-6a0e-5a51-9f1e-2d8b7c7a4f10")
# Characters that XML 1.0 does not allow (2.2): controls, surrogates and two noncharacters.
_INVALID_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TAGS = {RunKind.KEPT: "{}", RunKind.OLD: "<del>{}</del>", RunKind.NEW: "<ins>{}</ins>"}

ET.register_namespace("", ATOM)


@dataclass(frozen=True, slots=True)
class AtomScope:
    """The scope of a feed. name: a domain or a URL prefix; empty for all domains.  address: the URL of the feed itself.

    origin: the origin of the web UI, for links to the history of a page; None if it is not served.
    """

    name: str = ""
    address: str | None = None
    origin: str | None = None


def render_atom_feed(items: Sequence[FeedItem], scope: AtomScope, *, at: datetime) -> bytes:
    """Return the Atom document of changes, newest first. at: the update time of a feed without entries."""
    feed = ET.Element(_qualify_tag("feed"))
    _add_text(feed, "id", f"urn:uuid:{uuid.uuid5(UUID_NAMESPACE, _clean_xml(f'feed {scope.name}'))}")
    _add_text(feed, "title", f"Changes of {scope.name or 'all domains'}")
    _add_text(feed, "updated", _format_instant(max((item.at for item in items), default=at)))
    if scope.address is not None:
        _add_link(feed, "self", scope.address, "application/atom+xml")
    if scope.origin is not None:
        _add_link(feed, "alternate", f"{scope.origin}/", "text/html")
    ET.SubElement(feed, _qualify_tag("generator"), version=__version__).text = "recrawl"
    _add_text(ET.SubElement(feed, _qualify_tag("author")), "name", "recrawl")
    for item in items:
        _add_entry(feed, item, scope)
    return bytes(ET.tostring(feed, encoding="utf-8", xml_declaration=True))


def _add_entry(feed: ET.Element, item: FeedItem, scope: AtomScope) -> None:
    change = build_content(item)
    entry = ET.SubElement(feed, _qualify_tag("entry"))
    entry_name = f"{item.url} {item.change} {item.version} {item.at.isoformat()}"
    _add_text(entry, "id", f"urn:uuid:{uuid.uuid5(UUID_NAMESPACE, _clean_xml(entry_name))}")
    _add_text(entry, "title", f"{describe_change(change)}: {format_title(change)}")
    _add_text(entry, "updated", _format_instant(item.at))
    _add_link(entry, "alternate", item.url)
    if scope.origin is not None:
        _add_link(entry, "related", message_text.build_change_history_url(change, scope.origin), "text/html")
    for term in (item.change.value, item.domain):
        ET.SubElement(entry, _qualify_tag("category"), term=_clean_xml(term))
    _add_text(entry, "content", _render_html(change)).set("type", "html")


def _render_html(change: dict[str, Any]) -> str:
    """Return a change as HTML with escaped texts."""
    parts = [f"<p>{escape(describe_change(change))}: {escape(format_title(change))}</p>"]
    if change["moved_to"]:
        parts.append(f"<p>to {escape(change['moved_to'])}</p>")
    if change["pages"]:
        parts.append(f"<p>on {change['pages']:,} pages</p>")
    for edit in change["blocks"][:MAX_EDITS]:
        runs = diff_words(edit["was"] or "", edit["now"] or "", kind=BlockKind(edit["part"]))
        marked = (_TAGS[run.kind].format(escape(run.text)) for run in message_text.shorten_for_message(runs))
        parts.append(f"<p>{''.join(marked)}</p>")
    remaining = len(change["blocks"]) - MAX_EDITS
    if remaining > 0:
        parts.append(f"<p>and {remaining} more</p>")
    return "".join(parts)


def _qualify_tag(tag: str) -> str:
    return f"{{{ATOM}}}{tag}"


def _add_text(parent: ET.Element, tag: str, text: str) -> ET.Element:
    element = ET.SubElement(parent, _qualify_tag(tag))
    element.text = _clean_xml(text)
    return element


def _add_link(parent: ET.Element, relation: str, href: str, media_type: str = "") -> None:
    link = ET.SubElement(parent, _qualify_tag("link"), rel=relation, href=_clean_xml(href))
    if media_type:
        link.set("type", media_type)


def _clean_xml(text: str) -> str:
    """Replace the characters that XML does not allow."""
    return _INVALID_XML.sub("\ufffd", text)


def _format_instant(at: datetime) -> str:
    """Return an instant in RFC 3339 form."""
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")
