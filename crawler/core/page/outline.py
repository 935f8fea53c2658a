"""A page as a list of blocks, each with its text and path, for comparing two versions block by block."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

from msgspec.structs import replace

from crawler.core.http.urls import LinkResolver, Url
from crawler.core.page.block import Block, BlockKind, BlockList
from crawler.core.page.content import PageContent, extract_content, is_description
from crawler.core.page.document import DocumentReader, collapse_spaces
from crawler.core.page.fingerprint import compute_digest, hash_text
from crawler.core.page.html import Markup, parse_html, resolve_base
from crawler.core.page.media_type import detect_kind
from crawler.core.page.scan import PageScan, Pointer, PointerKind, RecordKind, scan_tree
from crawler.core.page.selectors import FULL_VIEW, View, find_matching

MAX_BLOCKS = 20_000  # per page; all text after them becomes one block
MAX_BLOCK_CHARS = 100_000  # per block; the rest of the text is replaced by its digest
DIGEST_CHARS = 32
MAX_KNOWN_CHARS = 200  # of the classes of an element whose path is remembered for other pages
# A block that only offers translations has at most these numbers of words: for its label, and for each language.
MAX_LABEL_WORDS = 5  # such as "This page is available in:"
MAX_LANGUAGE_WORDS = 3  # such as "Brazilian Portuguese |"


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
    view: the parts of the page to compare; its selectors apply to HTML only. If it is partial, an empty block
    comes first, whose tag_path is a hash of what is left out (see `get_left_out_hash`). A page of which nothing is
    compared therefore differs from a page without blocks.
    content, markup: the parsed body, if the caller has it already.  reader: reads this body instead, as a non-HTML
    document.
    """
    if reader is None and detect_kind(body, content_type) == "html":
        markup = markup or parse_html(body, content_type)
        base = resolve_base(markup.scan.base, url)
        blocks = all_blocks = _build_blocks(_scan_view(markup, view), base, is_watched=bool(view.watch))
        if view.ignore or view.watch:
            all_blocks = _build_blocks(markup.scan, base)
    else:
        content = content or extract_content(body, url=url, content_type=content_type, reader=reader)
        blocks = all_blocks = [Block(_LINE, line) for line in content.main.split("\n") if line]
    if view.is_partial:
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


def _scan_view(markup: Markup, view: View) -> PageScan:
    """Return a scan without the elements that a view leaves out. Watch rules also apply to the head."""
    if not (view.ignore or view.watch):
        return markup.scan
    tree = markup.tree
    watched = find_matching(tree, view.watch) if view.watch else None
    return scan_tree(tree, ignored=find_matching(tree, view.ignore), watched=watched)


_CODE = re.compile(r"(?<![^\s_-])(?:\d+|(?=[^\s_-]*\d)[^\s_-]{5,})(?![^\s_-])")


def _build_blocks(scan: PageScan, base: Url, *, is_watched: bool = False) -> list[Block]:
    """Return the blocks of the head, then those of the body: each text, followed by the links and images at it."""
    heads = [values for kind, values in scan.records if kind == RecordKind.TITLE][:1]
    blocks = [Block(_TITLE, text, BlockKind.TITLE) for text, _ in heads]
    for kind, values in scan.records:
        if kind == RecordKind.META and is_description(values):
            content, name, _, group, _ = values
            blocks.append(Block(hash_text(f"meta {(name or group).lower()}"), _collapse_text(content), BlockKind.META))
    paths, resolve = _hash_paths(scan), LinkResolver(base).resolve
    translations: Counter[int] = Counter()  # links to translations by box, of texts that are not complete
    pointers, at = scan.pointers, 0
    for line, (box, text) in enumerate(zip(scan.line_boxes, scan.texts, strict=True)):
        start = at
        while at < len(pointers) and pointers[at].line == line:
            if pointers[at].kind == PointerKind.TRANSLATION and not is_watched:
                translations[pointers[at].box] += 1
            at += 1
        others = [each for each in pointers[start:at] if is_watched or each.kind != PointerKind.TRANSLATION]
        is_choice = _is_language_choice(text, translations.pop(box, 0), sum(each.box == box for each in others))
        if text and not is_choice:
            blocks.append(Block(paths[box][0], text, tag_path=paths[box][1]))
        for pointer in others:
            if not (is_choice and pointer.box == box):
                blocks += _build_pointer_block(scan, pointer, paths[pointer.box], resolve)
    return blocks


def _hash_paths(scan: PageScan) -> list[tuple[int, int]]:
    """Return the css_path and the tag_path of each box."""
    paths = [(_OUTSIDE, 0)]
    for tag, classes, parent in islice(zip(scan.box_tags, scan.box_classes, scan.box_parents, strict=True), 1, None):
        hash_path = _hash_known_path if len(classes) <= MAX_KNOWN_CHARS else _hash_path
        paths.append(hash_path(paths[parent], tag, classes) if tag else paths[parent])
    return paths


def _hash_path(outer: tuple[int, int], tag: str, classes: str) -> tuple[int, int]:
    # Ids are left out, and so are numbers and codes in classes.
    label = f"{tag}.{' '.join(sorted(_CODE.sub('', classes).split()))}" if classes else tag
    return hash_text(f"{outer[0]} {label}"), hash_text(f"{outer[1]} {tag}")


_hash_known_path = lru_cache(maxsize=1 << 13)(_hash_path)  # the pages of a site have the same paths


def _is_language_choice(text: str, links: int, others: int) -> bool:
    """Return whether a block only offers translations of the page.

    If such blocks were compared, each new translation would change all other translations. One link or image in such a
    block may lack hreflang, such as the link to the page itself.
    text: of the block; short enough, without digits, to be a label and the names of that many languages.
    links, others: the numbers of links to translations, and of other links and images.
    """
    if not links or others > 1:
        return False
    max_words = MAX_LABEL_WORDS + MAX_LANGUAGE_WORDS * (links + others)
    return len(text.split()) <= max_words and not any(map(str.isdigit, text))


def _build_pointer_block(
    scan: PageScan, pointer: Pointer, path: tuple[int, int], resolve: Callable[[str], Url | None]
) -> Iterator[Block]:
    """Yield the block of a link (its target) or of an image (its alternative text and its name without the query)."""
    if pointer.kind == PointerKind.IMAGE:
        src, alt, _ = scan.records[pointer.target].values
        image = src.partition("?")[0].rpartition("/")[2]
        yield Block(path[0], _collapse_text(f"{alt} {image}"), BlockKind.IMAGE, path[1])
        return
    href = scan.anchors[pointer.target].strip()
    target = resolve(href.partition("#")[0]) if href and not href.startswith("#") else None
    if target is not None:
        yield Block(path[0], target, BlockKind.LINK, path[1])


def _collapse_text(text: str) -> str:
    return collapse_spaces(text.replace("\0", ""))


_LINE, _TITLE = hash_text("line"), hash_text("title")
_WATCHED = hash_text("watched")  # marks the empty first block if elements are watched
_OUTSIDE = hash_text("outside")
