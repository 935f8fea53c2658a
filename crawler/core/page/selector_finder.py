"""The CSS selector for an element that a user picks by its text."""

import re
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct
from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.core.page.html import parse_html

_NAME = re.compile(r"[A-Za-z][A-Za-z_-]*")  # other ids and classes are not used: digits may differ for each visitor
MAX_CLASSES = 2
WHOLE_PAGE_TAGS = {"html", "body"}  # an element that contains the whole page
MAX_ENCLOSING = 5  # elements around a picked one to choose from


class PickedElement(Struct, frozen=True):
    """An element that a user picked.

    text: with single spaces between words.  selectors: of the element, then of those around it that have more text,
    each with the number of characters of its text.
    """

    text: str
    selectors: tuple[tuple[str, int], ...]


def find_selector(body: bytes, content_type: str, text: str) -> str:
    """Return a CSS selector for the smallest element that contains a text; empty if only the whole page or none does.

    The selector uses ids and classes, and positions among siblings only where these do not suffice, so that it finds
    the same element in the page's next version.
    text: with single spaces between words.
    """
    root = parse_html(body, content_type).tree.root
    if root is None or not text:
        return ""
    holder, inner = None, root if text in _get_text(root) else None
    while inner is not None:
        holder = inner
        inner = next((child for child in holder.iter() if text in _get_text(child)), None)
    return "" if holder is None or holder.tag in WHOLE_PAGE_TAGS else _build_selector(holder)


def describe_element(body: bytes, content_type: str, number: int) -> PickedElement | None:
    """Return the element of this number in page order (see `iter_elements`), or None."""
    tree = parse_html(body, content_type).tree
    element = next(islice(iter_elements(tree), number, None), None)
    if element is None or element.tag in WHOLE_PAGE_TAGS:
        return None
    text, selectors = _get_text(element), [(_build_selector(element), len(_get_text(element)))]
    ancestor = element.parent
    while ancestor is not None and ancestor.tag not in WHOLE_PAGE_TAGS and len(selectors) <= MAX_ENCLOSING:
        chars = len(_get_text(ancestor))
        if chars > selectors[-1][1]:
            selectors.append((_build_selector(ancestor), chars))
        ancestor = ancestor.parent
    return PickedElement(text, tuple(selectors))


def iter_elements(tree: LexborHTMLParser) -> Iterator[LexborNode]:
    """Yield the elements of a page in order."""
    return (node for node in tree.root.traverse() if node.is_element_node) if tree.root is not None else iter(())


def _get_text(node: LexborNode) -> str:
    return " ".join(node.text(deep=True, separator="").split())


def _build_selector(node: LexborNode) -> str:
    """Return the selector of an element, starting at the nearest id, its own or that of an ancestor, or at the body.

    It finds only this element, unless ids are repeated.
    """
    steps: list[str] = []
    ancestor: LexborNode | None = node
    while ancestor is not None and ancestor.tag not in WHOLE_PAGE_TAGS:
        name = ancestor.attributes.get("id") or ""
        if _NAME.fullmatch(name):
            steps.append(f"#{name}")
            break
        steps.append(_build_step(ancestor))
        ancestor = ancestor.parent
    if ancestor is not None and ancestor.tag == "body":
        steps.append("body")
    return " > ".join(reversed(steps))


def _build_step(node: LexborNode) -> str:
    """Return the selector of one element by tag and classes, and by position if a sibling has the same."""
    names = [name for name in _list_classes(node) if _NAME.fullmatch(name)][:MAX_CLASSES]
    step = "".join([node.tag or "*", *(f".{name}" for name in names)])
    siblings = [child for child in node.parent.iter() if child.tag == node.tag] if node.parent is not None else [node]
    if sum(set(names) <= set(_list_classes(child)) for child in siblings) <= 1:
        return step
    position = next(n for n, child in enumerate(siblings, 1) if child.mem_id == node.mem_id)
    return f"{step}:nth-of-type({position})"


def _list_classes(node: LexborNode) -> list[str]:
    return (node.attributes.get("class") or "").split()
