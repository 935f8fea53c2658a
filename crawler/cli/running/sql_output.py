"""recrawl db sql: the rows of a statement, as a table, as CSV or as JSON."""

import csv
import sys
from collections.abc import Sequence
from contextlib import aclosing
from datetime import timedelta
from decimal import Decimal
from math import isfinite
from typing import Any

from crawler.app.database import Database
from crawler.app.delivery.exports import cell
from crawler.app.running.maintenance import Answered, run_statement, shown_value
from crawler.cli.output import out, print_json, printable, remark, say, show
from crawler.cli.session import Interrupts, with_database
from crawler.errors import BadInput
from crawler.format.values import format_count

MOST_JSON_DIGITS = 300  # of a number: readers of JSON make a double of it


def sql(statement: str, *, may_write: bool, top: int, as_csv: bool, as_json: bool) -> None:
    if as_csv and as_json:
        raise BadInput("--csv and --json exclude each other")
    text = sys.stdin.read() if statement == "-" else statement
    if not text.strip():
        raise BadInput("an empty statement")

    async def work(db: Database, _: Interrupts) -> tuple[Answered, list[Sequence[Any]]]:
        async with run_statement(db, text, may_write=may_write) as answered:
            if as_csv and answered.columns:
                _write_csv_row(answered.columns)
            kept: list[Sequence[Any]] = []
            async with aclosing(answered.rows) as rows:  # type: ignore[type-var]  # they are a generator's
                async for row in rows:
                    if as_csv:
                        _write_csv_row(row)
                    elif as_json or len(kept) <= top:
                        kept.append(row)
            return answered, kept

    answered, rows = with_database(work)
    if as_json:
        plain = [dict(zip(answered.columns, map(_for_json, row), strict=True)) for row in rows]
        print_json({"columns": answered.columns, "rows": plain})
    elif not as_csv:
        _show(answered, rows, top=top)


def _write_csv_row(row: Sequence[Any]) -> None:
    """One row on stdout."""
    csv.writer(sys.stdout, lineterminator="\n").writerow([csv_cell(value) for value in row])


def csv_cell(value: object) -> object:
    """A value as a cell of a file or of what a terminal shows."""
    found = cell(value)
    return printable(found) if isinstance(found, str) and out().is_terminal else found


def _for_json(value: Any) -> Any:
    """Return a value of any type of Postgres as JSON has it: numbers as numbers, what JSON has no word for as text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float() if isfinite(value):
            return value
        case Decimal() if value.is_finite() and abs(value.adjusted()) < MOST_JSON_DIGITS:
            return int(value) if value == value.to_integral_value() else float(value)
        case timedelta():
            return value.total_seconds()
        case list() | tuple():
            return [_for_json(each) for each in value]
        case dict():
            return {name: _for_json(each) for name, each in value.items()}
        case _:
            return shown_value(value)


def _show(answered: Answered, rows: list[Sequence[Any]], *, top: int) -> None:
    if answered.said:
        say(answered.said)
    if not answered.columns:
        return
    shown = rows[:top]
    numbers = [n for n in range(len(answered.columns)) if any(isinstance(row[n], int | float) for row in shown)]
    show(
        answered.columns,
        [tuple(shown_value(value) for value in row) for row in shown],
        right=[answered.columns[n] for n in numbers],
    )
    remark(
        f"The first {top:,} rows: --top N shows more, --csv all" if len(rows) > top else format_count(len(rows), "row")
    )
