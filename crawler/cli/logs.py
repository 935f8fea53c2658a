"""Where log events go: one line each on stderr, the facts as key=value."""

import logging

from crawler.cli.output import err, printable

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _Lines(logging.Handler):
    """Through the console that also draws the progress bar, so that neither tears the other."""

    def emit(self, record: logging.LogRecord) -> None:
        facts = " ".join(f"{name}={value}" for name, value in vars(record).items() if name not in _OWN)
        text = f"{record.levelname.lower()} {record.getMessage()} {facts}".rstrip()
        err().print(printable(text), soft_wrap=True)
        if record.exc_info is not None and record.exc_info[1] is not None:
            err().print(printable(f"  {record.exc_info[1]!r}"), soft_wrap=True)


def set_up(*, level: int) -> None:
    """Send the events of recrawl to stderr, from this level on."""
    logger = logging.getLogger("recrawl")
    logger.handlers = [_Lines()]
    logger.setLevel(level)
    logger.propagate = False
