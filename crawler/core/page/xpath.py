"""XPath for trees of selectolax, which does not support it: the tree is copied to lxml.

The copy has the same elements in the same order. Results name the original elements by their numbers (mem_id).
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from lxml import etree
from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.core.page.scan import TEXT_ID

_LITERAL = re.compile(r"'[^']*'|\"[^\"]*\"")
_PREDICATE = re.compile(r"\[([^\[\]]*)\]")  # the innermost ones
_NO_ELEMENT = re.compile(
    r"\s*\(*\s*(?:@|attribute\s*::|namespace\s*::|(?:[a-z-]+\s*::\s*)?(?:text|comment|proc[a-z-]*)\s*\()"
)
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ANY = "any"  # replaces element names that XPath cannot express
_PROBE = etree.fromstring("<html><body><p/></body></html>")


def check_xpath(expression: str) -> None:
    """Raise ValueError with a message for users if an expression cannot find elements in a page.

    Errors that depend on the page are not found here; see `find_elements`.
    """
    try:
        etree.XPath(expression)
        _compile(expression)(_PROBE)
        rest = _LITERAL.sub("''", expression)
        while predicates := _PREDICATE.findall(rest):
            for predicate in predicates:
                etree.XPath(f"self::*[{predicate}]")(_PROBE)
            rest = _PREDICATE.sub("", rest)
    except etree.XPathError as error:
        raise ValueError(f"{expression!r} is not an XPath that finds elements: {error}") from error
    if any(_NO_ELEMENT.match(path.rpartition("/")[2]) for path in rest.split("|")):
        raise ValueError(f"{expression!r} selects attributes or text; it must select elements")


def find_elements(expressions: Iterable[str], tree: LexborHTMLParser) -> Iterator[int]:
    """Yield the mem_ids of the elements that any expression finds. An expression that fails on this page finds nothing.

    Names are lowercase and without namespaces. The running time of an expression is unbounded.
    """
    numbers = _copy_tree(tree)
    for expression in expressions:
        try:
            elements = _compile(expression)(next(iter(numbers))) if numbers else []
        except etree.XPathError:
            continue
        yield from (numbers[element] for element in elements)


@lru_cache(256)
def _compile(expression: str) -> etree.XPath:
    """Compile an expression. An XPath that yields a number, a string or a boolean raises XPathError when called."""
    return etree.XPath(f"({expression})/self::*", smart_strings=False)


def _copy_tree(tree: LexborHTMLParser) -> dict[etree._Element, int]:
    """Copy a tree, and return the number of its original for each copied element, the root first."""
    copies: dict[int, etree._Element] = {}
    root = tree.root
    for node in root.traverse(include_text=True) if root is not None else ():
        parent = copies.get(node.parent.mem_id) if node.parent is not None else None
        if node.tag_id == TEXT_ID:
            if parent is not None:
                text = _NOT_XML.sub("", node.text_content or "")
                if len(parent):
                    parent[-1].tail = (parent[-1].tail or "") + text
                else:
                    parent.text = (parent.text or "") + text
        elif node.is_element_node and (parent is not None or not copies):
            name = node.tag if _NAME.fullmatch(node.tag or "") else _ANY
            copies[node.mem_id] = element = etree.Element(name, _copy_attributes(node))
            if parent is not None:
                parent.append(element)
    return {element: number for number, element in copies.items()}


def _copy_attributes(node: LexborNode) -> dict[str, str]:
    """Return the attributes of an element whose names XPath can express."""
    return {name: _NOT_XML.sub("", value or "") for name, value in node.attrs.items() if name and _NAME.fullmatch(name)}
