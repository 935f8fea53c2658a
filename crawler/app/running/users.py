"""Users of the web UI: invitations, passwords, sessions and roles."""

import asyncio
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from crawler.app.action_log import describe_action, record_action, recorded
from crawler.app.actor import Actor, ActorKind, Permission, require_permission
from crawler.app.database import AppDatabase
from crawler.errors import BadInput, Conflict, NotFound
from crawler.roles import Role
from crawler.runtime.keys.home_keys import list_own_origins
from crawler.runtime.keys.passwords import HASHER, find_password_problem, hash_password, is_correct_password
from crawler.runtime.web_ui import DEFAULT_PORT, find_web_ui_origin
from crawler.store import users
from crawler.store.users import User

NAME = re.compile(r"[a-z0-9][a-z0-9._@+-]{0,63}")  # also an email address
INVITATION_LIFETIME = timedelta(days=7)
SESSION_LIFETIME = timedelta(days=30)
INVITATION_PATH = "/invitation"
PUBLIC_FIELDS = ("name", "role", "has_password", "created_at", "last_login_at", "disabled_at", "invited_until")
WRONG_LOGIN = "This name and password are not correct"
TOKEN_BYTES = 32  # a token of 256 random bits needs no slow hash


@dataclass(frozen=True, slots=True)
class Invitation:
    """A link with which a user sets a password, once. is_served: whether a server is running there now."""

    user: User
    url: str
    is_served: bool


def parse_name(text: str) -> str:
    """Return the name of a user in lower case. Raises BadInput."""
    name = text.strip().lower()
    if not NAME.fullmatch(name):
        raise BadInput(
            "the name of a user has up to 64 of a-z, 0-9, dot, _, @, + and -, and starts with a letter or a digit",
            field="name",
        )
    return name


def parse_role(text: str) -> Role:
    """Return the role of this name. Raises BadInput."""
    try:
        return Role(text.strip().lower())
    except ValueError as error:
        raise BadInput(f"{text[:40]!r} is not a role: use {', '.join(Role)}", field="role") from error


def describe_state(user: User, *, at: datetime) -> str:
    """Return whether a user can log in, in a word or two."""
    if user.disabled_at is not None:
        return "disabled"
    if user.has_password:
        return "active"
    return "invited" if user.invited_until is not None and user.invited_until > at else "without password"


async def list_users(db: AppDatabase) -> Sequence[User]:
    """Return all users by name."""
    require_permission(Permission.MANAGE, "the list of users")
    return await users.list_users(db)


async def has_users(db: AppDatabase) -> bool:
    """Return whether there are users."""
    return await users.has_users(db)


async def is_enabled(db: AppDatabase, name: str) -> bool:
    """Return whether there is a user of this name who is not disabled."""
    user = await users.find_user(db, name) if NAME.fullmatch(name) else None
    return user is not None and user.disabled_at is None


async def get_user(db: AppDatabase, name: str) -> User:
    """Return a user. Raises NotFound."""
    user = await users.find_user(db, parse_name(name))
    if user is None:
        raise NotFound(f"there is no user {parse_name(name)}: run recrawl users list to see all", field="name")
    return user


@recorded("add user")
async def add_user(db: AppDatabase, name: str, role: Role, *, at: datetime) -> Invitation:
    """Add a user, and return the invitation to set a password. Raises BadInput, and Conflict for an existing name."""
    _require_admin()
    describe_action(object=parse_name(name), new=role)
    if not await users.add_user(db, parse_name(name), role, at=at):
        raise Conflict(f"the user {parse_name(name)} exists already", field="name")
    return await _invite(db, parse_name(name), at=at)


@recorded("invite user")
async def invite_user(db: AppDatabase, name: str, *, at: datetime) -> Invitation:
    """Return a new invitation, which ends the one before; the present password stays valid until it is used."""
    _require_admin()
    return await _invite(db, (await get_user(db, name)).name, at=at)


async def _invite(db: AppDatabase, name: str, *, at: datetime) -> Invitation:
    code = secrets.token_urlsafe(TOKEN_BYTES)
    await users.invite_user(db, name, digest=_digest(code), until=at + INVITATION_LIFETIME)
    configured = db.settings.web_origins[0] if db.settings.web_origins else None
    origin = find_web_ui_origin(db.settings.home.resolve())
    url = f"{configured or origin or list_own_origins(DEFAULT_PORT)[0]}{INVITATION_PATH}?code={code}"
    return Invitation(await get_user(db, name), url, is_served=origin is not None)


@recorded("change user")
async def change_user(
    db: AppDatabase, name: str, *, role: Role | None = None, disabled: bool | None = None, at: datetime
) -> User:
    """Change the role of a user, or disable or enable the user. Disabling ends all sessions. Raises NotFound."""
    _require_admin()
    before = await get_user(db, name)
    await users.change_user(db, before.name, role=role, disabled=disabled, at=at)
    after = await get_user(db, before.name)
    old, new = _describe(before), _describe(after)
    describe_action(object=before.name, old=old, new=new, is_change=old != new)
    return after


@recorded("remove user")
async def remove_user(db: AppDatabase, name: str) -> User:
    """Remove a user, which ends all sessions; return the user as it was. Raises NotFound."""
    _require_admin()
    user = await get_user(db, name)
    await users.remove_user(db, user.name)
    return user


@recorded("set password")
async def set_password(db: AppDatabase, name: str, password: str) -> User:
    """Set the password of a user, which ends all sessions. Raises BadInput."""
    _require_admin()
    user = await get_user(db, name)
    describe_action(object=user.name, new="")
    await users.set_password(db, user.name, await _hash(password))
    return user


async def find_invited(db: AppDatabase, code: str, *, at: datetime) -> User | None:
    """Return the user whom an invitation is for; None if it is unknown, used or expired."""
    return await users.find_invited(db, _digest(code), at=at)


async def accept_invitation(db: AppDatabase, code: str, password: str, *, address: str, at: datetime) -> str:
    """Set a password by an invitation, and return a new session. Raises BadInput. address: of the client."""
    user = await find_invited(db, code, at=at)
    if user is None:
        raise BadInput("this invitation was already used or has expired: ask for another one")
    password_hash = await _hash(password)
    if not await users.set_password(db, user.name, password_hash, digest=_digest(code)):
        raise BadInput("this invitation was already used: ask for another one")
    actor = Actor(ActorKind.USER, user.name, address)
    await record_action(db, "set password", {"object": user.name, "new": "by invitation"}, actor=actor)
    return await _start_session(db, user.name, password_hash, at=at)


async def log_in(db: AppDatabase, name: str, password: str, *, address: str, at: datetime) -> str:
    """Return a new session of a user; empty if the name or the password is wrong, or the user is disabled."""
    typed = name.strip().lower()
    stored = await users.find_password_hash(db, typed) if NAME.fullmatch(typed) else ""
    is_correct = await _is_correct(password, stored)
    session = await _start_session(db, typed, stored, at=at) if is_correct else ""
    # The text may be a password in the wrong field, so it is recorded only if it is a name.
    is_known = NAME.fullmatch(typed) is not None and await users.find_user(db, typed) is not None
    texts = {"object": typed if is_known else "unknown name"}
    actor = Actor(ActorKind.USER, typed if session else "anonymous", address)
    await record_action(db, "log in" if session else "fail to log in", texts, actor=actor)
    return session


async def change_own_password(db: AppDatabase, name: str, *, current: str, new: str, at: datetime) -> str:
    """Change a password, end all sessions, and return a new one. Raises BadInput if the current one is wrong."""
    stored = await users.find_password_hash(db, name)
    if not await _is_correct(current, stored):
        raise BadInput("the current password is not correct", field="current")
    password_hash = await _hash(new)
    await users.set_password(db, name, password_hash)
    await record_action(db, "set password", {"object": name})
    return await _start_session(db, name, password_hash, at=at)


async def find_session_user(db: AppDatabase, session: str, *, at: datetime) -> User | None:
    """Return the user of a session; None if it has ended."""
    return await users.find_session_user(db, _digest(session), at=at)


async def find_trusted_role(db: AppDatabase, name: str, role: Role | None, *, has_groups: bool) -> Role | None:
    """Return the role of a user whom a trusted proxy names; None if access is refused.

    role: of the user's groups, if the proxy names them (has_groups); otherwise the role of a registered user counts.
    A disabled user has no access.
    """
    user = await users.find_user(db, name) if NAME.fullmatch(name) else None
    if not NAME.fullmatch(name) or (user is not None and user.disabled_at is not None):
        return None
    return role if has_groups else user.role if user is not None else None


async def end_session(db: AppDatabase, session: str) -> None:
    """End a session."""
    await users.end_session(db, _digest(session))


async def _start_session(db: AppDatabase, name: str, password_hash: str, *, at: datetime) -> str:
    session, until = secrets.token_urlsafe(TOKEN_BYTES), at + SESSION_LIFETIME
    is_new = await users.start_session(db, name, _digest(session), password_hash=password_hash, at=at, until=until)
    return session if is_new else ""


def check_new_password(password: str) -> None:
    """Raise BadInput if a new password is too short or too long."""
    if problem := find_password_problem(password):
        raise BadInput(problem, field="password")


async def _hash(password: str) -> str:
    """Return the hash of a new password. Raises BadInput as `check_new_password` does."""
    check_new_password(password)
    return await asyncio.get_running_loop().run_in_executor(HASHER, hash_password, password)


async def _is_correct(password: str, stored: str) -> bool:
    return await asyncio.get_running_loop().run_in_executor(HASHER, is_correct_password, password, stored)


def _require_admin() -> None:
    require_permission(Permission.MANAGE, "a change of users")


def _describe(user: User) -> str:
    return f"{user.role}{', disabled' if user.disabled_at is not None else ''}"


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "replace")).digest()
