"""What of a page its user wants to have compared: places to ignore, and places to watch."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

MOST_CHARS = 500  # of a selector or an expression

_NOTHING = LexborHTMLParser("<p>")


@dataclass(frozen=True, slots=True)
class View:
    """What is seen of a page; whoever looks through it sees both versions so, so that another view is no change.

    ignore: CSS selectors of elements that are not seen.  watch: if there are any, nothing else is seen.
    ignore_text: regular expressions; what they find in the text of a piece is not seen. They may take any time, so
    they are only used where a deadline ends that.
    ValueError, a sentence for a person, if one of them is none.
    """

    ignore: tuple[str, ...] = ()
    watch: tuple[str, ...] = ()
    ignore_text: tuple[str, ...] = ()
    _text: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for text in (*self.ignore, *self.watch, *self.ignore_text):
            if len(text) > MOST_CHARS:
                raise ValueError(f"{text[:20]}... is longer than {MOST_CHARS} characters")
        for selector in (*self.ignore, *self.watch):
            _refuse_selector(selector)
        object.__setattr__(self, "_text", tuple(map(_expression, self.ignore_text)))

    def __bool__(self) -> bool:
        return bool(self.ignore or self.watch or self.ignore_text)

    def without_ignored(self, text: str) -> str:
        """A piece's text without what is ignored in it."""
        for pattern in self._text:
            text = pattern.sub("", text)
        return " ".join(text.split()) if self._text else text

    def ignored_in(self, tree: LexborHTMLParser) -> frozenset[int]:
        """The numbers of the elements that are not seen."""
        return _matched(tree, self.ignore)

    def watched_in(self, tree: LexborHTMLParser) -> frozenset[int] | None:
        """The numbers of the elements that alone are seen, with all that is in them; None for the whole page."""
        return _matched(tree, self.watch) if self.watch else None


def _matched(tree: LexborHTMLParser, selectors: tuple[str, ...]) -> frozenset[int]:
    return frozenset(node.mem_id for selector in selectors for node in tree.css(selector))


def _refuse_selector(selector: str) -> None:
    try:
        _NOTHING.css(selector)
    except SelectolaxError as error:
        raise ValueError(f"{selector!r} is no CSS selector") from error


def _expression(text: str) -> re.Pattern[str]:
    try:
        found = re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from error
    if found.fullmatch(""):
        raise ValueError(f"{text!r} finds nothing at all, too: it must ask for at least one character")
    return found


WHOLE = View()


def together(views: Iterable[View]) -> View:
    """What several rules say about one page."""
    found = [view for view in views if view]
    if len(found) <= 1:
        return found[0] if found else WHOLE
    return View(
        ignore=_each(view.ignore for view in found),
        watch=_each(view.watch for view in found),
        ignore_text=_each(view.ignore_text for view in found),
    )


def _each(said: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for each in said for text in each))
