"""The pages show the figures of the reports, and each form does what its command does."""

import html
import re
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlsplit

import pytest

from crawler.core.domain_settings import BY_NAME
from crawler.format.values import format_bytes, format_share
from crawler.server.ui.fields import GROUPS
from tests.commands import Answer, Recrawl, Site
from tests.databases import execute
from tests.server.conftest import Visitor, crawl_three_pages


def edited(site: Site, recrawl: Recrawl) -> None:
    """Change two pages, remove one, and crawl the site again."""
    site.page("/one", "/two", text="Rye is sown in autumn and cut in August, before the wheat of the lower fields.")
    site.page("/", "/one", "/two", text="The mill by the river opens at ten and sells flour to whoever asks.")
    site.answers["/two"] = Answer(b"gone", status=410)
    assert recrawl("refresh", site.name).code == 0
    assert recrawl("crawl", site.name).code == 0


@pytest.fixture(scope="module")
def twice_crawled(read: Recrawl, shared_site: Site) -> Site:
    """Return a site that was crawled, edited and crawled again, for tests that only read."""
    crawl_three_pages(read, shared_site)
    edited(shared_site, read)
    return shared_site


@pytest.fixture
def registered(recrawl: Recrawl) -> str:
    """Return the name of a domain that was never crawled."""
    assert recrawl("domains", "add", "docs.example.com", "--offline").code == 0
    return "docs.example.com"


def figures(text: str) -> dict[str, str]:
    """Return the figures of a page by their labels."""
    found = re.findall(r"<dt>([^<]*)</dt><dd[^>]*>(.*?)</dd>", text, re.DOTALL)
    return {name: " ".join(html.unescape(re.sub("<[^>]*>", " ", value)).split()) for name, value in found}


def test_figures_equal_those_of_the_report(twice_crawled: Site, read: Recrawl, reader: Visitor) -> None:
    path = f"/domain?name={twice_crawled.name}"
    (said,) = read("report", twice_crawled.name, "--json").json["domains"]
    shown = figures(reader.get(path).text)
    assert shown["Freshness"] == format_share(said["freshness"])
    assert shown["Pages fetched"] == f"{said['fetched']:,}"
    assert shown["Budget used today"] == f"{said['spent_today']:,}"
    assert shown["Changes in 24 hours"] == "3"

    traffic = figures(reader.get(f"{path}&tab=traffic").text)
    for label, name in (("Requests for pages", "requests"), ("Failed visits", "failures"), ("Visits", "visits")):
        assert traffic[label] == f"{said[name]:,}", label
    assert traffic["Received"] == format_bytes(said["received_bytes"])
    assert traffic["Bytes saved"].startswith(format_bytes(said["saved_bytes"]))

    fresh = reader.get(f"{path}&tab=freshness").words
    both = (
        f"{format_share(said['freshness'])} weighted by importance, {format_share(said['freshness_plain'])} unweighted"
    )
    assert both in fresh
    assert "The chart covers only pages that still exist." in fresh
    forecast = read("plan", twice_crawled.name, "--json").json
    today = next(step for step in forecast["steps"] if step["factor"] in {1.0, None})
    assert format_share(today["freshness"]) in fresh
    pages = read("pages", twice_crawled.name, "--json").json["pages"]
    for page in (page for page in pages if page["importance"] is not None and page["freshness"] is not None):
        assert f"{page['importance']:.2f} {format_share(1 - page['freshness'])}" in fresh

    row = f"{twice_crawled.name} {format_share(said['freshness'])} - {said['fetched']:,} 3 0 {said['spent_today']:,} "
    for home in ("/", "/domains"):
        assert row in reader.get(home).words, home


def test_domain_that_was_never_fetched_says_what_to_do(recrawl: Recrawl, visitor: Visitor) -> None:
    added = recrawl("domains", "add", "https://docs.example.com", "--offline")
    assert added.complaint.startswith("Next: recrawl crawl")
    pages = "/domain?name=docs.example.com&tab=pages"
    words = visitor.get(pages).words
    assert "No page has been found yet. If the local stack is running" in words
    assert "it crawls this domain within five minutes" in words
    assert "docs.example.com - - 0 0 0 0 due now" in visitor.get("/").words
    recrawl("domains", "pause", "docs.example.com")
    assert "No page has been found yet. Resume the domain to crawl it." in visitor.get(pages).words
    assert "docs.example.com paused - - 0 0 0 0 paused" in visitor.get("/").words


def test_overview_shows_next_attempt_of_unreachable_domain(
    recrawl: Recrawl, visitor: Visitor, database_url: str
) -> None:
    recrawl("domains", "add", "https://docs.example.com", "--offline")
    execute(database_url, "UPDATE domain_state SET resume_at = now() + interval '1 day', resume_reason = 'unreachable'")

    assert "docs.example.com suspended - - 0 0 0 0 in 24 hours" in visitor.get("/").words


def test_changes_show_differing_words_and_can_be_filtered(twice_crawled: Site, read: Recrawl, reader: Visitor) -> None:
    seen = reader.get("/changes")
    assert "<del>July</del><ins>August</ins>" in seen.text
    assert "<del>nine</del><ins>ten</ins>" in seen.text
    assert seen.text.count("<article ") == 3
    assert "tag added" not in seen.text
    only = reader.get(f"/changes?domain={twice_crawled.name}&kind=gone")
    assert only.text.count("<article ") == 1
    assert f"{twice_crawled.url}two" in only.words
    assert reader.get("/changes?kind=added").text.count("<article ") == 3
    assert reader.get("/changes?kind=moved").text.count("<article ") == 0


def test_changes_can_be_limited_to_a_period(site: Site, recrawl: Recrawl, visitor: Visitor) -> None:
    site.page("/", text="Whoever comes by the lower road sees the mill before the church.")
    ten_days_ago = (datetime.now(UTC) - timedelta(days=10)).isoformat()
    assert recrawl("crawl", site.url, "--allow-private", "--at", ten_days_ago).code == 0
    for since, many in (("", 1), ("1d", 0), ("7d", 0), ("30d", 1)):
        seen = visitor.get(f"/changes?kind=added&since={since}")
        assert seen.text.count("<article ") == many, since
    assert "No changes match this filter in the last 7 days" in visitor.get("/changes?kind=added&since=7d").words
    assert '<option value="7d" selected>' in visitor.get("/changes?since=7d").text
    assert visitor.get("/changes?since=soon").status == 400


def test_next_page_of_changes_starts_after_the_last_one(site: Site, recrawl: Recrawl, visitor: Visitor) -> None:
    names = [f"/{first}{second}" for first in "abcdefgh" for second in "stuvwxyz"]
    site.page("/", *names, text="All letters that stand here lead to a page of their own.")
    for name in names:
        site.page(name, text=f"The letters {name[1]} and {name[2]} stand for a word that begins {name[1] * 3}.")
    assert recrawl("crawl", site.url, "--allow-private").code == 0
    path, shown = "/changes?kind=added", list[str]()
    while path:
        seen = visitor.get(path)
        shown += re.findall(r'<span class="url">([^<]*)</span>', seen.text)
        found = re.search(r'<a href="([^"]*before=[^"]*)">Older</a>', seen.text)
        path = html.unescape(found[1]) if found else ""
    assert len(shown) == len(set(shown)) == len(names) + 3 - 2, "the two other pages of the site are not linked"


def test_page_shows_versions_and_next_visit_like_explain(twice_crawled: Site, read: Recrawl, reader: Visitor) -> None:
    url = f"{twice_crawled.url}one"
    seen = reader.get(f"/page?url={quote(url)}")
    said = read("explain", url, "--json").json
    assert seen.status == 200
    for sentence in (said["next"], said["change_rate"]):
        apart = re.sub(r" \([^)]*\)", "", sentence)  # without the relative time, which has changed meanwhile
        assert apart[1:] in re.sub(r" \([^)]*\)", "", seen.words)
    assert "Changes from version 1 to version 2" in seen.words
    assert "cut in <del>July</del><ins>August</ins>, before" in seen.text
    beside = reader.get(f"/page?url={quote(url)}&from=1&to=2&view=sides")
    assert "cut in <del>July</del>, before" in beside.text
    assert "cut in <ins>August</ins>, before" in beside.text
    gone = reader.get(f"/page?url={quote(twice_crawled.url + 'two')}")
    assert "It is gone" in gone.words
    assert "is not tracked" in reader.get(f"/page?url={quote(twice_crawled.url + 'nowhere')}").words


def test_missing_items_give_an_error_page(twice_crawled: Site, reader: Visitor) -> None:
    cases = [
        ("/domain?name=nobody.example", 400, "nobody.example is not registered"),
        ("/domain", 400, "names no domain"),
        (f"/domain?name={twice_crawled.name}&tab=cats", 400, "changes, pages, freshness, traffic, settings, rules"),
        (f"/domain?name={twice_crawled.name}&tab=pages&list=cats", 400, "is not a list of pages"),
        (f"/domain?name={twice_crawled.name}&tab=pages&after=x", 400, "is not a valid cursor"),
        (f"/domain?name={twice_crawled.name}&tab=freshness&range=x", 400, "is not a range"),
        (f"/domain?name={twice_crawled.name}&tab=settings&group=x", 400, "is not a group of settings"),
        ("/page?url=javascript:alert(1)", 400, ""),
        ("/page?url=http://127.0.0.1:1/x", 400, "is not registered"),
        ("/page", 400, "names no URL"),
        ("/changes?before=soon", 400, "is not a valid cursor"),
        ("/changes?before=9e99_1", 400, "is not a valid cursor"),
        ("/changes?domain=nobody.example", 400, "is not registered"),
        ("/blocks?url=http://127.0.0.1:1/x", 400, "is not registered"),
        ("/nothing", 404, "Page not found"),
        ("/../../etc/passwd", 404, "Page not found"),
    ]
    for path, status, sentence in cases:
        seen = reader.get(path)
        assert seen.status == status, path
        assert sentence in seen.words
        assert "Traceback" not in seen.text


def test_forms_do_what_the_commands_do(crawled: Site, recrawl: Recrawl, visitor: Visitor) -> None:
    name = crawled.name

    def settings() -> dict[str, object]:
        found: dict[str, object] = recrawl("domains", "show", name, "--json").json
        return found

    assert f"{name} is paused." in visitor.send("/domains/pause", name=name).words
    assert settings()["paused"] is True
    assert f"{name} is active." in visitor.send("/domains/resume", name=name).words
    assert settings()["paused"] is False

    seen = visitor.send("/domains/set", name=name, budget_per_day="120", target_freshness="95%")
    assert "no limit -> 120" in seen.words, seen.words
    assert re.search(r"Freshness target: .* -> 95", seen.words)
    assert (
        "nothing was changed"
        in visitor.send("/domains/set", name=name, budget_per_day="120", target_freshness="95%").words
    )
    seen = visitor.send("/domains/set", name=name, budget_per_day="130", target_freshness="95%")
    assert re.search(r"Budget per day: 120.* -> 130", seen.words)
    visitor.send("/domains/set", name=name, budget_per_day="120", target_freshness="95%")
    kept = settings()["settings"]
    assert isinstance(kept, dict)
    assert (kept["budget_per_day"], kept["target_freshness"]) == (120, 0.95)
    visitor.send("/domains/set", name=name, budget_per_day="", target_freshness="")
    kept = settings()["settings"]
    assert isinstance(kept, dict)
    assert (kept["budget_per_day"], kept["target_freshness"]) == (None, None)
    for wrong in ("-1", "1.5", "many", "99999999999999999999", "٣"):
        seen = visitor.send("/domains/set", name=name, budget_per_day=wrong)
        assert "is not a whole number" in seen.words
    assert "is not a share" in visitor.send("/domains/set", name=name, target_freshness="120%").words

    asked = len(crawled.asked)
    assert f"{crawled.url}one is due now" in visitor.send("/refresh", name=name, what="/one").words
    assert recrawl("crawl", name).code == 0
    assert crawled.asked[asked:] == ["/one"]
    assert "is not a URL of" in visitor.send("/refresh", name=name, what="http://evil.example/").words


def test_forms_never_redirect_to_another_site(registered: str, visitor: Visitor) -> None:
    for back in ("http://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)"):
        seen = visitor.post("/refresh", {"name": registered, "back": back, "csrf_token": visitor.find_csrf_token()})
        assert seen.status == 303
        assert seen.headers["location"] in {"/", "/%5Cevil.example"}, back


def test_adding_registered_or_private_domain_is_rejected(twice_crawled: Site, reader: Visitor) -> None:
    assert "is already registered" in reader.send("/domains/add", url=twice_crawled.url, allow_private="1").words
    assert "enter a web address" in reader.send("/domains/add", url=" ").words
    assert "your own server, allow private addresses" in reader.send("/domains/add", url="http://127.0.0.1:9").words


def test_rule_can_be_previewed_added_and_removed(crawled: Site, recrawl: Recrawl, visitor: Visitor) -> None:
    url = f"{crawled.url}one"
    asked = f"/blocks?url={quote(url)}"
    assert "Rye is sown in autumn" in visitor.get(asked).words
    preview = visitor.get(f"{asked}&block=2&action=ignore&pattern=/one$")
    assert "With this rule, 1 more block is fully or partly ignored" in preview.words
    assert 'value="body &gt; p"' in preview.text
    visitor.send("/rules/add", url=url, action="ignore", text="p", pattern="/one$")
    visitor.send("/rules/add", url=url, action="ignore_text", text="autumn", pattern="/one$")
    (rule,) = recrawl("rules", "list", crawled.name, "--json").json["rules"]
    assert (rule["pattern"], rule["ignore"], rule["ignore_text"]) == ("/one$", ["p"], ["autumn"])
    for wrong in (
        {"action": "ignore", "text": "p["},
        {"action": "ignore_text", "text": "("},
        {"action": "ignore_text", "text": ".*"},
    ):
        visitor.send("/rules/add", url=url, pattern="/", **wrong)
    assert len(recrawl("rules", "list", crawled.name, "--json").json["rules"]) == 1
    assert "The rule for /one$ was removed" in visitor.send("/rules/remove", name=crawled.name, pattern="/one$").words
    assert not recrawl("rules", "list", crawled.name, "--json").json["rules"]
    visitor.send("/rules/add", url=url, action="watch", text=".nothing", pattern="/one$")
    preview = visitor.get(f"{asked}&block=2&action=watch&pattern=/one$")
    assert "With this rule, 1 more block is compared" in preview.words


def typed_in(text: str) -> dict[str, str]:
    """Return the values in the form of settings."""
    fields = re.findall(r'<input type="text" id="set-[^"]*" name="([^"]*)" value="([^"]*)"', text)
    fields += re.findall(r'<textarea id="set-[^"]*" name="([^"]*)"[^>]*>\n(.*?)</textarea>', text, re.DOTALL)
    for name, options in re.findall(r'<select id="set-[^"]*" name="([^"]*)"[^>]*>(.*?)</select>', text, re.DOTALL):
        fields += [(name, value) for value in re.findall(r'value="([^"]*)" selected', options)]
    return {name: html.unescape(value) for name, value in fields}


def test_groups_contain_each_setting_once() -> None:
    names = [name for _, group in GROUPS.values() for name in group]
    assert sorted(names) == sorted(BY_NAME)


def test_each_setting_can_be_changed_and_reset(visitor: Visitor, registered: str, recrawl: Recrawl) -> None:
    def stored() -> dict[str, object]:
        return dict(recrawl("domains", "show", registered, "--json").json["settings"])

    def form(group: str) -> dict[str, str]:
        return typed_in(visitor.get(f"/domain?name={registered}&tab=settings&group={group}").text)

    usual, before = stored(), {group: form(group) for group in GROUPS}
    assert {name for fields in before.values() for name in fields} == set(BY_NAME)
    edits = {
        "budget": {"bytes_per_day": "500MB", "weight": "2.5", "max_age": "3d", "revisit": "fixed 7d"},
        "politeness": {"delay": "1.5", "hours": "22:00-06:00"},
        "scope": {"exclude": "/private/\n/old/", "max_depth": "4", "render": "never", "seeds": "/one\n/two"},
        "access": {"cookies": "yes"},
        "importance": {"boost": "/news/", "order": "mixed"},
        "retention": {"keep_daily": "36h", "quota": "2GB"},
    }
    for group, edit in edits.items():
        seen = visitor.send("/domains/set", name=registered, group=group, **form(group) | edit)
        assert seen.status == 200, seen.words
        assert " -> " in seen.words, group
        kept = form(group)
        assert {name: kept[name] for name in edit} == edit | {
            name: text
            for name, text in (("delay", "1.5s"), ("seeds", "http://docs.example.com/one\nhttp://docs.example.com/two"))
            if name in edit
        }
        again = visitor.send("/domains/set", name=registered, group=group, **kept)
        assert "nothing was changed" in again.words, group
    now = stored()
    assert (now["max_depth"], now["render"], now["exclude"]) == (4, "never", ["/private/", "/old/"])
    for group, edit in edits.items():
        seen = visitor.send("/domains/set", name=registered, group=group, **form(group) | dict.fromkeys(edit, ""))
        assert seen.status == 200, seen.words
    assert stored() == usual


def test_rejected_settings_are_shown_again_with_the_problem_next_to_the_field(
    visitor: Visitor, registered: str, recrawl: Recrawl
) -> None:
    before = recrawl("domains", "show", registered, "--json").json
    cases = [
        ("max_depth", "-1", "is not a whole number"),
        ("cookies", "perhaps", "neither yes nor no"),
        ("weight", "heavy", "is not a number"),
        ("render", "sometimes", "not one of auto, always, never"),
        ("include", "docs", "must begin with"),
    ]
    for name, value, why in cases:
        group = next(key for key, (_, names) in GROUPS.items() if name in names)
        others = {"language": "de"} if group == "scope" else {}
        seen = visitor.send("/domains/set", name=registered, group=group, **{name: value}, **others)
        assert seen.status == 400, name
        assert why in seen.words
        assert typed_in(seen.text).items() >= (({name: value} | others).items()), name
        assert re.search(rf'<div class="setting bad"><label for="set-{name}"', seen.text) or name == "include", name
    both = visitor.send("/domains/set", name=registered, group="budget", target_freshness="95%", max_age="3d")
    assert both.status == 400
    assert "A domain has only one target" in both.words
    assert typed_in(both.text)["target_freshness"] == "95%"
    assert recrawl("domains", "show", registered, "--json").json == before


def test_domain_is_removed_once_its_name_is_typed(visitor: Visitor, crawled: Site) -> None:
    name = urlsplit(crawled.url).netloc
    assert "was not removed" in visitor.send("/domains/remove", name=name, confirmed="yes").words
    assert name in visitor.get("/").words

    seen = visitor.send("/domains/remove", name=name, confirmed=name)

    assert f"{name} was removed" in seen.words
    assert "No domains yet" in seen.words


def test_overview_lists_undelivered_notifications_with_reason(
    crawled: Site, recrawl: Recrawl, visitor: Visitor, database_url: str
) -> None:
    assert "Undelivered notifications" not in visitor.get("/").words
    assert recrawl("notify", "add", "http://127.0.0.1:9/hook", "--allow-private").code == 0
    assert "Undelivered notifications" not in visitor.get("/").words
    edited(crawled, recrawl)

    words = visitor.get("/").words
    said = words.partition("Undelivered notifications ")[2].partition("1 domain")[0]
    assert said.startswith("Subscription 1 ( http://127.0.0.1:9/hook ): ")
    assert "waiting. 1 failure in a row: it cannot be reached" in said
    assert "Next attempt" in said
    execute(database_url, "UPDATE subscription SET resume_at = now() - interval '5 minutes'")
    assert "Next attempt now ." in visitor.get("/").words
    execute(database_url, "UPDATE subscription SET kinds = '{changed,renamed}'")  # as a later version would
    assert "Not delivered: this version of recrawl does not know its kind (renamed)" in visitor.get("/").words
