"""A place on a page, picked by its text: the CSS selector that finds it again."""

import re

from selectolax.lexbor import LexborNode

from crawler.core.page.html import parse_html

_NAME = re.compile(r"[A-Za-z][A-Za-z_-]*")  # ids and classes with digits are often made anew for each visitor
MOST_CLASSES = 2
UNNAMED = {"html", "body"}  # what they hold is the whole page


def selector_of(body: bytes, content_type: str, text: str) -> str:
    """A CSS selector for the smallest element that holds a text; empty where none does, or only the whole page.

    text: with single blanks between its words.  The selector names ids and classes where there are any, else the
    place among its neighbours, so that it finds the same place in the page's next version.
    """
    root = parse_html(body, content_type).tree.root
    if root is None or not text:
        return ""
    found = _holder(root, text)
    return "" if found is None or found.tag in UNNAMED else _path(found)


def _holder(root: LexborNode, text: str) -> LexborNode | None:
    """The innermost element that holds the text, the first where several do."""
    found, inner = None, root if text in _words(root) else None
    while inner is not None:
        found = inner
        inner = next((child for child in found.iter() if text in _words(child)), None)
    return found


def _words(node: LexborNode) -> str:
    return " ".join(node.text(deep=True, separator="").split())


def _path(node: LexborNode) -> str:
    """The selector of an element: from the nearest ancestor with an id down."""
    steps: list[str] = []
    above: LexborNode | None = node
    while above is not None and above.tag not in UNNAMED:
        name = above.attributes.get("id") or ""
        if _NAME.fullmatch(name):
            steps.append(f"#{name}")
            break
        steps.append(_step(above))
        above = above.parent
    return " > ".join(reversed(steps))


def _step(node: LexborNode) -> str:
    """One element by its tag and classes; by its place, too, where a neighbour has the same."""
    names = [name for name in (node.attributes.get("class") or "").split() if _NAME.fullmatch(name)]
    step = "".join([node.tag or "*", *(f".{name}" for name in names[:MOST_CLASSES])])
    siblings = [child for child in node.parent.iter() if child.tag == node.tag] if node.parent is not None else [node]
    alike = [child for child in siblings if (child.attributes.get("class") or "").split()[:MOST_CLASSES] == names]
    if len(alike if names else siblings) <= 1:
        return step
    place = next(n for n, child in enumerate(siblings, 1) if child.mem_id == node.mem_id)
    return f"{step}:nth-of-type({place})"
