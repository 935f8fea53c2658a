"""The tables of the web UI's users and their sessions, and the log of actions. They hold hashes instead of secrets."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index

from models import columns
from models.columns import Table


class WebUser(Table, table=True):
    """A person who uses the web UI. password_hash: empty until the person has set a password.

    invitation: the SHA-256 hash of the code with which the person sets a password, valid until `invited_until`.
    """

    __table_args__ = (
        CheckConstraint("role IN ('view', 'edit', 'admin')", name="web_user_role"),
        CheckConstraint("name <> ''", name="web_user_name"),
        CheckConstraint("(invitation IS NULL) = (invited_until IS NULL)", name="web_user_invitation"),
    )
    id: int = columns.identity()
    name: str = columns.text(unique=True)
    role: str = columns.text()
    password_hash: str = columns.text(default="")
    invitation: bytes | None = columns.bytea(nullable=True, unique=True)
    invited_until: datetime | None = columns.timestamptz(nullable=True)
    created_at: datetime = columns.timestamptz()
    last_login_at: datetime | None = columns.timestamptz(nullable=True)
    disabled_at: datetime | None = columns.timestamptz(nullable=True)


class WebSession(Table, table=True):
    """A session of a user. digest: the SHA-256 hash of its token."""

    __table_args__ = (Index("web_session_user", "user_id"),)
    digest: bytes = columns.bytea(key=True)
    user_id: int = columns.foreign_key("web_user")
    expires_at: datetime = columns.timestamptz()


class Action(Table, table=True):
    """An action that changed something. actor: a user, a token or an account of the system, as `actor_kind` says.

    address: of the client, empty for commands.  object: what was changed.  old, new: values in short, without secrets.
    """

    __table_args__ = (Index("action_at", "at"),)
    id: int = columns.identity()
    at: datetime = columns.timestamptz()
    actor_kind: str = columns.text()
    actor: str = columns.text()
    address: str = columns.text(default="")
    action: str = columns.text()
    object: str = columns.text(default="")
    old: str = columns.text(default="")
    new: str = columns.text(default="")
