"""What is told, as JSON documents of a line each, for programs that collect logs."""

import json
import logging
from datetime import UTC, datetime

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def json_line(event: str, *, level: str = "info", at: datetime | None = None, **facts: object) -> str:
    """One event. at: when it happened; None for now."""
    told = {"at": (at or datetime.now(UTC)).isoformat(), "level": level, "event": event, **facts}
    return json.dumps(told, ensure_ascii=False, default=str)


def facts_of(record: logging.LogRecord) -> dict[str, object]:
    """What was told beside the event's name."""
    return {name: value for name, value in vars(record).items() if name not in _OWN}


class JsonLineFormatter(logging.Formatter):
    """Records as documents: when, how grave, what, which logger, the facts, and the error.

    Configurations of logging, such as Prefect's, give a format; there is but one.
    """

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__()

    def format(self, record: logging.LogRecord) -> str:
        facts = facts_of(record) | {"logger": record.name}
        if record.exc_info is not None and record.exc_info[1] is not None:
            facts |= {"error": repr(record.exc_info[1]), "trace": self.formatException(record.exc_info)}
        at = datetime.fromtimestamp(record.created, UTC)
        return json_line(record.getMessage(), level=record.levelname.lower(), at=at, **facts)
