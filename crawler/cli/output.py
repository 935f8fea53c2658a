"""What goes out: tables and lines for people, one JSON document for programs; stderr for everything in between."""

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from crawler.store.report import Edit

PIPE_WIDTH = 10_000  # a line of a pipe is as long as it is; URLs of 8 kB are cut nowhere


@cache
def out() -> Console:
    """What was asked for. No colours and no line breaks where nobody looks."""
    return _console(stderr=False)


@cache
def err() -> Console:
    """Progress, logs and remarks."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False, soft_wrap=False)


def say(text: str) -> None:
    """A line of the answer."""
    out().print(Text(printable(text)), soft_wrap=True)


def remark(text: str) -> None:
    """A line beside the answer."""
    err().print(Text(printable(text)), soft_wrap=True)


def show(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[str] = ()) -> None:
    """A table; the columns named in `right` hold numbers."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    numbers = set(right)
    for name in columns:
        table.add_column(name, justify="right" if name in numbers else "left", overflow="fold", no_wrap=name in numbers)
    for row in rows:
        table.add_row(*map(printable, row))
    _print(table)


def show_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Names and values, one pair a line; pairs without a value are left out."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        if value:
            table.add_row(name, printable(value))
    _print(table)


def _print(table: Table) -> None:
    console = out()
    if console.is_terminal:
        console.print(table)
        return
    # A column is as wide as its widest cell: without this every line of a pipe would end in blanks.
    with console.capture() as capture:
        console.print(table)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))


def printable(text: str) -> str:
    """Text without characters that would steer the terminal; what servers say goes through here."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)


def shown_edit(edit: "Edit") -> str:
    """A piece that changed, in a line for each side that there is."""
    sides = [("-", edit.was), ("+", edit.now)]
    return "\n".join(f"{sign} {edit.part.value}: {text}" for sign, text in sides if text is not None)


def print_json(document: object) -> None:
    """The one document of --json."""
    json.dump(document, sys.stdout, default=_plain, indent=2 if sys.stdout.isatty() else None)
    sys.stdout.write("\n")


def values_of(value: "DataclassInstance") -> dict[str, object]:
    """A value's fields by name."""
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.repr}


def _plain(value: object) -> object:
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
            return values_of(value)
        case _:
            raise TypeError(f"{type(value).__name__} has no place in JSON")
