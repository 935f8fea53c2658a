"""recrawl domains: add, set, pause, remove."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from crawler.app.settings import parse_size
from tests.commands import Recrawl, Site


def names(recrawl: Recrawl) -> list[str]:
    return [domain["domain"] for domain in recrawl("domains", "list", "--json").json["domains"]]


def test_a_domain_is_registered_with_its_settings(recrawl: Recrawl, site: Site) -> None:
    done = recrawl("domains", "add", f"{site.url}deep/page", "--allow-private", "--weight", "2.5", "--json")

    registered = done.json["registered"][0]
    assert done.code == 0
    assert registered["root"] == site.url
    assert registered["settings"]["weight"] == 2.5
    assert registered["settings"]["seeds"] == [f"{site.url}deep/page"]
    assert names(recrawl) == [site.name]
    assert site.asked == ["/robots.txt", "/"]


def test_registering_and_crawling_keep_the_delay_between_them(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private", "--delay", "0.3", "--pages", "2")

    assert site.asked[:2] == ["/robots.txt", "/"]
    assert len(site.asked) == 3
    assert min(later - earlier for earlier, later in pairwise(site.asked_at)) >= 0.28  # clocks differ a little


def test_offline_registration_sends_no_request(recrawl: Recrawl) -> None:
    done = recrawl("domains", "add", "https://no-such-host.invalid", "--offline")

    assert done.code == 0
    assert done.out == "Registered https://no-such-host.invalid/\n"


def test_a_domain_is_registered_once(recrawl: Recrawl) -> None:
    recrawl("domains", "add", "a.test", "--offline")

    done = recrawl("domains", "add", "http://a.test/", "--offline")

    assert done.code == 2
    assert "a.test is already registered" in done.complaint


def test_a_registered_private_site_is_not_checked_again(recrawl: Recrawl, site: Site) -> None:
    recrawl("domains", "add", site.url, "--allow-private")
    asked = list(site.asked)

    done = recrawl("domains", "add", site.url)

    assert done.code == 2
    assert f"{site.name} is already registered; recrawl domains set {site.name} changes its settings" in done.complaint
    assert site.asked == asked


def test_a_missing_secret_is_remarked_when_it_is_set(recrawl: Recrawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_TEST", "a secret")
    named = ("--header", "X-Key: env:KEY_OF_TEST", "--header", "X-Other: env:OTHER_OF_TEST")

    added = recrawl("domains", "add", "a.test", *named)
    changed = recrawl("domains", "set", "a.test", "--auth", "bearer env:TOKEN_OF_TEST")
    again = recrawl("domains", "set", "a.test", "--weight", "2")

    assert (added.code, changed.code, again.code) == (0, 0, 0)
    assert "OTHER_OF_TEST is not set here: set it, or OTHER_OF_TEST_FILE, where you crawl" in added.err
    assert "TOKEN_OF_TEST is not set here" in changed.err
    assert "KEY_OF_TEST is not set" not in added.err
    assert "OTHER_OF_TEST" not in changed.err
    assert "OF_TEST" not in again.err


def test_many_are_registered_from_a_file_and_the_bad_lines_are_named(recrawl: Recrawl, tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text(
        "# our sites\n\na.test\nhttps://b.test/docs/\nfile:///c\na.test\nhttp://a.test/one\nhttp://a.test/\n",
        encoding="utf-8",
    )

    done = recrawl("domains", "add", "--from", str(file), "--offline", "--json")

    assert done.code == 1
    assert [each["domain"] for each in done.json["registered"]] == ["a.test", "b.test"]
    assert [each["name"] for each in done.json["failed"]] == ["file:///c", "http://a.test/"]
    assert done.json["pages"] == 1
    assert names(recrawl) == ["a.test", "b.test"]


SITEMAP = (
    '<?xml version="1.0"?><urlset><url><loc>http://a.test/one</loc></url><url><loc>http://b.test/</loc></url></urlset>'
)
OPML = '<opml version="2.0"><body><outline text="x"><outline htmlUrl="http://a.test/one" xmlUrl="http://a.test/f"/>\
</outline><outline xmlUrl="http://b.test/"/></body></opml>'


@pytest.mark.parametrize("document", [SITEMAP, OPML], ids=["sitemap", "opml"])
def test_urls_of_a_document_are_imported(recrawl: Recrawl, document: str) -> None:
    recrawl("domains", "add", "a.test", "--offline")

    done = recrawl("domains", "add", "--from", "-", "--offline", stdin=document)

    assert done.code == 0
    assert done.out == "Registered http://b.test/\n1 page of registered domains will be fetched next\n"
    assert names(recrawl) == ["a.test", "b.test"]


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ("<p>x", "neither OPML nor a sitemap"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><urlset></urlset>', "declares entities"),
        ("<sitemapindex><sitemap><loc>http://a.test/s.xml</loc></sitemap></sitemapindex>", "index of sitemaps"),
        ("a.test\n" * 10_001, "split them"),
    ],
    ids=["page", "entities", "index", "many"],
)
def test_a_document_that_cannot_be_imported_is_one_line(recrawl: Recrawl, document: str, complaint: str) -> None:
    done = recrawl("domains", "add", "--from", "-", "--offline", stdin=document)

    assert (done.code, complaint in done.complaint) == (2, True)
    assert names(recrawl) == []


def test_many_are_registered_from_stdin(recrawl: Recrawl) -> None:
    done = recrawl("domains", "add", "--from", "-", "--offline", stdin="a.test\nb.test\n")

    assert done.code == 0
    assert names(recrawl) == ["a.test", "b.test"]


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00bad"])
def test_a_file_that_cannot_be_read_is_one_line(recrawl: Recrawl, tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "names"
    if content is not None:
        file.write_bytes(content)

    done = recrawl("domains", "add", "--from", str(file))

    assert done.code == 2
    assert "cannot be read" in done.complaint


def test_what_is_named_is_changed_and_the_rest_stays(recrawl: Recrawl) -> None:
    recrawl("domains", "add", "a.test", "--offline", "--budget", "10", "--exclude", "/old/")

    recrawl("domains", "set", "a.test", "--delay", "1m30s", "--exclude", "/new/", "--exclude", "*.pdf$")
    changed = recrawl("domains", "show", "a.test", "--json").json["settings"]
    recrawl("domains", "set", "a.test", "--unset", "budget", "--unset", "exclude", "--seed", "/start")
    unset = recrawl("domains", "show", "a.test", "--json").json["settings"]

    assert (changed["delay_seconds"], changed["budget_per_day"]) == (90, 10)
    assert changed["exclude"] == ["/new/", "*.pdf$"]
    assert (unset["delay_seconds"], unset["budget_per_day"], unset["exclude"]) == (90, None, [])
    assert unset["seeds"] == ["http://a.test/start"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--include", "docs"), "must begin with"),
        (("--exclude", "re:("), "not a regular expression"),
        (("--seed", "http://b.test/"), "not a page of a.test"),
        (("--unset", "colour"), "no setting 'colour'"),
    ],
)
def test_an_impossible_change_changes_nothing(recrawl: Recrawl, options: tuple[str, ...], complaint: str) -> None:
    recrawl("domains", "add", "a.test", "--offline")
    before = recrawl("domains", "show", "a.test", "--json").json["settings"]

    done = recrawl("domains", "set", "a.test", *options)

    assert done.code == 2
    assert complaint in done.complaint
    assert recrawl("domains", "show", "a.test", "--json").json["settings"] == before


def test_pausing_and_resuming(recrawl: Recrawl) -> None:
    recrawl("domains", "add", "--from", "-", "--offline", stdin="a.test\nb.test")

    paused = recrawl("domains", "pause", "a.test", "b.test", "--json")
    resumed = recrawl("domains", "resume", "b.test")

    assert paused.json == {"paused": True, "domains": ["a.test", "b.test"]}
    assert resumed.out == "b.test is active\n"
    states = {each["domain"]: each["paused"] for each in recrawl("domains", "list", "--json").json["domains"]}
    assert states == {"a.test": True, "b.test": False}


def test_removing_needs_a_word_and_forgets_everything(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private")

    unsaid = recrawl("domains", "remove", site.name)
    done = recrawl("domains", "remove", site.name, "--yes")

    assert unsaid.code == 2
    assert "--yes" in unsaid.complaint
    assert done.code == 0
    assert names(recrawl) == []
    assert recrawl("db", "check").code == 0


def test_of_several_names_none_is_changed_if_one_is_unknown(recrawl: Recrawl) -> None:
    recrawl("domains", "add", "a.test", "--offline")

    for verb in (("pause",), ("remove", "--yes")):
        done = recrawl("domains", *verb, "a.test", "b.test")
        assert done.code == 2
        assert "b.test is not registered: recrawl domains add b.test" in done.complaint
    assert [each["paused"] for each in recrawl("domains", "list", "--json").json["domains"]] == [False]


def test_a_misspelled_name_or_port_gets_a_suggestion(recrawl: Recrawl) -> None:
    for name in ("127.0.0.1:8001", "docs.example.com", "other.test"):
        assert recrawl("domains", "add", name, "--offline", "--allow-private").code == 0

    port = recrawl("report", "127.0.0.1:9310")
    host = recrawl("pages", "dosc.example.com")
    url = recrawl("explain", "http://127.0.0.1:8002/x")
    stranger = recrawl("report", "nobody.invalid")

    assert port.complaint.endswith("recrawl domains add 127.0.0.1:9310, or did you mean 127.0.0.1:8001?")
    assert host.complaint.endswith("recrawl domains add dosc.example.com, or did you mean docs.example.com?")
    assert "did you mean 127.0.0.1:8001?" in url.out
    assert stranger.complaint.endswith("nobody.invalid is not registered: recrawl domains add nobody.invalid")


def test_the_list_and_a_domain_are_shown_as_text(recrawl: Recrawl, site: Site) -> None:
    assert "No domain is registered" in recrawl("domains", "list").out
    recrawl("crawl", site.url, "--allow-private")

    listed, shown = recrawl("domains", "list").out, recrawl("domains", "show", site.name).out

    assert site.name in listed
    assert "has nothing due before" in shown
    assert "allowed" in shown


def test_what_is_important_in_a_domain_is_a_setting(recrawl: Recrawl) -> None:
    recrawl("domains", "add", "site.test", "--offline")

    said = recrawl("domains", "set", "site.test", "--order", "mixed", "--url-weight", "0.4", "--boost", "/docs/").out
    recrawl("domains", "set", "site.test", "--discovery-weight", "2", "--external-link-weight", "0.5")

    assert "Order: opic -> mixed, 40% of importance by URL" in said
    assert "Boost: default -> /docs/ (by 4)" in said

    shown = recrawl("domains", "show", "site.test").out
    assert "mixed, 40% of importance by URL" in shown
    assert "/docs/ (by 4)" in shown
    assert "unfetched pages 2, fetched pages 1" in shown
    assert re.search(r"External link weight +0\.5", shown)
    recrawl("domains", "set", "site.test", "--unset", "order", "--unset", "boost", "--unset", "external-link-weight")
    settings = recrawl("domains", "show", "site.test", "--json").json["settings"]
    assert (settings["order"], settings["boost"], settings["external_link_weight"]) == ("opic", [], 0.0)
    assert (settings["internal_link_weight"], settings["virtual_page_share"], settings["importance_window"]) == (
        1.0,
        0.15,
        24.0,
    )
    assert (settings["url_weight"], settings["discovery_weight"]) == (0.4, 2.0)


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("--order", "random", "'random' is not one of opic, breadth, depth, mixed"),
        ("--boost", "docs", "the pattern 'docs' must begin with '/', '*' or 're:'"),
        ("--boost-factor", "0", "'0' is not above 0"),
        ("--boost-factor", "1e308", "'1e308' is above 1,000,000"),
        ("--url-weight", "2", "'2' is not a number from 0 to 1"),
    ],
)
def test_an_order_that_is_none_is_one_line(recrawl: Recrawl, option: str, value: str, complaint: str) -> None:
    recrawl("domains", "add", "site.test", "--offline")

    done = recrawl("domains", "set", "site.test", option, value)

    assert done.code != 0
    assert complaint in done.complaint


def test_budgets_and_a_target_are_settings(recrawl: Recrawl) -> None:
    recrawl(
        "domains",
        "add",
        "site.test",
        "--offline",
        "--budget-bytes",
        "1.5 GB",
        "--target-freshness",
        "95%",
        "--budget",
        "300",
    )

    settings = recrawl("domains", "show", "site.test", "--json").json["settings"]
    shown = recrawl("domains", "show", "site.test").out

    assert (settings["bytes_per_day"], settings["budget_per_day"]) == (1_500_000_000, 300)
    assert (settings["target_freshness"], settings["max_age_seconds"]) == (0.95, None)
    assert "1.5 GB" in shown
    assert "95% fresh" in shown
    assert "300 requests" in shown


def test_a_target_takes_the_place_of_the_other_and_can_be_taken_back(recrawl: Recrawl) -> None:
    recrawl("domains", "add", "site.test", "--offline", "--target-freshness", "0.9", "--budget-bytes", "500MB")

    recrawl("domains", "set", "site.test", "--max-age", "3d")
    aged, shown = (recrawl("domains", "show", "site.test", *more).out for more in (("--json",), ()))
    recrawl("domains", "set", "site.test", "--unset", "max-age", "--unset", "budget-bytes")
    unset = recrawl("domains", "show", "site.test", "--json").json

    assert '"target_freshness": null, "max_age_seconds": 259200.0' in aged
    assert "every page visited within 3 days" in shown
    assert [unset["settings"][name] for name in ("target_freshness", "max_age_seconds", "bytes_per_day")] == [None] * 3
    assert unset["status"]["bytes_left"] is None


def test_a_spent_byte_budget_is_shown(recrawl: Recrawl) -> None:
    recrawl("domains", "add", "site.test", "--offline", "--budget-bytes", "0")

    assert "has spent its daily byte budget" in recrawl("domains", "show", "site.test").out


IMPOSSIBLE = {
    ("--budget-bytes", "much"): "'much' is not a size",
    ("--budget-bytes", "-1"): "'-1' is not a size",
    ("--budget-bytes", "2000000 TB"): "more than a million terabytes",
    ("--target-freshness", "95"): "'95' is not a share",
    ("--target-freshness", "100%"): "'100%' is not a share",
    ("--target-freshness", "nan"): "'nan' is not a share",
    ("--max-age", "0"): "'0' is not above 0",
    ("--max-age", "soon"): "not a time span",
    ("--max-age", "3d", "--target-freshness", "90%"): "one target",
}


def test_a_budget_or_target_that_cannot_be_is_one_line(recrawl: Recrawl) -> None:
    recrawl("domains", "add", "site.test", "--offline")

    done = {options: recrawl("domains", "set", "site.test", *options) for options in IMPOSSIBLE}

    assert {options: each.code for options, each in done.items()} == dict.fromkeys(IMPOSSIBLE, 2)
    assert [each.complaint for options, each in done.items() if IMPOSSIBLE[options] not in each.complaint] == []


@pytest.mark.parametrize(
    ("typed", "size"),
    [("0", 0), ("1000000", 10**6), ("500MB", 500 * 10**6), ("1.1 kb", 1100), ("2gB", 2 * 10**9), ("7 B", 7)],
)
def test_a_size_is_read_as_it_is_written(typed: str, size: int) -> None:
    assert parse_size(typed) == size
