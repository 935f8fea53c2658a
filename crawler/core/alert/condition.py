"""Conditions on a page: a text appears or disappears, a number falls below or rises above a bound, a value differs.

The text excludes what the domain's noise mask hides. Numbers may have points, commas, spaces or apostrophes between
their digits.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from crawler.core.change.explain import ExplainedBlock, explain_blocks
from crawler.core.change.mask import NoiseMask
from crawler.core.http.expressions import Expression
from crawler.core.page.block import BlockKind, BlockList
from crawler.core.page.numbers import find_number
from crawler.core.page.selectors import FULL_VIEW

EXPRESSION_PREFIX = "re:"
MAX_CHARS = 1000  # of the text in a condition
TEXT_KINDS = frozenset({BlockKind.TEXT, BlockKind.TITLE})  # visible text, without addresses and descriptions
MASK_GAP = "\u2026"  # replaces masked words, so that the words around them do not form one text


class ConditionKind(StrEnum):
    """The kind of a condition: a text appears or disappears, a number is below or above a bound, or a value differs."""

    APPEARS = "appears"
    DISAPPEARS = "goes"
    BELOW = "below"
    ABOVE = "above"
    DIFFERS = "differs"

    @property
    def is_numeric(self) -> bool:
        return self in {ConditionKind.BELOW, ConditionKind.ABOVE, ConditionKind.DIFFERS}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a page's text.

    text: for APPEARS and DISAPPEARS: the text to find, ignoring case and whitespace, or an Expression after "re:".
    bound: for BELOW and ABOVE: the number that the first number in the page's text is compared with. For DIFFERS, which
    only values of a page can have: by which share of the last notified number, such as 0.05.
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

        mark: the decimal mark if a number is ambiguous (numbers.py).
        """
        if not self.kind.is_numeric:
            return (page_text is not None and self._occurs_in(page_text)) is (self.kind is ConditionKind.APPEARS)
        return self.holds_for(find_number(page_text or "", mark=mark))

    def holds_for(self, number: float | None) -> bool:
        """Return whether a number is below or above the bound."""
        return number is not None and (number < self.bound if self.kind is ConditionKind.BELOW else number > self.bound)

    def find_reference(self, numbers: Iterable[float]) -> float | None:
        """Return the last notified number of a series whose first number is known to the user; None without numbers.

        A number is notified if it differs from the last notified one by `bound` at least. As with the dead band of
        OPC UA (part 4, DataChangeFilter), a slow drift is notified, too, and a number that goes back and forth is not.
        """
        reference = None
        for number in numbers:
            if reference is None or (number != reference and abs(number - reference) >= self.bound * abs(reference)):
                reference = number
        return reference

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
