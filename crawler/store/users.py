"""The users of the web UI and their sessions. Secrets are stored as hashes only."""

from datetime import datetime

from msgspec import Struct

from crawler.roles import Role
from crawler.store.database import Database
from crawler.store.rows import execute, fetch_value, fetch_values


class User(Struct, frozen=True):
    """A user of the web UI. invited_until: when the invitation that waits for a password ends."""

    id: int
    name: str
    role: Role
    has_password: bool
    created_at: datetime
    invited_until: datetime | None = None
    last_login_at: datetime | None = None
    disabled_at: datetime | None = None


COLUMNS = """
    u.id, u.name, u.role, u.password_hash <> '' AS has_password, u.created_at, u.invited_until, u.last_login_at,
    u.disabled_at
"""
SELECT = f"SELECT {COLUMNS} FROM web_user u"  # noqa: S608  our own columns
INSERT = """
    INSERT INTO web_user (name, role, created_at) VALUES (%(name)s, %(role)s, %(at)s) ON CONFLICT (name) DO NOTHING
"""
CHANGE = """
    UPDATE web_user SET role = coalesce(%(role)s, role),
           disabled_at = CASE WHEN %(disabled)s THEN coalesce(disabled_at, %(at)s)
                              WHEN NOT %(disabled)s THEN NULL ELSE disabled_at END
     WHERE name = %(name)s
"""
END_SESSIONS = "DELETE FROM web_session s USING web_user u WHERE u.id = s.user_id AND u.name = %(name)s"
INVITE = "UPDATE web_user SET invitation = %(digest)s, invited_until = %(until)s WHERE name = %(name)s"
FIND_INVITED = f"{SELECT} WHERE u.invitation = %(digest)s AND u.invited_until > %(at)s AND u.disabled_at IS NULL"
# The digest of the invitation is checked again, so that two requests cannot both use it.
STORE_HASH = """
    UPDATE web_user SET password_hash = %(hash)s, invitation = NULL, invited_until = NULL
     WHERE name = %(name)s AND (%(digest)s::bytea IS NULL OR invitation = %(digest)s)
"""
FIND_HASH = "SELECT u.password_hash FROM web_user u WHERE u.name = %(name)s AND u.disabled_at IS NULL"
# The password must still be the one that was checked, since it may have changed meanwhile.
START_SESSION = """
    WITH u AS (UPDATE web_user SET last_login_at = %(at)s
                WHERE name = %(name)s AND disabled_at IS NULL AND password_hash = %(hash)s RETURNING id)
    INSERT INTO web_session (digest, user_id, expires_at) SELECT %(digest)s, u.id, %(until)s FROM u
"""
DELETE_EXPIRED = "DELETE FROM web_session WHERE expires_at <= %(at)s"
FIND_SESSION = f"""
    {SELECT} JOIN web_session s ON s.user_id = u.id
     WHERE s.digest = %(digest)s AND s.expires_at > %(at)s AND u.disabled_at IS NULL
"""
END_SESSION = "DELETE FROM web_session WHERE digest = %(digest)s"


async def add_user(db: Database, name: str, role: Role, *, at: datetime) -> bool:
    """Add a user without a password; return False if the name exists."""
    return await execute(db, INSERT, {"name": name, "role": role, "at": at}) == 1


async def list_users(db: Database) -> list[User]:
    """Return all users by name."""
    return await fetch_values(db, User, f"{SELECT} ORDER BY u.name", {})


async def find_user(db: Database, name: str) -> User | None:
    """Return a user by name; None if there is none."""
    matches = await fetch_values(db, User, f"{SELECT} WHERE u.name = %(name)s", {"name": name})
    return matches[0] if matches else None


async def has_users(db: Database) -> bool:
    """Return whether there is any user."""
    return bool(await fetch_value(db, "SELECT EXISTS (SELECT FROM web_user)"))


async def change_user(
    db: Database, name: str, *, role: Role | None = None, disabled: bool | None = None, at: datetime
) -> None:
    """Change the role of a user, or disable or enable the user; None changes nothing. Disabling ends all sessions."""
    async with db.transaction() as connection:
        await execute(connection, CHANGE, {"name": name, "role": role, "disabled": disabled, "at": at})
        if disabled:
            await execute(connection, END_SESSIONS, {"name": name})


async def remove_user(db: Database, name: str) -> None:
    """Remove a user with all sessions."""
    await execute(db, "DELETE FROM web_user WHERE name = %(name)s", {"name": name})


async def invite_user(db: Database, name: str, *, digest: bytes, until: datetime) -> None:
    """Store the hash of an invitation, which replaces the one before."""
    await execute(db, INVITE, {"name": name, "digest": digest, "until": until})


async def find_invited(db: Database, digest: bytes, *, at: datetime) -> User | None:
    """Return the user of an invitation; None if it is unknown, used or expired."""
    matches = await fetch_values(db, User, FIND_INVITED, {"digest": digest, "at": at})
    return matches[0] if matches else None


async def set_password(db: Database, name: str, password_hash: str, *, digest: bytes | None = None) -> bool:
    """Set a password, and end all sessions and the invitation. Return False if the invitation was used meanwhile.

    digest: the hash of the invitation by which it is set; None without one.
    """
    async with db.transaction() as connection:
        values = {"name": name, "hash": password_hash, "digest": digest}
        is_set = await execute(connection, STORE_HASH, values) == 1
        if is_set:
            await execute(connection, END_SESSIONS, {"name": name})
    return is_set


async def find_password_hash(db: Database, name: str) -> str:
    """Return the hash of a user's password; empty without a user, without a password, or if the user is disabled."""
    return str(await fetch_value(db, FIND_HASH, {"name": name}) or "")


async def start_session(
    db: Database, name: str, digest: bytes, *, password_hash: str, at: datetime, until: datetime
) -> bool:
    """Store a new session, and delete expired ones. Return False if the user may not log in any more."""
    async with db.transaction() as connection:
        await execute(connection, DELETE_EXPIRED, {"at": at})
        values = {"name": name, "digest": digest, "hash": password_hash, "at": at, "until": until}
        return await execute(connection, START_SESSION, values) == 1


async def find_session_user(db: Database, digest: bytes, *, at: datetime) -> User | None:
    """Return the user of a session; None if it has ended or the user is disabled."""
    matches = await fetch_values(db, User, FIND_SESSION, {"digest": digest, "at": at})
    return matches[0] if matches else None


async def end_session(db: Database, digest: bytes) -> None:
    """End a session."""
    await execute(db, END_SESSION, {"digest": digest})
