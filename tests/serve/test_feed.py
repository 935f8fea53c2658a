"""Atom feeds on the pages of one's own: for whoever has the address, as long as it is not revoked."""

from pathlib import Path
from urllib.parse import urlsplit

import feedparser

from tests.cli.conftest import Recrawl, Site, command
from tests.serve.conftest import Visitor


def path_of(address: str) -> str:
    split = urlsplit(address)
    return f"{split.path}?{split.query}"


def test_the_address_of_a_feed_lets_a_feed_reader_in_to_that_feed_alone(
    crawled: Site, stranger: Visitor, recrawl: Recrawl
) -> None:
    printed = recrawl("feed", crawled.name, "--kind", "new")
    assert printed.code == 0, printed.err
    address = printed.out.strip()
    assert address.startswith(stranger.address)

    seen = stranger.get(path_of(address))
    read = feedparser.parse(seen.text)

    assert seen.status == 200
    assert seen.headers["content-type"] == "application/atom+xml; charset=utf-8"
    assert not read.bozo
    assert {entry.link for entry in read.entries} >= {f"http://{crawled.name}/"}
    assert [link.href for link in read.feed.links if link.rel == "self"] == [address]
    # What it has already is not sent again.
    again = stranger.get(path_of(address), **{"If-None-Match": seen.headers["etag"]})
    assert (again.status, again.text) == (304, "")
    # And it opens nothing else.
    token = address.rpartition("token=")[2]
    for other in ("/feed.atom", f"/feed.atom?token={token}", f"/feed.atom?domain=other.test&kind=new&token={token}"):
        refused = stranger.get(other)
        assert refused.status == 401
        assert crawled.name not in refused.text
    assert stranger.get(f"/changes?token={token}").status == 401
    assert stranger.get(path_of(address), Host="evil.example").status == 403


def test_addresses_of_feeds_can_be_revoked(crawled: Site, stranger: Visitor, recrawl: Recrawl) -> None:
    before = recrawl("feed", "--json").json
    assert before["is_served"]
    assert stranger.get(path_of(before["feed"])).status == 200

    assert recrawl("feed", "--revoke").code == 0

    assert stranger.get(path_of(before["feed"])).status == 401
    after = recrawl("feed").out.strip()
    assert after != before["feed"]
    assert stranger.get(path_of(after)).status == 200


def test_the_list_of_changes_has_its_feed(crawled: Site, visitor: Visitor) -> None:
    seen = visitor.get("/changes?kind=first&domain=")
    href = seen.text.partition('href="/feed.atom')[2].partition('"')[0].replace("&amp;", "&")

    assert Visitor(visitor.address, "").get(f"/feed.atom{href}").status == 200


def test_changes_can_be_written_as_a_feed(crawled: Site, recrawl: Recrawl, database_url: str, tmp_path: Path) -> None:
    done = command("changes", crawled.name, "--kind", "new", "--atom", database_url=database_url, home=tmp_path)
    read = feedparser.parse(done.out)

    assert done.code == 0
    assert not read.bozo
    assert len(read.entries) > 0
    wrong = recrawl("changes", "--atom", "--json")
    assert (wrong.code, wrong.out) == (2, "")
