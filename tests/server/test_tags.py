"""Tags and settings in the web UI: sources, tags of domains, filters, and what others changed meanwhile."""

import html
import re
from typing import Any

import pytest

from tests.commands import Recrawl, Site
from tests.server.conftest import Visitor


@pytest.fixture
def tagged(recrawl: Recrawl) -> Recrawl:
    """Return the command, with two domains of which one is tagged news, with a budget."""
    recrawl("domains", "add", "a.test", "--offline", "--tag", "news")
    recrawl("domains", "add", "b.test", "--offline")
    recrawl("tags", "set", "news", "--budget", "200", "--render", "never")
    return recrawl


def settings(recrawl: Recrawl, name: str) -> dict[str, Any]:
    return dict(recrawl("domains", "show", name, "--json").json["settings"])


def hidden(text: str) -> dict[str, str]:
    """Return the texts of fields when the form was shown."""
    return {
        name: html.unescape(value)
        for name, value in re.findall(r'<input type="hidden" name="(was-[^"]*)" value="([^"]*)"', text)
    }


def test_the_form_says_where_each_value_comes_from(tagged: Recrawl, visitor: Visitor) -> None:
    tagged("domains", "set", "a.test", "--weight", "2")

    page = visitor.get("/domain?name=a.test&tab=settings&group=budget")

    assert "From tag news: 200 requests" in page.words
    assert "Own value; default: 1" in page.words
    assert "Default: value" in page.words
    assert re.search(r'name="budget_per_day" value=""', page.text)
    assert re.search(r'name="weight" value="2"', page.text)
    scope = visitor.get("/domain?name=a.test&tab=settings&group=scope").text
    assert '<option value="" selected>not set</option>' in scope
    saved = visitor.send("/domains/set", name="a.test", group="budget", budget_per_day="5", weight="")
    assert "Budget per day: 200 requests (tag news) -> 5 requests (own)" in saved.words
    assert "Own value; tag news: 200 requests" in visitor.get("/domain?name=a.test&tab=settings").words
    back = visitor.send("/domains/set", name="a.test", group="budget", budget_per_day="")
    assert "5 requests (own) -> 200 requests (tag news)" in back.words


def test_only_changed_fields_are_saved(tagged: Recrawl, visitor: Visitor) -> None:
    tagged("domains", "set", "b.test", "--budget", "5", "--exclude", "/old/", "--exclude", "/older/")
    shown = visitor.get("/domain?name=b.test&tab=settings&group=budget").text
    scope = visitor.get("/domain?name=b.test&tab=settings&group=scope").text
    assert hidden(shown)["was-budget_per_day"] == "5"
    assert hidden(scope)["was-exclude"] == "/old/\n/older/"
    tagged("domains", "set", "b.test", "--budget", "9", "--exclude", "/new/")

    visitor.send("/domains/set", name="b.test", group="budget", budget_per_day="5", weight="2", **hidden(shown))
    unchanged = visitor.send(
        "/domains/set", name="b.test", group="scope", exclude="/old/\r\n/older/\r\n", max_depth="3", **hidden(scope)
    )

    assert "Exclude" not in unchanged.words.partition("Maximum depth")[0].partition("b.test: ")[2]
    found = settings(tagged, "b.test")
    assert (found["budget_per_day"], found["weight"], found["exclude"], found["max_depth"]) == (9, 2.0, ["/new/"], 3)
    rejected = visitor.send("/domains/set", name="b.test", group="budget", weight="heavy", **hidden(shown))
    assert rejected.status == 400
    assert hidden(rejected.text)["was-budget_per_day"] == "5"


def test_domains_are_tagged_in_bulk_and_one_by_one(tagged: Recrawl, visitor: Visitor) -> None:
    both = "a.test\nb.test"
    done = visitor.send("/domains/tag", domain=both, tag="slow", action="add", back="/domains?sort=pages")

    assert "2 domains are tagged slow." in done.words
    listed = visitor.get("/domains?tag=slow")
    assert ("2 domains tagged slow" in listed.words, "a.test" in listed.text) == (True, True)
    assert "b.test" not in visitor.get("/domains?tag=news").text
    visitor.send("/domains/tag", domain="a.test", tag="slow", action="remove")
    changed = visitor.send("/tags/change", **{"name": "b.test", "tags": "news, eu", "was-tags": "slow"})
    assert "The tags of b.test: eu, news." in changed.words
    assert settings(tagged, "b.test")["budget_per_day"] == 200
    for fields, why in (
        ({"tag": "slow", "action": "add"}, "select the domains"),
        ({"domain": "a.test", "action": "add"}, "enter a tag"),
        ({"domain": "a.test", "tag": "Two Words", "action": "add"}, "is not the name of a tag"),
        ({"domain": "a.test", "tag": "slow", "action": "odd"}, "choose whether"),
    ):
        assert why in visitor.send("/domains/tag", **fields).words


def test_settings_of_a_tag_are_changed_and_the_tag_is_deleted(tagged: Recrawl, visitor: Visitor) -> None:
    page = visitor.get("/tag?name=news")
    assert "These domains inherit: Budget per day: 200 requests" in page.words
    assert 'name="seeds"' not in visitor.get("/tag?name=news&group=scope").text

    saved = visitor.send("/tags/set", name="news", group="budget", max_age="3d", **hidden(page.text))

    assert "its settings apply to 1 domain" in saved.words
    assert settings(tagged, "a.test")["max_age_seconds"] == 259200
    assert settings(tagged, "a.test")["budget_per_day"] == 200
    rejected = visitor.send("/tags/set", name="news", group="budget", budget_per_day="many")
    assert (rejected.status, "is not a whole number" in rejected.words) == (400, True)
    tagged("tags", "add", "slow", "a.test")
    conflict = visitor.send("/tags/set", name="slow", group="budget", budget_per_day="9")
    assert (conflict.status, "A.test: its tags news and slow" in conflict.words) == (400, True)
    assert "was removed from 1 domain" in visitor.send("/tags/remove", name="news").words
    assert settings(tagged, "a.test")["budget_per_day"] is None
    assert visitor.get("/tag?name=news").status == 400


def test_changes_and_feeds_are_filtered_by_a_tag(recrawl: Recrawl, crawled: Site, visitor: Visitor) -> None:
    recrawl("tags", "add", "news", crawled.name)
    recrawl("tags", "set", "slow", "--delay", "9")

    news, slow = visitor.get("/changes?tag=news&kind=added"), visitor.get("/changes?tag=slow&kind=added")

    assert (news.text.count("<article") > 0, slow.text.count("<article")) == (True, 0)
    feeds = [visitor.get(f"/feed.atom?kind=added&tag={tag}").text.count("<entry>") for tag in ("news", "slow")]
    assert feeds[0] > 0
    assert feeds[1] == 0
