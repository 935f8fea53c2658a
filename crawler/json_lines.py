"""JSON as programs read it: values as the command and the API write them, and log records, a line each."""

import dataclasses
import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_STANDARD_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def format_json(document: object) -> str:
    """Return a document of our values as JSON."""
    return json.dumps(document, default=convert_to_plain)


def convert_to_plain(value: object) -> object:
    """Return a value as JSON has it: instants in ISO 8601, spans in seconds, bytes in hexadecimal. Raise TypeError."""
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
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return get_field_values(value)
        case _:
            raise TypeError(f"{type(value).__name__} has no place in JSON")


def get_field_values(value: "DataclassInstance") -> dict[str, object]:
    """Return a value's fields by name, without those that its repr leaves out."""
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.repr}


def format_json_line(event: str, *, level: str = "info", at: datetime | None = None, **facts: object) -> str:
    """One event. at: when it happened; None for now."""
    document = {"at": (at or datetime.now(UTC)).isoformat(), "level": level, "event": event, **facts}
    return json.dumps(document, ensure_ascii=False, default=str)


def extract_facts(record: logging.LogRecord) -> dict[str, object]:
    """What was told beside the event's name."""
    return {name: value for name, value in vars(record).items() if name not in _STANDARD_ATTRIBUTES}


class JsonLineFormatter(logging.Formatter):
    """Records as documents: when, how grave, what, which logger, the facts, and the error.

    Configurations of logging, such as Prefect's, give a format; there is but one.
    """

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__()

    def format(self, record: logging.LogRecord) -> str:
        facts = extract_facts(record) | {"logger": record.name}
        if record.exc_info is not None and record.exc_info[1] is not None:
            facts |= {"error": repr(record.exc_info[1]), "trace": self.formatException(record.exc_info)}
        at = datetime.fromtimestamp(record.created, UTC)
        return format_json_line(record.getMessage(), level=record.levelname.lower(), at=at, **facts)
