"""Conditions on the text of a page: a text appears or disappears, a number falls below or rises above a bound.

The text excludes what the domain's noise mask hides. Numbers may have points, commas, spaces or apostrophes between
their digits.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum

from crawler.core.change.explain import ExplainedBlock, explain_blocks
from crawler.core.change.mask import NoiseMask
from crawler.core.http.expressions import Expression
from crawler.core.page.block import BlockKind, BlockList
from crawler.core.page.selectors import FULL_VIEW

EXPRESSION_PREFIX = "re:"
MAX_CHARS = 1000  # of the text in a condition
TEXT_KINDS = frozenset({BlockKind.TEXT, BlockKind.TITLE})  # visible text, without addresses and descriptions
MASK_GAP = "\u2026"  # replaces masked words, so that the words around them do not form one text

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


class ConditionKind(StrEnum):
    """The kind of a condition: a text appears or disappears, or a number is below or above a bound."""

    APPEARS = "appears"
    DISAPPEARS = "goes"
    BELOW = "below"
    ABOVE = "above"

    @property
    def is_numeric(self) -> bool:
        return self in {ConditionKind.BELOW, ConditionKind.ABOVE}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a page's text.

    text: for APPEARS and DISAPPEARS: the text to find, ignoring case and whitespace, or an Expression after "re:".
    bound: for BELOW and ABOVE: the number that the first number in the page's text is compared with.
    Raises ValueError with a message for the user if the text is empty or too long, or the expression is invalid or not
    supported.
    """

    kind: ConditionKind
    text: str = ""
    bound: float = 0.0
    _expression: Expression | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        is_expression = not self.kind.is_numeric and self.text.startswith(EXPRESSION_PREFIX)
        if not self.kind.is_numeric and not 0 < len(self.text.removeprefix(EXPRESSION_PREFIX).strip()) <= MAX_CHARS:
            raise ValueError(f"the text of a condition must have 1 to {MAX_CHARS} characters")
        expression = Expression(self.text.removeprefix(EXPRESSION_PREFIX)) if is_expression else None
        if expression is not None and expression.problem:
            raise ValueError(expression.problem)
        object.__setattr__(self, "_expression", expression)

    def holds(self, page_text: str | None, *, mark: str = ".") -> bool:
        """Return whether the condition is true for a text. page_text: None for a page that does not exist.

        mark: the decimal mark if a number is ambiguous (`find_number`).
        """
        if not self.kind.is_numeric:
            return (page_text is not None and self._occurs_in(page_text)) is (self.kind is ConditionKind.APPEARS)
        number = find_number(page_text or "", mark=mark)
        return number is not None and (number < self.bound if self.kind is ConditionKind.BELOW else number > self.bound)

    def _occurs_in(self, page_text: str) -> bool:
        if self._expression is not None:
            return bool(self._expression.search(page_text))
        return " ".join(self.text.split()).casefold() in " ".join(page_text.split()).casefold()


def becomes_true(condition: Condition, before: str | None, after: str | None, *, mark: str = ".") -> bool:
    """Return whether a change makes a condition true that was false before.

    before, after: the text before and after the change; None if there was no page then.
    """
    return condition.holds(after, mark=mark) and not condition.holds(before, mark=mark)


def mask_text(blocks: BlockList, mask: NoiseMask) -> str:
    """Return the text of a page's blocks, one per line, without volatile words, noise and boilerplate."""
    blocks = tuple(block for block in blocks if block.kind in TEXT_KINDS and block.text)
    explained = explain_blocks(blocks, blocks, mask, view=FULL_VIEW)
    return "\n".join(_get_compared_text(block) for block in explained if not block.is_whole)


def _get_compared_text(block: ExplainedBlock) -> str:
    """Return the text of a block with MASK_GAP instead of each masked word."""
    parts, end = [], 0
    for begin, until in block.masked:
        parts += [block.text[end:begin], MASK_GAP]
        end = until
    return "".join([*parts, block.text[end:]])


def get_decimal_mark(language: str) -> str:
    """Return the decimal mark of a language, a comma or a point. language: BCP 47, such as de-AT; "" if unknown."""
    return "," if language.partition("-")[0].lower() in COMMA_LANGUAGES else "."


def find_number(text: str, *, mark: str = ".") -> float | None:
    """Return the first number in a text, or None.

    mark: the decimal mark for ambiguous numbers, such as 1.299 and 1,299. A number with both marks, or with the same
    mark several times, is not ambiguous.
    """
    for match in _NUMBER.finditer(text):
        written = match[0].rstrip(".,")
        if sum(map(str.isdigit, written)) <= MAX_DIGITS:
            return _parse_number(written, mark=mark)
    return None


def _parse_number(written: str, *, mark: str) -> float:
    sign = -1.0 if written.startswith(("-", "\u2212")) else 1.0
    digits = "".join(c for c in written if c.isdigit() or c in ".,")
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
    before, _, after = digits.partition(used)
    may_group = len(after) == 3 and 1 <= len(before) <= 3 and not before.startswith("0")
    return "" if may_group and used != mark else used
