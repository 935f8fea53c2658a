"""Login links, sessions and CSRF protection of the web UI."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

from crawler.runtime.keys.home_keys import Signer, build_login_link, ensure_key
from crawler.server import app
from crawler.server.access import CODE_LIFETIME, SESSION_LIFETIME, Authenticator
from crawler.server.ui import actions
from tests.commands import Recrawl, Site
from tests.server.conftest import CSRF_TOKEN, Visitor

PAGES = sorted(app.PAGES.keys() - {app.FEED_PATH})
FORMS = sorted(app.FORMS.keys() | actions.FORMS.keys())
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_pages_need_a_session(crawled: Site, anonymous: Visitor) -> None:
    for path in PAGES:
        seen = anonymous.get(path)
        assert seen.status == 401, path
        assert crawled.name not in seen.text
        assert "recrawl serve" in seen.words


def test_login_link_works_once(anonymous: Visitor) -> None:
    first = anonymous.log_in()
    assert (first.status, first.headers["location"]) == (303, "/")
    said = first.headers["set-cookie"].lower()
    assert "httponly" in said
    assert "samesite=strict" in said
    assert anonymous.get("/").status == 200

    other = Visitor(anonymous.address, anonymous.login_link)
    assert other.log_in().status == 403
    assert not other.cookie


def test_forged_session_is_rejected(anonymous: Visitor) -> None:
    name = f"recrawl_{anonymous.address.rpartition(':')[2]}"
    cookies = ["", "x", "1.2.3", "99999999999999.a.b", f"{name}=1.a.0", f"{name}=\x7f"]
    assert [cookie for cookie in cookies if anonymous.get("/", Cookie=cookie).status != 401] == []


def test_foreign_host_or_origin_is_rejected(visitor: Visitor) -> None:
    hosts = ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example"]
    origins = ["http://evil.example", "null", visitor.address.replace("http://", "https://")]
    assert [host for host in hosts if visitor.get("/", Host=host).status != 403] == []
    assert [origin for origin in origins if visitor.get("/", Origin=origin).status != 403] == []


def test_forms_of_other_sites_have_no_effect(crawled: Site, visitor: Visitor, recrawl: Recrawl) -> None:
    found = CSRF_TOKEN.search(visitor.get("/").text)
    assert found is not None
    fields = {"name": crawled.name, "url": f"{crawled.url}one", "text": "Rye", "what": "/*", "pattern": "/"}
    own = {**fields, "action": "boost", "budget_per_day": "7", "csrf_token": found[1]}
    no_origin = {"Content-Type": "application/x-www-form-urlencoded"}
    without_origin = f"csrf_token={found[1]}&name={crawled.name}".encode()
    before = recrawl("domains", "show", crawled.name, "--json").json
    requests = len(crawled.asked)

    for form in FORMS:
        assert visitor.post(form, fields).status == 403, f"{form} without a CSRF token"
        assert visitor.post(form, {**fields, "csrf_token": "0" * 64}).status == 403, form
        assert visitor.post(form, own, Origin="http://evil.example").status == 403, form
        assert visitor.post(form, own, Origin="null").status == 403, form
        assert visitor.post(form, own, Host="evil.example").status == 403, form
        assert visitor.ask("POST", form, without_origin, no_origin).status == 403, form
        assert Visitor(visitor.address, "").post(form, own).status == 401, f"{form} without a session"
        assert visitor.get(form).status == 405, form

    assert recrawl("domains", "show", crawled.name, "--json").json == before
    assert len(crawled.asked) == requests


def test_too_large_form_is_rejected(visitor: Visitor) -> None:
    assert visitor.post("/domains/add", {"url": "x" * 300_000}).status == 413


def test_every_response_has_security_headers(crawled: Site, visitor: Visitor) -> None:
    for path in [*PAGES, "/style.css", "/nothing", f"/domain?name={crawled.name}"]:
        said = visitor.get(path).headers
        assert said["content-security-policy"].startswith("default-src 'none'; style-src 'self'"), path
        assert "unsafe" not in said["content-security-policy"]
        assert "frame-ancestors 'none'" in said["content-security-policy"]
        assert said["x-content-type-options"] == "nosniff"
        assert said["referrer-policy"] == "same-origin"
        assert "server" not in said
    assert visitor.get("/").headers["cache-control"] == "no-store"


def test_stored_pages_have_a_policy_without_scripts_and_requests(crawled: Site, visitor: Visitor) -> None:
    for path in ("/page/view", "/page/pick"):
        seen = visitor.get(f"{path}?url={crawled.url}")
        assert "The mill by the river" in seen.words
        assert {seen.headers[name] for name in ("x-frame-options", "x-content-type-options")} == {
            "SAMEORIGIN",
            "nosniff",
        }
        policy = dict(each.strip().partition(" ")[::2] for each in seen.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == policy["form-action"] == policy["base-uri"] == "'none'"
        assert policy["style-src"].startswith("'sha256-")
        assert policy["frame-ancestors"] == "'self'"
        assert "allow-scripts" not in policy["sandbox"]
        assert set(policy) == {"default-src", "style-src", "form-action", "base-uri", "frame-ancestors", "sandbox"}
        assert Visitor(visitor.address, "").get(f"{path}?url={crawled.url}").status == 401


def test_key_is_created_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    key = ensure_key(tmp_path)
    assert ensure_key(tmp_path) == key
    assert len(key) >= 43
    assert stat.S_IMODE((tmp_path / "run" / "pages-key").stat().st_mode) == 0o600
    assert key not in repr(Signer(key))


def test_codes_and_sessions_expire() -> None:
    authenticator = Authenticator("key", addresses=("http://127.0.0.1:4280",), started_at=NOW)
    code = build_login_link("http://127.0.0.1:4280", "key", at=NOW).partition("code=")[2]
    assert authenticator.exchange_code(code, at=NOW + CODE_LIFETIME + timedelta(seconds=1)) is None
    session = authenticator.exchange_code(code, at=NOW)
    assert session is not None
    assert authenticator.is_valid_session(session, at=NOW + SESSION_LIFETIME)
    assert not authenticator.is_valid_session(session, at=NOW + SESSION_LIFETIME + timedelta(seconds=1))
    assert not authenticator.is_valid_session(code, at=NOW), "a code is not a session"
    assert authenticator.exchange_code(session, at=NOW) is None, "a session is not a code"


def test_code_from_before_the_server_start_is_rejected() -> None:
    code = Signer("key").create_token("enter", NOW)
    later = Authenticator("key", addresses=("http://127.0.0.1:1",), started_at=NOW + timedelta(seconds=1))
    assert later.exchange_code(code, at=NOW + timedelta(seconds=2)) is None


def test_code_of_another_key_is_rejected() -> None:
    authenticator = Authenticator("key", addresses=("http://127.0.0.1:1",), started_at=NOW)
    assert authenticator.exchange_code(Signer("other").create_token("enter", NOW), at=NOW) is None


def test_login_link_without_a_server_creates_no_key(recrawl: Recrawl, tmp_path: Path) -> None:
    assert recrawl("ui").code == 1
    assert not (tmp_path / "run").exists()


def test_other_commands_find_the_running_server(visitor: Visitor, recrawl: Recrawl) -> None:
    parts = {part["name"]: part for part in recrawl("status", "--json").json["parts"]}
    shown = recrawl("ui")

    assert parts["Web UI"]["is_running"]
    assert visitor.address in parts["Web UI"]["detail"]
    assert f"{visitor.address}/enter" in shown.out
