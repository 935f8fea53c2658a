"""A place on a page, picked by its text: the CSS selector that finds it again."""

import re

from selectolax.lexbor import LexborNode

from crawler.core.page.html import parse_html

_NAME = re.compile(r"[A-Za-z][A-Za-z_-]*")  # ids and classes with digits are often made anew for each visitor
MAX_CLASSES = 2
WHOLE_PAGE_TAGS = {"html", "body"}  # what they hold is the whole page


def find_selector(body: bytes, content_type: str, text: str) -> str:
    """A CSS selector for the smallest element that holds a text; empty where none does, or only the whole page.

    text: with single blanks between its words.  The selector names ids and classes where there are any, else the
    place among its neighbours, so that it finds the same place in the page's next version.
    """
    root = parse_html(body, content_type).tree.root
    if root is None or not text:
        return ""
    holder = _find_holder(root, text)
    return "" if holder is None or holder.tag in WHOLE_PAGE_TAGS else _build_selector(holder)


def _find_holder(root: LexborNode, text: str) -> LexborNode | None:
    """The innermost element that holds the text, the first where several do."""
    holder, inner = None, root if text in _get_text(root) else None
    while inner is not None:
        holder = inner
        inner = next((child for child in holder.iter() if text in _get_text(child)), None)
    return holder


def _get_text(node: LexborNode) -> str:
    return " ".join(node.text(deep=True, separator="").split())


def _build_selector(node: LexborNode) -> str:
    """The selector of an element: from the nearest ancestor with an id down."""
    steps: list[str] = []
    ancestor: LexborNode | None = node
    while ancestor is not None and ancestor.tag not in WHOLE_PAGE_TAGS:
        name = ancestor.attributes.get("id") or ""
        if _NAME.fullmatch(name):
            steps.append(f"#{name}")
            break
        steps.append(_build_step(ancestor))
        ancestor = ancestor.parent
    return " > ".join(reversed(steps))


def _build_step(node: LexborNode) -> str:
    """One element by its tag and classes; by its place, too, where a neighbour has the same."""
    names = [name for name in (node.attributes.get("class") or "").split() if _NAME.fullmatch(name)]
    step = "".join([node.tag or "*", *(f".{name}" for name in names[:MAX_CLASSES])])
    siblings = [child for child in node.parent.iter() if child.tag == node.tag] if node.parent is not None else [node]
    alike = [child for child in siblings if (child.attributes.get("class") or "").split()[:MAX_CLASSES] == names]
    if len(alike if names else siblings) <= 1:
        return step
    position = next(n for n, child in enumerate(siblings, 1) if child.mem_id == node.mem_id)
    return f"{step}:nth-of-type({position})"
