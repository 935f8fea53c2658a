"""What of a page its user wants to have compared: places to ignore, and places to watch."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from crawler.core.page.xpath import found_by, refuse_xpath

MOST_CHARS = 500  # of a selector or an expression
XPATH = "xpath:"  # in front of one

_NOTHING = LexborHTMLParser("<p>")


@dataclass(frozen=True, slots=True)
class View:
    """What is seen of a page; whoever looks through it sees both versions so, so that another view is no change.

    ignore: elements that are not seen, by CSS selectors or, behind XPATH, by XPath.  watch: if there are any, nothing
    else is seen.
    ignore_text: regular expressions; what they find in the text of a piece is not seen.
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
            _refuse(selector)
        object.__setattr__(self, "_text", tuple(map(_expression, self.ignore_text)))

    def __bool__(self) -> bool:
        return bool(self.ignore or self.watch or self.ignore_text)

    @property
    def is_wild(self) -> bool:
        """Whether it may take any time, so that it may only be used where a deadline ends that."""
        return bool(self.ignore_text) or any(place.startswith(XPATH) for place in (*self.ignore, *self.watch))

    def without_ignored(self, text: str) -> str:
        """A piece's text without what is ignored in it."""
        for pattern in self._text:
            text = pattern.sub("", text)
        return " ".join(text.split()) if self._text else text

    def ignored_of(self, text: str) -> Iterator[str]:
        """What of a piece's text is ignored."""
        for pattern in self._text:
            yield from (found[0] for found in pattern.finditer(text))
            text = pattern.sub("", text)

    def cuts(self, text: str) -> bool:
        """Whether anything in a piece's text is ignored."""
        return any(pattern.search(text) for pattern in self._text)

    def apart(self) -> "dict[str, View]":
        """Each of its places alone, by how it is written."""
        alone = {place: View(ignore=(place,)) for place in self.ignore}
        return alone | ({f"only {' and '.join(self.watch)}": View(watch=self.watch)} if self.watch else {})

    def ignored_in(self, tree: LexborHTMLParser) -> frozenset[int]:
        """The numbers of the elements that are not seen."""
        return _matched(tree, self.ignore)

    def watched_in(self, tree: LexborHTMLParser) -> frozenset[int] | None:
        """The numbers of the elements that alone are seen, with all that is in them; None for the whole page."""
        return _matched(tree, self.watch) if self.watch else None


def _matched(tree: LexborHTMLParser, places: tuple[str, ...]) -> frozenset[int]:
    selected = {node.mem_id for place in places if not place.startswith(XPATH) for node in tree.css(place)}
    paths = [place.removeprefix(XPATH) for place in places if place.startswith(XPATH)]
    return frozenset(selected.union(found_by(paths, tree)) if paths else selected)


def _refuse(place: str) -> None:
    if place.startswith(XPATH):
        refuse_xpath(place.removeprefix(XPATH))
        return
    try:
        _NOTHING.css(place)
    except SelectolaxError as error:
        hint = f"; an XPath is written {XPATH}{place}" if place.startswith(("/", "(", ".//")) else ""
        raise ValueError(f"{place!r} is no CSS selector{hint}") from error


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
