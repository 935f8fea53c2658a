"""Values that a user reads from web pages, such as a price: numbers in an element, in JSON-LD or in a meta element.

A number that is not certain is never guessed: the value then has a finding in place of a number.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from typing import Any, TypeGuard

from msgspec import Struct

from crawler.core.page.compiled_scan import scan_tree
from crawler.core.page.document import collapse_spaces
from crawler.core.page.html import Markup
from crawler.core.page.metadata import parse_json_ld
from crawler.core.page.numbers import WrittenNumber, get_decimal_mark, list_numbers
from crawler.core.page.scan import PageScan, RecordKind
from crawler.core.page.selectors import JSON_LD, META, ValueRule

MAX_MATCHES = 50  # elements, properties and lines that are read for one value
MAX_TEXT_CHARS = 1000  # of one of them
MAX_STORED_CHARS = 100
MAX_UNIT_CHARS = 12
MAX_NUMBER = 1e15  # above, a double is not exact to a tenth
_MACHINE_READABLE = {"meta": "content", "data": "value", "meter": "value", "input": "value"}  # HTML, 5.2.4
# The currencies that a sign may mean. Source: Unicode CLDR 46, narrow symbols.
_CURRENCIES = {"\u20ac": {"EUR"}, "\u00a3": {"GBP"}, "\u20b9": {"INR"}, "\u00a5": {"JPY", "CNY"}}
_CURRENCIES |= {"$": {"USD", "CAD", "AUD", "NZD", "HKD", "SGD", "TWD", "MXN", "CLP", "COP", "BRL"}}


class ValueFinding(StrEnum):
    """Why a value has no number, or why its number may not be the one that the user means."""

    NOT_FOUND = "not_found"  # nothing on the page matches the source
    NO_NUMBER = "no_number"
    AMBIGUOUS = "ambiguous"  # such as 1.299 on a page without a language
    TOO_LARGE = "too_large"
    OTHER_UNIT = "other_unit"  # another currency than that of the rule
    GONE = "gone"  # the page is gone or moved
    SEVERAL = "several"  # several different numbers match; the first is used


class PageValue(Struct, frozen=True):
    """A value as read from a page. text: what was read, shortened.  finding: a ValueFinding, or "" without one."""

    name: str
    number: float | None = None
    unit: str = ""
    text: str = ""
    finding: str = ""

    @property
    def state(self) -> tuple[float | None, str]:
        """Return what is compared with the last value: the number and its unit, or why there is none."""
        return (None, self.finding) if self.number is None else (self.number, self.unit)

    @property
    def label(self) -> str:
        """Return the value in words, such as `price: 39.90 EUR`."""
        words = self.finding.replace("_", " ") if self.number is None else format_value(self.number, self.unit)
        return f"{self.name}: {words}"

    def differs_from(self, last: "PageValue | None") -> bool:
        """Return whether the value needs a row after the last one. What was never found needs none."""
        if last is None:
            return self.number is not None or self.finding not in {ValueFinding.NOT_FOUND, ValueFinding.GONE}
        return self.state != last.state


def format_value(number: float, unit: str) -> str:
    """Return a number with its unit; prices that are not whole have two decimals at least."""
    is_price = unit in _CURRENCIES or (len(unit) == 3 and unit.isupper())
    text = f"{number:.15g}"
    whole, point, decimals = text.partition(".")
    text = f"{whole}.{decimals}0" if is_price and point and len(decimals) == 1 else text
    return f"{text} {unit}".rstrip()


class _Found(Struct, frozen=True):
    """What a source matches. is_exact: by its format, the decimal mark is a point.  unit: stated beside it."""

    text: str
    is_exact: bool = False
    unit: str = ""


def read_values(markup: Markup | None, rules: Sequence[ValueRule]) -> tuple[PageValue, ...]:
    """Read values from a page; each has a number, a finding or both. markup: None for a body that is not HTML."""
    if not rules or markup is None:
        return tuple(PageValue(rule.name, finding=ValueFinding.NOT_FOUND) for rule in rules)
    language = markup.scan.language.strip()
    mark = get_decimal_mark(language) if language else ""
    return tuple(_read_value(rule, list(islice(_find(markup, rule), MAX_MATCHES)), mark) for rule in rules)


def _read_value(rule: ValueRule, found: Sequence[_Found], mark: str) -> PageValue:
    texts = [collapse_spaces(each.text.replace("\0", "")[:MAX_TEXT_CHARS]) for each in found]
    written = [
        WrittenNumber(number.number, number.unit or each.unit)
        for each, text in zip(found, texts, strict=True)
        for number in list_numbers(text, mark=rule.mark or ("." if each.is_exact else mark))
    ]
    text = next(filter(None, texts), "")[:MAX_STORED_CHARS]
    if not written:
        return PageValue(rule.name, text=text, finding=ValueFinding.NO_NUMBER if found else ValueFinding.NOT_FOUND)
    number, unit = written[0].number, written[0].unit
    finding = ""
    if number is None:
        finding = ValueFinding.AMBIGUOUS
    elif abs(number) > MAX_NUMBER:
        number, finding = None, ValueFinding.TOO_LARGE
    elif not _is_same_unit(rule.unit, unit):
        number, finding = None, ValueFinding.OTHER_UNIT
    elif any(each.number != number for each in written):
        finding = ValueFinding.SEVERAL
    return PageValue(rule.name, number, rule.unit or unit, text, finding)


def _is_same_unit(expected: str, unit: str) -> bool:
    """Return whether a unit may be the one that the user expects; a missing one may be any."""
    is_sign = unit in _CURRENCIES.get(expected, ()) or expected in _CURRENCIES.get(unit, ())
    return not expected or not unit or unit == expected or is_sign


def _find(markup: Markup, rule: ValueRule) -> Iterator[_Found]:
    if rule.source.startswith(META):
        return _find_meta(markup.scan, rule.source.removeprefix(META).strip().lower())
    if rule.source.startswith(JSON_LD):
        return _find_json_ld(markup.scan, rule.source.removeprefix(JSON_LD).strip().split("."))
    return _find_elements(markup, rule.source)


def _find_meta(scan: PageScan, key: str) -> Iterator[_Found]:
    for kind, values in scan.records:
        if kind == RecordKind.META:
            content, name, _, group, _ = values
            if key in {name.strip().lower(), group.strip().lower()}:
                yield _Found(content, is_exact=True)


def _find_json_ld(scan: PageScan, path: Sequence[str]) -> Iterator[_Found]:
    for kind, values in scan.records:
        if kind == RecordKind.SCRIPT and values[0].strip().lower() == "application/ld+json":
            yield from _follow(parse_json_ld(values[1]), path)


def _follow(values: Iterable[Any], path: Sequence[str], unit: str = "") -> Iterator[_Found]:
    """Yield the texts and numbers at a path; lists on the way are searched element by element."""
    for value in values:
        if isinstance(value, list):
            yield from _follow(value, path, unit)
        elif isinstance(value, dict) and path:
            currency = value.get("priceCurrency")  # schema.org: of the price in the same object
            if path[0] in value:
                yield from _follow([value[path[0]]], path[1:], currency if _is_unit(currency) else "")
        elif not path and isinstance(value, str | int | float) and not isinstance(value, bool):
            # schema.org/price: "Use '.' rather than ',' to indicate a decimal point." Floats have no exponent here.
            text = f"{value:.12f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
            yield _Found(text, is_exact=True, unit=unit)


def _is_unit(text: object) -> TypeGuard[str]:
    return isinstance(text, str) and len(text) <= MAX_UNIT_CHARS and text.isprintable()


def _find_elements(markup: Markup, selector: str) -> Iterator[_Found]:
    """Yield the machine-readable values of elements; if there are none, the lines of their visible text."""
    nodes = markup.tree.css(selector)[:MAX_MATCHES]
    stated = [(node.attributes.get(_MACHINE_READABLE.get(node.tag or "", "content")), node) for node in nodes]
    if any(text for text, _ in stated):
        yield from (_Found(text, is_exact=True) for text, _ in stated if text)
        return
    watched = frozenset(node.mem_id for node in nodes)
    if watched:
        yield from map(_Found, filter(None, scan_tree(markup.tree, watched=watched).texts))
