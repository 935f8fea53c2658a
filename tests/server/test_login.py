"""Logging in as a user: sessions, brute force, forged headers of a proxy, and the log of what forms do."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crawler.errors import BadInput
from crawler.runtime.web_ui import find_web_ui
from crawler.server.throttle import FREE_FAILURES, MAX_KEYS, MAX_WAIT, MEMORY, LoginThrottle
from crawler.settings import Settings, get_settings
from tests.commands import Recrawl, Site
from tests.server.conftest import CSRF_TOKEN, Seen, Visitor, served

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PASSWORD, OTHER = "correct horse battery", "staple of the horse"
CODE = re.compile(r"/invitation\?code=[\w-]+")
HOSTILE = [
    *(
        "",
        " ",
        "alice'--",
        "alice\0",
        "<script>alert(1)</script>",
        "{{7*7}}",
        "../../etc",
        "a" * 100_000,
        "%",
        "ALICE\n",
    ),
    *("\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "\u202eecila", "\u0430lice"),
]


@pytest.fixture
def alice(recrawl: Recrawl, anonymous: Visitor) -> Visitor:
    """Return a client that is not logged in, of a server where Alice is a user with the role view."""
    add_user(recrawl, "alice")
    return anonymous


def add_user(recrawl: Recrawl, name: str, role: str = "view") -> None:
    assert recrawl("users", "add", name, "--role", role).code == 0
    assert recrawl("users", "set", name, "--password", stdin=f"{PASSWORD}\n").code == 0


def again(visitor: Visitor) -> Visitor:
    """Return another browser of the same server."""
    return Visitor(visitor.address, visitor.login_link)


def test_user_logs_in_and_out(alice: Visitor) -> None:
    for form, back in ((alice.get("/changes?kind=gone"), "/changes?kind=gone"), (alice.post("/refresh", {}), "/")):
        assert (form.status, f'name="back" value="{back}"' in form.text) == (401, True)
    shown = alice.get("/domains")
    assert (shown.status, 'type="password"' in shown.text, "recrawl ui" in shown.words) == (401, True, True)
    seen = alice.log_in_as("Alice", PASSWORD)
    assert (seen.status, seen.headers["location"]) == (303, "/")
    said = seen.headers["set-cookie"].lower()
    assert ("httponly" in said, "samesite=strict" in said, "secure" in said) == (True, True, False)
    account = alice.get("/account").words
    assert "Name alice Role view" in account
    assert alice.get("/login").status == 303

    cookie = alice.cookie
    token = {"csrf_token": alice.find_csrf_token()}
    assert alice.post("/logout", {}).status == 403, "without a CSRF token"
    assert alice.post("/logout", token).status == 303
    assert again(alice).get("/", Cookie=cookie).status == 401


def test_session_of_a_login_link_ends_by_logging_out(visitor: Visitor) -> None:
    assert visitor.post("/logout", {"csrf_token": visitor.find_csrf_token()}).status == 303
    assert visitor.get("/").status == 401


def test_cookie_is_secure_behind_https(recrawl: Recrawl, database_url: str, tmp_path: Path) -> None:
    origin = "https://recrawl.example"
    add_user(recrawl, "alice")
    with served(database_url, tmp_path, web_origins=(origin,)) as visitor:
        running = find_web_ui(tmp_path)
        assert running is not None
        visitor.address = f"http://127.0.0.1:{running.port}"
        seen = visitor.log_in_as("alice", PASSWORD, Host="recrawl.example", Origin=origin)
    assert seen.status == 303
    assert "secure" in seen.headers["set-cookie"].lower()


def test_wrong_logins_do_not_say_what_is_wrong(recrawl: Recrawl, alice: Visitor) -> None:
    add_user(recrawl, "bob")
    recrawl("users", "set", "bob", "--disable")
    recrawl("users", "add", "carol")  # has no password yet
    tried = [("alice", "wrong"), ("nobody", PASSWORD), ("bob", PASSWORD), ("carol", ""), ("carol", PASSWORD)]
    seen = [again(alice).log_in_as(*each) for each in tried]
    assert {each.status for each in seen} == {403}
    assert len({each.text for each in seen}) == 1
    assert not any("set-cookie" in each.headers for each in seen)


def test_login_needs_this_origin(alice: Visitor) -> None:
    form = {"name": "alice", "password": PASSWORD}
    assert alice.post("/login", form, Origin="http://evil.example").status == 403
    assert alice.post("/login", form, Origin="null").status == 403
    assert alice.post("/login", form, Host="evil.example").status == 403
    assert alice.ask("POST", "/login", b"name=alice", {}).status == 403
    assert alice.post("/login", form | {"back": "//evil.example/"}).headers["location"] == "/"
    assert alice.post("/login", form | {"back": "/\\evil.example"}).headers["location"].startswith("/%5C")
    assert alice.post("/login", form | {"back": "/changes?kind=gone"}).headers["location"] == "/changes?kind=gone"


def test_session_is_not_fixed_before_the_login(alice: Visitor) -> None:
    """A cookie that an attacker has set before is not the session afterwards, and the one before ends."""
    name = f"recrawl_{alice.address.rpartition(':')[2]}"
    alice.cookie = f"{name}=chosen-by-the-attacker"
    alice.log_in_as("alice", PASSWORD)
    first = alice.cookie
    assert "chosen" not in first
    assert again(alice).get("/", Cookie=f"{name}=chosen-by-the-attacker").status == 401
    alice.log_in_as("alice", PASSWORD)
    assert alice.cookie != first
    assert again(alice).get("/", Cookie=first).status == 401


def test_csrf_token_belongs_to_one_session(recrawl: Recrawl, alice: Visitor) -> None:
    add_user(recrawl, "eve", "admin")
    eve = again(alice)
    eve.log_in_as("eve", PASSWORD)
    alice.log_in_as("alice", PASSWORD)
    stolen = {"csrf_token": eve.find_csrf_token()}
    assert alice.post("/account/password", stolen).status == 403
    assert "does not belong" in alice.post("/account/password", stolen).words


@pytest.mark.parametrize(
    "command",
    [("set", "alice", "--disable"), ("set", "alice", "--password"), ("remove", "alice")],
    ids=["disable", "password", "remove"],
)
def test_session_ends(recrawl: Recrawl, alice: Visitor, command: tuple[str, ...]) -> None:
    alice.log_in_as("alice", PASSWORD)
    assert alice.get("/").status == 200
    assert recrawl("users", *command, stdin=f"{OTHER}\n").code == 0
    assert alice.get("/").status == 401


def test_user_changes_the_own_password(alice: Visitor) -> None:
    phone = again(alice)
    phone.log_in_as("alice", PASSWORD)
    alice.log_in_as("alice", PASSWORD)

    def change(current: str, password: str, repeated: str = OTHER) -> Seen:
        form = {"csrf_token": alice.find_csrf_token(), "current": current, "password": password, "again": repeated}
        return alice.post("/account/password", form)

    assert "not correct" in change("wrong", OTHER).words
    assert "differ" in change(PASSWORD, f"{OTHER}!").words
    for _ in range(FREE_FAILURES["name"] + 1):  # a typo in the new password does not count as a wrong password
        assert "12 to" in change(PASSWORD, "short", "short").words
    seen = change(PASSWORD, OTHER)
    assert seen.status == 303
    assert phone.get("/").status == 401
    alice.cookie = seen.headers["set-cookie"].partition(";")[0]
    assert "Your password was changed" in alice.get("/account").words
    assert phone.log_in_as("alice", OTHER).status == 303


def test_invitation_sets_a_password_once(recrawl: Recrawl, anonymous: Visitor) -> None:
    link = recrawl("users", "add", "alice").out.strip().removeprefix(anonymous.address)
    assert CODE.fullmatch(link), "the address of the running server"
    assert "invited as alice" in anonymous.get(link).words
    code = link.partition("=")[2]
    form = {"code": code, "password": PASSWORD, "again": PASSWORD}
    assert anonymous.post("/invitation", form, Origin="http://evil.example").status == 403
    assert "differ" in anonymous.post("/invitation", form | {"again": OTHER}).words
    seen = anonymous.post("/invitation", form)
    assert (seen.status, "set-cookie" in seen.headers) == (303, True)
    assert anonymous.post("/invitation", form).status == 403
    assert anonymous.get(link).status == 403
    assert anonymous.get("/invitation?code=guessed").status == 403
    assert anonymous.log_in_as("alice", PASSWORD).status == 303


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: repr(name[:12]))
def test_hostile_names_get_nothing(alice: Visitor, name: str) -> None:
    seen = alice.log_in_as(name, PASSWORD if name.strip().lower() != "alice" else "wrong")
    assert seen.status == 403
    assert "<script>" not in seen.text
    alice.log_in()
    made = alice.send("/users/add", name=name, role="admin")
    assert made.status == 200
    assert "exists already" in made.words or "the name of a user has" in made.words
    assert "<script>" not in alice.get(f"/actions?by={'%3Cscript%3E'}").text


def test_guessing_is_slowed_down(recrawl: Recrawl, alice: Visitor) -> None:
    add_user(recrawl, "bob")
    free = FREE_FAILURES["name"]
    seen = [alice.log_in_as("alice", f"guess {n}") for n in range(free + 5)]
    assert [each.status for each in seen[:free]] == [403] * free
    delayed = [each for each in seen if each.status == 429]
    assert delayed
    assert all(int(each.headers["retry-after"]) >= 1 and "try again in" in each.words for each in delayed)
    assert alice.log_in_as("bob", PASSWORD).status == 303, "another user of the same address"
    assert again(alice).log_in().status == 303, "a login link"


def test_waits_grow_and_are_bounded() -> None:
    throttle, at, waits = LoginThrottle(), NOW, list[timedelta]()
    for _ in range(30):
        wait = throttle.begin("alice", "192.0.2.1", at=at)
        waits.append(wait)
        if wait:
            assert throttle.begin("alice", "198.51.100.9", at=at) == wait, "from anywhere"
            at += wait
            assert throttle.begin("alice", "192.0.2.1", at=at) == timedelta(0)
    growing = [wait for wait in waits if wait]
    assert growing[:4] == [timedelta(seconds=2**n) for n in range(4)]
    assert max(growing) == MAX_WAIT
    assert throttle.begin("alice", "192.0.2.1", at=at + MEMORY) == timedelta(0)


def test_success_forgets_the_failures_of_a_name() -> None:
    throttle = LoginThrottle()
    for n in range(100):
        assert throttle.begin("alice", "192.0.2.1", at=NOW) == timedelta(0), n
        throttle.succeed("alice", "192.0.2.1")


def test_one_address_cannot_try_many_names() -> None:
    throttle = LoginThrottle()
    free = FREE_FAILURES["address"]
    waits = [throttle.begin(f"user{n}", f"2001:db8::{n:x}", at=NOW) for n in range(free + 1)]
    assert waits == [timedelta(0)] * free + [timedelta(seconds=1)], "all addresses of a site count as one"
    assert throttle.begin("user0", "2001:db8:0:1::1", at=NOW) == timedelta(0)


def test_memory_of_failures_is_bounded() -> None:
    throttle = LoginThrottle()
    for n in range(MAX_KEYS):
        throttle.begin(f"user{n}", f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}", at=NOW)
    assert len(throttle._failures) <= MAX_KEYS


TRUST = {"trust_header": "X-User", "trusted_proxies": ("127.0.0.1/32",)}
GROUPS = {"trust_groups_header": "X-Groups", "trust_groups": (("staff", "view"), ("ops", "admin"))}


def test_header_of_a_trusted_proxy_names_the_user(recrawl: Recrawl, database_url: str, tmp_path: Path) -> None:
    recrawl("users", "add", "alice@example.com", "--role", "edit")
    recrawl("users", "add", "bob")
    recrawl("users", "set", "bob", "--disable")
    with served(database_url, tmp_path, **TRUST) as visitor:
        assert "alice@example.com Role edit" in visitor.get("/account", **{"X-User": "Alice@Example.com"}).words
        assert visitor.get("/users", **{"X-User": "alice@example.com"}).status == 403
        for name in ("bob", "nobody", *HOSTILE[2:4], "a" * 100, "alice@example.com, bob"):
            if "\0" not in name:
                assert visitor.get("/", **{"X-User": name}).status == 403, name
        assert visitor.get("/").status == 401, "no header"
        visitor.headers = {"X-User": "alice@example.com"}
        token = CSRF_TOKEN.search(visitor.get("/domains").text)
        assert token is not None
        assert visitor.post("/changes/read", {"position": "0"}).status == 403
        assert visitor.post("/changes/read", {"position": "0", "csrf_token": token[1]}).status == 303
        assert visitor.post("/changes/read", {"csrf_token": token[1]}, Origin="http://evil.example").status == 403
        assert visitor.get("/api/v1/domains").status == 401, "the API needs a token"
        recrawl("users", "remove", "alice@example.com")
        assert visitor.get("/").status == 403


def test_groups_of_a_trusted_proxy_give_the_role(recrawl: Recrawl, database_url: str, tmp_path: Path) -> None:
    recrawl("users", "add", "carol", "--role", "admin")
    recrawl("users", "add", "eve")
    recrawl("users", "set", "eve", "--disable")
    with served(database_url, tmp_path, **TRUST, **GROUPS) as visitor:

        def find_role(name: str, groups: str) -> str:
            found = re.search(r"Role (\w+)", visitor.get("/account", **{"X-User": name, "X-Groups": groups}).words)
            return found[1] if found else ""

        assert find_role("alice", "staff") == "view"
        assert find_role("alice", "all, ops,staff") == "admin"
        assert find_role("alice", "admin") == "", "a group that is named like a role"
        assert find_role("carol", "guests") == "", "the groups alone decide"
        assert find_role("eve", "ops") == "", "disabled here"


def test_header_of_anybody_else_is_ignored(recrawl: Recrawl, database_url: str, tmp_path: Path) -> None:
    recrawl("users", "add", "alice", "--role", "admin")
    forged = {"X-User": "alice", "X-Groups": "ops", "X-Forwarded-For": "10.0.0.5", "X-Real-IP": "10.0.0.5"}
    for settings in ({}, TRUST | {"trusted_proxies": ("10.0.0.0/8",)}):
        with served(database_url, tmp_path, **settings) as visitor:
            assert visitor.get("/", **forged).status == 401
            assert visitor.log_in().status == 303
            assert "local Role admin" in visitor.get("/account", **forged).words


def test_two_headers_are_refused(recrawl: Recrawl, database_url: str, tmp_path: Path) -> None:
    """A proxy that adds its header to the one that the client has sent must not be believed."""
    recrawl("users", "add", "alice", "--role", "admin")
    with served(database_url, tmp_path, **TRUST) as visitor:
        assert visitor.get("/", **{"X-User": "alice", "x-user": "alice"}).status == 403
    with served(database_url, tmp_path, **TRUST, **GROUPS) as visitor:
        assert visitor.get("/", **{"X-User": "alice", "X-Groups": "ops"}).status == 200
        assert visitor.get("/", **{"X-User": "alice", "X-Groups": "ops", "x-groups": "staff"}).status == 403


def test_forwarded_address_counts_only_from_a_trusted_proxy(
    recrawl: Recrawl, database_url: str, tmp_path: Path
) -> None:
    add_user(recrawl, "alice")
    forwarded = {"X-Forwarded-For": "203.0.113.7, 192.0.2.9"}
    for settings in ({}, TRUST):
        with served(database_url, tmp_path, **settings) as visitor:
            visitor.log_in_as("alice", PASSWORD, **forwarded)
    found = recrawl("actions", "log in", "--json").json["actions"]
    assert [each["address"] for each in found] == ["192.0.2.9", "127.0.0.1"]


@pytest.mark.parametrize(
    "variables",
    [
        {"RECRAWL_TRUST_HEADER": "X-User"},
        {"RECRAWL_TRUST_HEADER": "X User", "RECRAWL_TRUSTED_PROXIES": "10.0.0.1"},
        {"RECRAWL_TRUSTED_PROXIES": "everyone"},
        {"RECRAWL_TRUST_GROUPS": "ops=root", "RECRAWL_TRUST_GROUPS_HEADER": "X-Groups"},
        {"RECRAWL_TRUST_GROUPS": "ops=admin"},
    ],
    ids=lambda variables: ",".join(variables.values()),
)
def test_unsafe_settings_are_rejected(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    get_settings.cache_clear()
    with pytest.raises(BadInput, match="RECRAWL_TRUST"):
        get_settings()
    get_settings.cache_clear()


def test_settings_of_a_proxy_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECRAWL_TRUST_HEADER", "X-User")
    monkeypatch.setenv("RECRAWL_TRUSTED_PROXIES", "10.0.0.1, 172.18.0.0/16")
    monkeypatch.setenv("RECRAWL_TRUST_GROUPS_HEADER", "X-Groups")
    monkeypatch.setenv("RECRAWL_TRUST_GROUPS", "ops=admin, staff=view")
    found = Settings()
    assert found.trusted_proxies == ("10.0.0.1/32", "172.18.0.0/16")
    assert found.trust_groups == (("ops", "admin"), ("staff", "view"))


def test_feed_of_a_user_ends_with_the_access(recrawl: Recrawl, alice: Visitor) -> None:
    alice.log_in_as("alice", PASSWORD)
    found = re.search(r'/feed\.atom\?[^"]+', alice.get("/changes").text)
    assert found is not None
    path = found[0].replace("&amp;", "&")
    reader = again(alice)
    assert reader.get(path).status == 200
    assert reader.get(path.replace("user=alice", "user=bob")).status == 401
    assert reader.get(path.replace("user=alice&", "")).status == 401
    recrawl("users", "set", "alice", "--disable")
    assert reader.get(path).status == 401


def test_forms_are_recorded_with_who_sent_them(recrawl: Recrawl, crawled: Site, alice: Visitor) -> None:
    recrawl("users", "set", "alice", "--role", "admin")
    alice.log_in_as("alice", PASSWORD)
    name, url = crawled.name, f"{crawled.url}one"
    alice.send("/domains/set", name=name, group="budget", budget_per_day="70")
    alice.send("/domains/set", name=name, group="budget", budget_per_day="nonsense")
    alice.send("/domains/pause", name=name)
    alice.send("/domains/resume", name=name)
    alice.send("/refresh", name=name, what="/one")
    alice.send("/pages/act", name=name, url=url, action="boost")
    alice.send("/rules/new", name=name, pattern="/two", weight="2")
    alice.send("/rules/add", url=url, action="ignore", text="p", pattern="/three")
    alice.send("/rules/remove", name=name, pattern="/two")
    alice.send("/notifications/save", number="0", target="https://ci.example.com/hook", kind="changed")
    alice.send("/notifications/pause", number="1")
    alice.send("/notifications/remove", number="1")
    token = re.search(r"recrawl_\S+", alice.send("/tokens/add", name="ci", scope="read", days="9").words)
    assert token is not None
    assert alice.get("/api/v1/domains", Authorization=f"Bearer {token[0]}").status == 200
    alice.send("/tokens/revoke", name="ci")
    assert alice.get("/api/v1/domains", Authorization=f"Bearer {token[0]}").status == 401
    invited = alice.send("/users/add", name="bob", role="view")
    assert CODE.search(invited.words)
    assert not CODE.search(alice.get("/users").words), "shown once"
    for path in ("invite", "disable", "enable", "remove"):
        alice.send(f"/users/{path}", name="bob")
    alice.send("/domains/remove", name=name, confirmed=name)

    found = recrawl("actions", "--by", "alice", "--json").json["actions"]
    assert {(each["actor_kind"], each["address"]) for each in found} == {("user", "127.0.0.1")}
    assert [each["action"] for each in reversed(found)] == [
        *("log in", "change domain", "pause domain", "resume domain", "recrawl", "act on pages", "add rule"),
        *("add rule", "remove rule", "add subscription", "pause subscription", "remove subscription", "add token"),
        *("revoke token", "add user", "invite user", "change user", "change user", "remove user", "remove domain"),
    ]
    log = alice.get("/actions?by=alice&words=change+domain").words
    assert "Budget per day" in log
    assert token[0] not in str(found)
