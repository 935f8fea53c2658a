"""The log of actions: who changed what, when, and from which address."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import asdict

from crawler.store.database import Database
from crawler.store.rows import build_like_pattern, clean_text, execute, fetch_values


class Action(Struct, frozen=True):
    """A row of the log. actor_kind: what the actor is, such as user.  old, new: values in short."""

    at: datetime
    actor_kind: str
    actor: str
    action: str
    object: str = ""
    old: str = ""
    new: str = ""
    address: str = ""
    id: int = 0


class ActionQuery(Struct, frozen=True):
    """Which rows to read, newest first. actor: its name.  words: in the action or the object.

    before: rows with a smaller id; 0 for all.
    """

    actor: str = ""
    words: str = ""
    since: datetime | None = None
    before: int = 0


INSERT = """
    INSERT INTO action (at, actor_kind, actor, address, action, object, old, new)
    VALUES (%(at)s, %(actor_kind)s, %(actor)s, %(address)s, %(action)s, %(object)s, %(old)s, %(new)s)
"""
SELECT = """
    SELECT * FROM action
     WHERE (%(actor)s = '' OR actor = %(actor)s) AND (%(words)s = '%%' OR action || ' ' || object ILIKE %(words)s)
       AND (%(since)s::timestamptz IS NULL OR at >= %(since)s) AND (%(before)s = 0 OR id < %(before)s)
     ORDER BY id DESC LIMIT %(count)s
"""
TEXTS = ("actor", "action", "object", "old", "new")


async def add_action(db: Database, action: Action) -> None:
    """Add a row."""
    values = asdict(action)
    await execute(db, INSERT, values | {name: clean_text(values[name]) for name in TEXTS})


async def list_actions(db: Database, query: ActionQuery, *, max_count: int) -> list[Action]:
    """Return rows, newest first."""
    values = asdict(query) | {"words": build_like_pattern(query.words) if query.words else "%", "count": max_count}
    return await fetch_values(db, Action, SELECT, values | {"actor": clean_text(query.actor)})


async def forget_actions(db: Database, *, before: datetime) -> int:
    """Delete the rows before a time; return how many."""
    return await execute(db, "DELETE FROM action WHERE at < %(before)s", {"before": before})
