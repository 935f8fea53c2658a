"""Output of recrawl db sql: the rows of a statement as a table, CSV or JSON."""

import csv
import sys
from collections.abc import Sequence
from contextlib import aclosing
from datetime import timedelta
from decimal import Decimal
from math import isfinite
from typing import Any

from crawler.app.database import AppDatabase
from crawler.app.delivery.exports import format_cell
from crawler.app.running.maintenance import QueryResult, format_value, run_statement
from crawler.cli.output import get_stdout, make_printable, print_json, remark, say, show_table
from crawler.cli.session import Interrupts, run_on_database
from crawler.errors import BadInput
from crawler.format.values import format_count

MAX_JSON_DIGITS = 300  # JSON parsers read a number as a double, which has up to 308 digits before the point


def run_sql(statement: str, *, may_write: bool, top: int, as_csv: bool, as_json: bool) -> None:
    if as_csv and as_json:
        raise BadInput("--csv and --json cannot be combined")
    text = sys.stdin.read() if statement == "-" else statement
    if not text.strip():
        raise BadInput("the statement is empty")

    async def work(db: AppDatabase, _: Interrupts) -> tuple[QueryResult, list[Sequence[Any]]]:
        async with run_statement(db, text, may_write=may_write) as result:
            if as_csv and result.columns:
                _write_csv_row(result.columns)
            fetched_rows: list[Sequence[Any]] = []
            async with aclosing(result.rows) as rows:  # type: ignore[type-var]  # rows is a generator
                async for row in rows:
                    if as_csv:
                        _write_csv_row(row)
                    elif as_json or len(fetched_rows) <= top:
                        fetched_rows.append(row)
            return result, fetched_rows

    result, rows = run_on_database(work)
    if as_json:
        plain = [dict(zip(result.columns, map(_to_json, row), strict=True)) for row in rows]
        print_json({"columns": result.columns, "rows": plain})
    elif not as_csv:
        _show_rows(result, rows, top=top)


def _write_csv_row(row: Sequence[Any]) -> None:
    """Write one CSV row to stdout."""
    csv.writer(sys.stdout, lineterminator="\n").writerow([make_csv_cell(value) for value in row])


def make_csv_cell(value: object) -> object:
    """Format a value as a CSV cell, without control characters if stdout is a terminal."""
    text = format_cell(value)
    return make_printable(text) if isinstance(text, str) and get_stdout().is_terminal else text


def _to_json(value: Any) -> Any:
    """Convert a Postgres value of any type to JSON: numbers stay numbers, types that JSON lacks become text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float() if isfinite(value):
            return value
        case Decimal() if value.is_finite() and abs(value.adjusted()) < MAX_JSON_DIGITS:
            return int(value) if value == value.to_integral_value() else float(value)
        case timedelta():
            return value.total_seconds()
        case list() | tuple():
            return [_to_json(each) for each in value]
        case dict():
            return {name: _to_json(each) for name, each in value.items()}
        case _:
            return format_value(value)


def _show_rows(result: QueryResult, rows: list[Sequence[Any]], *, top: int) -> None:
    if result.status:
        say(result.status)
    if not result.columns:
        return
    shown, columns = rows[:top], result.columns
    numbers = [name for n, name in enumerate(columns) if any(isinstance(row[n], int | float) for row in shown)]
    show_table(columns, [tuple(map(format_value, row)) for row in shown], right=numbers)
    cut = f"Only the first {top:,} rows are shown: use --limit N for more, or --csv for all"
    remark(cut if len(rows) > top else format_count(len(rows), "row"))
