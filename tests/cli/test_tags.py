"""recrawl tags, and --tag of other commands."""

from pathlib import Path

import pytest

from tests.commands import Recrawl, Site


@pytest.fixture
def tagged(recrawl: Recrawl) -> Recrawl:
    """Return the command, with two domains that are tagged news, and one that is not."""
    recrawl("domains", "add", "a.test", "b.test", "--offline", "--tag", "news")
    recrawl("domains", "add", "c.test", "--offline")
    return recrawl


def names(recrawl: Recrawl, *options: str) -> list[str]:
    return [domain["domain"] for domain in recrawl("domains", "list", *options, "--json").json["domains"]]


def test_domains_inherit_the_settings_of_a_tag_and_the_source_is_shown(tagged: Recrawl) -> None:
    tagged("domains", "set", "b.test", "--budget", "5")

    done = tagged("tags", "set", "news", "--budget", "200", "--max-age", "1d")

    assert done.out == (
        "news: Budget per day: 200 requests; Maximum age: every page visited within 24 hours. It applies to 2 domains\n"
    )
    shown = tagged("domains", "show", "a.test").out
    assert "200 requests (tag news)" in shown
    assert "every page visited within 24 hours (tag news)" in shown
    assert "5 requests (own)\n" in tagged("domains", "show", "b.test").out
    about = tagged("domains", "show", "b.test", "--json").json
    assert (about["tags"], about["sources"]) == (["news"], {"budget_per_day": "own", "max_age_seconds": "tag news"})
    assert tagged("domains", "show", "c.test", "--json").json["sources"] == {}


def test_unsetting_falls_back_to_the_tag_and_then_to_the_default(tagged: Recrawl) -> None:
    tagged("tags", "set", "news", "--budget", "200")
    tagged("domains", "set", "a.test", "--budget", "5")

    assert "5 requests (own) -> 200 requests (tag news)" in tagged("domains", "set", "a.test", "--unset", "budget").out
    assert tagged("tags", "set", "news", "--unset", "budget").out == "news: no settings. It applies to 2 domains\n"
    assert tagged("domains", "show", "a.test", "--json").json["settings"]["budget_per_day"] is None


def test_tags_are_listed_shown_and_deleted(tagged: Recrawl) -> None:
    assert tagged("tags", "add", "slow", "a.test", "c.test").out == "a.test is tagged slow\nc.test is tagged slow\n"
    assert tagged("tags", "remove", "slow", "a.test").out == "a.test is no longer tagged slow\n"
    tagged("tags", "set", "slow", "--delay", "9")

    rows = [line.split() for line in tagged("tags", "list").out.splitlines()[2:]]
    assert rows == [["news", "2"], ["slow", "1", "Delay:", "9", "s"]]
    assert tagged("tags", "show", "slow", "--json").json == {
        "tag": "slow",
        "domains": ["c.test"],
        "settings": {"delay_seconds": 9.0},
    }
    assert tagged("tags", "delete", "slow", "--yes").out == "slow is deleted\n"
    assert [each["tag"] for each in tagged("tags", "list", "--json").json["tags"]] == ["news"]
    assert tagged("domains", "show", "c.test", "--json").json["settings"]["delay_seconds"] is None


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("tags", "add", "Big News", "a.test"), "is not the name of a tag"),
        (("tags", "add", "slow", "nowhere.test"), "nowhere.test is not registered"),
        (("tags", "show", "nwes"), "there is no tag nwes; did you mean news?"),
        (("tags", "set", "slow"), "nothing to change"),
        (("tags", "set", "slow", "--unset", "seed"), "a tag has no seed"),
        (("tags", "set", "slow", "--include", "docs"), "must begin with"),
        (("tags", "add", "slow", "a.test"), "a.test: its tags news and slow set 'Budget per day' differently"),
        (("domains", "list", "--tag", "none"), "there is no tag none"),
        (("changes", "--tag", "none"), "there is no tag none"),
        (("crawl", "--tag", "slow"), "no domain has the tag slow"),
        (("feed", "a.test", "--tag", "news"), "either a tag"),
        (("notify", "add", "https://ci.example.com/hook", "--tag", "news", "--domain", "a.test"), "either a tag"),
        (("tags", "delete", "news", "--yes"), "subscription 1 watch domains with the tag news"),
    ],
)
def test_what_cannot_be_is_one_line(tagged: Recrawl, words: tuple[str, ...], complaint: str) -> None:
    tagged("tags", "set", "news", "--budget", "200")
    tagged("tags", "set", "slow", "--budget", "9")
    tagged("notify", "add", "https://ci.example.com/hook", "--tag", "news")
    before = tagged("tags", "list", "--json").json

    done = tagged(*words)

    assert done.code == 2, done.err
    assert complaint in done.err
    assert tagged("tags", "list", "--json").json == before


def test_lists_and_changes_are_filtered_by_a_tag(recrawl: Recrawl, site: Site) -> None:
    recrawl("domains", "add", site.url, "--allow-private", "--delay", "0", "--tag", "news")
    recrawl("domains", "add", "a.test", "--offline", "--tag", "slow")

    crawled = recrawl("crawl", "--tag", "news", "--json")

    assert crawled.json["domains"] == [site.name]
    assert (names(recrawl, "--tag", "news"), names(recrawl, "--tag", "slow")) == ([site.name], ["a.test"])
    changes = {tag: recrawl("changes", "--tag", tag, "--json").json["changes"] for tag in ("news", "slow")}
    assert {each["domain"] for each in changes["news"]} == {site.name}
    assert changes["slow"] == []
    assert recrawl("crawl", "--tag", "news", "--dry-run", "--json").json["unregistered"] == []
    assert "tag=news" in recrawl("feed", "--tag", "news").out


def test_an_import_tags_new_and_registered_domains(tagged: Recrawl, tmp_path: Path) -> None:
    listed = tmp_path / "names.txt"
    listed.write_text("c.test\nd.test\n")

    done = tagged("domains", "add", "--from", str(listed), "--offline", "--tag", "slow")

    assert (done.code, "c.test is tagged\n" in done.out) == (0, True)
    assert names(tagged, "--tag", "slow") == ["c.test", "d.test"]


def test_a_subscription_to_a_tag_is_described_and_changed(tagged: Recrawl) -> None:
    added = tagged("notify", "add", "https://ci.example.com/hook", "--tag", "news")

    assert "changes of domains with the tag news" in added.out
    assert tagged("notify", "set", "1", "--domain", "a.test", "--json").json["tag"] is None
    changed = tagged("notify", "set", "1", "--tag", "news", "--json").json
    assert (changed["tag"], changed["domain"]) == ("news", None)
