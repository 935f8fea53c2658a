"""Output of commands: text and tables or one JSON document on stdout; progress, logs and remarks on stderr."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, TextIO

from crawler.errors import CursorAhead, CursorTooOld
from crawler.json_lines import convert_to_plain, format_json_line, pick_fields

if TYPE_CHECKING:  # imported in the functions, because rich takes 4 MB of memory and `recrawl serve` needs none of it
    from rich.console import Console
    from rich.table import Table

MIN_TEXT_WIDTH = 16  # characters that a text column of a table gets at least
PIPE_WIDTH = 10_000  # characters, so that lines in a pipe never wrap: a URL can be 8 kB long


@cache
def get_stdout() -> "Console":
    """Return the console for results. Outside a terminal it has no colors and does not wrap lines."""
    return _make_console(sys.stdout)


@cache
def get_stderr() -> "Console":
    """Return the console for progress, logs and remarks."""
    return _make_console(sys.stderr)


def _make_console(stream: TextIO) -> "Console":
    from rich.console import Console

    width = None if stream.isatty() else PIPE_WIDTH
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False, soft_wrap=False)


def is_terminal(stream: TextIO) -> bool:
    """Return whether Rich may take a stream for a terminal. Does not import Rich, which takes 40 ms."""
    return stream.isatty() or not os.environ.keys().isdisjoint(("FORCE_COLOR", "TTY_COMPATIBLE"))


def say(text: str, *, style: str = "") -> None:
    """Print a line of the result to stdout."""
    if not is_terminal(sys.stdout):
        sys.stdout.write(make_printable(text) + "\n")
        sys.stdout.flush()  # a pipe is buffered, and --follow prints a line at a time
        return
    from rich.text import Text

    get_stdout().print(Text(make_printable(text), style), soft_wrap=True)


def say_heading(text: str) -> None:
    """Print the heading of the result to stdout."""
    say(text, style="bold")


def remark(text: str) -> None:
    """Print a line that is not part of the result to stderr, after the result so far."""
    from crawler.cli.logs import wants_json

    sys.stdout.flush()  # a pipe is buffered
    if wants_json():
        sys.stderr.write(format_json_line(text) + "\n")
    elif not is_terminal(sys.stderr):
        sys.stderr.write(make_printable(text) + "\n")
    else:
        from rich.text import Text

        get_stderr().print(Text(make_printable(text)), soft_wrap=True)


def show_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[str] = ()) -> None:
    """Print a table, or a paragraph per row if the table is too wide. right: the columns that hold numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    rows, numbers = [tuple(map(make_printable, row)) for row in rows], set(right)
    if _compute_min_width(columns, rows, numbers) > get_stdout().width:
        for row in rows:
            show_facts(zip(columns, row, strict=True))
            say("")
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if name in numbers else "left", overflow="fold", no_wrap=name in numbers)
    for row in rows:
        table.add_row(*row)
    _print_table(table)


def show_rows(rows: Iterable[Mapping[str, str]], *, right: Iterable[str] = ()) -> None:
    """Print a table of at least one row, each a mapping from heading to cell. right: the columns that hold numbers."""
    rows = list(rows)
    show_table(list(rows[0]), [list(row.values()) for row in rows], right=right)


def _compute_min_width(columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: set[str]) -> int:
    """Return the width in characters that the table needs for its numbers and a readable part of each text."""
    total = 2 * (len(columns) - 1)
    for n, name in enumerate(columns):
        widest = max((len(row[n]) for row in rows), default=0)
        total += max(len(name), widest if name in numbers else min(widest, MIN_TEXT_WIDTH))
    return total


def show_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print one name and value per line. Pairs with an empty value are omitted, and URLs are never wrapped."""
    from rich.table import Table
    from rich.text import Text

    shown = [(name, make_printable(value)) for name, value in facts if value]
    width = max((len(name) for name, _ in shown), default=0)
    for has_address, group in groupby(shown, key=lambda pair: "://" in pair[1]):
        if has_address:
            for name, value in group:
                for n, line in enumerate(value.splitlines()):
                    label = Text((name if n == 0 else "").ljust(width), style="bold")
                    get_stdout().print(label + Text(f"  {line}"), soft_wrap=True)
            continue
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(style="bold", no_wrap=True, min_width=width)
        table.add_column(overflow="fold")
        for name, value in group:
            table.add_row(name, value)
        _print_table(table)


def _print_table(table: "Table") -> None:
    console = get_stdout()
    if console.is_terminal:
        console.print(table)
        return
    # A column is as wide as its widest cell, so lines in a pipe would end in blanks.
    with console.capture() as capture:
        console.print(table)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))


def make_printable(text: str) -> str:
    """Replace control characters, which could control the terminal. Pass all text from servers through this."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)


def print_json(document: object) -> None:
    """Print the JSON document of --json."""
    json.dump(document, sys.stdout, default=convert_to_plain, indent=2 if sys.stdout.isatty() else None)
    sys.stdout.write("\n")


def print_outcome(document: object, text: str, *, as_json: bool) -> None:
    """Print the outcome of a command: the document with --json, else the text."""
    if as_json:
        print_json(document)
    else:
        say(text)


def print_listing(
    document: object, rows: Iterable[Mapping[str, str]], *, right: Iterable[str] = (), empty: str, as_json: bool
) -> bool:
    """Print the document with --json, else a table of the rows, or the line `empty` if there are none.

    Return whether a table was printed, so the caller can add remarks.
    """
    if as_json:
        print_json(document)
        return False
    listed = list(rows)
    if listed:
        show_rows(listed, right=right)
    else:
        say(empty)
    return bool(listed)


def print_json_line(document: object) -> None:
    """Print one of several JSON documents on one line, and flush stdout."""
    json.dump(document, sys.stdout, default=convert_to_plain)
    sys.stdout.write("\n")
    sys.stdout.flush()


@contextmanager
def report_cursor_errors(*, as_json: bool) -> Iterator[None]:
    """With --json, print a document about a cursor that is too old or beyond the end. The error is raised again."""
    try:
        yield
    except CursorAhead as error:
        if as_json:
            document = {"error": "cursor_ahead", "since": error.since, "ends_at": error.end}
            print_json_line(document | {"remedy": "recrawl export DOMAIN"})
        raise
    except CursorTooOld as error:
        if as_json:
            document = {"error": "cursor_too_old", **pick_fields(error, "since", "stored_from", "domain")}
            print_json_line(document | {"remedy": f"recrawl export {error.domain or 'DOMAIN'}"})
        raise
