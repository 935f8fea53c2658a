"""The endpoints of the API that manage users and read the log of actions."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, Field

from crawler.app.action_log import ActionQuery, list_actions
from crawler.app.running import users
from crawler.roles import Role
from crawler.server.api.endpoints import MAX_CURSOR, Api, Items, build_row

MAX_ACTIONS = 1000
UserName = Annotated[str, Path(max_length=64, description="The name of a user.")]


class UserBody(BaseModel, extra="forbid"):
    """A user to add. name: such as alice or alice@example.com."""

    name: Annotated[str, Field(max_length=64)]
    role: Role = Role.VIEW


class UserChanges(BaseModel, extra="forbid"):
    """Changes of a user. What is missing stays unchanged. disabled: end all sessions and refuse logins."""

    role: Role | None = None
    disabled: bool | None = None


@dataclass(frozen=True, slots=True)
class UserDocument:
    """A user of the web UI. invited_until: the end of an invitation that was not used yet, or null."""

    name: str
    role: Role
    has_password: bool
    created_at: datetime
    last_login_at: datetime | None
    disabled_at: datetime | None
    invited_until: datetime | None


@dataclass(frozen=True, slots=True)
class InvitationDocument:
    """An invitation. url: the link with which the user sets a password, once."""

    name: str
    url: str
    invited_until: datetime | None


@dataclass(frozen=True, slots=True)
class ActionDocument:
    """An action. actor_kind: how the actor acted, such as user or token.  old, new: values in short, or empty."""

    number: int
    at: datetime
    actor_kind: str
    actor: str
    address: str
    action: str
    object: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class UsersApi(Api):
    """The endpoints for administrators."""

    async def list_users(self) -> Items[UserDocument]:
        """List the users of the web UI with their roles."""
        return Items([build_row(UserDocument, each) for each in await users.list_users(self.db)], None)

    async def add_user(self, *, body: UserBody) -> InvitationDocument:
        """Add a user, and return the link with which the person sets a password."""
        return _describe(await users.add_user(self.db, body.name, body.role, at=self.now()))

    async def change_user(self, *, name: UserName, body: UserChanges) -> UserDocument:
        """Change the role of a user, or disable or enable the user."""
        changed = await users.change_user(self.db, name, role=body.role, disabled=body.disabled, at=self.now())
        return build_row(UserDocument, changed)

    async def invite_user(self, *, name: UserName) -> InvitationDocument:
        """Return a new link to set a password, which replaces the one before."""
        return _describe(await users.invite_user(self.db, name, at=self.now()))

    async def remove_user(self, *, name: UserName) -> None:
        """Remove a user, which ends all sessions of the user."""
        await users.remove_user(self.db, name)

    async def list_actions(
        self,
        *,
        actor: Annotated[str, Query(max_length=64, description="Only actions of this user, token or account.")] = "",
        words: Annotated[str, Query(max_length=256, description="Only actions with this text.")] = "",
        since: Annotated[datetime | None, Query(description="Only actions at or after this time.")] = None,
        before: Annotated[int, Query(ge=1, le=MAX_CURSOR, description="The cursor of the next part.")] = MAX_CURSOR,
        limit: Annotated[int, Query(ge=1, le=MAX_ACTIONS, description="The maximum number of items.")] = 100,
    ) -> Items[ActionDocument]:
        """List who changed what, newest first."""
        query = ActionQuery(actor, words, since, before)
        found = await list_actions(self.db, query, max_count=limit + 1)
        items = [build_row(ActionDocument, each, number=each.id) for each in found[:limit]]
        return Items(items, str(items[-1].number) if len(found) > limit else None)


def _describe(invitation: users.Invitation) -> InvitationDocument:
    return InvitationDocument(invitation.user.name, invitation.url, invitation.user.invited_until)
