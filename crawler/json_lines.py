"""JSON output: values as the command and the API write them, and log records as one line each."""

import dataclasses
import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import asdict

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_STANDARD_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def format_json(document: object) -> str:
    """Serialize a document, which may contain recrawl's own value types, to JSON."""
    return json.dumps(document, default=convert_to_plain)


def convert_to_plain(value: object) -> object:
    """Convert a value to a JSON type, for example instants to ISO 8601, spans to seconds, bytes to hexadecimal.

    Raise TypeError if there is no conversion.
    """
    match value:
        case datetime():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Enum():
            return value.value
        case bytes():
            return value.hex()
        case Mapping():
            return dict(value)
        case set() | frozenset():
            return sorted(value)
        case _ if isinstance(value, Struct) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
            return get_field_values(value)
        case _:
            raise TypeError(f"{type(value).__name__} cannot be converted to JSON")


def get_field_values(value: "DataclassInstance | Struct") -> dict[str, object]:
    """Return a value's fields by name, without those that its repr omits."""
    if isinstance(value, Struct):
        return asdict(value)
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.repr}


def pick_fields(value: object, *names: str) -> dict[str, object]:
    """Return the named fields of a value, for a JSON document."""
    return {name: getattr(value, name) for name in names}


def format_json_line(event: str, *, level: str = "info", at: datetime | None = None, **facts: object) -> str:
    """Format one event as a JSON line. at: when it happened; None for now."""
    document = {"at": (at or datetime.now(UTC)).isoformat(), "level": level, "event": event, **facts}
    return json.dumps(document, ensure_ascii=False, default=str)


def extract_facts(record: logging.LogRecord) -> dict[str, object]:
    """Return the extra attributes of a log record."""
    return {name: value for name, value in vars(record).items() if name not in _STANDARD_ATTRIBUTES}


class JsonLineFormatter(logging.Formatter):
    """A formatter that writes log records as JSON lines: time, level, event, facts, logger and error.

    Logging configurations such as Prefect's pass a format; it is ignored.
    """

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__()

    def format(self, record: logging.LogRecord) -> str:
        facts = extract_facts(record) | {"logger": record.name}
        if record.exc_info is not None and record.exc_info[1] is not None:
            facts |= {"error": repr(record.exc_info[1]), "trace": self.formatException(record.exc_info)}
        at = datetime.fromtimestamp(record.created, UTC)
        return format_json_line(record.getMessage(), level=record.levelname.lower(), at=at, **facts)
