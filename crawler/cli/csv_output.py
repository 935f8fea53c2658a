"""CSV (RFC 4180) that spreadsheets open as data and never as formulas."""

import csv
import sys
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from crawler.cli.output import out, printable

# A spreadsheet takes a cell that begins so for a formula. Source: OWASP, "CSV Injection".
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def write_csv_row(row: Sequence[Any]) -> None:
    """One row on stdout."""
    csv.writer(sys.stdout, lineterminator="\n").writerow([csv_cell(value) for value in row])


def csv_cell(value: object) -> object:
    """A value as a cell: text that would be a formula begins with an apostrophe; numbers are as they are."""
    if value is None or isinstance(value, int | float):
        return value
    text = shown_value(value)
    text = printable(text) if out().is_terminal else text
    return f"'{text}" if text.startswith(FORMULA) else text


def shown_value(value: object) -> str:
    """A value of a column in one word: instants in ISO 8601, bytes in hexadecimal digits."""
    match value:
        case None:
            return ""
        case bytes():
            return value.hex()
        case datetime() | date():
            return value.isoformat()
        case float():
            return f"{value:.6g}"
        case _:
            return str(value)
