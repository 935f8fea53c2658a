"""Atom feeds of the web UI can be read by everyone who has their address, until it is revoked."""

from pathlib import Path
from urllib.parse import urlsplit

import feedparser

from tests.commands import Recrawl, Site
from tests.server.conftest import Visitor


def path_of(address: str) -> str:
    split = urlsplit(address)
    return f"{split.path}?{split.query}"


def test_feed_address_gives_access_to_that_feed_only(crawled: Site, anonymous: Visitor, recrawl: Recrawl) -> None:
    printed = recrawl("feed", crawled.name, "--kind", "added")
    assert printed.code == 0, printed.err
    address = printed.out.strip()
    assert address.startswith(anonymous.address)

    seen = anonymous.get(path_of(address))
    read = feedparser.parse(seen.text)

    assert seen.status == 200
    assert seen.headers["content-type"] == "application/atom+xml; charset=utf-8"
    assert not read.bozo
    assert {entry.link for entry in read.entries} >= {f"http://{crawled.name}/"}
    assert [link.href for link in read.feed.links if link.rel == "self"] == [address]
    # A second request with the ETag gets 304.
    again = anonymous.get(path_of(address), **{"If-None-Match": seen.headers["etag"]})
    assert (again.status, again.text) == (304, "")
    # The token gives no access to anything else.
    token = address.rpartition("token=")[2]
    for other in ("/feed.atom", f"/feed.atom?token={token}", f"/feed.atom?domain=other.test&kind=added&token={token}"):
        refused = anonymous.get(other)
        assert refused.status == 401
        assert crawled.name not in refused.text
    assert anonymous.get(f"/changes?token={token}").status == 401
    assert anonymous.get(path_of(address), Host="evil.example").status == 403


def test_feed_addresses_are_listed_and_revoked_by_name(crawled: Site, anonymous: Visitor, recrawl: Recrawl) -> None:
    before = recrawl("feed", "--json").json
    phone = recrawl("feed", "--name", "phone").out.strip()
    other = recrawl("feed", crawled.name, "--kind", "added,gone").out.strip()
    assert before["is_served"]
    assert recrawl("feed").out.strip() == before["feed"]  # the same address again
    assert phone != before["feed"]
    assert recrawl("feed", crawled.name, "--name", "phone").code == 2

    listed = recrawl("feed", "--list", "--json").json["feeds"]
    assert [(each["name"], each["domain"], each["kinds"]) for each in listed] == sorted(
        [("all", None, None), ("phone", None, None), (f"{crawled.name} added,gone", crawled.name, "added,gone")]
    )
    assert "token" not in recrawl("feed", "--list").out
    assert recrawl("feed", "--revoke", "phone").code == 0

    seen = {address: anonymous.get(path_of(address)).status for address in (phone, before["feed"], other)}
    assert seen == {phone: 401, before["feed"]: 200, other: 200}
    assert "there is no feed address named phone" in recrawl("feed", "--revoke", "phone").complaint
    again = recrawl("feed", "--name", "phone").out.strip()
    assert again != phone  # reusing a name does not restore the old address
    assert (anonymous.get(path_of(again)).status, anonymous.get(path_of(phone)).status) == (200, 401)
    assert recrawl("feed", "--revoke-all").out == "3 addresses revoked\n"
    assert {anonymous.get(path_of(address)).status for address in (again, before["feed"], other)} == {401}


def test_feed_linked_from_the_changes_page_can_be_revoked(
    crawled: Site, visitor: Visitor, recrawl: Recrawl, tmp_path: Path
) -> None:
    def linked() -> str:
        seen = visitor.get("/changes")
        return "/feed.atom" + seen.text.partition('href="/feed.atom')[2].partition('"')[0].replace("&amp;", "&")

    nobody, before = Visitor(visitor.address, ""), linked()
    assert [each["name"] for each in recrawl("feed", "--list", "--json").json["feeds"]] == ["pages"]
    assert nobody.get(before).status == 200
    assert (tmp_path / "run" / "feeds-key").stat().st_mode & 0o077 == 0
    assert recrawl("feed", "--revoke", "pages").code == 0
    assert nobody.get(before).status == 401
    assert nobody.get(linked()).status == 200


def test_changes_page_links_to_a_readable_feed(crawled: Site, visitor: Visitor) -> None:
    seen = visitor.get("/changes?kind=added&domain=")
    href = seen.text.partition('href="/feed.atom')[2].partition('"')[0].replace("&amp;", "&")

    assert Visitor(visitor.address, "").get(f"/feed.atom{href}").status == 200


def test_changes_command_prints_atom(crawled: Site, recrawl: Recrawl) -> None:
    done = recrawl("changes", crawled.name, "--kind", "added", "--atom")
    read = feedparser.parse(done.out)

    assert done.code == 0
    assert not read.bozo
    assert len(read.entries) > 0
    wrong = recrawl("changes", "--atom", "--json")
    assert (wrong.code, wrong.out) == (2, "")
