"""Who acts, and what they may do: the permissions of roles and token scopes.

The web server says who sent a request with `acting_as`. Without it, the account of the system acts, and may do all.
"""

import os
import pwd
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum

from crawler.errors import NotAllowed
from crawler.roles import Role
from crawler.runtime.keys.api_tokens import TokenScope


class Permission(StrEnum):
    """What a route or an operation needs."""

    READ = "read"
    CRAWL = "crawl"  # request fetches
    CHANGE = "change"  # domains, settings, rules, notifications
    MANAGE = "manage"  # users, tokens, and what reaches the machine: its secrets, files and private network


ALL_PERMISSIONS = frozenset(Permission)
PERMISSIONS_OF_ROLES: Mapping[Role, frozenset[Permission]] = {
    Role.VIEW: frozenset({Permission.READ}),
    Role.EDIT: ALL_PERMISSIONS - {Permission.MANAGE},
    Role.ADMIN: ALL_PERMISSIONS,
}
PERMISSIONS_OF_SCOPES: Mapping[TokenScope, frozenset[Permission]] = {
    TokenScope.READ: frozenset({Permission.READ}),
    TokenScope.CRAWL: frozenset({Permission.CRAWL}),
    TokenScope.ADMIN: frozenset({Permission.CHANGE, Permission.MANAGE}),
}


class ActorKind(StrEnum):
    """How an actor acts."""

    USER = "user"  # of the web UI
    LINK = "login link"  # in the web UI
    TOKEN = "token"  # noqa: S105  of the HTTP API
    COMMAND = "command"  # the account of the system that ran it
    PYTHON = "python"  # a program of that account


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts. address: of the client; empty on this machine."""

    kind: ActorKind
    name: str
    address: str = ""
    permissions: frozenset[Permission] = field(default=ALL_PERMISSIONS, repr=False)


_actor: ContextVar[Actor | None] = ContextVar("actor", default=None)


def find_actor(kind: ActorKind | None) -> Actor | None:
    """Return who acts now. kind: without a request, how the account of the system acts; None for a schedule."""
    return _actor.get() or (_build_local_actor(kind) if kind is not None else None)


def _build_local_actor(kind: ActorKind) -> Actor:
    try:
        return Actor(kind, pwd.getpwuid(os.getuid()).pw_name)
    except KeyError:  # a container may run with a number that has no account
        return Actor(kind, str(os.getuid()))


@contextmanager
def acting_as(actor: Actor) -> Iterator[None]:
    """Act as this actor during the block."""
    token = _actor.set(actor)
    try:
        yield
    finally:
        _actor.reset(token)


def require_permission(permission: Permission, what: str) -> None:
    """Raise NotAllowed if the actor lacks a permission. what: the subject of the message, such as "this setting"."""
    actor = _actor.get()
    if actor is not None and permission not in actor.permissions:
        raise NotAllowed(f"{what} needs the permission to {permission}: ask a user with the role admin")
