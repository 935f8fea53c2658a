"""Which numbers are read from pages, in the formats that people and programs write, and what is not guessed."""

import time

import pytest

from crawler.core.page.html import parse_html
from crawler.core.page.selectors import View
from crawler.core.page.values import PageValue, format_value, read_values


def read(page: str, *values: str) -> tuple[PageValue, ...]:
    return read_values(parse_html(page.encode(), "text/html; charset=utf-8"), View(values=values).value_rules)


def read_one(page: str, value: str) -> tuple[float | None, str, str]:
    (found,) = read(page, value)
    return found.number, found.unit, str(found.finding)


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("$1,234.56", "en", (1234.56, "$", "")),
        ("1.234,56 €", "de", (1234.56, "€", "")),
        ("1.234,56 €", "", (1234.56, "€", "")),  # both marks
        ("1 234,56 zł", "pl", (1234.56, "zł", "")),
        ("1\u202f234,56\u00a0€", "fr", (1234.56, "€", "")),
        ("CHF 12'500.50", "de-CH", (12500.5, "CHF", "")),
        ("EUR12.50", "", (12.5, "EUR", "")),
        ("-3,5 %", "de", (-3.5, "%", "")),
        ("\u22124.5", "en", (-4.5, "", "")),
        ("-$39.90", "en", (-39.9, "$", "")),
        ("1.299", "de", (1299.0, "", "")),
        ("1.299", "en", (1.299, "", "")),
        ("1.299", "", (None, "", "ambiguous")),
        ("1,299 $", "", (None, "$", "ambiguous")),
        ("49.9039.90", "en", (None, "", "ambiguous")),  # two prices without a space
        ("1e9", "en", (None, "", "ambiguous")),
        ("10 – 20 €", "de", (10.0, "", "several")),  # noqa: RUF001
        ("9999999999999999 €", "de", (None, "", "too_large")),
        ("9" * 60, "en", (None, "", "no_number")),
        ("sold out", "en", (None, "", "no_number")),
    ],
)
def test_number_is_read_in_the_format_of_the_page(
    text: str, language: str, expected: tuple[float | None, str, str]
) -> None:
    number, unit, finding = read_one(f"<html lang='{language}'><p class=price>{text}</p>", "price .price")
    assert (number, finding) == (expected[0], expected[2])
    assert number is None or unit == expected[1]


JSON_LD = """<script type="application/ld+json">
    {"@graph": [
    {"b": 2, "offers": [{"price": 39.9, "priceCurrency": "EUR"}, {"price": "1299", "priceCurrency": "USD"}],
     "rating": {"ratingValue": "4.125", "reviewCount": 7}, "isSale": true, "weight": NaN}, {"a": 1}]}</script>"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("price jsonld:offers.price", (39.9, "EUR", "several")),
        ("stars jsonld:rating.ratingValue", (4.125, "", "")),  # schema.org: the mark is a point
        ("reviews jsonld:rating.reviewCount", (7.0, "", "")),
        ("sale jsonld:isSale", (None, "", "not_found")),
        ("weight jsonld:weight", (None, "", "no_number")),
        ("price jsonld:offers", (None, "", "not_found")),
        ("price jsonld:offers.lowPrice", (None, "", "not_found")),
        ("amount meta:product:price:amount", (1.299, "", "")),
        ("micro [itemprop=price]", (12.5, "", "")),
    ],
)
def test_machine_readable_values_are_read(value: str, expected: tuple[float | None, str, str]) -> None:
    page = (
        f"<html lang=de>{JSON_LD}<meta property=product:price:amount content=1.299><meta itemprop=price content=12.50>"
    )
    assert read_one(page, value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("price:EUR .price", (39.9, "EUR", "")),
        ("price:USD .price", (None, "USD", "other_unit")),
        ("price:kg .weight", (5.0, "kg", "")),
        ("price:$ .dollars", (5.0, "$", "")),
        ("price:CAD .dollars", (5.0, "CAD", "")),
        ("price:EUR .dollars", (None, "EUR", "other_unit")),
        ("price::, .dots", (1299.0, "", "")),
        ("price::. .dots", (1.299, "", "")),
    ],
)
def test_rule_says_what_is_expected(value: str, expected: tuple[float | None, str, str]) -> None:
    page = "<p class=price>39,90 €<p class=weight>5<p class=dollars>$5<p class=dots>1.299"
    assert read_one(page, value) == expected


def test_lines_of_an_element_are_not_joined() -> None:
    page = "<div class=price><p>Now <b>39</b>.90<p>was 49.90<p hidden>1.00</div>"
    assert read_one(page, "price .price") == (39.9, "", "several")


def test_first_of_several_rules_with_one_name_applies() -> None:
    assert [each.number for each in read("<i>1</i><b>2</b>", "a i", "b b", "a b")] == [1.0, 2.0]


@pytest.mark.parametrize(
    "text", ["price", "price .a[", "2 .price", "price xpath://p", "a b: .price", f"{'a' * 99} .b", ""]
)
def test_invalid_value_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"value|selector"):
        View(values=(text,))


def test_a_million_matches_are_bounded() -> None:
    markup = parse_html(b"<b>1</b>" * 10**6, "text/html")
    assert len(markup.scan.texts) > 0
    before = time.process_time()
    (value,) = read_values(markup, View(values=("price *",)).value_rules)
    assert value.number is None
    assert time.process_time() - before < 2


def test_prices_have_two_decimals() -> None:
    assert [
        format_value(39.9, "EUR"),
        format_value(44.0, "€"),
        format_value(1234567.25, "$"),
        format_value(12.5, "%"),
    ] == [*("39.90 EUR", "44 €", "1234567.25 $", "12.5 %")]
