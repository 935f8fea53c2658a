"""Where log events go: one line each on stderr, the facts as key=value, or as JSON for programs."""

import logging
import os
import sys

from crawler.cli.output import err, printable
from crawler.json_lines import JsonLineFormatter, facts_of


def wants_json() -> bool:
    """Whether stderr is read by a program. The settings say the same, and take longer than a help text may."""
    return os.environ.get("RECRAWL_LOG_FORMAT") == "json"


class _Lines(logging.Handler):
    """Through the console that also draws the progress bar, so that neither tears the other."""

    def emit(self, record: logging.LogRecord) -> None:
        facts = " ".join(f"{name}={value}" for name, value in facts_of(record).items())
        text = f"{record.levelname.lower()} {record.getMessage()} {facts}".rstrip()
        err().print(printable(text), soft_wrap=True)
        if record.exc_info is not None and record.exc_info[1] is not None:
            err().print(printable(f"  {record.exc_info[1]!r}"), soft_wrap=True)


class _JsonLines(logging.Handler):
    """Straight to stderr, whoever has put another in its place."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonLineFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(self.format(record) + "\n")


def set_up(*, level: int) -> None:
    """Send the events of recrawl to stderr, from this level on."""
    logger = logging.getLogger("recrawl")
    logger.handlers = [_JsonLines() if wants_json() else _Lines()]
    logger.setLevel(level)
    logger.propagate = False
