"""The text of messages covers every kind of change and contains no mentions from crawled text."""

import re

import pytest

from crawler.core.http.urls import Url
from crawler.notify.atom import AtomScope, render_atom_feed
from crawler.notify.message_text import format_changes, format_headline, neutralize_mentions
from crawler.notify.payload import build_content
from crawler.store.report import EventKind, FeedItem
from tests.store.conftest import START


def item(kind: EventKind) -> FeedItem:
    return FeedItem(
        position=1,
        domain="shop.test",
        at=START,
        url=Url("http://shop.test/p1"),
        change=kind,
        version=1,
        distance_bits=None,
        magnitude=None,
        source="cms" if kind is EventKind.HINT else None,
        title="Kettles",
    )


@pytest.mark.parametrize("kind", list(EventKind))
def test_every_kind_of_change_has_a_text(kind: EventKind) -> None:
    change = build_content(item(kind))

    assert format_headline([change]).endswith(": Kettles (shop.test)")
    assert format_headline([change, change]).startswith("shop.test: 2 ")
    assert "http://shop.test/p1" in format_changes([change])
    assert b"Kettles" in render_atom_feed([item(kind)], AtomScope(), at=START)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<!channel> and <@U123>", "<\u2060!\u2060channel> and <\u2060@\u2060U123>"),
        ("!channel> and U1@U2|name>", "!\u2060channel> and U1@\u2060U2|name>"),
        ("<https://evil.test|your bank>", "<\u2060https:\u2060//evil.test|your bank>"),
        ("@channel, @ALL and @alliance", "@\u2060channel, @\u2060ALL and @\u2060alliance"),
        ("me@all, @**all**, <users/all>", "me@\u2060all, @\u2060**all**, <\u2060users/all>"),
        ("https://me.test/@all?to=@here", "https://me.test/%40all?to=%40here"),
        ("Great! See https://a.test/ > news", "Great! See https://a.test/ > news"),
        ("a < b, 3 <4, me@example.com", "a < b, 3 <4, me@example.com"),
    ],
)
def test_mentions_are_neutralized(text: str, expected: str) -> None:
    assert neutralize_mentions(text) == expected


@pytest.mark.parametrize("text", ["_@everyone_", "__@here__", "x@everyone_", "a@everyonefoo", "1@all_", "a@channel_b"])
def test_mentions_inside_emphasis_are_neutralized(text: str) -> None:
    assert not re.search(r"@(everyone|here|all|channel)", neutralize_mentions(text))
