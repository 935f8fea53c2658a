"""Numbers as pages write them: with points, commas, blanks or apostrophes between their digits."""

import re

# Languages that write a comma before the decimals. Source: Unicode CLDR 46, decimal symbol of the default locale.
COMMA_LANGUAGES = frozenset(
    (
        *("af", "az", "be", "bg", "bs", "ca", "cs", "da", "de", "el", "es", "et", "eu", "fi", "fo", "fr", "fy", "gl"),
        *("hr", "hu", "hy", "id", "is", "it", "ka", "kk", "ky", "lb", "lt", "lv", "mk", "nb", "nl", "nn", "no", "oc"),
        *("pl", "pt", "ro", "ru", "sk", "sl", "sq", "sr", "sv", "tg", "tk", "tr", "uk", "uz", "vi"),
    )
)
_BLANKS = " \u00a0\u2009\u202f'\u2019"  # between groups of three digits, as ISO 80000-1 and Swiss usage have them
# A number does not begin within a word, such as B2B or v1.2; but shops write currencies close to it, as in EUR12.50 and
# Rs.1,299. Source: ISO 4217, without those that hardly any shop on the web has, and abbreviations in use.
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
_MINUS = re.compile("[-\u2212]")
MOST_DIGITS = 40  # more of them are an identifier, and no amount


def decimal_mark(language: str) -> str:
    """What a language writes before decimals: a comma or a point. language: BCP 47, such as de-AT; empty if unknown."""
    return "," if language.partition("-")[0].lower() in COMMA_LANGUAGES else "."


def number_in(text: str, *, mark: str = ".") -> float | None:
    """The first number in a text; None without one.

    mark: what stands before decimals where the number itself leaves that open, as 1.299 and 1,299 do. A number that has
    both marks, or one of them several times, does not.
    """
    for found in _NUMBER.finditer(text):
        written = found[0].rstrip(".,")
        if sum(map(str.isdigit, written)) <= MOST_DIGITS:
            return _value(written, mark=mark)
    return None


def _value(written: str, *, mark: str) -> float:
    sign = -1.0 if _MINUS.match(written) else 1.0
    digits = "".join(c for c in written if c.isdigit() or c in ".,")
    decimal = _decimal(digits, mark=mark)
    whole, _, decimals = digits.rpartition(decimal) if decimal else (digits, "", "")
    return sign * float(f"{re.sub('[.,]', '', whole) or '0'}.{re.sub('[.,]', '', decimals) or '0'}")


def _decimal(digits: str, *, mark: str) -> str:
    """The mark before the decimals of a number; empty where it has none."""
    points, commas = digits.count("."), digits.count(",")
    if points and commas:
        last = max(digits.rfind("."), digits.rfind(","))
        return digits[last] if digits.count(digits[last]) == 1 else ""
    if points + commas != 1:
        return ""  # none, or one of them between groups
    used = "." if points else ","
    before, _, after = digits.partition(used)
    may_group = len(after) == 3 and 1 <= len(before) <= 3 and not before.startswith("0")
    return "" if may_group and used != mark else used
