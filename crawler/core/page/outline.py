"""A page as a list of places: what is said where, so that two versions can be compared piece by piece."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import blake2b

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.core.http import Url, normalise
from crawler.core.page.blocks import BLOCK_TAGS, BREAK_ID, TEXT_ID, UNSEEN_TAGS, not_shown
from crawler.core.page.content import TOLD, PageContent, base_of, extract
from crawler.core.page.fingerprint import number_of
from crawler.core.page.html import Markup, parse_html
from crawler.core.page.media_type import kind_of
from crawler.core.page.selectors import WHOLE, View

MOST_PLACES = 20_000  # of one page; what comes after them is compared as one
MAX_PLACE_CHARS = 100_000  # what comes after them is one word, the digest of it
DIGEST_BYTES = 16


class BlockKind(StrEnum):
    """What a place holds."""

    TEXT = "text"
    LINK = "link"  # where a link within the text leads
    IMAGE = "image"  # which image stands in the text
    TITLE = "title"
    META = "meta"  # what the head says of the page


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of a page. path: a hash of the elements that it stands in, with their classes but without
    numbers, so that it stays when rows come and go.  bare: of the same without their classes; path tells it.
    """

    css_path: int
    text: str
    kind: BlockKind = BlockKind.TEXT
    tag_path: int = field(default=0, compare=False)


BlockList = tuple[Block, ...]


def block_list(
    body: bytes,
    reading: PageContent | None = None,
    *,
    url: Url,
    content_type: str,
    view: View = WHOLE,
    markup: Markup | None = None,
) -> BlockList:
    """A body as places, in their order. Empty for what has no text. Never raises, whatever the bytes.

    What is not HTML has a place for each line of its main text.
    view: what of the page is seen; selectors say nothing of what is not HTML. Where it is not the whole, an empty place
    comes first, which says by its number (`bare`) what is left out: a page of which nothing is seen is not one that was
    not told.
    reading, markup: where it was read, and parsed, already.
    """
    if kind_of(body, content_type) == "html":
        tree = (markup or parse_html(body, content_type)).tree
        places = whole = list(_seen(tree, url, view))
        if view.ignore or view.watch:
            whole = list(_seen(tree, url, WHOLE))
    else:
        reading = reading or extract(body, url=url, content_type=content_type)
        places = whole = [Block(_LINE, line) for line in reading.main.split("\n") if line]
    if view:
        places = [Block(_LINE, "", tag_path=_left_out(whole, places, view)), *_without_ignored(places, view)]
    if len(places) > MOST_PLACES:
        rest = "\n".join(place.text for place in places[MOST_PLACES:])
        places[MOST_PLACES:] = [Block(_LINE, rest)]
    return tuple(place if len(place.text) <= MAX_PLACE_CHARS else _cut(place) for place in places)


def _without_ignored(places: Sequence[Block], view: View) -> Iterator[Block]:
    for place in places:
        text = view.without_ignored(place.text)
        if text or not place.text:
            yield replace(place, text=text)


def _left_out(whole: Sequence[Block], seen: Sequence[Block], view: View) -> int:
    """A number for all that a view leaves out of a page: places, and texts within others."""
    places = (Counter(whole) - Counter(seen)).elements()
    texts = (text for place in seen for text in view.ignored_of(place.text))
    return number_of("\n".join((*(place.text for place in places), *texts)))


def left_out(outline: BlockList) -> int:
    """A number for all that a view left out of a page; the same for all of which nothing was."""
    return outline[0].tag_path if outline and outline[0] == Block(_LINE, "") else 0


def _cut(place: Block) -> Block:
    """The beginning of a long place; whatever changes after it changes the digest."""
    kept = MAX_PLACE_CHARS - 1 - 2 * DIGEST_BYTES
    rest = blake2b(place.text[kept:].encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES)
    return replace(place, text=f"{place.text[:kept]} {rest.hexdigest()}")


def _seen(tree: LexborHTMLParser, url: Url, view: View) -> Iterator[Block]:
    ignored, watched = view.ignored_in(tree), view.watched_in(tree)
    yield from _head(tree, ignored, watched)
    yield from _body(tree, base_of(tree, url), ignored, watched)


_CODE = re.compile(r"(?<![^\s_-])(?:\d+|(?=[^\s_-]*\d)[^\s_-]{5,})(?![^\s_-])")


def _head(tree: LexborHTMLParser, ignored: frozenset[int], watched: frozenset[int] | None) -> Iterator[Block]:
    """Of the head only what is named itself is watched."""

    def is_seen(node: LexborNode) -> bool:
        return node.mem_id not in ignored and (watched is None or node.mem_id in watched)

    title = tree.css_first("title")
    if title is not None and is_seen(title):
        yield Block(_TITLE, _collapsed(title.text()), BlockKind.TITLE)
    for node in filter(is_seen, tree.css(TOLD)):
        name = (node.attrs.get("name") or node.attrs.get("property") or "").lower()
        yield Block(number_of(f"meta {name}"), _collapsed(node.attrs.get("content") or ""), BlockKind.META)


@dataclass(frozen=True, slots=True)
class _OpenBlock:
    """An element that text stands in. path, bare: as in Place.  shown: to readers.  watched: it is to be compared."""

    path: int
    bare: int = 0
    shown: bool = True
    watched: bool = True

    @property
    def seen(self) -> bool:
        return self.shown and self.watched


@dataclass(slots=True)
class _Seen:
    """The block of each element's own text, by the elements' numbers."""

    known: dict[int, _OpenBlock]
    watched: frozenset[int] | None

    @property
    def outside(self) -> _OpenBlock:
        return _OUTSIDE if self.watched is None else _UNWATCHED

    def of(self, node: LexborNode) -> _OpenBlock:
        found = self.known.get(node.mem_id)
        if found is not None:
            return found
        above = node.parent
        outer = self.of(above) if above is not None and above.tag != "-document" else self.outside
        tag = node.tag or ""
        is_watched = outer.watched or (self.watched is not None and node.mem_id in self.watched)
        if not outer.shown or tag in UNSEEN_TAGS:
            block = _HIDDEN
        elif tag in BLOCK_TAGS:
            path, bare = number_of(f"{outer.path} {_label(node, tag)}"), number_of(f"{outer.bare} {tag}")
            block = _OpenBlock(path, bare, watched=is_watched)
        else:
            block = outer if is_watched == outer.watched else replace(outer, watched=True)
        self.known[node.mem_id] = block
        return block


def _label(node: LexborNode, tag: str) -> str:
    """An element by its tag and classes, less what counts rows or names builds: ids, numbers, and codes."""
    classes = node.attrs.get("class")
    return f"{tag}.{' '.join(sorted(_CODE.sub('', classes).split()))}" if classes else tag


def _body(
    tree: LexborHTMLParser, base: Url, ignored: frozenset[int], watched: frozenset[int] | None
) -> Iterator[Block]:
    """The text of each block up to the next one, and after it the links and images within."""
    root = tree.root
    if root is None:
        return
    blocks = _Seen(dict.fromkeys((*not_shown(tree), *ignored), _HIDDEN), watched)
    current = _HIDDEN
    pieces: list[str] = []
    beside: list[Block] = []
    for node in root.traverse(include_text=True):
        kind = node.tag_id
        if kind == TEXT_ID:
            text = node.text_content or ""
            parent = node.parent
            if text.isspace() or parent is None:
                pieces.append(" ")
                continue
            block = blocks.of(parent)
            if not block.seen:
                continue
            if block is not current:
                yield from _flushed(current, pieces, beside)
                current = block
            pieces.append(text)
        elif kind == BREAK_ID:
            yield from _flushed(current, pieces, beside)
        elif kind in _POINTING and blocks.of(node).seen:
            beside += _pointed(node, blocks.of(node), base)
    yield from _flushed(current, pieces, beside)


def _flushed(block: _OpenBlock, pieces: list[str], beside: list[Block]) -> Iterator[Block]:
    text = _collapsed("".join(pieces))
    if text:
        yield Block(block.path, text, tag_path=block.bare)
    yield from beside
    pieces.clear()
    beside.clear()


def _pointed(node: LexborNode, block: _OpenBlock, base: Url) -> Iterator[Block]:
    """Where a link leads, and what an image shows: its name without the query, and the text in its place."""
    attributes = node.attrs
    if node.tag == "img":
        image = (attributes.get("src") or "").partition("?")[0].rpartition("/")[2]
        yield Block(block.path, _collapsed(f"{attributes.get('alt') or ''} {image}"), BlockKind.IMAGE, block.bare)
        return
    href = (attributes.get("href") or "").strip()
    target = normalise(href, base=base) if href and not href.startswith("#") else None
    if target is not None:
        yield Block(block.path, target, BlockKind.LINK, block.bare)


def _collapsed(text: str) -> str:
    return " ".join(text.replace("\0", "").split())


def _pointing() -> frozenset[int]:
    tree = LexborHTMLParser("<a href=x></a><img>")
    return frozenset(node.tag_id for node in tree.css("a,img"))


_POINTING = _pointing()
_LINE, _TITLE = number_of("line"), number_of("title")
_HIDDEN = _OpenBlock(0, shown=False)
_OUTSIDE = _OpenBlock(number_of("outside"))
_UNWATCHED = replace(_OUTSIDE, watched=False)
