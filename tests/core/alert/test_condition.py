"""When a condition becomes true, and which number a text has."""

import pytest

from crawler.core.alert.condition import Condition, ConditionKind, becomes_true
from crawler.core.page.numbers import find_number, get_decimal_mark


@pytest.mark.parametrize(
    ("text", "mark", "number"),
    [
        ("only 5 left", ".", 5.0),
        ("EUR 1,299.00 a piece", ".", 1299.0),
        ("1.299,00 EUR", ",", 1299.0),
        ("1.299,00 EUR", ".", 1299.0),  # both marks: the last one is the decimal mark
        ("1.299", ".", 1.299),  # petrol in English
        ("1.299", ",", 1299.0),  # a bicycle in German
        ("1,299", ".", 1299.0),
        ("1,299", ",", 1.299),
        ("0,299", ".", 0.299),  # a group of thousands does not begin with 0
        ("19,99", ".", 19.99),  # a group has three digits
        ("1 234 567 people", ".", 1234567.0),
        ("1\u202f234,5", ",", 1234.5),
        ("CHF 12'500.-", ".", 12500.0),
        ("minus \u22124.5 degrees", ".", -4.5),
        ("-3", ".", -3.0),
        ("1,234,567", ".", 1234567.0),
        ("from 7.", ".", 7.0),
        ("item A7 costs 12", ".", 12.0),  # a number within a word does not count
        ("ISO9001, v1.2 at 12", ".", 12.0),
        ("EUR12.50", ".", 12.5),  # unless the word is a currency
        ("Rs.1,299 or Rs1,199", ".", 1299.0),
        ("from USD1,299.00", ".", 1299.0),
        ("sold out", ".", None),
        ("", ".", None),
        ("9" * 60 + " and 3", ".", 3.0),
    ],
)
def test_first_number_is_parsed_in_the_format_of_the_page(text: str, mark: str, number: float | None) -> None:
    assert find_number(text, mark=mark) == number


def test_decimal_mark_depends_on_the_language() -> None:
    assert [get_decimal_mark(language) for language in ("de-AT", "fr", "en", "", "ja")] == [",", ",", ".", ".", "."]


BELOW = Condition(ConditionKind.BELOW, bound=5)
ABOVE = Condition(ConditionKind.ABOVE, bound=5)
STOCK = Condition(ConditionKind.APPEARS, "In   stock")
OUT = Condition(ConditionKind.DISAPPEARS, "in stock")


@pytest.mark.parametrize(
    ("condition", "before", "after", "is_told"),
    [
        (BELOW, "6 crowns", "4 crowns", True),
        (BELOW, "4 crowns", "3 crowns", False),  # it was true before
        (BELOW, "6 crowns", "5 crowns", False),  # not below
        (BELOW, "6 crowns", "sold out", False),  # without a number
        (BELOW, "sold out", "4 crowns", True),
        (BELOW, None, "4 crowns", True),  # a new page
        (BELOW, "6 crowns", None, False),
        (ABOVE, "5 crowns", "5.01 crowns", True),
        (ABOVE, "6", "7", False),
        (STOCK, "sold out", "now IN\nSTOCK again", True),
        (STOCK, "in stock", "in stock, nearly", False),
        (STOCK, "in stock", None, False),
        (OUT, "in stock", "sold out", True),
        (OUT, "in stock", None, True),  # the page disappears
        (OUT, None, "sold out", False),
        (Condition(ConditionKind.APPEARS, r"re:v\d+\.0"), "v1.2", "v2.0", True),
    ],
)
def test_condition_notifies_when_it_becomes_true(
    condition: Condition, before: str | None, after: str | None, is_told: bool
) -> None:
    assert becomes_true(condition, before, after) is is_told


@pytest.mark.parametrize("text", ["", "   ", "re:", "re:(", "re:(?=x)y", "x" * 2000])
def test_invalid_condition_text_raises_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Condition(ConditionKind.APPEARS, text)
