"""The Atom feed follows RFC 4287 and can be read by feedparser."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import feedparser
import pytest
from lxml import etree

from crawler.core.http.urls import Url
from crawler.core.page.block import BlockKind
from crawler.notify.atom import AtomScope, render_atom_feed
from crawler.notify.message_text import HISTORY_PATH, build_change_history_url
from crawler.server.ui.links import build_history_url
from crawler.store.report import BlockChange, EventKind, FeedItem

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)
ATOM = "{http://www.w3.org/2005/Atom}"
RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def item(n: int = 1, **given: Any) -> FeedItem:
    usual: dict[str, Any] = {
        "position": n,
        "domain": "shop.test",
        "at": NOW - timedelta(hours=n),
        "url": Url(f"https://shop.test/p{n}"),
        "change": EventKind.CHANGED,
        "version": 2,
        "distance_bits": 4,
        "magnitude": 0.1,
        "title": f"Page {n}",
        "blocks": (BlockChange(part=BlockKind.TEXT, before="Costs four crowns", after="Costs nine crowns"),),
    }
    return FeedItem(**usual | given)


def checked(document: bytes) -> Any:
    """Check a feed against the rules of RFC 4287 and return it."""
    feed = etree.fromstring(document, etree.XMLParser(resolve_entities=False))
    assert feed.tag == f"{ATOM}feed"
    for holder in (feed, *feed.findall(f"{ATOM}entry")):
        for name in ("id", "title", "updated"):  # 4.1.1, 4.1.2: exactly one of each
            assert len(holder.findall(f"{ATOM}{name}")) == 1, name
        assert RFC_3339.fullmatch(holder.findtext(f"{ATOM}updated"))
        assert holder.findtext(f"{ATOM}id").startswith("urn:uuid:")
        links = [(link.get("rel"), link.get("type"), link.get("hreflang")) for link in holder.findall(f"{ATOM}link")]
        assert len(set(links)) == len(links)  # 4.1.2: one alternate of a type and language
    assert feed.find(f"{ATOM}author/{ATOM}name") is not None  # of the feed, which makes it optional in entries
    ids = [entry.findtext(f"{ATOM}id") for entry in feed.findall(f"{ATOM}entry")]
    assert len(set(ids)) == len(ids)
    return feed


def test_feed_follows_the_rfc_and_is_readable() -> None:
    scope = AtomScope(
        name="shop.test", address="http://127.0.0.1:4280/feed.atom?a=1&token=x", origin="http://127.0.0.1:4280"
    )
    document = render_atom_feed([item(n) for n in range(1, 6)], scope, at=NOW)

    feed = checked(document)
    read = feedparser.parse(document)

    assert not read.bozo, read.get("bozo_exception")
    assert read.version == "atom10"
    assert read.feed.title == "Changes of shop.test"
    assert feed.findtext(f"{ATOM}updated") == "2026-03-03T11:00:00.000000Z"  # of the newest entry
    assert [entry.title for entry in read.entries] == [f"Changed: Page {n}" for n in range(1, 6)]
    assert [entry.link for entry in read.entries] == [f"https://shop.test/p{n}" for n in range(1, 6)]
    assert "<del>four</del><ins>nine</ins> crowns" in read.entries[0].content[0].value
    assert [link.href for link in read.entries[0].links if link.rel == "related"] == [
        "http://127.0.0.1:4280/page?url=https%3A%2F%2Fshop.test%2Fp1"
    ]


def test_entry_of_a_change_has_the_same_id_in_every_feed() -> None:
    first = feedparser.parse(render_atom_feed([item(1), item(2)], AtomScope(), at=NOW))
    again = feedparser.parse(
        render_atom_feed([item(3), item(1, position=99)], AtomScope(name="shop.test"), at=NOW + timedelta(1))
    )

    assert first.entries[0].id == again.entries[1].id
    assert first.entries[0].updated == again.entries[1].updated
    assert first.entries[0].id != first.entries[1].id
    assert first.feed.id != again.feed.id


def test_empty_feed_is_valid() -> None:
    feed = checked(render_atom_feed([], AtomScope(), at=NOW))

    assert feed.findtext(f"{ATOM}updated") == "2026-03-03T12:00:00.000000Z"


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "]]> <!-- & &amp; \" '",
        "\x00\x08\x1b[31m \ufffe \ud800",
        "\u202e\u2066 <img src=x onerror=alert(1)>",
        "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>&e;",
    ],
)
def test_crawled_text_is_escaped(text: str) -> None:
    hostile = item(
        title=text,
        url=Url(f"https://shop.test/{text}"),
        change=EventKind.MOVED,
        moved_to=Url(f"https://shop.test/to/{text}"),
        blocks=(BlockChange(part=BlockKind.TEXT, before=f"was {text}", after=f"now {text}"),),
    )

    document = render_atom_feed([hostile], AtomScope(name=text, address=f"http://x/{text}"), at=NOW)

    feed = checked(document)
    content = feed.findtext(f"{ATOM}entry/{ATOM}content")
    tags = {each.tag for each in etree.fromstring(f"<div>{content}</div>").iter()}
    assert tags <= {"div", "p", "del", "ins"}
    assert feed.getroottree().docinfo.doctype == ""


def test_entries_link_to_the_history_in_the_web_ui() -> None:
    url = Url("https://shop.test/a?b=c&d=\u00e9")

    assert build_change_history_url({"url": url}, "http://127.0.0.1:4280") == build_history_url(
        "http://127.0.0.1:4280", url
    )
    assert build_history_url("", url).startswith(f"{HISTORY_PATH}?")
