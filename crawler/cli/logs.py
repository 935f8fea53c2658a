"""Logging to stderr: one line per event, with the facts as key=value or as JSON."""

import logging
import os
import sys

from crawler.cli.output import get_stderr, make_printable
from crawler.json_lines import JsonLineFormatter, extract_facts


def wants_json() -> bool:
    """Return whether RECRAWL_LOG_FORMAT is json. It is read directly, because loading all settings slows `--help`."""
    return os.environ.get("RECRAWL_LOG_FORMAT") == "json"


class _TextHandler(logging.Handler):
    """A handler that prints through the console of the progress bar, so the two do not overwrite each other."""

    def emit(self, record: logging.LogRecord) -> None:
        facts = " ".join(f"{name}={value}" for name, value in extract_facts(record).items())
        text = f"{record.levelname.lower()} {record.getMessage()} {facts}".rstrip()
        get_stderr().print(make_printable(text), soft_wrap=True)
        if record.exc_info is not None and record.exc_info[1] is not None:
            get_stderr().print(make_printable(f"  {record.exc_info[1]!r}"), soft_wrap=True)


class _JsonHandler(logging.Handler):
    """A handler that writes JSON lines to the current sys.stderr, even after it was replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonLineFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(self.format(record) + "\n")


def set_up(*, level: int) -> None:
    """Log the events of recrawl at this level and above to stderr."""
    logger = logging.getLogger("recrawl")
    logger.handlers = [_JsonHandler() if wants_json() else _TextHandler()]
    logger.setLevel(level)
    logger.propagate = False
