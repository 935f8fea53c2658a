"""Cells of CSV (RFC 4180) that spreadsheets open as data and never as formulas."""

from datetime import date, datetime

# A spreadsheet takes a cell that begins so for a formula. Source: OWASP, "CSV Injection".
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def cell(value: object) -> object:
    """A value as a cell: text that would be a formula begins with an apostrophe; numbers are as they are."""
    if value is None or isinstance(value, int | float):
        return value
    text = shown_value(value)
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
