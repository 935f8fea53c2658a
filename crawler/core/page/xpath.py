"""XPath on the tree that browsers build, which its parser does not know: the tree is copied to where XPath is known.

The copy has the same elements in the same order, so what is found in it is known in the other by its number.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from lxml import etree
from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.core.page.blocks import TEXT_ID

_LITERAL = re.compile(r"'[^']*'|\"[^\"]*\"")
_PREDICATE = re.compile(r"\[([^\[\]]*)\]")  # the innermost
_NO_ELEMENT = re.compile(
    r"\s*\(*\s*(?:@|attribute\s*::|namespace\s*::|(?:[a-z-]+\s*::\s*)?(?:text|comment|proc[a-z-]*)\s*\()"
)
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ANY = "any"  # the name of an element whose own cannot be written in XPath
_PROBE = etree.fromstring("<html><body><p/></body></html>")


def check_xpath(expression: str) -> None:
    """Raise ValueError, a sentence for a person, if an expression does not find elements in a page.

    An error that depends on the page cannot be found before: see `found_by`.
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
        raise ValueError(f"{expression!r} is no XPath that finds elements: {error}") from error
    if any(_NO_ELEMENT.match(path.rpartition("/")[2]) for path in rest.split("|")):
        raise ValueError(f"{expression!r} finds no elements, but what is in them")


def find_elements(expressions: Iterable[str], tree: LexborHTMLParser) -> Iterator[int]:
    """The numbers of the elements that any expression finds; an expression that fails on this page finds nothing.

    Names are in small letters, and without namespaces. An expression may take any time.
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
    """The compiled expression. Its use raises XPathError where the expression gives a number, a string or a truth."""
    return etree.XPath(f"({expression})/self::*", smart_strings=False)


def _copy_tree(tree: LexborHTMLParser) -> dict[etree._Element, int]:
    """The elements of a copy of the tree, the root first, each with the number of its original."""
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
    """The attributes of an element whose names can be written in XPath."""
    return {name: _NOT_XML.sub("", value or "") for name, value in node.attrs.items() if name and _NAME.fullmatch(name)}
