"""Conditions on what a page says: a text appears or goes, a number falls below a bound or rises above it."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import assert_never

from crawler.core.alert.written_numbers import number_in
from crawler.core.http import Expression

EXPRESSION = "re:"
MOST_CHARS = 1000  # of a text that is looked for


class ConditionKind(StrEnum):
    """The question of a condition."""

    APPEARS = "appears"
    GOES = "goes"
    BELOW = "below"
    ABOVE = "above"

    @property
    def is_of_number(self) -> bool:
        return self in {ConditionKind.BELOW, ConditionKind.ABOVE}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a page's text.

    text: of APPEARS and GOES: what is looked for, in any case and with any white space; behind re: an Expression.
    bound: of BELOW and ABOVE, for the first number of the text.
    ValueError, a sentence for a person, for an expression that cannot be read, or a text that says nothing.
    """

    kind: ConditionKind
    text: str = ""
    bound: float = 0.0
    _expression: Expression | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        is_expression = not self.kind.is_of_number and self.text.startswith(EXPRESSION)
        if not self.kind.is_of_number and not 0 < len(self.text.removeprefix(EXPRESSION).strip()) <= MOST_CHARS:
            raise ValueError(f"the text to look for has 1 to {MOST_CHARS} characters")
        found = Expression(self.text.removeprefix(EXPRESSION)) if is_expression else None
        if found is not None and found.refusal:
            raise ValueError(found.refusal)
        object.__setattr__(self, "_expression", found)

    def holds(self, said: str | None, *, mark: str = ".") -> bool:
        """Whether it is true of what a page says. said: None for a page that is not there, which says nothing.

        mark: of decimals, where a number leaves that open (`number_in`).
        """
        match self.kind:
            case ConditionKind.APPEARS:
                return said is not None and self._is_in(said)
            case ConditionKind.GOES:
                return said is None or not self._is_in(said)
            case ConditionKind.BELOW:
                number = number_in(said, mark=mark) if said is not None else None
                return number is not None and number < self.bound
            case ConditionKind.ABOVE:
                number = number_in(said, mark=mark) if said is not None else None
                return number is not None and number > self.bound
            case _:
                assert_never(self.kind)

    def _is_in(self, said: str) -> bool:
        if self._expression is not None:
            return bool(self._expression.search(said))
        return " ".join(self.text.split()).casefold() in " ".join(said.split()).casefold()


def becomes_true(condition: Condition, before: str | None, after: str | None, *, mark: str = ".") -> bool:
    """Whether a change makes a condition true that was not true before: the edge, not the level.

    before, after: what the page said then and says now; None where it was, or is, not there.
    """
    return condition.holds(after, mark=mark) and not condition.holds(before, mark=mark)
