"""What the API answers with, where the store has no value of that form, and how that is made of the store's."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Generic, TypeVar

from crawler.app.pages import State, Url

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Items(Generic[T]):
    """A part of a list. next: the cursor from which to read on; null at the end."""

    items: Sequence[T]
    next: str | None


@dataclass(frozen=True, slots=True)
class DomainItem:
    """A registered domain."""

    domain: str
    root: Url
    aliases: list[str]
    paused: bool
    registered_at: datetime


@dataclass(frozen=True, slots=True)
class PageItem:
    """A page with its newest version.

    status: of the last fetch.  version_at: when the version was first seen.  seen_at: the last good fetch.
    changed_at: the last change, null without one.  importance: the domain's mean is 1.  digest: of the body, in
    hexadecimal.  text: the main text, null where it was not asked for.
    """

    url: Url
    state: State
    status: int | None
    version: int
    version_at: datetime | None
    seen_at: datetime | None
    changed_at: datetime | None
    title: str
    language: str
    content_type: str
    importance: float | None
    digest: str | None
    text: str | None


@dataclass(frozen=True, slots=True)
class PageText:
    """What a version of a page said.

    state: of the page at the instant that was asked for.  until: when the next version was first seen, else null.
    """

    url: Url
    state: State
    version: int
    version_at: datetime
    until: datetime | None
    title: str
    language: str
    content_type: str
    text: str


def row(kind: type[T], source: object, **own: object) -> T:
    """Return a value of a class with the fields of the same name of another value, and some of its own."""
    names = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: own[name] if name in own else getattr(source, name) for name in names})
