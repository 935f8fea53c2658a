"""The entrance of the command: arguments in, an exit code out, one line for whatever goes wrong."""

import gc
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

import typer

from crawler.cli import streams
from crawler.cli.app import app
from crawler.cli.session import DONE, INTERRUPTED, PROBLEM, TOO_OLD, USAGE
from crawler.errors import BadInput, CrawlerError, CursorTooOld

# New objects after which the garbage collector looks through them. What a command imports makes a hundred thousand that
# stay: to look through them every 700, as is usual, is a tenth of what starting takes.
YOUNG_OBJECTS = 100_000
# For multiplying matrices, which nobody here does; numpy starts them at once.
NO_THREADS = {"OPENBLAS_NUM_THREADS": "1"}


def main(arguments: Sequence[str] | None = None, *, app: typer.Typer = app, program: str = "recrawl") -> int:
    """Run one command, and return its exit code.

    0: done.  1: a problem was found, or something failed.  2: it cannot be asked for like this.  3: a cursor of the
    change feed is older than what is kept.  128 + n: ended by signal n, after everything that was begun is put in
    order.  A reader of the output that goes away changes nothing of that.
    app, program: of another command line with the same conventions.
    """
    signal.signal(signal.SIGTERM, _exit_on_sigterm)
    os.environ.update(NO_THREADS | os.environ)
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
    streams.make_streams_sturdy()
    try:
        code = int(app(arguments, prog_name=program, standalone_mode=False) or DONE)
        sys.stdout.flush()  # a full disk is met here, not when Python ends
        return code
    except SystemExit as ended:
        return int(ended.code or DONE)
    except typer.TyperException as error:
        return _print_usage_error(error)
    except CrawlerError as error:
        print_error(str(error))
        return USAGE if isinstance(error, BadInput) else TOO_OLD if isinstance(error, CursorTooOld) else PROBLEM
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED


def print_error(message: str) -> None:
    """One line on stderr, whatever is in the message."""
    from crawler.cli.logs import wants_json
    from crawler.json_lines import format_json_line

    line = " ".join(message.split())
    if wants_json():
        sys.stderr.write(format_json_line(line, level="error") + "\n")
        return
    print(f"recrawl: {line}", file=sys.stderr)  # noqa: T201  the one place that speaks when nothing else is set up


def _print_usage_error(error: typer.TyperException) -> int:
    """A usage error in one line; what is no error but a plea for help, in full."""
    message = error.format_message()
    context = getattr(error, "ctx", None)
    if message:
        print_error(f"{message} ({context.command_path} --help)" if context is not None else message)
    return USAGE


def _exit_on_sigterm(number: int, _frame: FrameType | None) -> None:
    """SIGTERM leaves through every `finally`, so that nothing stays running."""
    raise SystemExit(128 + number)
