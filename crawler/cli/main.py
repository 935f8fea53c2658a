"""The entry point of the command: run it, print each error in one line and return an exit code."""

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

# The garbage collector's threshold for new objects. Imports create about 100,000 objects that stay; with the default of
# 700, collecting takes a tenth of the start-up time.
YOUNG_OBJECTS = 100_000
# numpy starts the threads of OpenBLAS on import. They only serve matrix multiplication, which recrawl does not use.
ONE_BLAS_THREAD = {"OPENBLAS_NUM_THREADS": "1"}


def main(arguments: Sequence[str] | None = None, *, app: typer.Typer = app, program: str = "recrawl") -> int:
    """Run one command, and return its exit code.

    0: success.  1: a problem was found or something failed.  2: invalid usage.  3: a cursor of the change feed is older
    than the changes that are kept.  128 + n: ended by signal n, after cleaning up.  A closed stdout does not change the
    exit code.
    app, program: the commands and the program name; `python -m labs` passes its own.
    """
    signal.signal(signal.SIGTERM, _exit_on_sigterm)
    os.environ.update(ONE_BLAS_THREAD | os.environ)
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
    streams.make_streams_sturdy()
    try:
        code = int(app(arguments, prog_name=program, standalone_mode=False) or DONE)
        sys.stdout.flush()  # so that a full disk is reported here and not when Python exits
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
    """Print the message as one line on stderr, without its line breaks."""
    from crawler.cli.logs import wants_json
    from crawler.json_lines import format_json_line

    line = " ".join(message.split())
    if wants_json():
        sys.stderr.write(format_json_line(line, level="error") + "\n")
        return
    print(f"recrawl: {line}", file=sys.stderr)  # noqa: T201  the consoles may not be set up yet


def _print_usage_error(error: typer.TyperException) -> int:
    """Print a usage error in one line with the help command to run. A request for help has no message."""
    message = error.format_message()
    context = getattr(error, "ctx", None)
    if message:
        print_error(f"{message} ({context.command_path} --help)" if context is not None else message)
    return USAGE


def _exit_on_sigterm(number: int, _frame: FrameType | None) -> None:
    """Raise SystemExit on SIGTERM, so every `finally` runs and no process is left behind."""
    raise SystemExit(128 + number)
