"""A page as a list of blocks, each with its text and path, for comparing two versions block by block."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.core.http.urls import Url, normalize_url
from crawler.core.page.blocks import (
    BLOCK_TAGS,
    BREAK_ID,
    HIDDEN_TAGS,
    LINK_OR_IMAGE_IDS,
    TEXT_ID,
    BlockLookup,
    find_hidden_elements,
)
from crawler.core.page.content import META_SELECTOR, PageContent, extract_content
from crawler.core.page.document import DocumentReader, PickledAsCall, collapse_spaces
from crawler.core.page.fingerprint import compute_digest, hash_text
from crawler.core.page.html import Markup, get_base_url, get_text, parse_html
from crawler.core.page.media_type import detect_kind
from crawler.core.page.selectors import FULL_VIEW, View, find_matching

MAX_BLOCKS = 20_000  # per page; all text after them becomes one block
MAX_BLOCK_CHARS = 100_000  # per block; the rest of the text is replaced by its digest
DIGEST_CHARS = 32
# A block that only offers translations has at most these numbers of words: for its label, and for each language.
MAX_LABEL_WORDS = 5  # such as "This page is available in:"
MAX_LANGUAGE_WORDS = 3  # such as "Brazilian Portuguese |"


class BlockKind(StrEnum):
    """The kind of content of a block."""

    TEXT = "text"
    LINK = "link"  # target of a link in the text
    IMAGE = "image"  # name and alternative text of an image
    TITLE = "title"
    META = "meta"  # a description, keywords or an Open Graph property


@dataclass(frozen=True, slots=True)
class Block(PickledAsCall):
    """One block of a page.

    css_path: a hash of the tags and classes of the enclosing block elements. Parts of classes that are numbers or codes
    (five or more characters with a digit) are left out, because they count rows or name builds.
    tag_path: a hash of the tags alone. Blocks that differ only in it are equal.
    """

    css_path: int
    text: str
    kind: BlockKind = BlockKind.TEXT
    tag_path: int = field(default=0, compare=False)


BlockList = tuple[Block, ...]
BlockPair = tuple[Block | None, Block | None]  # the old and the new block


def extract_blocks(
    body: bytes,
    content: PageContent | None = None,
    *,
    url: Url,
    content_type: str,
    view: View = FULL_VIEW,
    markup: Markup | None = None,
    reader: DocumentReader | None = None,
) -> BlockList:
    """Return the blocks of a body in order.

    A body that is not HTML has one block per line of its main text. Raises only MemoryError and what `reader` raises.
    view: the parts of the page to compare; its selectors apply to HTML only. With any but FULL_VIEW, an empty block
    comes first, whose tag_path is a hash of what is left out (see `get_left_out_hash`). A page of which nothing is
    compared therefore differs from a page without blocks.
    content, markup: the parsed body, if the caller has it already.  reader: reads this body instead, as a non-HTML
    document.
    """
    if reader is None and detect_kind(body, content_type) == "html":
        tree = (markup or parse_html(body, content_type)).tree
        html_blocks = _extract_html_blocks(tree, url, view)
        blocks = all_blocks = list(html_blocks) if view else _limit_blocks(html_blocks)
        if view.ignore or view.watch:
            all_blocks = list(_extract_html_blocks(tree, url, FULL_VIEW))
    else:
        content = content or extract_content(body, url=url, content_type=content_type, reader=reader)
        blocks = all_blocks = [Block(_LINE, line) for line in content.main.split("\n") if line]
    if view:
        marker_block = Block(_WATCHED if view.watch else _LINE, "", tag_path=_hash_left_out(all_blocks, blocks, view))
        blocks = [marker_block, *_drop_ignored(blocks, view)]
    limited = _limit_blocks(iter(blocks))
    return tuple(block if len(block.text) <= MAX_BLOCK_CHARS else _cut_block(block) for block in limited)


def _limit_blocks(blocks: Iterator[Block]) -> list[Block]:
    """Return the first MAX_BLOCKS blocks, and one more with the text of the rest."""
    first = list(islice(blocks, MAX_BLOCKS))
    rest = "\n".join([block.text for block in blocks])
    return [*first, Block(_LINE, rest)] if rest else first


def _drop_ignored(blocks: Sequence[Block], view: View) -> Iterator[Block]:
    for block in blocks:
        text = view.without_ignored(block.text)
        if text or not block.text:
            yield replace(block, text=text)


def _hash_left_out(all_blocks: Sequence[Block], visible_blocks: Sequence[Block], view: View) -> int:
    """Return a hash of everything that a view leaves out of a page: blocks, and texts within other blocks."""
    blocks = (Counter(all_blocks) - Counter(visible_blocks)).elements()
    texts = (text for block in visible_blocks for text in view.find_ignored(block.text))
    return hash_text("\n".join((*(block.text for block in blocks), *texts)))


def get_left_out_hash(blocks: BlockList) -> int:
    """Return the hash of everything that a view left out of a page, or 0 for the blocks of FULL_VIEW."""
    return blocks[0].tag_path if blocks and blocks[0] in (Block(_LINE, ""), Block(_WATCHED, "")) else 0


def is_watched(blocks: BlockList) -> bool:
    """Return whether a user's watch rules selected the blocks."""
    return bool(blocks) and blocks[0] == Block(_WATCHED, "")


def _cut_block(block: Block) -> Block:
    """Cut a long block to MAX_BLOCK_CHARS, ending with the digest of the rest."""
    max_kept_chars = MAX_BLOCK_CHARS - 1 - DIGEST_CHARS
    rest = compute_digest(block.text[max_kept_chars:].encode("utf-8", "surrogatepass")).hex()
    return replace(block, text=f"{block.text[:max_kept_chars]} {rest}")


def _extract_html_blocks(tree: LexborHTMLParser, url: Url, view: View) -> Iterator[Block]:
    """Yield the blocks of the head, then those of the body. If there are watch rules, they apply to the head too."""
    ignored, watched = find_matching(tree, view.ignore), find_matching(tree, view.watch) if view.watch else None

    def is_compared(node: LexborNode) -> bool:
        return node.mem_id not in ignored and (watched is None or node.mem_id in watched)

    title = tree.css_first("title")
    if title is not None and is_compared(title):
        yield Block(_TITLE, _collapse_text(title.text()), BlockKind.TITLE)
    for node in filter(is_compared, tree.css(META_SELECTOR)):
        name = (node.attrs.get("name") or node.attrs.get("property") or "").lower()
        yield Block(hash_text(f"meta {name}"), _collapse_text(node.attrs.get("content") or ""), BlockKind.META)
    yield from _extract_body_blocks(tree, get_base_url(tree, url), ignored, watched)


_CODE = re.compile(r"(?<![^\s_-])(?:\d+|(?=[^\s_-]*\d)[^\s_-]{5,})(?![^\s_-])")


@dataclass(frozen=True, slots=True)
class _OpenBlock:
    """A block element whose text is being collected.

    css_path, tag_path: as in Block.  is_shown: whether readers see the element and no rule ignores it.
    is_watched: whether the watch rules select the element; true if there are none.
    """

    css_path: int
    tag_path: int = 0
    is_shown: bool = True
    is_watched: bool = True

    @property
    def is_compared(self) -> bool:
        return self.is_shown and self.is_watched


def _enter_element(watched: frozenset[int] | None, node: LexborNode, outer: _OpenBlock) -> _OpenBlock:
    tag = node.tag or ""
    if not outer.is_shown or tag in HIDDEN_TAGS:
        return _HIDDEN
    is_watched = outer.is_watched or (watched is not None and node.mem_id in watched)
    if tag in BLOCK_TAGS:
        # Ids are left out, and so are numbers and codes in classes.
        classes = node.attrs.get("class")
        label = f"{tag}.{' '.join(sorted(_CODE.sub('', classes).split()))}" if classes else tag
        css_path, tag_path = hash_text(f"{outer.css_path} {label}"), hash_text(f"{outer.tag_path} {tag}")
        return _OpenBlock(css_path, tag_path, is_watched=is_watched)
    return outer if is_watched == outer.is_watched else replace(outer, is_watched=True)


def _extract_body_blocks(
    tree: LexborHTMLParser, base: Url, ignored: frozenset[int], watched: frozenset[int] | None
) -> Iterator[Block]:
    """Yield the text of each block, followed by the links and images in it."""
    root = tree.root
    if root is None:
        return
    outside = _OUTSIDE if watched is None else replace(_OUTSIDE, is_watched=False)
    hidden = dict.fromkeys((*find_hidden_elements(tree), *ignored), _HIDDEN)
    blocks = BlockLookup(hidden, outside, partial(_enter_element, watched), watched or frozenset())
    current = _HIDDEN
    texts: list[str] = []
    pointers: list[_Pointer] = []
    translations: list[_OpenBlock] = []
    for node in root.traverse(include_text=True):
        kind = node.tag_id
        if kind == TEXT_ID:
            text = get_text(node)
            parent = node.parent
            if text.isspace() or parent is None:
                texts.append(" ")
                continue
            block = blocks.find_block(parent)
            if not block.is_compared:
                continue
            if block is not current:
                yield from _flush_block(current, texts, pointers, translations)
                current = block
            texts.append(text)
        elif kind == BREAK_ID:
            yield from _flush_block(current, texts, pointers, translations)
        elif kind in LINK_OR_IMAGE_IDS and (block := blocks.find_block(node)).is_compared and not _is_empty_link(node):
            attributes = node.attrs
            is_alternate = "alternate" in (attributes.get("rel") or "").lower().split()
            if watched is None and attributes.get("hreflang") and is_alternate:  # HTML standard, 4.6.7.1
                translations.append(block)
            else:
                pointers += ((block, pointer) for pointer in _build_pointer_blocks(node, block, base))
    yield from _flush_block(current, texts, pointers, translations)


_Pointer = tuple[_OpenBlock, Block]  # the enclosing block, and the block of the link or image


def _is_empty_link(node: LexborNode) -> bool:
    """Return whether a node is a link without text, elements and label, which no user can perceive."""
    child = node.child
    while child is not None and child.tag_id == TEXT_ID and not get_text(child).strip():
        child = child.next
    if child is not None or node.tag == "img":
        return False
    return not any(node.attrs.get(name) for name in ("aria-label", "title"))


def _flush_block(
    block: _OpenBlock, texts: list[str], pointers: list[_Pointer], translations: list[_OpenBlock]
) -> Iterator[Block]:
    """Yield the text of a block and its links and images, unless the block only offers translations of the page.

    If such blocks were compared, each new translation would change all other translations. One link or image in such a
    block may lack hreflang, such as the link to the page itself.
    translations: the enclosing blocks of links to translations.
    `texts` and `pointers` are emptied; from `translations`, only this block is removed.
    """
    text = _collapse_text("".join(texts))
    links = sum(within is block for within in translations)
    others = sum(within is block for within, _ in pointers)
    is_choice = links > 0 and others <= 1 and _is_short(text, links=links + others)
    if text and not is_choice:
        yield Block(block.css_path, text, tag_path=block.tag_path)
    yield from (pointer for within, pointer in pointers if not (is_choice and within is block))
    texts.clear()
    pointers.clear()
    translations[:] = [within for within in translations if within is not block]


def _is_short(text: str, *, links: int) -> bool:
    """Return whether a text has no digit and is short enough to be a label and the names of that many languages."""
    return len(text.split()) <= MAX_LABEL_WORDS + MAX_LANGUAGE_WORDS * links and not any(map(str.isdigit, text))


def _build_pointer_blocks(node: LexborNode, block: _OpenBlock, base: Url) -> Iterator[Block]:
    """Yield the block of a link (its target) or of an image (its alternative text and its name without the query)."""
    attributes = node.attrs
    if node.tag == "img":
        image = (attributes.get("src") or "").partition("?")[0].rpartition("/")[2]
        text = _collapse_text(f"{attributes.get('alt') or ''} {image}")
        yield Block(block.css_path, text, BlockKind.IMAGE, block.tag_path)
        return
    href = (attributes.get("href") or "").strip()
    target = normalize_url(href, base=base) if href and not href.startswith("#") else None
    if target is not None:
        yield Block(block.css_path, target, BlockKind.LINK, block.tag_path)


def _collapse_text(text: str) -> str:
    return collapse_spaces(text.replace("\0", ""))


_LINE, _TITLE = hash_text("line"), hash_text("title")
_WATCHED = hash_text("watched")  # marks the empty first block if elements are watched
_HIDDEN = _OpenBlock(0, is_shown=False)
_OUTSIDE = _OpenBlock(hash_text("outside"))
