"""The parts of a page that its user wants compared, by CSS selectors, XPath and regular expressions."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from crawler.core.http.expressions import Expression

MAX_CHARS = 500  # of a selector or an expression
XPATH = "xpath:"  # in front of one

_NOTHING = LexborHTMLParser("<p>")


@dataclass(frozen=True, slots=True)
class View:
    """The parts of a page to compare. Both versions are read through one view, so that a new view is no change.

    ignore: elements that are left out, by CSS selectors or, behind XPATH, by XPath.  watch: if there are any, all other
    elements are left out.
    ignore_text: regular expressions (Expression); text of a block that they find is left out.
    ValueError, a sentence for a person, if one of them cannot be read.
    """

    ignore: tuple[str, ...] = ()
    watch: tuple[str, ...] = ()
    ignore_text: tuple[str, ...] = ()
    _text: tuple[Expression, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for text in (*self.ignore, *self.watch, *self.ignore_text):
            if len(text) > MAX_CHARS:
                raise ValueError(f"{text[:20]}... is longer than {MAX_CHARS} characters")
        for selector in (*self.ignore, *self.watch):
            _check_selector(selector)
        object.__setattr__(self, "_text", tuple(map(Expression, self.ignore_text)))
        for expression in self._text:
            if expression.matches_empty:
                raise ValueError(
                    f"{expression.text!r} finds nothing at all, too: it must ask for at least one character"
                )

    def __bool__(self) -> bool:
        return bool(self.ignore or self.watch or self.ignore_text)

    @property
    def is_unbounded(self) -> bool:
        """Whether the view may take any time, so that it may only be used under a deadline."""
        return bool(self.ignore_text) or any(selector.startswith(XPATH) for selector in (*self.ignore, *self.watch))

    @property
    def problems(self) -> tuple[str, ...]:
        """Why expressions are not used, a sentence for each of which that is so."""
        return tuple(pattern.refusal for pattern in self._text if pattern.refusal)

    def without_ignored(self, text: str) -> str:
        """The text of a block without the parts that `ignore_text` finds."""
        for pattern in self._text:
            text = pattern.remove_from(text)
        return " ".join(text.split()) if self._text else text

    def find_ignored(self, text: str) -> Iterator[str]:
        """The parts of a block's text that `ignore_text` finds."""
        for pattern in self._text:
            yield from pattern.find_all(text)
            text = pattern.remove_from(text)

    def matches_ignored(self, text: str) -> bool:
        """Whether `ignore_text` finds anything in a block's text."""
        return any(pattern.search(text) for pattern in self._text)

    def split(self) -> "dict[str, View]":
        """The view split into one View for each ignored selector and one for all watched, by how they are written."""
        views = {selector: View(ignore=(selector,)) for selector in self.ignore}
        return views | ({f"only {' and '.join(self.watch)}": View(watch=self.watch)} if self.watch else {})


def find_matching(tree: LexborHTMLParser, selectors: tuple[str, ...]) -> frozenset[int]:
    """The numbers of the elements that any of the selectors finds."""
    selected = {node.mem_id for selector in selectors if not selector.startswith(XPATH) for node in tree.css(selector)}
    paths = [selector.removeprefix(XPATH) for selector in selectors if selector.startswith(XPATH)]
    if not paths:
        return frozenset(selected)
    from crawler.core.page.xpath import find_elements  # noqa: PLC0415  lxml takes long to load, and few pages need it

    return frozenset(selected.union(find_elements(paths, tree)))


def _check_selector(selector: str) -> None:
    if selector.startswith(XPATH):
        from crawler.core.page.xpath import check_xpath  # noqa: PLC0415  likewise

        check_xpath(selector.removeprefix(XPATH))
        return
    try:
        _NOTHING.css(selector)
    except SelectolaxError as error:
        hint = f"; an XPath is written {XPATH}{selector}" if selector.startswith(("/", "(", ".//")) else ""
        raise ValueError(f"{selector!r} is no CSS selector{hint}") from error


FULL_VIEW = View()


def merge_views(views: Iterable[View]) -> View:
    """One View for several: all that any ignores is ignored, all that any watches is watched."""
    non_empty = [view for view in views if view]
    if len(non_empty) <= 1:
        return non_empty[0] if non_empty else FULL_VIEW
    texts = zip(*((view.ignore, view.watch, view.ignore_text) for view in non_empty), strict=True)
    return View(*(tuple(dict.fromkeys(chain.from_iterable(each))) for each in texts))
