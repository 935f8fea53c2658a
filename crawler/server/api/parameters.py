"""Parameters of the API's addresses: read, bounded, and described."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from crawler import times
from crawler.errors import BadInput
from crawler.format.kinds import parse_kinds
from crawler.server.api.problems import Problem
from crawler.store.report import EventKind

MOST_CURSOR = 2**63 - 1
MOST_VERSION = 2**31 - 1


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """A parameter of a query. read: its value from text; ValueError for what cannot be.  schema: of OpenAPI."""

    name: str
    meaning: str
    schema: Mapping[str, object]
    read: Callable[[str], Any]
    default: Any = None
    required: bool = False

    @property
    def described(self) -> dict[str, object]:
        return {
            "name": self.name,
            "in": "query",
            "required": self.required,
            "description": self.meaning,
            "schema": dict(self.schema),
        }

    def value_in(self, given: Mapping[str, str]) -> Any:
        """Its value in a query. Raises Problem."""
        text = given.get(self.name, "")
        if not text:
            if self.required:
                raise Problem(400, f"{self.name} is missing")
            return self.default
        try:
            return self.read(text)
        except (ValueError, BadInput) as error:
            raise Problem(400, f"{self.name}: {error}") from error


def text(name: str, meaning: str, *, required: bool = False) -> QueryParameter:
    return QueryParameter(name, meaning, {"type": "string", "maxLength": 8192}, str, required=required)


def number(
    name: str, meaning: str, *, least: int = 0, most: int = MOST_CURSOR, default: int | None = None
) -> QueryParameter:
    def read(typed: str) -> int:
        if not typed.isascii() or not typed.isdigit() or not least <= int(typed) <= most:
            raise ValueError(f"{typed[:40]!r} is no number from {least} to {most}")
        return int(typed)

    schema: dict[str, object] = {"type": "integer", "minimum": least, "maximum": most}
    return QueryParameter(name, meaning, schema | ({"default": default} if default is not None else {}), read, default)


def limit(most: int, *, default: int) -> QueryParameter:
    return number("limit", "How many at most.", least=1, most=most, default=default)


def instant(name: str, meaning: str) -> QueryParameter:
    def read(typed: str) -> datetime:
        return times.instant(typed.replace(" ", "+"))  # a plus that was not escaped

    return QueryParameter(name, meaning, {"type": "string", "format": "date-time"}, read)


def kinds() -> QueryParameter:
    meaning = "Only of these kinds, with commas between, as the command has them: new, changed, gone and so on."
    return QueryParameter("kind", meaning, {"type": "string"}, parse_kinds, frozenset(EventKind))


def yes_or_no(name: str, meaning: str) -> QueryParameter:
    def read(typed: str) -> bool:
        if typed not in {"true", "false"}:
            raise ValueError(f"{typed[:40]!r} is neither true nor false")
        return typed == "true"

    return QueryParameter(name, meaning, {"type": "boolean", "default": False}, read, default=False)


def place(name: str, meaning: str) -> QueryParameter:
    def read(typed: str) -> bytes:
        return bytes.fromhex(typed)

    return QueryParameter(name, meaning, {"type": "string", "pattern": "^[0-9a-f]*$"}, read, b"")
