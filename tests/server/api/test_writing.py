"""Errors of requests that change something, idempotency keys, and what a token must not do."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from crawler.runtime.kept_responses import LIFETIME, MAX_TOTAL_BYTES, KeptResponse, KeptResponses
from crawler.runtime.machine import ensure_private_folder
from tests.commands import Recrawl, Site
from tests.databases import execute
from tests.patience import PATIENCE_S
from tests.server.api.client import Client
from tests.server.api.test_every_endpoint import client
from tests.server.conftest import Seen, Visitor

__all__ = ["client"]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
URL = "http://a.test/"


@pytest.fixture
def registered(client: Client) -> Client:
    client.call("add_domain", {"url": URL, "offline": True})
    return client


def problem(seen: Seen) -> tuple[int, str | None, str]:
    assert seen.headers["content-type"] == "application/problem+json", seen.text
    found: dict[str, Any] = json.loads(seen.text)
    assert found["status"] == seen.status
    return seen.status, found["field"], found["detail"]


def test_invalid_bodies_name_the_field(registered: Client) -> None:
    rule = {"pattern": "/"}
    hook, new = {"target": "https://ci.example.com/hook"}, {"url": "n.test", "offline": True}
    asked: list[tuple[str, dict[str, Any], dict[str, Any], int, str | None, str]] = [
        ("add_domain", {}, {}, 422, "url", "url is missing"),
        ("add_domain", {"url": "file:///x"}, {}, 422, "url", "url: only http and https"),
        ("add_domain", {"url": URL, "colour": "red"}, {}, 422, "colour", "Extra inputs"),
        ("add_domain", {"url": URL}, {}, 409, "url", "is already registered"),
        ("add_domain", new | {"settings": {"include": ["x"]}}, {}, 422, "settings", "must begin with"),
        ("add_domain", new | {"settings": {"revisit": "odd"}}, {}, 422, "settings", "odd"),
        ("add_domain", new | {"settings": {"seeds": [URL]}}, {}, 422, "settings", "is not a page"),
        ("add_domain", new | {"tags": ["Big Site"]}, {}, 422, "tags", "is not the name of a tag"),
        ("import_urls", {"text": "n.test", "settings": {"exclude": ["x"]}}, {}, 422, "settings", "must begin with"),
        ("change_tag", {"settings": {"seeds": []}}, {"tag": "news"}, 422, "settings", "a tag has no seed"),
        ("change_tag", {"settings": {"speed": 1}}, {"tag": "news"}, 422, "settings.speed", "not a setting"),
        ("get_tag", {}, {"tag": "none"}, 404, "tag", "there is no tag none"),
        ("remove_tag", {}, {"tag": "none"}, 404, "tag", "there is no tag none"),
        ("change_domain", {}, {"domain": "nowhere.test"}, 404, None, "is not registered"),
        ("change_domain", {"settings": {"speed": 1}}, {"domain": "a.test"}, 422, "settings.speed", "not a setting"),
        (
            "change_domain",
            {"settings": {"delay_seconds": "x"}},
            {"domain": "a.test"},
            422,
            "settings.delay_seconds",
            "",
        ),
        (
            "change_domain",
            {"settings": {"budget_per_day": -1}},
            {"domain": "a.test"},
            422,
            "settings.budget_per_day",
            "",
        ),
        ("change_domain", {"settings": {"cookies": 1}}, {"domain": "a.test"}, 422, "settings.cookies", "true or false"),
        ("change_domain", {"settings": {"include": ["x"]}}, {"domain": "a.test"}, 422, "settings", "must begin with"),
        ("change_domain", {"paused": "maybe"}, {"domain": "a.test"}, 422, "paused", ""),
        ("add_rule", rule, {"domain": "a.test"}, 422, None, "has no effect"),
        ("add_rule", rule | {"weight": -1}, {"domain": "a.test"}, 422, "weight", "greater than 0"),
        ("add_rule", rule | {"ignore": [1]}, {"domain": "a.test"}, 422, "ignore.0", "string"),
        ("remove_rule", {}, {"domain": "a.test", "pattern": "/none"}, 404, None, "there is no rule"),
        ("remove_rule", {}, {"domain": "a.test"}, 400, "pattern", "pattern is missing"),
        ("act_on_pages", {"action": "paint", "urls": [URL]}, {"domain": "a.test"}, 422, "action", "'recrawl', 'boost'"),
        ("act_on_pages", {"action": "once", "urls": []}, {"domain": "a.test"}, 422, "urls", "at least 1"),
        ("act_on_pages", {"action": "once", "urls": ["/x", "b.test"]}, {"domain": "a.test"}, 422, "urls", "not a URL"),
        ("reset_clock", {}, {"domain": "nowhere.test"}, 404, None, "is not registered"),
        ("import_urls", {"text": "<html><p>x"}, {}, 422, "text", "neither OPML nor a sitemap"),
        ("recrawl", {"target": f"{URL}none"}, {}, 422, "target", "is not a page"),
        ("recrawl", {"target": "nowhere.test"}, {}, 404, "target", "is not registered"),
        ("add_hints", {"urls": [], "source": "cms"}, {}, 422, "urls", "at least 1"),
        ("add_hints", {"urls": [URL], "source": "No"}, {}, 422, "source", "not a valid source name"),
        ("try_page", {"url": "http://nowhere.test/"}, {}, 404, "url", "is not registered"),
        ("add_subscription", {"target": "x"}, {}, 422, "target", "a target is"),
        ("add_subscription", hook | {"kinds": ["odd"]}, {}, 422, "kinds.0", ""),
        ("add_subscription", hook | {"pattern": "x"}, {}, 422, "pattern", "must begin with"),
        ("add_subscription", hook | {"quiet_hours": "25-99"}, {}, 422, "quiet_hours", ""),
        ("add_subscription", hook | {"digest": "never"}, {}, 422, "digest", ""),
        ("add_subscription", hook | {"time_zone": "Moon"}, {}, 422, "time_zone", "not a time zone"),
        ("add_subscription", hook | {"condition": {"kind": "below"}}, {}, 422, "condition", "below needs bound"),
        (
            "add_subscription",
            hook | {"condition": {"kind": "below", "bound": 4, "text": "x"}},
            {},
            422,
            "condition",
            "below needs bound, and no text",
        ),
        ("add_subscription", hook | {"kinds": []}, {}, 422, "kinds", "at least one kind"),
        ("add_subscription", hook | {"secret": "hunter2"}, {}, 422, "secret", ""),
        ("change_subscription", {"paused": True}, {"number": 7}, 404, None, "there is no subscription 7"),
        ("discard_dead_letter", {}, {"number": 7}, 404, None, "there is no dead letter 7"),
    ]
    for operation, body, parameters, status, field, words in asked:
        found = problem(registered.send(operation, body, **parameters))
        assert (found[:2], words in found[2]) == ((status, field), True), (operation, body, found)


def test_a_change_replaces_lists_and_null_restores_defaults(registered: Client) -> None:
    def change(**settings: object) -> dict[str, Any]:
        changed: dict[str, Any] = registered.call("change_domain", {"settings": settings}, domain="a.test")["settings"]
        return {name: changed[name] for name in settings}

    assert change(seeds=[f"{URL}one", "/two"], max_age_seconds=3600)["seeds"] == [f"{URL}one", f"{URL}two"]
    assert change(seeds=["/three"]) == {"seeds": [f"{URL}three"]}
    assert change(target_freshness=0.95, max_age_seconds=None) == {"target_freshness": 0.95, "max_age_seconds": None}
    assert change(seeds=None, target_freshness=None, order="mixed") == {
        "seeds": [],
        "target_freshness": None,
        "order": "mixed",
    }
    assert change(keep_daily_seconds=86400, cookies=True, quota=10**9, language="de", include=["/a", "/b"]) == {
        "keep_daily_seconds": 86400,
        "cookies": True,
        "quota": 10**9,
        "language": "de",
        "include": ["/a", "/b"],
    }
    assert change(cookies=None, language="", include=[]) == {"cookies": False, "language": "", "include": []}


def test_lists_of_settings_are_read_in_parts(registered: Client) -> None:
    for name in ("c.test", "b.test"):
        registered.call("add_domain", {"url": f"http://{name}/", "offline": True})
    hooks = [registered.call("add_subscription", {"target": f"https://ci.example.com/{n}"})["number"] for n in range(3)]

    def read(operation: str, field: str) -> list[Any]:
        rows, after = [], dict[str, str]()
        while True:
            part = registered.call(operation, limit=2, **after)
            rows += [each[field] for each in part["items"]]
            if part["next"] is None:
                return rows
            assert len(part["items"]) == 2
            after = {"after": part["next"]}

    assert read("list_domains", "domain") == ["a.test", "b.test", "c.test"]
    assert read("list_subscriptions", "number") == hooks


def test_actions_on_pages_change_rules_and_make_pages_due(registered: Client) -> None:
    urls = [f"{URL}one", f"{URL}two"]

    def act(action: str) -> dict[str, Any]:
        done: dict[str, Any] = registered.call("act_on_pages", {"action": action, "urls": urls}, domain="a.test")
        return done

    assert act("boost") == {"pages": 2, "run": None, "wait": None}
    assert act("once")["pages"] == 2
    rules = registered.call("list_rules", domain="a.test")["items"]
    assert {(each["pattern"], each["weight"], each["once"]) for each in rules} == {
        ("/one$", 4.0, True),
        ("/two$", 4.0, True),
    }
    refused = registered.send("act_on_pages", {"action": "recrawl", "urls": urls}, domain="a.test")
    assert problem(refused)[:2] == (422, "urls"), "nothing was crawled yet"


def test_invalid_tag_leaves_the_settings_unchanged(registered: Client) -> None:
    before = registered.call("get_domain", domain="a.test")
    body = {"settings": {"max_depth": 3}, "tags": ["Big Site"]}
    assert problem(registered.send("change_domain", body, domain="a.test"))[:2] == (422, "tags")
    assert registered.call("get_domain", domain="a.test")["settings"] == before["settings"]


def test_bodies_are_json_of_bounded_size(registered: Client, anonymous: Visitor) -> None:
    headers = {"Authorization": f"Bearer {registered.token}", "Content-Type": "application/json"}

    def post(body: bytes, **changed: str) -> tuple[int, str | None, str]:
        return problem(anonymous.ask("POST", "/api/v1/recrawls", body, headers | changed))

    assert post(b"{")[0] == 400
    assert post(b'{"target": 1' + b"0" * 5000 + b"}")[0] in {400, 422}
    assert post(b"[" * 100_000)[0] in {400, 422}
    assert post(b'"x"')[0] == 422
    assert post(b"")[:2] == (422, None)
    assert post(b'{"target": "' + b"x" * (1 << 20) + b'"}')[0] == 413
    assert post(b"target=a.test", **{"Content-Type": "application/x-www-form-urlencoded"})[0] == 415
    assert problem(anonymous.ask("DELETE", "/api/v1/recrawls", b"", headers))[0] == 405
    assert problem(anonymous.ask("POST", "/api/v1/nothing", b"{}", headers))[0] == 404


def test_token_needs_no_origin_and_a_foreign_one_is_refused(registered: Client, anonymous: Visitor) -> None:
    body = {"target": "a.test"}
    assert registered.send("recrawl", body).status == 202
    assert registered.send("recrawl", body, {"Origin": anonymous.address}).status == 202
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}):
        assert registered.send("recrawl", body, headers).status == 403
    for session in ("", anonymous.log_in().headers["set-cookie"].partition(";")[0]):
        cookie = {"Cookie": session, "Origin": anonymous.address}
        assert Client(anonymous).send("recrawl", body, cookie).status == 401
        assert anonymous.post("/refresh", {"name": "a.test"}, Cookie="", Authorization=registered.token).status == 401


def test_changed_subscription_says_why_it_is_not_run(registered: Client, database_url: str) -> None:
    number = registered.call("add_subscription", {"target": "https://ci.example.com/hook"})["number"]
    execute(database_url, "UPDATE subscription SET kinds = '{changed,renamed}'")  # as a later version does

    assert (
        "its kind (renamed)" in registered.call("change_subscription", {"paused": True}, number=number)["not_run_here"]
    )


def test_no_token_can_add_a_program(registered: Client, recrawl: Recrawl) -> None:
    program = {"target": "command:/bin/true"}
    assert problem(registered.send("add_subscription", program))[:2] == (422, "target")
    hook = registered.call("add_subscription", {"target": "https://ci.example.com/hook"})["number"]
    assert problem(registered.send("change_subscription", program, number=hook))[:2] == (422, "target")
    assert recrawl("notify", "add", "command:/bin/true").code == 0
    own = registered.call("list_subscriptions")["items"][-1]["number"]
    # Its other fields can be changed, and it stays signed.
    changed = registered.call("change_subscription", {"digest": "1h"}, number=own)
    assert (changed["target"], changed["digest"], changed["not_run_here"]) == ("command:/bin/true", "1h", None)
    assert registered.call("test_subscription", number=own)["is_sent"]
    assert problem(registered.send("change_subscription", {"target": "command:/bin/false"}, number=own))[0] == 422


def test_same_idempotency_key_gets_the_first_response(registered: Client) -> None:
    key = {"Idempotency-Key": "8e03978e-40d5-43dd-bc93-6894a57f9324"}
    body = {"target": "https://ci.example.com/hook"}

    first = registered.send("add_subscription", body, key)
    again = registered.send("add_subscription", body, key)
    other = registered.send("add_subscription", body | {"digest": "1h"}, key)
    elsewhere = registered.send("recrawl", {"target": "a.test"}, key)
    without = registered.send("add_subscription", body)

    assert (first.status, first.headers["location"]) == (201, "/api/v1/subscriptions/1")
    assert (again.status, again.text, again.headers["location"]) == (201, first.text, first.headers["location"])
    assert ("idempotency-replayed" in first.headers, again.headers["idempotency-replayed"]) == (False, "true")
    assert [problem(seen)[0] for seen in (other, elsewhere)] == [422, 422]
    assert json.loads(without.text)["number"] == 2
    assert len(registered.call("list_subscriptions")["items"]) == 2
    registered.call("add_user", {"name": "bob", "role": "view"})
    invited = [registered.send("invite_user", {}, key, name="bob") for key in ({"Idempotency-Key": "i"},) * 2]
    assert ([seen.status for seen in invited], invited[0].text == invited[1].text) == ([201, 201], False), "not kept"
    for bad in ("", "x" * 256):
        assert problem(registered.send("recrawl", {"target": "a.test"}, {"Idempotency-Key": bad}))[0] == 400


def test_request_with_a_running_key_is_rejected(client: Client, site: Site, recrawl: Recrawl) -> None:
    body = {"url": site.url, "settings": {"allow_private": True, "delay_seconds": 0}}
    key, seen = {"Idempotency-Key": "1"}, list[Seen]()
    thread = Thread(target=lambda: seen.append(client.send("add_domain", body, key)))
    with site.gate:
        asked = len(site.asked)
        thread.start()
        deadline = time.monotonic() + PATIENCE_S
        while len(site.asked) == asked and time.monotonic() < deadline:
            time.sleep(0.01)
        running = client.send("add_domain", body, key)
    thread.join(PATIENCE_S)

    assert (problem(running)[0], running.headers["retry-after"], seen[0].status) == (409, "5", 201)
    assert client.send("add_domain", body, key).text == seen[0].text
    trials = [client.send("try_page", {"url": site.url}, key) for _ in range(2)]
    assert [each.status for each in trials] == [200, 200]
    assert "idempotency-replayed" not in trials[1].headers, "a trial has no effect, and its texts are not kept"


def test_error_is_not_kept_for_its_key(registered: Client) -> None:
    key = {"Idempotency-Key": "1"}
    assert registered.send("recrawl", {"target": "b.test"}, key).status == 404
    registered.call("add_domain", {"url": "b.test", "offline": True})
    assert registered.send("recrawl", {"target": "b.test"}, key).status == 202


def test_concurrent_changes_of_a_domain_are_all_kept(registered: Client) -> None:
    rules = [{"pattern": f"/{n}/", "weight": 2.0} for n in range(12)]

    with ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(lambda rule: registered.send("add_rule", rule, domain="a.test").status, rules))

    kept = registered.call("list_rules", domain="a.test")["items"]
    assert statuses == [200] * 12
    assert {rule["pattern"] for rule in kept} == {rule["pattern"] for rule in rules}


def test_unreadable_kept_responses_are_a_problem_document(registered: Client, tmp_path: Path) -> None:
    file = ensure_private_folder(tmp_path, "run") / "kept-responses.sqlite"
    file.write_bytes(b"not a database" * 100)

    status, _, detail = problem(registered.send("recrawl", {"target": "a.test"}, {"Idempotency-Key": "1"}))

    assert status == 503
    assert "the kept responses cannot be read" in detail


def test_kept_responses_expire_and_are_bounded(tmp_path: Path) -> None:
    kept, made = KeptResponses(tmp_path), KeptResponse("request", 201, "/x", b"{}")
    kept.keep("token", "a", made, at=NOW)

    assert kept.find("token", "a", at=NOW + LIFETIME - timedelta(seconds=1)) == made
    assert kept.find("token", "a", at=NOW + LIFETIME) is None
    assert kept.find("other", "a", at=NOW) is None
    large = KeptResponse("request", 200, "", b"x" * (MAX_TOTAL_BYTES // 2))
    for n, key in enumerate(("b", "c")):
        kept.keep("token", key, large, at=NOW + timedelta(seconds=n + 1))
    kept.keep("other", "c", large, at=NOW + timedelta(seconds=9))
    assert [key for key in "abc" if kept.find("token", key, at=NOW + timedelta(minutes=1))] == ["c"]
    assert (tmp_path / "run" / "kept-responses.sqlite").stat().st_mode & 0o077 == 0


def test_files_of_earlier_tokens_are_read_as_tokens_that_read(
    anonymous: Visitor, recrawl: Recrawl, tmp_path: Path
) -> None:
    token = recrawl("tokens", "add", "old").out.strip()
    file = tmp_path / "run" / "api-tokens.json"
    file.write_text(
        json.dumps([{k: v for k, v in each.items() if k != "scopes"} for each in json.loads(file.read_text())])
    )

    assert Client(anonymous, token).send("list_domains").status == 200
    assert Client(anonymous, token).send("recrawl", {"target": "a.test"}).status == 403
    assert [each["scopes"] for each in recrawl("tokens", "list", "--json").json["tokens"]] == [["read"]]
    assert "read" in recrawl("tokens", "list").out
    assert (
        "'write' is not a scope: use read, crawl, admin" in recrawl("tokens", "add", "x", "--scope", "write").complaint
    )
