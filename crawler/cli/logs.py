"""Where log events go: one line each on stderr, the facts as key=value, or as JSON for programs."""

import logging
import os
import sys

from crawler.cli.output import get_stderr, make_printable
from crawler.json_lines import JsonLineFormatter, extract_facts


def wants_json() -> bool:
    """Whether stderr is read by a program. The settings say the same, and take longer than a help text may."""
    return os.environ.get("RECRAWL_LOG_FORMAT") == "json"


class _TextHandler(logging.Handler):
    """Through the console that also draws the progress bar, so that neither tears the other."""

    def emit(self, record: logging.LogRecord) -> None:
        facts = " ".join(f"{name}={value}" for name, value in extract_facts(record).items())
        text = f"{record.levelname.lower()} {record.getMessage()} {facts}".rstrip()
        get_stderr().print(make_printable(text), soft_wrap=True)
        if record.exc_info is not None and record.exc_info[1] is not None:
            get_stderr().print(make_printable(f"  {record.exc_info[1]!r}"), soft_wrap=True)


class _JsonHandler(logging.Handler):
    """Straight to stderr, whoever has put another in its place."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonLineFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(self.format(record) + "\n")


def set_up(*, level: int) -> None:
    """Send the events of recrawl to stderr, from this level on."""
    logger = logging.getLogger("recrawl")
    logger.handlers = [_JsonHandler() if wants_json() else _TextHandler()]
    logger.setLevel(level)
    logger.propagate = False
