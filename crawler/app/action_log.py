"""The log of actions: the hook by which operations are recorded, and the rows.

`@recorded` is on each operation that changes something, so that the web UI, the HTTP API, commands and Python programs
are recorded in the same way. If an operation calls others, only the outermost one is recorded.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import wraps
from inspect import signature
from typing import Concatenate, ParamSpec, TypeVar

from msgspec.structs import replace

from crawler.app.actor import Actor, Permission, find_actor, require_permission
from crawler.app.database import AppDatabase
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.errors import CrawlerError
from crawler.format.domain_settings import format_all_settings, format_rule
from crawler.format.values import format_count
from crawler.store import actions
from crawler.store.actions import Action, ActionQuery

MAX_CHARS = 500  # of an object, and of old or new values
MAX_NAMES = 5  # of a list
CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")  # a user and a password in a URL

log = logging.getLogger("recrawl.actions")

P = ParamSpec("P")
T = TypeVar("T")

_details: ContextVar[dict[str, str] | None] = ContextVar("details", default=None)  # of the action that runs


def recorded(
    name: str, *shown: str
) -> Callable[
    [Callable[Concatenate[AppDatabase, P], Awaitable[T]]], Callable[Concatenate[AppDatabase, P], Awaitable[T]]
]:
    """Record each success of an operation as an action of this name.

    The argument after the database is the object. If it is a domain and the result is, too, the settings that changed
    are the old and new values; without a change, nothing is recorded. shown: arguments that are new values.
    """

    def decorate(
        operation: Callable[Concatenate[AppDatabase, P], Awaitable[T]],
    ) -> Callable[Concatenate[AppDatabase, P], Awaitable[T]]:
        parameters = signature(operation)

        @wraps(operation)
        async def run(db: AppDatabase, /, *args: P.args, **kwargs: P.kwargs) -> T:
            if _details.get() is not None or find_actor(db.actor_kind) is None:
                return await operation(db, *args, **kwargs)
            details = dict[str, str]()
            token = _details.set(details)
            try:
                result = await operation(db, *args, **kwargs)
            finally:
                _details.reset(token)
            given = dict(parameters.bind(db, *args, **kwargs).arguments)
            subject = list(given.values())[1] if len(given) > 1 else ""
            if isinstance(subject, Domain) and isinstance(result, Domain):
                details = compare_settings(subject.settings, result.settings) | details
            new = "; ".join(f"{each}: {_format(given[each])}" for each in shown if given.get(each))
            details = {"object": _format(subject), "new": new} | details
            if details.pop("is_change", "yes") == "yes":
                await record_action(db, details.pop("name", name), details)
            return result

        return run

    return decorate


def describe_action(*, is_change: bool = True, **texts: str) -> None:
    """Say about the action that runs: its name, object, old or new values. Never pass a secret.

    is_change: False if there is nothing to record.
    """
    if (details := _details.get()) is not None:
        details.update(texts, is_change="yes" if is_change else "no")


async def record_action(db: AppDatabase, name: str, texts: Mapping[str, str], *, actor: Actor | None = None) -> None:
    """Add an action to the log. A failure is only reported, because the action is done.

    texts: object, old, new.  actor: None for the current one.
    """
    actor = actor or find_actor(db.actor_kind)
    if actor is None:
        return
    action = Action(datetime.now(UTC), actor.kind, actor.name, name, address=actor.address)
    try:
        await actions.add_action(db, replace(action, **{key: shorten(text) for key, text in texts.items()}))
    except CrawlerError:
        log.exception("action.not_recorded", extra={"action": {"name": name, "actor": actor.name}})


async def list_actions(db: AppDatabase, query: ActionQuery, *, max_count: int = 100) -> Sequence[Action]:
    """Return recorded actions, newest first."""
    require_permission(Permission.MANAGE, "the log of actions")
    return await actions.list_actions(db, query, max_count=max_count)


async def forget_actions(db: AppDatabase, *, at: datetime) -> int:
    """Delete the actions that are older than the setting allows; return how many."""
    return await actions.forget_actions(db, before=at - db.settings.action_retention)


def shorten(text: str) -> str:
    """Return a text without credentials in URLs, on one line, and cut if it is long."""
    line = " ".join(CREDENTIALS.sub("...@", text).split())
    return line if len(line) <= MAX_CHARS else f"{line[: MAX_CHARS - 3]}..."


def format_change(action: Action) -> str:
    """Return the old and the new values of an action in one text."""
    return f"{action.old or 'none'} -> {action.new or 'none'}" if action.old else action.new


def compare_settings(before: DomainSettings, after: DomainSettings) -> dict[str, str]:
    """Return the old and the new values of the settings and rules that differ."""
    pairs = zip(format_all_settings(before), format_all_settings(after), strict=True)
    changed = [(label, was or "default", now or "default") for (label, was), (_, now) in pairs if was != now]
    old = [f"{label}: {was}" for label, was, _ in changed]
    new = [f"{label}: {now}" for label, _, now in changed]
    old += [f"rule {format_rule(rule)}" for rule in before.rules if rule not in after.rules]
    new += [f"rule {format_rule(rule)}" for rule in after.rules if rule not in before.rules]
    return {"old": "; ".join(old), "new": "; ".join(new), "is_change": "yes" if before != after else "no"}


def _format(value: object) -> str:
    if isinstance(value, Domain):
        return value.authority
    return format_names(value) if isinstance(value, (list, tuple, set, frozenset)) else str(value)


def format_names(values: Collection[object]) -> str:
    """Return values as one text, which has the count and the first ones of many."""
    names = ", ".join(map(str, list(values)[:MAX_NAMES]))
    return names if len(values) <= MAX_NAMES else f"{format_count(len(values), 'item')}: {names}, ..."
