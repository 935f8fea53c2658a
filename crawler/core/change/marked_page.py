"""A stored web page as safe HTML, with its changed blocks marked in place or with a link on each element to pick it.

The page is shown without its styles, images, forms, links and scripts: nothing in it can run or request anything.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence

import nh3
from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.core.change.word_diff import BlockDiff, BlockStatus, PageDiff, RunKind, WordRun
from crawler.core.http.urls import Url
from crawler.core.page.block import BlockKind, BlockList
from crawler.core.page.html import parse_html
from crawler.core.page.outline import extract_blocks
from crawler.core.page.scan import BLOCK_TAGS, HIDDEN_TAGS, TEXT_ID, PageScan, find_hidden, get_text

MARK = "data-mark"  # the attribute of everything that is added here; a page's own are deleted
_TOKEN = re.compile(r"\s+|\S+")
MAX_LABEL_CHARS = 80  # of the text that names an element in a link

_REPLACED_TAGS = {"body", "dialog", "form", "frameset", "html", "listing", "optgroup", "option", "plaintext", "select"}
_INLINE_TAGS = {"a", "abbr", "b", "bdi", "bdo", "br", "cite", "code", "col", "colgroup", "del", "dfn", "em", "i", "ins"}
_INLINE_TAGS |= {"kbd", "mark", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strong", "sub", "sup", "time"}
_SHOWN_BLOCK_TAGS = BLOCK_TAGS - _REPLACED_TAGS - {"xmp"}
_ALLOWED_TAGS = _SHOWN_BLOCK_TAGS | _INLINE_TAGS | {"u", "var", "wbr"}
_ALLOWED_ATTRIBUTES = {
    "*": {"dir", "hidden", "lang", MARK},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
    "a": {"href", "target", "aria-label"},
    "details": {"open"},
    "ol": {"start"},
}


def mark_page(body: bytes, *, url: Url, content_type: str, diff: PageDiff | None = None, pick_prefix: str = "") -> str:
    """Return the body of a web page as an HTML fragment that cannot run, request, submit or hide anything.

    diff: the changes from another version to this one, to be marked in place: words within their blocks, what was
    removed at the end of the block before it, and changes of titles, links and images as notes.
    pick_prefix: the start of a path of this server; each element with text gets a link to it and the element's number
    (see `iter_elements`). Empty for no links.
    """
    markup = parse_html(body, content_type)
    blocks = [block for block in extract_blocks(body, url=url, content_type=content_type, markup=markup) if block.text]
    page = _Page(markup.tree, markup.scan, tuple(blocks))
    for block, previous in _list_changes(diff):
        page.mark(block, previous)
    page.replace_links_and_images(is_picked=bool(pick_prefix))
    if pick_prefix:
        page.add_pick_links(pick_prefix)
    html = markup.tree.body.inner_html if markup.tree.body is not None else ""
    # The sanitizer parses the page in another way than this parser: it may find links that were text here.
    kept_link = re.compile(re.escape(pick_prefix) + "[0-9]+") if pick_prefix else None
    return nh3.clean(
        html or "",
        tags=set(_ALLOWED_TAGS),
        clean_content_tags=set(HIDDEN_TAGS | {"math", "frameset"}),
        attributes=_ALLOWED_ATTRIBUTES,
        attribute_filter=lambda _, name, value: (
            None if name == "href" and not (kept_link and kept_link.fullmatch(value)) else value
        ),
        url_schemes=set(),
        link_rel=None,
    )


class _Page:
    """A tree that is changed for display, and where its blocks are."""

    def __init__(self, tree: LexborHTMLParser, scan: PageScan, blocks: BlockList) -> None:
        self._tree, self._texts = tree, scan.texts
        self._lines = list(_find_lines(blocks, scan))
        self._nodes: dict[int, list[LexborNode]] = defaultdict(list)  # the text nodes of each line
        self._elements: dict[int, LexborNode | None] = {}  # the block element of each line
        self._numbers: dict[int, int] = {}  # of the elements, by mem_id
        self._images: list[LexborNode] = []
        self._clear_attributes()
        self._collect(scan)
        self._head = self._create("div", "head")  # for changes outside of the body
        if tree.body is not None and tree.body.child is not None:
            tree.body.child.insert_before(self._head, move=True)

    def _clear_attributes(self) -> None:
        """Delete attributes that would look like ours, and show what scripts would show."""
        hidden = set(find_hidden(self._tree))
        for node in self._tree.css(f"[{MARK}],[hidden],[style],a,details"):
            for name in (MARK, "href", "target", "aria-label", "hidden"):
                if name in node.attributes:
                    del node.attrs[name]
            if node.tag == "details":
                node.attrs["open"] = ""
            if node.mem_id in hidden:
                node.attrs["hidden"] = ""
        self._hidden = hidden

    def _collect(self, scan: PageScan) -> None:
        """Assign the visible text nodes, in page order, to the lines with the same characters in this order."""
        sizes = [_count_characters(text) for text in scan.texts]
        hidden, line, left = set(self._hidden), -1, 0
        for node in self._tree.root.traverse(include_text=True) if self._tree.root is not None else ():
            parent = node.parent
            is_hidden = parent is not None and parent.mem_id in hidden
            if node.is_element_node:
                self._numbers[node.mem_id] = len(self._numbers)
                if is_hidden or node.tag in HIDDEN_TAGS:
                    hidden.add(node.mem_id)
                elif node.tag == "img" and node.mem_id not in hidden:
                    self._images.append(node)
            elif node.tag_id == TEXT_ID and not is_hidden and (size := _count_characters(get_text(node))):
                while left <= 0 and line + 1 < len(sizes):
                    line, left = line + 1, sizes[line + 1]
                if line < 0:  # a page without lines
                    continue
                self._nodes[line].append(node)
                self._elements.setdefault(line, _find_block_element(node))
                left -= size

    def mark(self, block: BlockDiff, previous: int | None) -> None:
        """Mark a changed block. previous: the index of the block before it in this version; None at the start."""
        line = None if block.is_at is None else self._lines[block.is_at]
        nodes = self._nodes.get(line, []) if line is not None and block.kind is BlockKind.TEXT else []
        if nodes:
            element = self._elements[line] if line is not None else None
            if block.status is BlockStatus.MOVED and element is not None:
                element.attrs[MARK] = "moved"
            else:
                _mark_words(self._tree, nodes, block)
            return
        if line is None and previous is not None:
            line = self._lines[previous]
        element = self._elements.get(line) if line is not None else None
        note = self._create("small", "note")
        if block.kind is not BlockKind.TEXT:
            note.insert_child(f"{block.kind.value}: ")
        for run in block.runs:
            note.insert_child(_create_run(self._tree, run.kind, run.text, is_news=block.is_news), move=True)
        (element or self._head).insert_child(note, move=True)

    def replace_links_and_images(self, *, is_picked: bool) -> None:
        """Show the alternative text or the name of each image. is_picked: remove links, as links cannot be nested."""
        for image in self._images:
            attributes = image.attributes
            name = (attributes.get("src") or "").partition("?")[0].rpartition("/")[2]
            label = attributes.get("alt") or (name if not name.startswith("data:") and len(name) < 100 else "")
            if label.strip():
                shown = self._create("span", "image")
                shown.insert_child(label)
                image.insert_before(shown, move=True)
        if is_picked:
            self._tree.unwrap_tags(["a"])

    def add_pick_links(self, prefix: str) -> None:
        """Put a link over each element with text, the innermost on top."""
        elements = [(line, each) for line, each in self._elements.items() if each is not None and each.tag != "body"]
        first_lines = {each.mem_id: (line, each) for line, each in reversed(elements)}
        for number, (line, element) in first_lines.items():
            link = self._create("a", "pick")
            link.attrs["href"] = f"{prefix}{self._numbers[number]}"
            link.attrs["target"] = "_top"
            link.attrs["aria-label"] = self._texts[line][:MAX_LABEL_CHARS]
            element.attrs[MARK] = "element"
            first = element.child
            if first is not None:
                first.insert_before(link, move=True)

    def _create(self, tag: str, mark: str) -> LexborNode:
        return _create(self._tree, tag, mark)


def _count_characters(text: str) -> int:
    """Return the number of characters that are not whitespace."""
    return sum(map(len, text.split()))


def _find_lines(blocks: BlockList, scan: PageScan) -> Iterator[int | None]:
    """Yield the line of each block; of a link or image, the line before it. None for what is not in the body."""
    line: int | None = None
    for block in blocks:
        if block.kind is BlockKind.TEXT:
            try:
                line = scan.texts.index(block.text, 0 if line is None else line + 1)
            except ValueError:  # a block that was cut
                yield None
                continue
        yield line if block.kind not in {BlockKind.TITLE, BlockKind.META} else None


def _list_changes(diff: PageDiff | None) -> Iterator[tuple[BlockDiff, int | None]]:
    """Yield the changed blocks of a difference, each with the index of the block before it in the new version."""
    for hunk in diff.hunks if diff is not None else ():
        previous: int | None = None
        for block in hunk.blocks:
            if block.status is not BlockStatus.UNCHANGED:
                yield block, previous
            previous = previous if block.is_at is None else block.is_at


def _find_block_element(node: LexborNode) -> LexborNode | None:
    """Return the displayed block element, or the body, that a node is in; None if the node is not in the tree."""
    element = node.parent
    while element is not None and element.tag not in _SHOWN_BLOCK_TAGS | {"body"}:
        element = element.parent
    return element


def _mark_words(tree: LexborHTMLParser, nodes: Sequence[LexborNode], block: BlockDiff) -> None:
    """Replace the text nodes of a block by its kept, old and new words."""
    for node, runs in zip(nodes, split_runs([get_text(node) for node in nodes], block.runs), strict=True):
        for kind, text in runs:
            if kind is RunKind.KEPT:
                node.insert_before(text)
            else:
                node.insert_before(_create_run(tree, kind, text, is_news=block.is_news), move=True)
        node.remove()


def split_runs(texts: Sequence[str], runs: Iterable[WordRun]) -> Iterator[list[tuple[RunKind, str]]]:
    """Split the runs of a line among the texts that it consists of, which may have more whitespace than the runs.

    Invariant: the KEPT and NEW parts of each text together are this text.
    """
    waiting = deque(runs)
    kind, left = RunKind.KEPT, 0  # the run in progress, and how many of its characters are left
    for n, text in enumerate(texts):
        parts: list[tuple[RunKind, str]] = []
        for token in _TOKEN.findall(text):
            if token.isspace():  # between two runs, it belongs to neither
                _append(parts, kind if left else RunKind.KEPT, token)
                continue
            rest = token
            while rest:
                while not left:
                    run = waiting.popleft() if waiting else WordRun(RunKind.KEPT, text)
                    kind, left = run.kind, _count_characters(run.text)
                    if kind is RunKind.OLD:
                        _append(parts, kind, run.text)
                        left = 0
                _append(parts, kind, rest[:left])
                rest, left = rest[left:], max(left - len(rest), 0)
        if n == len(texts) - 1:
            for run in waiting:
                _append(parts, run.kind, run.text if run.kind is RunKind.OLD else "")
        yield parts


def _append(parts: list[tuple[RunKind, str]], kind: RunKind, text: str) -> None:
    if parts and parts[-1][0] is kind:
        parts[-1] = (kind, parts[-1][1] + text)
    elif text:
        parts.append((kind, text))


def _create(tree: LexborHTMLParser, tag: str, mark: str) -> LexborNode:
    node = tree.create_node(tag)
    node.attrs[MARK] = mark
    return node


def _create_run(tree: LexborHTMLParser, kind: RunKind, text: str, *, is_news: bool) -> LexborNode:
    """Return an element for a run of words, whose mark says whether its change is ignored."""
    tag = {RunKind.KEPT: "span", RunKind.OLD: "del", RunKind.NEW: "ins"}[kind]
    node = _create(tree, tag, "news" if is_news else "ignored")
    node.insert_child(text)
    return node
