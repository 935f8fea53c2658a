"""Each endpoint with a client that reads the OpenAPI document: its effect, its examples and its scope."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from crawler.runtime.machine import get_search_file
from crawler.server.api.app import EXAMPLES
from tests.cli.test_notify import Hook, hook
from tests.commands import Recrawl, Site
from tests.server.api.client import Client
from tests.server.conftest import Visitor

__all__ = ["hook"]
DOCS = Path(__file__).parents[3] / "docs" / "api.md"
WRITES = bool(os.environ.get("RECRAWL_WRITE_DOCS"))  # read now: the fixture `recrawl` removes it
SCOPES = ("read", "crawl", "admin")
# The names of the actions that `call_every_endpoint` records.
API_ACTIONS = {
    *(
        "add domain",
        "change domain",
        "pause domain",
        "remove domain",
        "add rule",
        "remove rule",
        "recrawl",
        "act on pages",
    ),
    *("reset clock", "take screenshot"),
    *("add subscription", "change subscription", "test subscription", "remove subscription", "pause subscription"),
    *("resume subscription", "redeliver", "discard dead letters"),
    *("add user", "invite user", "change user", "remove user", "change tags", "change tag", "remove tag"),
}
OPML = '<opml version="2.0"><body><outline text="B" htmlUrl="http://b.test/"/><outline xmlUrl="{}two"/></body></opml>'


@pytest.fixture
def client(recrawl: Recrawl, anonymous: Visitor) -> Client:
    token = recrawl("tokens", "add", "all", "--scope", ",".join(SCOPES), "--json").json
    assert token["scopes"] == list(SCOPES)
    return Client(anonymous, token["token"])


def write_pages(site: Site, day: str = "Monday") -> None:
    site.page("/", "/one", "/two", text=f"The mill by the river opens at nine and sells flour to all who ask on {day}.")
    site.page("/one", text="Rye is sown in autumn and cut in July, before the wheat of the lower fields.")
    site.page("/two", text="Bread keeps for a week in a linen bag, longer where the pantry is cold.")


def call_every_endpoint(client: Client, site: Site, recrawl: Recrawl, hook: Hook, home: Path) -> None:
    """Do once what the API offers, as a program would."""
    write_pages(site)
    settings = {"allow_private": True, "delay_seconds": 0, "budget_per_day": 500}
    added = client.call("add_domain", {"url": site.url, "settings": settings, "tags": ["eu"]})
    assert added == {"domain": site.name, "root": site.url, "aliases": [], "warning": "", "run": None}
    assert recrawl("crawl", site.name).code == 0
    assert [each["domain"] for each in client.call("list_domains")["items"]] == [site.name]

    news = {"settings": {"keep_versions": 9, "target_freshness": 1e-05}, "add": [site.name]}
    tag = {"tag": "news", "domains": [site.name], "settings": news["settings"]}
    assert client.call("change_tag", news, tag="news") == tag == client.call("get_tag", tag="news")
    assert client.call("list_tags")["items"] == [{"tag": "eu", "domains": [site.name], "settings": {}}, tag]
    assert [each["tags"] for each in client.call("list_domains", tag="eu")["items"]] == [["eu", "news"]]
    about = client.call("get_domain", domain=site.name)
    assert (about["settings"]["keep_versions"], about["sources"]["keep_versions"]) == (9, "tag news")
    assert client.call("change_domain", {"tags": ["news", "bread"]}, domain=site.name)["tags"] == ["bread", "news"]
    assert client.call("list_changes", tag="eu")["items"] == []
    assert len(client.call("list_changes", tag="news")["items"]) == 3
    client.call("remove_tag", tag="eu")

    rule = {"pattern": "/one", "min_interval_seconds": 3600, "ignore": [".clock"]}
    assert client.call("add_rule", rule, domain=site.name)["min_interval_seconds"] == 3600
    assert [each["pattern"] for each in client.call("list_rules", domain=site.name)["items"]] == ["/one"]
    assert client.call("get_domain", domain=site.name)["rules"][0]["ignore"] == [".clock"]
    client.call("remove_rule", domain=site.name, pattern="/one")
    assert client.call("list_rules", domain=site.name)["items"] == []

    changes = {"kinds": ["changed"], "domain": site.name, "pattern": "/", "allow_private": True}
    number = client.call("add_subscription", {"target": hook.url} | changes)["number"]
    assert client.call("test_subscription", number=number) == {"is_sent": True, "error": None}
    changed = client.call("change_subscription", {"quiet_hours": "22-07", "paused": True}, number=number)
    assert (changed["quiet_hours"], changed["paused_at"] is not None, changed["pattern"]) == ("22-07", True, "/")
    resumed = client.call("change_subscription", {"quiet_hours": None, "paused": False}, number=number)
    assert (resumed["quiet_hours"], resumed["paused_at"]) == (None, None)
    assert client.call("get_subscription", number=number) == resumed
    assert client.call("list_subscriptions")["items"] == [resumed]

    write_pages(site, "Friday")
    recrawled = client.call("recrawl", {"target": f"{site.url}*"})
    assert (recrawled["url"], recrawled["pages"], recrawled["run"]) == (f"{site.url}*", 3, None)
    hook.status = 400
    assert recrawl("crawl", site.name).code == 0
    for day in (1, 9):
        recrawl("notify", "run", "--at", f"2036-01-0{day}T00:00Z")
    (letter,) = client.call("list_dead_letters", subscription=number)["items"]
    assert letter["subscription"] == number
    assert client.call("redeliver", {"dead_letters": [letter["number"]]}) == {"dead_letters": 1}
    for day in (1, 9):
        recrawl("notify", "run", "--at", f"2037-01-0{day}T00:00Z")
    (letter,) = client.call("list_dead_letters")["items"]
    client.call("discard_dead_letter", number=letter["number"])
    assert client.call("list_dead_letters")["items"] == []
    client.call("remove_subscription", number=number)

    feed = client.call("list_changes", what=site.name, kind="changed")
    assert [each["url"] for each in feed["items"]] == [site.url]
    assert len(client.call("list_pages", domain=site.name, content=True)["items"]) == 3
    assert "Friday" in client.call("get_text", url=site.url)["text"]
    assert [each["number"] for each in client.call("list_versions", url=site.url)["items"]] == [2, 1]
    diff = client.call("compare_versions", url=site.url, after=2)
    (changed_block,) = [each for hunk in diff["hunks"] for each in hunk["blocks"] if each["is_news"]]
    assert [each["text"].strip() for each in changed_block["runs"] if each["kind"] != "kept"] == ["Monday", "Friday"]
    assert client.call("explain_page", url=site.url)["tracked"]
    listed = client.call("list_domain_pages", domain=site.name, sort="url", q="o", limit=1)
    assert ([each["url"] for each in listed["items"]], listed["matches"]) == ([f"{site.url}one"], 2)
    boost = {"action": "boost", "urls": [f"{site.url}two"]}
    assert client.call("act_on_pages", boost, domain=site.name) == {"pages": 1, "run": None, "wait": None}
    assert client.call("act_on_pages", boost | {"action": "recrawl"}, domain=site.name)["pages"] == 1
    assert client.call("reset_clock", domain=site.name)["last_visit_at"] is None
    assert recrawl("sync", str(get_search_file(home))).code == 0
    assert [each["url"] for each in client.call("search", q="bread", domain=site.name)["items"]] == [f"{site.url}two"]
    assert client.call("report_freshness", domain=site.name)["items"][0]["fetched"] == 3
    write_pages(site, "Sunday")
    trial = client.call("try_page", {"url": site.url})
    assert (trial["change"], trial["differences"][0]["is_significant"]) == ("changed", True)
    taken = client.call("take_screenshot", {"url": site.url})
    assert client.call("list_screenshots", url=site.url)["items"] == [taken]
    picture = client.call("get_picture", url=site.url, at=taken["at"])
    assert (taken["width"], picture["media_type"], picture["data"][:4]) == (1280, "image/webp", "UklG")
    assert client.call("add_hints", {"urls": [f"{site.url}one"], "source": "cms"})["accepted"] == {site.name: 1}

    client.call("add_rule", {"pattern": "/one$", "values": ["price:EUR p"]}, domain=site.name)
    site.page("/one", text="Rye is sold at 39.90 a sack.")
    assert recrawl("crawl", site.name).code == 0
    (reading,) = client.call("list_values", url=f"{site.url}one", name="price")["items"]
    assert (reading["number"], reading["unit"], reading["finding"]) == (39.9, "EUR", "")
    assert client.call("try_page", {"url": f"{site.url}one"})["values"][0]["number"] == 39.9

    imported = client.call("import_urls", {"text": OPML.format(site.url), "offline": True})
    assert (imported["registered"], imported["pages"], imported["failed"]) == (["b.test"], 1, {})
    paused = client.call("change_domain", {"settings": {"delay_seconds": None}, "paused": True}, domain=site.name)
    assert (paused["settings"]["delay_seconds"], paused["paused"], paused["wait"]["reason"]) == (None, True, "paused")
    client.call("remove_domain", domain="b.test")

    invited = client.call("add_user", {"name": "Alice@example.com", "role": "edit"})
    assert (invited["name"], "/invitation?code=" in invited["url"]) == ("alice@example.com", True)
    assert client.call("invite_user", name=invited["name"])["url"] != invited["url"]
    assert client.call("change_user", {"disabled": True}, name=invited["name"])["disabled_at"] is not None
    assert [each["role"] for each in client.call("list_users")["items"]] == ["edit"]
    client.call("remove_user", name=invited["name"])
    check_actions(client)
    assert [each["domain"] for each in client.call("list_domains")["items"]] == [site.name]


def check_actions(client: Client) -> None:
    """Check that each change by the API is recorded, except trials, which change nothing, and hints, which are many."""
    changes = {name for name, each in client.operations.items() if each.method != "GET"} - {"try_page", "add_hints"}
    assert changes <= client.calls.keys(), "call it before this check"
    actions = client.call("list_actions", actor="all", limit=1000)["items"]
    assert {(each["actor_kind"], each["address"]) for each in actions} == {("token", "127.0.0.1")}
    assert {each["action"] for each in actions} == API_ACTIONS


def test_every_endpoint_works_and_has_an_example(
    site: Site, recrawl: Recrawl, hook: Hook, client: Client, tmp_path: Path
) -> None:
    validate(client.document)

    call_every_endpoint(client, site, recrawl, hook, tmp_path)

    examples = {name: shorten(call, site, hook) for name, call in client.calls.items()}
    if WRITES:
        lines = [f"{json.dumps(name)}: {json.dumps(call)}" for name, call in sorted(examples.items())]
        EXAMPLES.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    written = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    assert client.operations.keys() == examples.keys() == written.keys(), "RECRAWL_WRITE_DOCS=1"
    assert {name: set(call) for name, call in examples.items()} == {name: set(call) for name, call in written.items()}
    for name, operation in client.operations.items():
        contents = [operation.described.get("requestBody", {}), *operation.described["responses"].values()]
        for content in [each["content"]["application/json"] for each in contents if "application/json" in str(each)]:
            client.validate(content["schema"], content["example"])
        assert operation.described["description"]
        assert all(each["description"] for each in operation.parameters.values()), name


def shorten(value: Any, site: Site, hook: Hook) -> Any:
    """Return a recorded document as an example: of another site, and with one item of each list."""
    if isinstance(value, dict):
        return {shorten(name, site, hook): shorten(each, site, hook) for name, each in value.items()}
    if isinstance(value, list):
        return [shorten(each, site, hook) for each in value[:1]]
    if isinstance(value, str) and len(value) > 2000:  # a picture
        return f"{value[:60]}..."
    if isinstance(value, str):
        value = value.replace(hook.url, "https://ci.example.com/hook").replace(site.url, "https://docs.example.com/")
        return value.replace(site.name, "docs.example.com")
    return value


def test_each_endpoint_needs_its_scope(recrawl: Recrawl, anonymous: Visitor) -> None:
    """Write the table of the documentation with the answers of the server, and compare."""
    tokens = {scope: recrawl("tokens", "add", scope, "--scope", scope).out.strip() for scope in SCOPES}
    reader = Client(anonymous)
    assert anonymous.log_in().status == 303  # the session must open nothing
    rows = []
    for name, operation in reader.operations.items():
        path_parameters: dict[str, Any] = {
            each: "1" for each, about in operation.parameters.items() if about["in"] == "path"
        }
        assert reader.send(name, {}, **path_parameters).status in {401, 429}, f"{name} with a session of the web UI"
        assert Client(anonymous, "recrawl_x").send(name, {}, **path_parameters).status in {401, 429}
        allowed = []
        for scope, token in tokens.items():
            seen = Client(anonymous, token).send(name, {}, **path_parameters)
            if seen.status == 403:
                assert json.loads(seen.text)["detail"].startswith(
                    f"the token {scope} lacks the scope {operation.scope}"
                )
                assert f'scope="{operation.scope}"' in seen.headers["www-authenticate"]
            else:
                assert seen.status in {200, 204, 400, 404, 422}, seen.text
                allowed.append(scope)
        assert allowed == [operation.scope], name
        rows.append((operation.method, operation.path.removeprefix("/api/v1"), allowed[0]))

    documented = re.findall(r"^\| `(\w+) (/\S*)` \| (\w+) \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(documented) == sorted(rows)


def test_tasks_of_a_program(site: Site, recrawl: Recrawl, hook: Hook, client: Client) -> None:
    write_pages(site)
    name = client.call("add_domain", {"url": site.url, "settings": {"allow_private": True}})["domain"]
    assert recrawl("crawl", name).code == 0
    cursor = client.call("list_changes")["next"]
    assert (
        client.call("change_domain", {"settings": {"max_age_seconds": 86400}}, domain=name)["settings"][
            "max_age_seconds"
        ]
        == 86400
    )
    client.call("add_subscription", {"target": hook.url, "domain": name, "allow_private": True})
    write_pages(site, "Friday")
    client.call("recrawl", {"target": site.url})
    assert recrawl("crawl", name).code == 0
    assert [each["change"] for each in client.call("list_changes", after=cursor)["items"]] == ["changed"]
    assert [each["url"] for each in hook.got[0]["changes"]] == [site.url]
    assert client.call("change_domain", {"paused": True}, domain=name)["wait"]["sentence"].startswith(
        f"{name} is paused"
    )
    assert client.call("change_domain", {"paused": False}, domain=name)["paused"] is False
