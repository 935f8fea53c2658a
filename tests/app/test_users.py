"""Users, their passwords and sessions, and the log of actions, by commands and by the Python API."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from crawler.app import action_log, domains, open_app, rules, tags
from crawler.app.actor import PERMISSIONS_OF_ROLES, Actor, ActorKind, acting_as
from crawler.app.database import AppDatabase, open_configured_database
from crawler.app.delivery.notifications import SubscriptionRequest, subscribe
from crawler.app.page_values import ValueRequest, add_value, remove_value
from crawler.app.running import users
from crawler.app.settings import SettingsPatch
from crawler.errors import BadInput, NotAllowed
from crawler.roles import Role
from crawler.runtime.keys.passwords import hash_password, is_correct_password
from crawler.settings import Settings
from tests.commands import Recrawl, Site

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PASSWORD = "correct horse battery"
WHO = Actor(ActorKind.USER, "alice", "192.0.2.7")


@pytest.fixture
async def db(database_url: str, tmp_path: Path) -> AsyncIterator[AppDatabase]:
    settings = Settings(home=tmp_path, database_url=SecretStr(database_url))
    async with open_configured_database(settings) as opened:
        yield opened


def log_of(recrawl: Recrawl, *arguments: str) -> list[tuple[str, str]]:
    """Return the actions of the log with their objects, oldest first."""
    found = recrawl("actions", "--limit", "1000", *arguments, "--json").json["actions"]
    return [(each["action"], each["object"]) for each in reversed(found)]


def test_password_is_hashed_with_a_salt() -> None:
    stored, again = hash_password(PASSWORD), hash_password(PASSWORD)

    assert stored != again
    assert PASSWORD not in stored
    assert is_correct_password(PASSWORD, stored)
    assert not is_correct_password(PASSWORD.upper(), stored)
    assert not is_correct_password(PASSWORD, "")
    assert is_correct_password("\u212bngstr\u00f6m 123456", hash_password("\u00c5ngstro\u0308m 123456")), (
        "other code points"
    )


def test_user_is_invited_changed_and_removed(recrawl: Recrawl) -> None:
    added = recrawl("users", "add", "Alice", "--role", "edit", "--json").json
    assert (added["name"], added["role"], added["has_password"]) == ("alice", "edit", False)
    assert added["invitation"].startswith("http://127.0.0.1:4280/invitation?code=")
    assert "exists already" in recrawl("users", "add", "alice").complaint
    again = recrawl("users", "set", "alice", "--invite").out.strip()
    assert again != added["invitation"]

    assert recrawl("users", "set", "alice", "--role", "admin").code == 0
    assert recrawl("users", "set", "alice", "--password", stdin=f"{PASSWORD}\n").code == 0
    assert "invited_until" in recrawl("users", "list", "--json").json["users"][0]
    assert "active" in recrawl("users", "list").out
    assert recrawl("users", "set", "alice", "--disable").code == 0
    assert "disabled" in recrawl("users", "list").out
    assert recrawl("users", "remove", "alice").code == 0
    assert recrawl("users", "list", "--json").json == {"users": []}

    done = [action for action, name in log_of(recrawl) if name == "alice"]
    assert done == ["add user", "invite user", "change user", "set password", "change user", "remove user"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("users", "add", "<script>"),
        ("users", "add", "-x"),
        ("users", "add", ""),
        ("users", "add", "a" * 65),
        ("users", "add", "a\nb"),
        ("users", "add", "\u0430lice"),
        ("users", "add", "alice", "--role", "root"),
        ("users", "set", "nobody", "--disable"),
        ("users", "set", "nobody"),
        ("users", "set", "nobody", "--disable", "--enable"),
        ("users", "remove", "nobody"),
    ],
    ids=" ".join,
)
def test_bad_input_is_one_line(recrawl: Recrawl, arguments: tuple[str, ...]) -> None:
    done = recrawl(*arguments)
    assert done.code == 2
    assert done.complaint
    assert log_of(recrawl) == []


def test_short_password_is_rejected(recrawl: Recrawl) -> None:
    recrawl("users", "add", "alice")
    for typed in ("", "short", "aaaaaaaaaaaaaaaa", "x" * 300):
        assert recrawl("users", "set", "alice", "--password", stdin=f"{typed}\n").code == 2
    assert not recrawl("users", "list", "--json").json["users"][0]["has_password"]


def test_no_secret_is_stored_or_listed(recrawl: Recrawl, database_url: str) -> None:
    code = recrawl("users", "add", "alice").out.strip().partition("code=")[2]
    recrawl("users", "set", "alice", "--password", stdin=f"{PASSWORD}\n")
    token = recrawl("tokens", "add", "ci", "--scope", "read,admin").out.strip()
    with psycopg.connect(database_url) as connection:
        rows = str([connection.execute(f"SELECT * FROM {name}").fetchall() for name in ("web_user", "action")])

    shown = rows + recrawl("actions").out + recrawl("actions", "--json").out + recrawl("users", "list", "--json").out
    assert [secret for secret in (code, PASSWORD, token) if secret in shown] == []
    assert log_of(recrawl)[-1] == ("add token", "ci")
    assert "read, admin" in recrawl("actions", "ci").out


def test_commands_record_what_they_change(recrawl: Recrawl, site: Site) -> None:
    name = site.name
    site.page("/")
    recrawl("domains", "add", site.url, "--allow-private", "--budget", "50")
    recrawl("domains", "set", name, "--budget", "70")
    recrawl("domains", "set", name, "--budget", "70")
    recrawl("domains", "pause", name)
    recrawl("domains", "resume", name)
    recrawl("rules", "add", name, "/news/", "--weight", "4")
    recrawl("rules", "remove", name, "/news/")
    recrawl("crawl", name)
    recrawl("refresh", site.url)
    recrawl("hint", site.url)
    recrawl("notify", "add", "https://user.example/hook", "--domain", name)
    recrawl("notify", "pause", "1")
    recrawl("notify", "resume", "1")
    recrawl("notify", "remove", "1")
    recrawl("tokens", "add", "ci")
    recrawl("tokens", "revoke", "ci")
    recrawl("feed", name, "--name", "phone")
    recrawl("feed", name, "--name", "phone")
    recrawl("feed", "--revoke", "phone")
    recrawl("prune", "--dry-run")
    recrawl("prune")
    recrawl("domains", "remove", name, "--yes")

    assert [action for action, _ in log_of(recrawl)] == [
        *("add domain", "change domain", "pause domain", "resume domain", "add rule", "remove rule", "recrawl"),
        *(
            "add subscription",
            "pause subscription",
            "resume subscription",
            "remove subscription",
            "add token",
            "revoke token",
        ),
        *("add feed address", "revoke feed address", "prune", "remove domain"),
    ]
    assert {each for action, each in log_of(recrawl) if "subscription" in action} == {"subscription 1"}
    (changed,) = recrawl("actions", "change domain", "--json").json["actions"]
    assert (changed["object"], changed["actor_kind"]) == (name, "command")
    assert ("50" in changed["old"], "70" in changed["new"]) == (True, True)
    assert recrawl("actions", "--by", "nobody", "--json").json == {"actions": []}
    assert "%" not in {each["object"] for each in recrawl("actions", "%", "--json").json["actions"]}


def test_python_api_is_recorded(recrawl: Recrawl, database_url: str, tmp_path: Path) -> None:
    with open_app(database_url, home=tmp_path) as app:
        app.add("docs.example.com", offline=True)
        app.pause("docs.example.com")

    found = recrawl("actions", "--json").json["actions"]
    assert [(each["action"], each["actor_kind"]) for each in found] == [
        ("pause domain", "python"),
        ("add domain", "python"),
    ]


async def test_sessions_end(db: AppDatabase) -> None:
    """A session ends by log-out, a new password, --disable, removal and time; invitations work once."""
    code = (await users.add_user(db, "alice", Role.VIEW, at=NOW)).url.partition("code=")[2]
    assert await users.find_invited(db, code, at=NOW + users.INVITATION_LIFETIME) is None
    with pytest.raises(BadInput, match="characters"):
        await users.accept_invitation(db, code, "short", address="192.0.2.7", at=NOW)
    first = await users.accept_invitation(db, code, PASSWORD, address="192.0.2.7", at=NOW)
    with pytest.raises(BadInput, match="already used"):
        await users.accept_invitation(db, code, PASSWORD, address="192.0.2.7", at=NOW)

    async def log_in(at: datetime = NOW, password: str = PASSWORD) -> str:
        return await users.log_in(db, "Alice", password, address="192.0.2.7", at=at)

    async def is_open(session: str, at: datetime = NOW) -> bool:
        return await users.find_session_user(db, session, at=at) is not None

    second = await log_in()
    assert second != first
    assert await is_open(first)
    assert not await is_open(second, at=NOW + users.SESSION_LIFETIME)
    assert not await is_open(code)
    await users.end_session(db, first)
    assert (await is_open(first), await is_open(second)) == (False, True)

    other = f"{PASSWORD} 2"
    with pytest.raises(BadInput, match="current"):
        await users.change_own_password(db, "alice", current="wrong", new=other, at=NOW)
    third = await users.change_own_password(db, "alice", current=PASSWORD, new=other, at=NOW)
    assert (await is_open(second), await is_open(third)) == (False, True)
    assert await log_in() == "", "the old password"

    await users.change_user(db, "alice", disabled=True, at=NOW)
    assert not await is_open(third)
    assert await log_in(password=other) == ""
    await users.change_user(db, "alice", disabled=False, at=NOW)
    assert not await is_open(third)
    assert await is_open(await log_in(password=other))


async def test_invitation_of_two_at_once_is_used_once(db: AppDatabase) -> None:
    code = (await users.add_user(db, "alice", Role.VIEW, at=NOW)).url.partition("code=")[2]
    accept = (users.accept_invitation(db, code, f"{PASSWORD} {n}", address="192.0.2.7", at=NOW) for n in range(2))
    results = await asyncio.gather(*accept, return_exceptions=True)
    assert sorted(isinstance(each, BadInput) for each in results) == [False, True]


async def test_what_changes_nothing_is_not_recorded(db: AppDatabase) -> None:
    with acting_as(Actor(ActorKind.USER, "root", permissions=PERMISSIONS_OF_ROLES[Role.ADMIN])):
        await domains.add_domains(db, ["docs.example.com"], SettingsPatch(), tags=["news"], offline=True, at=NOW)
        await tags.change_tag_settings(db, "new", SettingsPatch(), at=NOW)
        await users.add_user(db, "alice", Role.VIEW, at=NOW)
        before = await action_log.list_actions(db, action_log.ActionQuery())

        await tags.change_tag_settings(db, "new", SettingsPatch(), at=NOW)
        await tags.change_tags(db, ["docs.example.com"], add=["news"], remove=["new"], at=NOW)
        await users.change_user(db, "alice", role=Role.VIEW, at=NOW)
        assert await action_log.list_actions(db, action_log.ActionQuery()) == before

        await tags.change_tags(db, ["docs.example.com", "https://docs.example.com/"], add=["new"], at=NOW)
        assert len(await action_log.list_actions(db, action_log.ActionQuery())) == len(before) + 1


async def test_values_keep_what_others_changed_meanwhile(db: AppDatabase) -> None:
    (added,) = await domains.add_domains(db, ["docs.example.com"], SettingsPatch(), offline=True, at=NOW)
    read, price = added.new_domain, ValueRequest("price", ".price", pattern="/a$")

    await add_value(db, read, price, at=NOW)
    changed = await add_value(db, read, ValueRequest("stock", ".stock", pattern="/a$"), at=NOW)
    assert [rule.view.values for rule in changed.settings.rules] == [("price .price", "stock .stock")]

    await rules.add_terms(db, read, ["/a$"], at=NOW, weight=2.0)
    await remove_value(db, changed, "/a$", "stock", at=NOW)
    left = await remove_value(db, changed, "/a$", "price", at=NOW)
    assert [(rule.weight, rule.view.values) for rule in left.settings.rules] == [(2.0, ())]


async def test_old_actions_are_forgotten(db: AppDatabase) -> None:
    await action_log.record_action(db, "log in", {"object": "https://bob:pw@x.example/\n" + "y" * 1000}, actor=WHO)
    (found,) = await action_log.list_actions(db, action_log.ActionQuery())
    assert found.object.startswith("https://...@x.example/ y")
    assert len(found.object) == action_log.MAX_CHARS
    assert await action_log.forget_actions(db, at=datetime.now(UTC)) == 0
    assert await action_log.forget_actions(db, at=datetime.now(UTC) + timedelta(days=366)) == 1


async def test_editor_cannot_reach_the_machine(db: AppDatabase) -> None:
    editor = Actor(ActorKind.USER, "ed", permissions=PERMISSIONS_OF_ROLES[Role.EDIT])
    (added,) = await domains.add_domains(db, ["docs.example.com"], SettingsPatch(), offline=True, at=NOW)
    private = SettingsPatch({"allow_private": True})
    await tags.change_tag_settings(db, "intern", private, at=NOW)
    with acting_as(editor):
        with pytest.raises(NotAllowed):
            await tags.change_tag_settings(db, "news", private, at=NOW)
        with pytest.raises(NotAllowed):
            await tags.change_tag_settings(db, "intern", SettingsPatch(), unset=["--allow-private"], at=NOW)
        with pytest.raises(NotAllowed):
            await tags.change_tags(db, ["docs.example.com"], add=["intern"], at=NOW)
        with pytest.raises(NotAllowed):
            await tags.set_tags(db, added.new_domain, ["intern"], at=NOW)
        with pytest.raises(NotAllowed):
            await domains.add_domains(db, ["10.0.0.1"], SettingsPatch(), tags=["intern"], offline=True, at=NOW)
        with pytest.raises(NotAllowed):
            await tags.remove_tag(db, "intern", at=NOW)
        await tags.change_tags(db, ["docs.example.com"], add=["news"], at=NOW)
        for values in ({"allow_private": True}, {"headers": ("X-Key: env:AWS_SECRET",)}, {"ca_file": "/etc/shadow"}):
            with pytest.raises(NotAllowed):
                await domains.change_settings(db, added.new_domain, SettingsPatch(values), at=NOW)
            with pytest.raises(NotAllowed):
                await domains.add_domains(db, ["10.0.0.1"], SettingsPatch(values), offline=True, at=NOW)
        with pytest.raises(NotAllowed):
            await subscribe(db, SubscriptionRequest(target="http://10.0.0.1/", allow_private=True), at=NOW)
        with pytest.raises(NotAllowed):
            await users.add_user(db, "eve", Role.ADMIN, at=NOW)
        changed = await domains.change_settings(db, added.new_domain, SettingsPatch({"budget_per_day": 9}), at=NOW)
    assert changed.settings != added.new_domain.settings
