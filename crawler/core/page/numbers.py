"""Numbers in text, as people of different languages write them: 1,234.56 and 1.234,56, 1 234,56 and 1'234.50."""

import re
from collections.abc import Iterator

from msgspec import Struct

# Languages with a decimal comma. Source: Unicode CLDR 46, decimal symbol of the default locale.
COMMA_LANGUAGES = frozenset(
    (
        *("af", "az", "be", "bg", "bs", "ca", "cs", "da", "de", "el", "es", "et", "eu", "fi", "fo", "fr", "fy", "gl"),
        *("hr", "hu", "hy", "id", "is", "it", "ka", "kk", "ky", "lb", "lt", "lv", "mk", "nb", "nl", "nn", "no", "oc"),
        *("pl", "pt", "ro", "ru", "sk", "sl", "sq", "sr", "sv", "tg", "tk", "tr", "uk", "uz", "vi"),
    )
)
_BLANKS = " \u00a0\u2009\u202f'\u2019"  # between groups of three digits (ISO 80000-1 and Swiss usage)
# A number does not start within a word, such as B2B or v1.2, but may follow a currency, as in EUR12.50 and Rs.1,299.
# Source: ISO 4217, without currencies that are rare in web shops, and common abbreviations.
_CODES = (
    *("AED", "AUD", "BRL", "CAD", "CHF", "CLP", "CNY", "COP", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "IDR", "ILS"),
    *("INR", "JPY", "KRW", "MXN", "MYR", "NOK", "NZD", "PHP", "PLN", "RON", "SAR", "SEK", "SGD", "THB", "TRY", "TWD"),
    *("UAH", "USD", "ZAR", "SFr", r"Rs\.", r"Fr\.", r"kr\.", r"Kr\."),
)
_CURRENCY = "|".join(rf"\b{code}" for code in _CODES)
_NUMBER = re.compile(
    rf"(?:(?<![\w.,])|(?<={_CURRENCY})|(?<=\bRs|\bRM|\bkr))"
    rf"[-\u2212+]?(?:\d{{1,3}}(?:[{_BLANKS}]\d{{3}})+(?!\d)|\d)[\d.,]*",
    re.ASCII,
)
MAX_DIGITS = 40  # longer numbers are identifiers and are skipped
_MINUS = ("-", "\u2212")
_WELL_FORMED = re.compile(r"\d{1,3}(?:([.,])\d{3})(?:\1\d{3})*(?:(?!\1)[.,]\d+)?|\d+(?:[.,]\d+)?")
_UNIT = rf"[$\u00a3\u00a5\u20a0-\u20cf\u0e3f]|{_CURRENCY}|\bz\u0142|\bK\u010d|\bkr|\bRs|\bRM"
_UNIT_BEFORE = re.compile(rf"(?:(?<!\S)([-\u2212]))?\s?({_UNIT})\s?\Z")
_UNIT_AFTER = re.compile(rf"\s?(%|{_UNIT})(?!\w)")
_EXPONENT = re.compile(r"[eE][-+]?\d")
UNIT_CHARS = 8  # around a number, in which its unit is searched


class WrittenNumber(Struct, frozen=True):
    """A number in a text. number: None if it is ambiguous which number is meant.  unit: a currency, %, or ""."""

    number: float | None
    unit: str = ""


def get_decimal_mark(language: str) -> str:
    """Return the decimal mark of a language, a comma or a point. language: BCP 47, such as de-AT; "" if unknown."""
    return "," if language.partition("-")[0].lower() in COMMA_LANGUAGES else "."


def find_number(text: str, *, mark: str = ".") -> float | None:
    """Return the first number in a text, or None.

    mark: the decimal mark for ambiguous numbers, such as 1.299 and 1,299. A number with both marks, or with the same
    mark several times, is not ambiguous.
    """
    match = next(_find_matches(text), None)
    return None if match is None else _parse_number(match[0].rstrip(".,"), mark=mark)


def list_numbers(text: str, *, mark: str = "") -> Iterator[WrittenNumber]:
    """Yield the numbers in a text with their units. mark: the decimal mark; "" if unknown."""
    for match in _find_matches(text):
        written, start = match[0].rstrip(".,"), match.start()
        before = _UNIT_BEFORE.search(text[max(start - UNIT_CHARS, 0) : start])
        after = _UNIT_AFTER.match(text, start + len(written), start + len(written) + UNIT_CHARS)
        unit = before[2] if before else after[1] if after else ""
        digits = _get_digits(written)
        has_exponent = _EXPONENT.match(text, start + len(written)) is not None
        is_clear = bool(mark) or not _is_ambiguous(digits)
        is_clear = is_clear and not has_exponent and _WELL_FORMED.fullmatch(digits) is not None
        number = _parse_number(written, mark=mark) if is_clear else None
        yield WrittenNumber(-number if number is not None and before and before[1] else number, unit)


def _find_matches(text: str) -> Iterator[re.Match[str]]:
    return (each for each in _NUMBER.finditer(text) if sum(map(str.isdigit, each[0])) <= MAX_DIGITS)


def _get_digits(written: str) -> str:
    return "".join(c for c in written if c.isdigit() or c in ".,")


def _parse_number(written: str, *, mark: str) -> float:
    sign = -1.0 if written.startswith(_MINUS) else 1.0
    digits = _get_digits(written)
    decimal = _find_decimal_mark(digits, mark=mark)
    integer_part, _, decimals = digits.rpartition(decimal) if decimal else (digits, "", "")
    return sign * float(f"{re.sub('[.,]', '', integer_part) or '0'}.{re.sub('[.,]', '', decimals) or '0'}")


def _find_decimal_mark(digits: str, *, mark: str) -> str:
    """Return the decimal mark of a number, or "" without decimals."""
    points, commas = digits.count("."), digits.count(",")
    if points and commas:
        last = max(digits.rfind("."), digits.rfind(","))
        return digits[last] if digits.count(digits[last]) == 1 else ""
    if points + commas != 1:
        return ""  # no mark, or several between groups
    used = "." if points else ","
    return "" if _is_ambiguous(digits) and used != mark else used


def _is_ambiguous(digits: str) -> bool:
    """Return whether the only mark of a number may separate thousands or decimals, as in 1.299."""
    before, used, after = digits.replace(",", ".").partition(".")
    return bool(used) and after.isdigit() and len(after) == 3 and 1 <= len(before) <= 3 and not before.startswith("0")
