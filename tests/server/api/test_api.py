"""The HTTP API from the view of a client: a server process, tokens, and the OpenAPI document."""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest

from crawler.app.running.serving import IndexSyncer
from crawler.errors import BadInput
from crawler.export.sqlite_index import is_searchable, search
from crawler.runtime.keys.api_tokens import create_token, find_token, list_tokens, revoke_token
from crawler.runtime.machine import get_search_file
from crawler.server.api.gate import RateLimit
from tests.commands import Recrawl, Site
from tests.patience import PATIENCE_S
from tests.server.conftest import Seen, Visitor, crawl_three_pages

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Program:
    """A client with a token."""

    visitor: Visitor
    token: str

    def get(self, name: str, **given: str | int) -> Seen:
        query = f"?{urlencode(given)}" if given else ""
        return self.visitor.get(f"/api/v1/{name}{query}", Authorization=f"Bearer {self.token}")

    def json(self, name: str, **given: str | int) -> Any:
        seen = self.get(name, **given)
        assert (seen.status, seen.headers["content-type"]) == (200, "application/json"), seen.text
        return json.loads(seen.text)


@pytest.fixture(scope="module")
def mill(read: Recrawl, shared_site: Site) -> Site:
    """Return a site that was crawled once, for tests that only read."""
    crawl_three_pages(read, shared_site)
    return shared_site


@pytest.fixture(scope="module")
def client(read: Recrawl, shared_anonymous: Visitor) -> Program:
    """Return a client of the database that the module's tests share; they may ask 40 times at once with one token."""
    return Program(shared_anonymous, read("tokens", "add", "search").out.strip())


@pytest.fixture
def program(recrawl: Recrawl, anonymous: Visitor) -> Program:
    token = recrawl("tokens", "add", "search").out.strip()
    return Program(anonymous, token)


def problem(seen: Seen) -> Mapping[str, Any]:
    assert seen.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = json.loads(seen.text)
    assert found["status"] == seen.status
    return found


def test_responses_equal_the_json_of_the_commands(mill: Site, client: Program, read: Recrawl) -> None:
    changes = client.json("changes")
    told = read("changes", "--json", "--diff").json["changes"]
    assert changes["items"] == told
    assert changes["next"] == str(told[-1]["position"])
    assert [each["domain"] for each in client.json("domains")["items"]] == [mill.name]
    page = client.json("text", url=f"{mill.url}one")
    assert (page["version"], page["state"]) == (1, "fetched")
    assert page["text"] == read("show", f"{mill.url}one", "--text").out.strip("\n")
    assert page["content"] == read("show", f"{mill.url}one", "--content").out.strip("\n")
    [version] = client.json("versions", url=f"{mill.url}one")["items"]
    assert (version["number"], version["change"]) == (1, "added")
    [report] = client.json("freshness")["items"]
    assert (report["domain"], report["fetched"]) == (mill.name, 3)


def test_search_builds_and_updates_its_index(crawled: Site, program: Program) -> None:
    first = program.get("search", q="rye")
    deadline = time.monotonic() + PATIENCE_S
    hits: list[Any] = []
    while not hits and time.monotonic() < deadline:
        seen = program.get("search", q="sown autumn")
        hits = json.loads(seen.text)["items"] if seen.status == 200 else []
        time.sleep(0.1)

    assert (problem(first)["status"], first.headers["retry-after"]) == (503, "5")
    assert "is being built: try again later" in problem(first)["detail"]
    assert [(hit["url"], "[sown]" in hit["excerpt"]) for hit in hits] == [(f"{crawled.url}one", True)]
    assert problem(program.get("search", q='"'))["detail"] == "search for one to 32 words"


def test_index_updates_run_one_at_a_time_and_report_errors(
    recrawl: Recrawl, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.page("/", text="Rye is sown in autumn and cut in July.")
    assert recrawl("crawl", site.url, "--allow-private").code == 0
    file = get_search_file(tmp_path)

    async def search_twice() -> None:
        keeper = IndexSyncer(tmp_path, pause=timedelta(0))
        keeping = asyncio.create_task(keeper.run())
        keeper.request_sync()
        async with asyncio.timeout(PATIENCE_S):
            while not is_searchable(file) or not search(file, "rye"):
                await asyncio.sleep(0.05)
        monkeypatch.setenv("RECRAWL_DATABASE_URL", "postgresql://127.0.0.1:9/none")
        async with asyncio.timeout(PATIENCE_S):
            while "cannot open the database" not in keeper.request_sync():
                await asyncio.sleep(0.05)
        keeping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await keeping

    asyncio.run(search_twice())

    assert [hit.url for hit in search(file, "rye")] == [site.url]  # the old index can still be searched


def test_cursor_pages_through_all_items(mill: Site, client: Program) -> None:
    urls: list[str] = []
    after = ""
    while True:
        answer = client.json("pages", domain=mill.name, limit=2, content="true", **({"after": after} if after else {}))
        urls += [each["url"] for each in answer["items"]]
        assert all(each["content"] for each in answer["items"])
        if answer["next"] is None:
            break
        after = answer["next"]
    positions = [int(client.json("changes", after=n, limit=1)["next"]) for n in range(4)]

    assert sorted(urls) == [mill.url, f"{mill.url}one", f"{mill.url}two"]
    assert positions == [1, 2, 3, 3]
    assert client.json("changes", kind="gone") == {
        "items": [],
        "next": "3",
    }  # the cursor advances even without matches
    assert [each["url"] for each in client.json("changes", q="/o one")["items"]] == [f"{mill.url}one"]
    assert client.json("pages", domain=mill.name)["items"][0]["content"] is None


def test_pages_of_a_domain_are_listed_by_state_words_and_order(mill: Site, client: Program) -> None:
    path = f"domains/{mill.name}/pages"

    def list_urls(**given: str | int) -> list[str]:
        urls: list[str] = []
        part: Any = {"next": ""}
        while part["next"] is not None:
            part = client.json(path, **given, **({"after": part["next"]} if part["next"] else {}))
            urls += [each["url"].removeprefix(mill.url) for each in part["items"]]
        return urls

    assert list_urls(sort="url", limit=2) == ["", "one", "two"]
    assert list_urls(q="one") == ["one"]
    assert list_urls(state="gone") == []
    page = client.json(path, q="one")["items"][0]
    assert (page["category"], page["status"], page["version"], page["request_reason"]) == ("fetched", 200, 1, None)
    assert "is not a list of pages" in problem(client.get(path, state="odd"))["detail"]
    assert problem(client.get(path, sort="odd"))["status"] == 400
    assert "not a valid cursor" in problem(client.get(path, after="x"))["detail"]
    only = problem(client.get("diff", url=f"{mill.url}one"))
    assert (only["status"], "has only one version" in only["detail"]) == (404, True)


def test_openapi_document_describes_what_is_read(mill: Site, client: Program) -> None:
    document = json.loads(client.visitor.get("/api/v1/openapi.json").text)  # without a token

    reads = [methods["get"] for methods in document["paths"].values() if "get" in methods]
    assert all("422" not in operation["responses"] for operation in reads)
    assert document["components"]["schemas"]["DomainReport"]["properties"]["window"]["description"] == "seconds"
    assert document["servers"] == [{"url": client.visitor.address}]


def test_request_without_valid_token_is_rejected_even_with_a_session(program: Program, recrawl: Recrawl) -> None:
    nobody = program.visitor.get("/api/v1/domains")
    wrong = Program(program.visitor, "recrawl_wrong").get("domains")
    program.visitor.log_in()
    browser = program.visitor.get("/api/v1/domains")
    assert [problem(seen)["status"] for seen in (nobody, wrong, browser)] == [401, 401, 401]
    assert nobody.headers["www-authenticate"].startswith("Bearer")
    assert program.get("domains").status == 200
    assert program.visitor.get("/", Cookie="", Authorization=f"Bearer {program.token}").status == 401
    assert recrawl("tokens", "revoke", "search").code == 0
    assert program.get("domains").status == 401  # takes effect at once


def test_invalid_request_returns_a_problem_document(mill: Site, client: Program) -> None:
    asked: list[tuple[str, dict[str, str | int], int, str]] = [
        ("changes", {"limit": 100_000}, 400, "limit: Input should be less than or equal to 1000, not '100000'"),
        ("changes", {"after": "-1"}, 400, "after: Input should be greater than or equal to 0, not '-1'"),
        ("changes", {"what": "nowhere.example"}, 404, "is not registered"),
        ("changes", {"kind": "odd"}, 400, "not a kind of change"),
        ("changes", {"after": 4}, 400, "the feed ends at 3, before cursor 4"),
        ("changes", {"since": "soon"}, 400, "since: "),
        ("changes", {"color": "red"}, 400, "color is not a parameter"),
        ("pages", {}, 400, "domain is missing"),
        ("pages", {"domain": mill.name, "after": "xyz"}, 400, "after: "),
        ("text", {"url": f"{mill.url}nothing"}, 404, "no such version"),
        ("text", {"url": f"{mill.url}one", "version": 2**31}, 400, "version: "),
        ("nothing", {}, 404, "openapi.json for all paths"),
    ]
    for name, given, status, words in asked:
        found = problem(client.get(name, **given))
        assert (found["status"], words in found["detail"]) == (status, True), found


def test_empty_parameter_counts_as_missing_and_head_has_no_body(mill: Site, client: Program) -> None:
    given = {"Authorization": f"Bearer {client.token}"}
    empty = client.json("changes", limit="", kind="", since="")
    head = client.visitor.ask("HEAD", "/api/v1/domains", b"", given)
    posted = client.visitor.ask("POST", "/api/v1/pages", b"", given)

    assert len(empty["items"]) == 3
    assert problem(client.get("pages", domain=""))["detail"] == "domain is missing"
    assert (head.status, head.text, head.headers["content-type"]) == (200, "", "application/json")
    assert (problem(posted)["status"], posted.headers["allow"]) == (405, "GET")


def test_cursor_before_the_oldest_change_is_reported(crawled: Site, program: Program, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE domain_state SET forgotten_until = 2")

    found = problem(program.get("changes", after=1))

    assert (found["status"], "export all pages again" in found["detail"]) == (410, True)
    assert program.json("changes", after=2)["next"] == "3"


def test_rate_limit_returns_the_seconds_to_wait() -> None:
    at = 0.0
    rate = RateLimit(per_second=2, burst=3, now=lambda: at)
    assert [rate.count_request("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert rate.count_request("b") == 0
    at = 0.5
    assert (rate.count_request("a"), rate.count_request("a")) == (0, 0.5)


def test_only_hashes_of_tokens_are_stored(tmp_path: Path) -> None:
    made = create_token(tmp_path, "search", expires_at=None, at=NOW)
    short = create_token(tmp_path, "short", expires_at=NOW + timedelta(days=1), at=NOW)
    file = tmp_path / "run" / "api-tokens.json"

    assert made not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    assert [each.name for each in list_tokens(tmp_path)] == ["search", "short"]
    assert find_token(tmp_path, short, at=NOW) is not None
    assert find_token(tmp_path, short, at=NOW + timedelta(days=1)) is None
    with pytest.raises(BadInput, match="already"):
        create_token(tmp_path, "search", expires_at=None, at=NOW)
    revoke_token(tmp_path, "search")
    assert find_token(tmp_path, made, at=NOW) is None
    with pytest.raises(BadInput, match="no token search"):
        revoke_token(tmp_path, "search")
