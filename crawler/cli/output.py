"""What goes out: tables and lines for people, one JSON document for programs; stderr for everything in between."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

from crawler.errors import CursorAhead, CursorTooOld
from crawler.json_lines import convert_to_plain, format_json_line

if TYPE_CHECKING:  # rich has 4 MB, and a process that shows pages says two lines
    from rich.console import Console
    from rich.table import Table

MIN_TEXT_WIDTH = 16  # characters of a text that a column of a table shows in a line, at least
PIPE_WIDTH = 10_000  # a line of a pipe is as long as it is; URLs of 8 kB are cut nowhere


@cache
def get_stdout() -> "Console":
    """What was asked for. No colours and no line breaks where nobody looks."""
    return _make_console(stderr=False)


@cache
def get_stderr() -> "Console":
    """Progress, logs and remarks."""
    return _make_console(stderr=True)


def _make_console(*, stderr: bool) -> "Console":
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False, soft_wrap=False)


def say(text: str, *, style: str = "") -> None:
    """A line of the answer."""
    from rich.text import Text

    get_stdout().print(Text(make_printable(text), style), soft_wrap=True)


def say_heading(text: str) -> None:
    """The one heading of an answer."""
    say(text, style="bold")


def remark(text: str) -> None:
    """A line beside the answer."""
    from rich.text import Text

    from crawler.cli.logs import wants_json

    if wants_json():
        sys.stderr.write(format_json_line(text) + "\n")
        return

    get_stderr().print(Text(make_printable(text)), soft_wrap=True)


def show_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[str] = ()) -> None:
    """A table; the columns named in `right` hold numbers. Where it is too wide, each row is a paragraph of its own."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    rows = [tuple(map(make_printable, row)) for row in rows]
    if _compute_min_width(columns, rows, right=set(right)) > get_stdout().width:
        for row in rows:
            show_facts(zip(columns, row, strict=True))
            say("")
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    numbers = set(right)
    for name in columns:
        table.add_column(name, justify="right" if name in numbers else "left", overflow="fold", no_wrap=name in numbers)
    for row in rows:
        table.add_row(*row)
    _print_table(table)


def show_rows(rows: Iterable[Mapping[str, str]], *, right: Iterable[str] = ()) -> None:
    """Print a table of rows, at least one, each with its cells by heading. right: the headings of numbers."""
    rows = list(rows)
    show_table(list(rows[0]), [list(row.values()) for row in rows], right=right)


def _compute_min_width(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: set[str]) -> int:
    """Characters that a table needs for its numbers, and for a readable piece of each text."""
    widest = [max((len(row[n]) for row in rows), default=0) for n in range(len(columns))]
    widths = [
        max(len(name), wide if name in right else min(wide, MIN_TEXT_WIDTH))
        for name, wide in zip(columns, widest, strict=True)
    ]
    return sum(widths) + 2 * (len(widths) - 1)


def show_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Names and values, one pair a line; pairs without a value are left out. An address is never broken."""
    from rich.table import Table
    from rich.text import Text

    shown = [(name, make_printable(value)) for name, value in facts if value]
    width = max((len(name) for name, _ in shown), default=0)
    for has_address, group in groupby(shown, key=lambda pair: "://" in pair[1]):
        if has_address:
            for name, value in group:
                for n, line in enumerate(value.splitlines()):
                    get_stdout().print(
                        Text((name if n == 0 else "").ljust(width), style="bold") + Text(f"  {line}"), soft_wrap=True
                    )
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
    # A column is as wide as its widest cell: without this every line of a pipe would end in blanks.
    with console.capture() as capture:
        console.print(table)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))


def make_printable(text: str) -> str:
    """Text without characters that would steer the terminal; what servers say goes through here."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)


def pick_fields(value: object, *names: str) -> dict[str, object]:
    """Return some fields of a value by name, for a document."""
    return {name: getattr(value, name) for name in names}


def print_json(document: object) -> None:
    """The one document of --json."""
    json.dump(document, sys.stdout, default=convert_to_plain, indent=2 if sys.stdout.isatty() else None)
    sys.stdout.write("\n")


def print_outcome(document: object, text: str, *, as_json: bool) -> None:
    """Print what a command has done: a document with --json, else lines for people."""
    if as_json:
        print_json(document)
    else:
        say(text)


def print_listing(
    document: object,
    rows: Iterable[Mapping[str, str]],
    *,
    right: Iterable[str] = (),
    empty: str,
    as_json: bool,
) -> bool:
    """Print what a command has found: a document with --json, else a table, or the line `empty` without rows.

    Return whether it was a table, for what is said beneath it.
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
    """One of many documents, in a line, for whoever reads along."""
    json.dump(document, sys.stdout, default=convert_to_plain)
    sys.stdout.write("\n")
    sys.stdout.flush()


@contextmanager
def report_cursor_errors(*, as_json: bool) -> Iterator[None]:
    """With --json, a document for a cursor that is too old, or beyond the end.

    The complaint and the exit code are as without.
    """
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
