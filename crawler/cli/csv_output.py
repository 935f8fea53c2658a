"""CSV on stdout, safe for spreadsheets and for terminals."""

import csv
import sys
from collections.abc import Sequence
from typing import Any

from crawler.app.exports import cell
from crawler.cli.output import out, printable


def write_csv_row(row: Sequence[Any]) -> None:
    """One row on stdout."""
    csv.writer(sys.stdout, lineterminator="\n").writerow([csv_cell(value) for value in row])


def csv_cell(value: object) -> object:
    """A value as a cell of a file or of what a terminal shows."""
    found = cell(value)
    return printable(found) if isinstance(found, str) and out().is_terminal else found
