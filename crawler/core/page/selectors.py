"""What users select on a page, with CSS selectors, XPath and regular expressions: the parts to compare, and values."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from crawler.core.http.expressions import Expression

MAX_CHARS = 500  # of a selector or an expression
XPATH = "xpath:"  # prefix of an XPath
JSON_LD, META = "jsonld:", "meta:"  # prefixes of the sources of values that are no selectors
VALUE_EXAMPLE = "such as 'price .price', 'price:EUR jsonld:offers.price' or 'price:EUR:, meta:product:price:amount'"
VALUE_NAME = re.compile(r"[A-Za-z][\w-]{0,39}", re.ASCII)
_VALUE = re.compile(rf"({VALUE_NAME.pattern})(?::([^\s:]{{0,12}})(?::([.,]))?)?[ ]+(\S.*)", re.ASCII)

_EMPTY_PAGE = LexborHTMLParser("<p>")  # to test selectors with


@dataclass(frozen=True, slots=True)
class ValueRule:
    """A value to read from pages, such as a price. text: as the user wrote it, `NAME[:UNIT[:MARK]] SOURCE`.

    unit: "" for the unit on the page.  mark: the decimal mark; "" for that of the page's language.
    source: a CSS selector, or with the prefix JSON_LD a path of property names, or with META the name of a
    meta element.
    Raises ValueError with a message for users if the text is invalid.
    """

    text: str
    name: str = field(init=False)
    unit: str = field(init=False)
    mark: str = field(init=False)
    source: str = field(init=False)

    def __post_init__(self) -> None:
        match = _VALUE.fullmatch(self.text.strip())
        if match is None:
            raise ValueError(f"{self.text[:80]!r} is not a value: write NAME[:UNIT[:MARK]] SOURCE, {VALUE_EXAMPLE}")
        for name, value in zip(("name", "unit", "mark", "source"), match.groups(""), strict=True):
            object.__setattr__(self, name, value)
        if self.source.startswith(XPATH):
            raise ValueError(f"{self.source!r}: a value needs a CSS selector, {JSON_LD} or {META}")
        if not self.source.startswith((JSON_LD, META)):
            _check_selector(self.source)


@dataclass(frozen=True, slots=True)
class View:
    """What users select on a page. Both versions are read through the same view, so that a new view is no change.

    ignore: elements to leave out, as CSS selectors, or as XPaths with the prefix XPATH.
    watch: elements to compare; if there are any, all others are left out.
    ignore_text: regular expressions (see Expression); matching text of a block is left out.
    values: the texts of ValueRules; of several with one name, the first applies.
    Raises ValueError with a message for users if one of them is invalid or too long, or matches empty text.
    """

    ignore: tuple[str, ...] = ()
    watch: tuple[str, ...] = ()
    ignore_text: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    value_rules: tuple[ValueRule, ...] = field(init=False, repr=False, compare=False)
    _expressions: tuple[Expression, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for text in (*self.ignore, *self.watch, *self.ignore_text, *self.values):
            if len(text) > MAX_CHARS:
                raise ValueError(f"{text[:20]}... is longer than {MAX_CHARS} characters")
        for selector in (*self.ignore, *self.watch):
            _check_selector(selector)
        object.__setattr__(self, "_expressions", tuple(map(Expression, self.ignore_text)))
        by_name: dict[str, ValueRule] = {}
        for text in self.values:
            by_name.setdefault((rule := ValueRule(text)).name, rule)
        object.__setattr__(self, "value_rules", tuple(by_name.values()))
        for expression in self._expressions:
            if expression.matches_empty:
                raise ValueError(f"{expression.text!r} also matches empty text; it must match at least one character")

    def __bool__(self) -> bool:
        return self.is_partial or bool(self.values)

    @property
    def is_partial(self) -> bool:
        """Return whether a part of the page is not compared."""
        return bool(self.ignore or self.watch or self.ignore_text)

    @property
    def is_unbounded(self) -> bool:
        """Return whether applying the view may take long, so that it needs a deadline.

        The time of an Expression is linear, but an expression such as a.{900}c takes about 15 s per million characters.
        """
        return bool(self.ignore_text) or any(selector.startswith(XPATH) for selector in (*self.ignore, *self.watch))

    @property
    def problems(self) -> tuple[str, ...]:
        """Return why expressions of `ignore_text` are not supported, one sentence each."""
        return tuple(expression.problem for expression in self._expressions if expression.problem)

    def without_ignored(self, text: str) -> str:
        """Return the text of a block without the parts that `ignore_text` matches."""
        for expression in self._expressions:
            text = expression.remove_from(text)
        return " ".join(text.split()) if self._expressions else text

    def find_ignored(self, text: str) -> Iterator[str]:
        """Yield the parts of a block's text that `ignore_text` matches."""
        for expression in self._expressions:
            yield from expression.find_all(text)
            text = expression.remove_from(text)

    def matches_ignored(self, text: str) -> bool:
        """Return whether `ignore_text` matches anything in a block's text."""
        return any(expression.search(text) for expression in self._expressions)

    def split(self) -> "dict[str, View]":
        """Return a View for each selector to ignore and one for all selectors to watch, by label."""
        views = {selector: View(ignore=(selector,)) for selector in self.ignore}
        return views | ({f"only {' and '.join(self.watch)}": View(watch=self.watch)} if self.watch else {})


def find_matching(tree: LexborHTMLParser, selectors: tuple[str, ...]) -> frozenset[int]:
    """Return the mem_ids of the elements that any of the selectors finds."""
    selected = {node.mem_id for selector in selectors if not selector.startswith(XPATH) for node in tree.css(selector)}
    paths = [selector.removeprefix(XPATH) for selector in selectors if selector.startswith(XPATH)]
    if not paths:
        return frozenset(selected)
    from crawler.core.page.xpath import find_elements  # noqa: PLC0415  lxml loads slowly, and few pages need it

    return frozenset(selected.union(find_elements(paths, tree)))


def _check_selector(selector: str) -> None:
    if selector.startswith(XPATH):
        from crawler.core.page.xpath import check_xpath  # noqa: PLC0415  lxml loads slowly

        check_xpath(selector.removeprefix(XPATH))
        return
    try:
        _EMPTY_PAGE.css(selector)
    except SelectolaxError as error:
        hint = f"; write an XPath as {XPATH}{selector}" if selector.startswith(("/", "(", ".//")) else ""
        raise ValueError(f"{selector!r} is not a CSS selector{hint}") from error


FULL_VIEW = View()


def merge_views(views: Iterable[View]) -> View:
    """Merge several views into one that ignores and watches everything that any of them does."""
    non_empty = [view for view in views if view]
    if len(non_empty) <= 1:
        return non_empty[0] if non_empty else FULL_VIEW
    texts = zip(*((view.ignore, view.watch, view.ignore_text, view.values) for view in non_empty), strict=True)
    return View(*(tuple(dict.fromkeys(chain.from_iterable(each))) for each in texts))
