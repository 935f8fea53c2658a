"""Who sends a request to the web UI: the user of a session, or the one whom a trusted proxy names."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.datastructures import Headers
from starlette.types import Scope

from crawler.app.actor import PERMISSIONS_OF_ROLES, Actor, ActorKind
from crawler.app.database import AppDatabase
from crawler.app.running import users
from crawler.errors import NotAllowed
from crawler.roles import Role

LINK_NAME = "local"  # of whoever logs in with a login link


@dataclass(frozen=True, slots=True)
class Identity:
    """The sender of a request. session: the text that its CSRF tokens are bound to."""

    session: str
    actor: Actor
    role: Role
    can_log_out: bool = True


class ProxyTrust:
    """The proxies whose headers are trusted, and what these headers say."""

    def __init__(self, db: AppDatabase) -> None:
        self._db = db

    @cached_property
    def _networks(self) -> Sequence[IPv4Network | IPv6Network]:
        return [ip_network(each) for each in self._db.settings.trusted_proxies]

    def find_address(self, scope: Scope) -> str:
        """Return the address of the client: the last one that is no trusted proxy."""
        peer = _parse_address((scope.get("client") or ("",))[0])
        forwarded = ",".join(Headers(scope=scope).getlist("x-forwarded-for")).split(",")
        while self._is_trusted(peer) and forwarded and (before := _parse_address(forwarded.pop().strip())) is not None:
            peer = before
        return str(peer or "")

    async def find_identity(self, scope: Scope) -> Identity | None:
        """Return the user whom a trusted proxy names; None if none does. Raises NotAllowed for one without access."""
        settings = self._db.settings
        name_header, groups_header = settings.trust_header, settings.trust_groups_header
        if not name_header or not self._is_trusted(_parse_address((scope.get("client") or ("",))[0])):
            return None
        headers = Headers(scope=scope)
        names, groups = headers.getlist(name_header), headers.getlist(groups_header)
        if not names:
            return None
        # A proxy that adds its header to one of the client, in place of replacing it, must not be believed.
        name = names[0].strip().lower() if len(names) == 1 and len(groups) <= 1 else ""
        given = dict(settings.trust_groups)
        roles = {given[group.strip()] for group in ",".join(groups).split(",") if group.strip() in given}
        best = next((role for role in reversed(Role) if role in roles), None)
        role = await users.find_trusted_role(self._db, name, best, has_groups=bool(groups_header))
        if role is None:
            raise NotAllowed("The proxy in front of recrawl named a user who has no access here: ask an administrator")
        actor = Actor(ActorKind.USER, name, self.find_address(scope), PERMISSIONS_OF_ROLES[role])
        return Identity(f"proxy {name}", actor, role, can_log_out=False)

    def _is_trusted(self, address: IPv4Address | IPv6Address | None) -> bool:
        return address is not None and any(address in network for network in self._networks)


async def find_session_identity(db: AppDatabase, session: str, *, address: str, at: datetime) -> Identity | None:
    """Return the user of a session; None if it has ended."""
    user = await users.find_session_user(db, session, at=at) if session else None
    if user is None:
        return None
    return Identity(session, Actor(ActorKind.USER, user.name, address, PERMISSIONS_OF_ROLES[user.role]), user.role)


def build_link_identity(session: str, *, address: str) -> Identity:
    """Return the identity of a session that began with a login link."""
    return Identity(session, Actor(ActorKind.LINK, LINK_NAME, address), Role.ADMIN)


def _parse_address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    # A socket for both families names the IPv4 address of a client in this way.
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
