"""The text of a web page block by block, and the blocks that frame the content: menus, footers and the like."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.core.page.document import joined, spaced
from crawler.core.page.html import above_of, text_of

MAIN_SHARE = 0.25  # of the whole text; with less, the extractor has lost the page rather than found its content

BLOCK_TAGS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir", "div"}
    | {"dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "frameset", "h1", "h2", "h3", "h4", "h5", "h6"}
    | {"header", "hgroup", "hr", "html", "legend", "li", "listing", "main", "menu", "nav", "ol", "optgroup", "option"}
    | {"p", "plaintext", "pre", "search", "section", "select", "summary", "table", "tbody", "td", "tfoot", "th"}
    | {"thead", "tr", "ul", "xmp"}
)
UNSEEN_TAGS = frozenset(
    {"annotation", "audio", "canvas", "desc", "head", "iframe", "metadata", "noembed", "noframes", "noscript", "object"}
    | {"script", "style", "template", "textarea", "title", "video"}
)
_ENTERED_TAGS = BLOCK_TAGS | UNSEEN_TAGS
# What frames the content, by the standard's own elements and roles. A header within the content belongs to it.
_FRAME_TAGS = frozenset({"nav", "footer", "aside", "search"})
_CONTENT_TAGS = frozenset({"main", "article"})
_FRAME_ROLES = ",".join(
    f"[role={role} i]" for role in ("navigation", "banner", "contentinfo", "complementary", "search")
)
_FRAMES = ",".join((*sorted(_FRAME_TAGS), "header", _FRAME_ROLES))
_UNSEEN_IN_BODY = ",".join(sorted(UNSEEN_TAGS - {"head"}))
_MAY_BE_HIDDEN = '[hidden],[style*="display" i]'
_NOT_SHOWN = re.compile(r"(?i)display\s*:\s*none")
_UNSEEN = 0  # in place of a block's number
_OUTSIDE = -1  # of all blocks

# Numbers compare three times faster than names, and there are hundreds of nodes.
_TAG_IDS = {
    node.tag: node.tag_id
    for node in LexborHTMLParser("<p><br>text<a href=x></a><img>").css("p")[0].traverse(include_text=True)
}
TEXT_ID, BREAK_ID, POINTING_IDS = _TAG_IDS["-text"], _TAG_IDS["br"], frozenset({_TAG_IDS["a"], _TAG_IDS["img"]})

B = TypeVar("B")


@dataclass(slots=True)
class OpenBlocks(Generic[B]):
    """The block that each element's own text belongs to, by the elements' numbers.

    outside: what is outside of all blocks.  enter: the block of an element, by that of the one above it; asked for
    elements with a block of their own, for unseen ones, and for others.
    """

    known: dict[int, B]
    outside: B
    enter: Callable[[LexborNode, B], B]
    others: frozenset[int] = frozenset()

    def of(self, node: LexborNode) -> B:
        """The block of an element's own text; known from then on for all elements above it, however many, too."""
        known = self.known
        path: list[tuple[LexborNode, int]] = []
        block = self.outside
        above: LexborNode | None = node
        while above is not None:
            number = above.mem_id
            if number in known:
                block = known[number]
                break
            path.append((above, number))
            above = above.parent
        for element, number in reversed(path):
            if element.tag in _ENTERED_TAGS or number in self.others:
                block = self.enter(element, block)
            known[number] = block
        return block


@dataclass(slots=True)
class _Frames:
    """The blocks that frame the content. roles: elements whose ARIA role says so.  content: blocks within it."""

    roles: frozenset[int]
    framed: set[int] = field(default_factory=set)
    content: set[int] = field(default_factory=set)

    def enter(self, node: LexborNode, above: int) -> int:
        """The number of the block that an element's own text belongs to. above: that of the element above it."""
        tag, block = node.tag, node.mem_id
        if above == _UNSEEN or tag in UNSEEN_TAGS:
            return _UNSEEN
        if above in self.content or tag in _CONTENT_TAGS:
            self.content.add(block)
        is_frame = tag in _FRAME_TAGS or block in self.roles or (tag == "header" and block not in self.content)
        if above in self.framed or is_frame:
            self.framed.add(block)
        return block


def blocks_of(tree: LexborHTMLParser) -> Iterator[tuple[str, bool]]:
    """The visible text of each block as it is written, and whether the block frames the content.

    A block is the text in one block element, up to the next such element within it or a <br>. Between blocks there may
    be entries of white space alone.
    """
    root = tree.root
    if root is None:
        return
    frames = _Frames(frozenset(node.mem_id for node in tree.css(_FRAME_ROLES)))
    blocks = OpenBlocks(dict.fromkeys(not_shown(tree), _UNSEEN), _OUTSIDE, frames.enter)
    framed, known = frames.framed, blocks.known
    current = _UNSEEN
    pieces: list[str] = []
    for node in root.traverse(include_text=True):
        kind = node.tag_id
        if kind == TEXT_ID:
            text = text_of(node)
            if text.isspace():  # wherever it belongs, it can only be between words or at an end
                pieces.append(" ")
                continue
            parent = node.parent
            assert parent is not None  # it was reached from the root
            block = known.get(parent.mem_id)
            if block is None:
                block = blocks.of(parent)
            if block == _UNSEEN:
                continue
            if block != current:
                yield "".join(pieces), current in framed
                pieces.clear()
                current = block
            pieces.append(text)
        elif kind == BREAK_ID:
            yield "".join(pieces), current in framed
            pieces.clear()
    yield "".join(pieces), current in framed


def not_shown(tree: LexborHTMLParser) -> Iterator[int]:
    """The numbers of elements that their own attributes hide."""
    for node in tree.css(_MAY_BE_HIDDEN):
        if "hidden" in node.attrs or _NOT_SHOWN.search(node.attrs.get("style") or ""):
            yield node.mem_id


def text_and_main_of(tree: LexborHTMLParser) -> tuple[str, str]:
    """The text of a page, a line for each block, and the text without the blocks that frame the content.

    The second is all of it where what frames the content is nearly everything.
    """
    lines = [(spaced(block), is_framing) for block, is_framing in blocks_of(tree)]
    text = joined(line for line, _ in lines)
    main = joined(line for line, is_framing in lines if not is_framing)
    return text, main if len(main) >= MAIN_SHARE * len(text) else text


def without_frame(tree: LexborHTMLParser) -> None:
    """Take from a tree, which nobody else may have, what readers do not see, and what frames the content.

    What frames it stays where it is nearly everything, as in `text_and_main_of`.
    """
    text, main = text_and_main_of(tree)
    hidden = frozenset(not_shown(tree))
    found = [*tree.css(_UNSEEN_IN_BODY), *(node for node in tree.css(_MAY_BE_HIDDEN) if node.mem_id in hidden)]
    if main != text:
        found += [
            node
            for node in tree.css(_FRAMES)
            if node.tag != "header" or not any(above.tag in _CONTENT_TAGS for above in above_of(node))
        ]
    numbers = {node.mem_id for node in found}
    outermost = {node.mem_id: node for node in found if not any(above.mem_id in numbers for above in above_of(node))}
    for node in outermost.values():  # those within go with them: to remove what is removed would touch freed memory
        node.remove()
