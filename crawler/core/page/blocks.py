"""The text of a web page block by block, and which blocks are boilerplate: menus, footers and the like."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.core.page.document import collapse_spaces, join_lines
from crawler.core.page.html import get_text, iter_ancestors

MIN_MAIN_SHARE = 0.25  # of the whole text; if less would remain without boilerplate, no block counts as boilerplate

BLOCK_TAGS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir", "div"}
    | {"dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "frameset", "h1", "h2", "h3", "h4", "h5", "h6"}
    | {"header", "hgroup", "hr", "html", "legend", "li", "listing", "main", "menu", "nav", "ol", "optgroup", "option"}
    | {"p", "plaintext", "pre", "search", "section", "select", "summary", "table", "tbody", "td", "tfoot", "th"}
    | {"thead", "tr", "ul", "xmp"}
)
HIDDEN_TAGS = frozenset(
    {"annotation", "audio", "canvas", "desc", "head", "iframe", "metadata", "noembed", "noframes", "noscript", "object"}
    | {"script", "style", "template", "textarea", "title", "video"}
)
_ENTERED_TAGS = BLOCK_TAGS | HIDDEN_TAGS
# Elements and ARIA roles that mark boilerplate. A header in main or article belongs to the content.
_BOILERPLATE_TAGS = frozenset({"nav", "footer", "aside", "search"})
_CONTENT_TAGS = frozenset({"main", "article"})
_ROLES = ("navigation", "banner", "contentinfo", "complementary", "search")
_BOILERPLATE_ROLES = ",".join(f"[role={role} i]" for role in _ROLES)
_BOILERPLATE_SELECTOR = ",".join((*sorted(_BOILERPLATE_TAGS), "header", _BOILERPLATE_ROLES))
_HIDDEN_IN_BODY = ",".join(sorted(HIDDEN_TAGS - {"head"}))
_MAY_BE_HIDDEN = '[hidden],[style*="display" i]'
_DISPLAY_NONE = re.compile(r"(?i)display\s*:\s*none")
_HIDDEN_BLOCK = 0  # the number of every hidden block
_OUTSIDE = -1  # the number of text outside of all blocks

# Comparing the numbers of tags is three times faster than comparing their names, and a page has hundreds of nodes.
_SAMPLE = LexborHTMLParser("<p><br>text<a href=x></a><img>").css("p")[0]
_TAG_IDS = {node.tag: node.tag_id for node in _SAMPLE.traverse(include_text=True)}
TEXT_ID, BREAK_ID, LINK_OR_IMAGE_IDS = _TAG_IDS["-text"], _TAG_IDS["br"], frozenset({_TAG_IDS["a"], _TAG_IDS["img"]})

B = TypeVar("B")


@dataclass(slots=True)
class BlockLookup(Generic[B]):
    """A lookup of the block that each element's own text belongs to.

    blocks_by_number: the blocks found so far, by the element's number (mem_id).  outside: the value outside of all.
    enter_element: returns the block of an element, given that of its parent. It is called for elements with a tag in
    BLOCK_TAGS or HIDDEN_TAGS, and for those with a number in `more_numbers`.
    """

    blocks_by_number: dict[int, B]
    outside: B
    enter_element: Callable[[LexborNode, B], B]
    more_numbers: frozenset[int] = frozenset()

    def find_block(self, node: LexborNode) -> B:
        """Return the block of an element's own text, and cache it for the element and its ancestors."""
        blocks_by_number = self.blocks_by_number
        path: list[tuple[LexborNode, int]] = []
        block = self.outside
        ancestor: LexborNode | None = node
        while ancestor is not None:
            number = ancestor.mem_id
            if number in blocks_by_number:
                block = blocks_by_number[number]
                break
            path.append((ancestor, number))
            ancestor = ancestor.parent
        for element, number in reversed(path):
            if element.tag in _ENTERED_TAGS or number in self.more_numbers:
                block = self.enter_element(element, block)
            blocks_by_number[number] = block
        return block


@dataclass(slots=True)
class _BoilerplateBlocks:
    """The boilerplate blocks of a page. A block has the number of its element.

    roles: elements with an ARIA role of boilerplate.  content: blocks within a main or article element.
    """

    roles: frozenset[int]
    boilerplate: set[int] = field(default_factory=set)
    content: set[int] = field(default_factory=set)

    def enter_element(self, node: LexborNode, outer_block: int) -> int:
        """Return the number of the block that an element's own text belongs to, and remember if it is boilerplate.

        outer_block: the parent's block.
        """
        tag, block = node.tag, node.mem_id
        if outer_block == _HIDDEN_BLOCK or tag in HIDDEN_TAGS:
            return _HIDDEN_BLOCK
        if outer_block in self.content or tag in _CONTENT_TAGS:
            self.content.add(block)
        is_header = tag == "header" and block not in self.content
        if outer_block in self.boilerplate or tag in _BOILERPLATE_TAGS or block in self.roles or is_header:
            self.boilerplate.add(block)
        return block


def split_blocks(tree: LexborHTMLParser) -> Iterator[tuple[str, bool]]:
    """Yield the visible text of each block as written, and whether the block is boilerplate.

    A block is the text in one block element, up to the next block element within it or a <br>. Some of the texts may
    be empty or consist of whitespace.
    """
    root = tree.root
    if root is None:
        return
    collector = _BoilerplateBlocks(frozenset(node.mem_id for node in tree.css(_BOILERPLATE_ROLES)))
    hidden = dict.fromkeys(find_hidden_elements(tree), _HIDDEN_BLOCK)
    blocks = BlockLookup(hidden, _OUTSIDE, collector.enter_element)
    boilerplate, blocks_by_number = collector.boilerplate, blocks.blocks_by_number
    current = _HIDDEN_BLOCK
    texts: list[str] = []
    for node in root.traverse(include_text=True):
        kind = node.tag_id
        if kind == TEXT_ID:
            text = get_text(node)
            if text.isspace():  # whitespace between two words, or at the end of a block, whichever block it is in
                texts.append(" ")
                continue
            parent = node.parent
            assert parent is not None  # only the root has none, and it is not a text
            block = blocks_by_number.get(parent.mem_id)
            if block is None:
                block = blocks.find_block(parent)
            if block == _HIDDEN_BLOCK:
                continue
            if block != current:
                yield "".join(texts), current in boilerplate
                texts.clear()
                current = block
            texts.append(text)
        elif kind == BREAK_ID:
            yield "".join(texts), current in boilerplate
            texts.clear()
    yield "".join(texts), current in boilerplate


def find_hidden_elements(tree: LexborHTMLParser) -> Iterator[int]:
    """Yield the numbers of elements that their own attributes hide."""
    for node in tree.css(_MAY_BE_HIDDEN):
        if "hidden" in node.attrs or _DISPLAY_NONE.search(node.attrs.get("style") or ""):
            yield node.mem_id


def extract_text_and_main(tree: LexborHTMLParser) -> tuple[str, str]:
    """Return the text of a page, one line per block, and the text without boilerplate.

    Both are the whole text if less than MIN_MAIN_SHARE would remain without boilerplate.
    """
    lines = [(collapse_spaces(block), is_boilerplate) for block, is_boilerplate in split_blocks(tree)]
    text = join_lines(line for line, _ in lines)
    main = join_lines(line for line, is_boilerplate in lines if not is_boilerplate)
    return text, main if len(main) >= MIN_MAIN_SHARE * len(text) else text


def remove_boilerplate(tree: LexborHTMLParser) -> None:
    """Remove hidden elements and boilerplate from a tree. The tree must not be shared.

    Boilerplate stays if less than MIN_MAIN_SHARE of the text would remain, as in `extract_text_and_main`.
    """
    text, main = extract_text_and_main(tree)
    hidden = frozenset(find_hidden_elements(tree))
    nodes = [*tree.css(_HIDDEN_IN_BODY), *(node for node in tree.css(_MAY_BE_HIDDEN) if node.mem_id in hidden)]
    if main != text:
        nodes += (
            node
            for node in tree.css(_BOILERPLATE_SELECTOR)
            if node.tag != "header" or _CONTENT_TAGS.isdisjoint(each.tag for each in iter_ancestors(node))
        )
    by_number = {node.mem_id: node for node in nodes}
    numbers, distinct = by_number.keys(), by_number.values()
    outermost = [node for node in distinct if numbers.isdisjoint(each.mem_id for each in iter_ancestors(node))]
    for node in outermost:  # nested elements go with them; removing one twice would touch freed memory
        node.remove()
