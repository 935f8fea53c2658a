"""The positions of elements and words in well-formed HTML, for edits that change one thing only."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

TAG = re.compile(r'<(/?)([a-zA-Z][\w:-]*)((?:"[^"]*"|[^"<>])*)>')
VOID = frozenset(["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"])
MIN_WORD_CHARS = 4


@dataclass(frozen=True, slots=True)
class Element:
    """The position of an element.

    html[start:end] is the whole element and html[inner:inner_end] its content. parent is the number of the enclosing
    element, or -1.
    """

    tag: str
    start: int
    inner: int
    inner_end: int
    end: int
    parent: int


@lru_cache(maxsize=256)
def elements(html: str) -> tuple[Element, ...]:
    """Return all elements that are not void, in the order of their end tags. The HTML must be balanced."""
    found: list[Element] = []
    waiting: list[tuple[str, int, int, int]] = []  # tag, start, inner, number
    for number, match in enumerate(TAG.finditer(html)):
        tag = match[2].lower()
        if tag in VOID:
            continue
        if not match[1]:
            waiting.append((tag, match.start(), match.end(), number))
        elif waiting and waiting[-1][0] == tag:
            _, start, inner, _ = waiting.pop()
            found.append(Element(tag, start, inner, match.start(), match.end(), waiting[-1][3] if waiting else -1))
    return tuple(found)


def of_tags(html: str, *tags: str, chars: int = 0) -> list[Element]:
    """Return the elements with these tags and at least `chars` characters of text, in document order."""
    found = [each for each in elements(html) if each.tag in tags and text_chars(html, each) >= max(1, chars)]
    return sorted(found, key=lambda each: each.start)


def text_chars(html: str, element: Element) -> int:
    within = html[element.inner : element.inner_end]
    return sum(len(text.strip()) for text in TAG.split(within)[::4]) if "<" in within else len(within.strip())


def texts(html: str, element: Element) -> Iterator[tuple[int, int]]:
    """Yield the positions of the text nodes in an element."""
    at = element.inner
    for match in TAG.finditer(html, element.inner, element.inner_end):
        if match.start() > at:
            yield at, match.start()
        at = match.end()
    if at < element.inner_end:
        yield at, element.inner_end


def found_in(html: str, element: Element, pattern: str) -> list[tuple[int, int]]:
    """Return where a pattern matches in the text of an element, ignoring character references."""
    wanted = re.compile(rf"&#?\w+;|({pattern})")
    return [
        match.span(1)
        for start, end in texts(html, element)
        for match in wanted.finditer(html, start, end)
        if match[1] is not None
    ]


def words_in(html: str, element: Element) -> list[tuple[int, int]]:
    return found_in(html, element, rf"\b[a-z]{{{MIN_WORD_CHARS},}}\b")


def replaced(html: str, start: int, end: int, by: str) -> str:
    return html[:start] + by + html[end:]
