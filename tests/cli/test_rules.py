"""recrawl rules: list, add and remove."""

import pytest

from tests.commands import Recrawl, Site


@pytest.fixture
def ruled(recrawl: Recrawl) -> Recrawl:
    """Return the command, with one domain registered."""
    recrawl("domains", "add", "a.test", "--offline")
    return recrawl


def patterns(recrawl: Recrawl) -> list[str]:
    return [rule["pattern"] for rule in recrawl("rules", "list", "a.test", "--json").json["rules"]]


def test_a_rule_is_made_and_shown(ruled: Recrawl) -> None:
    done = ruled("rules", "add", "a.test", "/news/", "--min-interval", "1h", "--max-interval", "7d", "--weight", "5")
    ruled("rules", "add", "a.test", "*.pdf$", "--once", "--max-pages", "1000")

    listed, shown = ruled("rules", "list", "a.test"), ruled("domains", "show", "a.test")

    assert (done.code, listed.code, shown.code) == (0, 0, 0)
    intervals = "revisited no sooner than after 60 minutes, revisited no later than after 7 days"
    news = f"/news/: {intervals}, 5 times as important"
    assert done.out == f"a.test {news}\n"
    assert news in shown.out
    assert "*.pdf$: never revisited, at most 1,000 pages" in shown.out
    rows = [line.split() for line in listed.out.splitlines()[2:]]
    assert rows == [["/news/", "60", "minutes", "7", "days", "5"], ["*.pdf$", "yes", "0", "1000"]]


def test_rules_are_listed_as_json(ruled: Recrawl) -> None:
    made = ruled("rules", "add", "a.test", "/news/", "--min-interval", "90m", "--max-pages", "0", "--json")

    rule = {
        "pattern": "/news/",
        "min_interval_seconds": 5400.0,
        "max_interval_seconds": None,
        "weight": None,
        "once": False,
        "max_pages": 0,
        "ignore": [],
        "watch": [],
        "ignore_text": [],
        "values": [],
        "render": None,
    }
    assert made.json == {"domain": "a.test", "rules": [rule | {"pages": 0}]}
    assert ruled("rules", "list", "a.test", "--json").json == made.json
    assert ruled("domains", "show", "a.test", "--json").json["settings"]["rules"] == [rule]


def test_a_rule_of_a_pattern_is_replaced_where_it_stands(ruled: Recrawl) -> None:
    for pattern in ("/a", "/b", "/c"):
        ruled("rules", "add", "a.test", pattern, "--weight", "2")

    again = ruled("rules", "add", "a.test", "/b", "--once", "--json").json["rules"]

    assert [rule["pattern"] for rule in again] == ["/a", "/b", "/c"]
    assert (again[1]["weight"], again[1]["once"]) == (None, True)


def test_a_rule_can_be_put_before_all_others(ruled: Recrawl) -> None:
    for pattern in ("/a", "/b"):
        ruled("rules", "add", "a.test", pattern, "--weight", "2")

    ruled("rules", "add", "a.test", "/c", "--once", "--first")
    ruled("rules", "add", "a.test", "/b", "--once", "--first")

    assert patterns(ruled) == ["/b", "/c", "/a"]


def test_rules_are_taken_back_one_by_one_or_all_at_once(ruled: Recrawl) -> None:
    assert "has no rules" in ruled("rules", "list", "a.test").out
    for pattern in ("/a", "re:b+", "*c$"):
        ruled("rules", "add", "a.test", pattern, "--weight", "2")

    removed = ruled("rules", "remove", "a.test", "re:b+")
    assert removed.out == "a.test re:b+: rule removed\n"
    assert patterns(ruled) == ["/a", "*c$"]

    ruled("domains", "set", "a.test", "--unset", "rules")
    assert patterns(ruled) == []


def test_other_settings_leave_the_rules(ruled: Recrawl) -> None:
    ruled("rules", "add", "a.test", "/a", "--weight", "2")

    ruled("domains", "set", "a.test", "--budget", "5")

    assert patterns(ruled) == ["/a"]


IMPOSSIBLE = {
    ("add", "a.test", "/a"): "has no effect: add --min-interval",
    ("add", "a.test", "docs", "--once"): "must begin with",
    ("add", "a.test", "re:(", "--once"): "not a regular expression",
    ("add", "a.test", "/a", "--min-interval", "2d", "--max-interval", "1d"): "longer than the maximum",
    ("add", "a.test", "/a", "--min-interval", "0"): "'0' is not above 0",
    ("add", "a.test", "/a", "--weight", "-1"): "'-1' is not above 0",
    ("add", "a.test", "/a", "--max-pages", "-1"): "--max-pages",
    ("add", "b.test", "/a", "--once"): "b.test is not registered",
    ("remove", "a.test", "/a"): "no rule for /a; the existing patterns are: /kept",
    ("add", "a.test"): "Missing argument",
    ("list", "b.test"): "b.test is not registered",
}


def test_a_rule_that_cannot_be_is_one_line_and_changes_nothing(ruled: Recrawl) -> None:
    ruled("rules", "add", "a.test", "/kept", "--once")

    done = {arguments: ruled("rules", *arguments) for arguments in IMPOSSIBLE}

    assert {arguments: each.code for arguments, each in done.items()} == dict.fromkeys(IMPOSSIBLE, 2)
    assert [each.complaint for arguments, each in done.items() if IMPOSSIBLE[arguments] not in each.complaint] == []
    assert patterns(ruled) == ["/kept"]


def test_a_rule_applies_to_existing_pages_at_the_next_crawl(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private")
    recrawl("rules", "add", site.name, "/one", "--once")
    asked = len(site.asked)

    recrawl("crawl", site.name)

    due = {path: recrawl("explain", f"{site.url}{path}", "--json").json["page"]["due_at"] for path in ("one", "two")}
    assert due["one"].startswith("9999-12-31")
    assert not due["two"].startswith("9999-12-31")
    assert len(site.asked) == asked
