"""One pass over the tree of a web page, which collects everything that the readers of a page need.

The tree becomes two lists in page order: its boxes (the visible block elements) and its lines (the text of a box up to
the next box or line break). Links, images, metadata and signs of scripts are collected on the way. `scan_tree` is the
reference; compiled_scan.c gives the same result in a tenth of the time.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from enum import IntEnum
from itertools import compress
from typing import NamedTuple

from msgspec import Struct, field
from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.core.page.document import collapse_spaces

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
# Elements and ARIA roles that mark boilerplate. A header in main or article belongs to the content.
BOILERPLATE_TAGS = frozenset({"nav", "footer", "aside", "search"})
BOILERPLATE_ROLES = frozenset({"navigation", "banner", "contentinfo", "complementary", "search"})
CONTENT_TAGS = frozenset({"main", "article"})
PREFORMATTED_TAGS = frozenset({"pre", "listing", "plaintext", "xmp"})
# The inline elements that Markdown shows, with the characters that mark their start and end in a line.
MARKS = dict.fromkeys(("strong", "b"), ("\3", "\4")) | dict.fromkeys(("em", "i"), ("\5", "\6"))
MARKS |= dict.fromkeys(("code", "kbd", "samp", "tt"), ("\7", "\10"))
LINK_MARKS = ("\1", "\2", "\x10")  # the number of an anchor is between the first two; the third ends the link
ALL_MARKS = re.compile("\1[0-9]+\2|[\3-\10\x10]")
CONTROLS = re.compile("[\0-\10\x0e-\x1b]")  # dropped from the page's own text; among them are all marks
# The attributes of a box, besides its class, that tell what it is.
HINT_ATTRIBUTES = ("id", "role", "itemprop", "itemtype")
# Authors do not write empty lists, tables or articles, but they do write empty dialogs and menus.
FILLED_TAGS = frozenset({"main", "article", "ul", "ol", "dl", "table", "tbody"})
FILLED_TAGS_WITH_ID = frozenset({"div", "section"})  # scripts find an element by its id
# The elements in which common frameworks and their starter templates mount an application.
ROOT_IDS = frozenset(
    {"root", "app", "__next", "__nuxt", "___gatsby", "__docusaurus", "svelte", "main-app", "react-root"}
)
MAX_ROOT_CHARS = 100  # of text in an application's root element that is not filled yet: "Loading, please wait"
MIN_MESSAGE_WORDS = 4  # of a message for readers without scripts
MAX_MESSAGE_CHARS = 1000  # that are read of such a message
MAX_HINT_CHARS = 1000  # of a box; a longer text gets no more hints
MAX_DATA_CHARS = 500_000  # of the inline scripts of a page; the rest is not collected

# Parts of the classes, ids and roles of elements that are hidden until a reader opens them: the panels of tabs and
# accordions (WAI-ARIA Authoring Practices), answers to questions.
OPENED_PARTS = ("accordion", "collaps", "faq", "panel", "region", "tab-", "tabs")
STREAMED_ID = "S:"  # starts the ids of hidden elements that a page streamed by React shows as soon as it is loaded
# Classes of elements that scripts fill or replace, or parts of such classes.
PLACEHOLDER_CLASSES = ("skeleton", "spinner", "shimmer")
HTML_SPACES = " \t\n\f\r"

# Flags of a box:
BOILERPLATE = 1  # within elements or roles that mark boilerplate
CONTENT = 2  # within main or article
PREFORMATTED = 4  # within a preformatted element
# Signs about the page as a whole:
PASSWORD_FIELD = 1
EMPTY_ROOT = 2  # the root element of an application has almost no text and no link
NOSCRIPT_MESSAGE = 4
PLACEHOLDER = 8  # an element says that it is not filled yet

_Attributes = Mapping[str, str | None]

_PLACEHOLDERS = ",".join(
    ('[aria-busy="true" i]', "[v-cloak]", "[ng-cloak]", *(f'[class*="{each}"]' for each in PLACEHOLDER_CLASSES))
)
_MAY_BE_HIDDEN = '[hidden],[style*="display" i]'
_DISPLAY_NONE = re.compile(r"(?ai)display\s*:\s*none")


class PointerKind(IntEnum):
    """The kind of a pointer: something in the text that refers to another resource."""

    LINK = 0
    TRANSLATION = 1  # a link to this page in another language
    IMAGE = 2


class RecordKind(IntEnum):
    """The kind of a record: an element that says something besides the text. The values depend on the kind."""

    TITLE = 0  # text, "svg" within a drawing: the first title, and the first outside of drawings
    META = 1  # content, name, http-equiv, property, "noscript" within noscript; only of elements with content
    LINK = 2  # href, rel, type; only of elements with href
    IMAGE = 3  # src, alt, content
    SCRIPT = 4  # type and text of an inline script, with those inside it, as SVG allows
    BLANK = 5  # the id of an element that authors do not leave empty, but that is empty here


class Record(NamedTuple):
    """An element that says something besides the text."""

    kind: int
    values: tuple[str, ...]


class Pointer(NamedTuple):
    """A link or image. line: the line it stands in or follows.  target: the number of its anchor or record."""

    line: int
    box: int
    kind: int
    target: int


class PageScan(Struct):
    """What one pass over a page found.

    Boxes are numbered in page order. Box 0 contains all others; box_parents[0] is 0. box_ends: the number after the
    last box within. box_tags: "" for box 0 and for watched inline elements.
    Lines are numbered in page order. A line is one of the texts of its box; it may be empty if there are pointers.
    texts: with whitespace collapsed.  marked: the same with MARKS; preformatted lines keep their whitespace.
    line_chars, line_link_chars: the number of characters that are not whitespace, and those of them within links.
    anchors: the targets of links and frames as written.  followed: 1 for anchors that are not marked nofollow, else 0.
    """

    box_tags: list[str] = field(default_factory=list)
    box_parents: list[int] = field(default_factory=list)
    box_ends: list[int] = field(default_factory=list)
    box_flags: list[int] = field(default_factory=list)
    box_classes: list[str] = field(default_factory=list)
    box_hints: list[str] = field(default_factory=list)
    line_boxes: list[int] = field(default_factory=list)
    line_chars: list[int] = field(default_factory=list)
    line_link_chars: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)
    pointers: list[Pointer] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)
    followed: list[int] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    base: str | None = None
    language: str = ""
    signs: int = 0

    def iter_main(self) -> Iterator[str]:
        """Yield the lines that are not in boilerplate."""
        flags = self.box_flags
        return compress(self.texts, [not flags[box] & BOILERPLATE for box in self.line_boxes])


class _OpenElement(Struct):
    """An element that the walk is in.

    box: the box of its text.  is_hidden: whether its text is not collected.
    own_box: its number if it is a box, or -1.  has_mark: whether it has a mark in the line.
    root_start: of an application's root element, the numbers of characters and anchors before it.
    """

    box: int = 0
    is_hidden: bool = False
    is_in_link: bool = False
    is_watched: bool = True
    is_in_noscript: bool = False
    is_in_svg: bool = False
    is_in_script: bool = False
    own_box: int = -1
    has_mark: bool = False
    root_start: tuple[int, int] | None = None


def scan_tree(
    tree: LexborHTMLParser,
    *,
    ignored: Collection[int] = (),
    watched: Collection[int] | None = None,
    with_noscript: bool = False,
) -> PageScan:
    """Walk a tree once and return what was found.

    ignored: the mem_ids of elements to leave out.  watched: those of the elements to collect; None for all.
    with_noscript: whether to collect the text for readers without scripts, too.
    """
    walker = _Walker({*find_hidden(tree), *ignored}, ignored, watched)
    walker.hidden_tags = HIDDEN_TAGS - {"noscript"} if with_noscript else HIDDEN_TAGS
    if tree.root is not None:
        walker.walk(tree.root)
        walker.scan.signs |= PLACEHOLDER if tree.css_first(_PLACEHOLDERS) is not None else 0
    return walker.scan


_SAMPLE = LexborHTMLParser("<p>text<!-- comment -->").css("p")[0]
_TAG_IDS = {node.tag: node.tag_id for node in _SAMPLE.traverse(include_text=True)}
# Comparing the numbers of tags is faster than comparing their names.
TEXT_ID, _COMMENT_ID = _TAG_IDS["-text"], _TAG_IDS["-comment"]


_COLLECTED_TAGS = frozenset(
    {"a", "area", "base", "body", "frame", "iframe", "img", "input", "link", "meta", "script", "title"}
    | FILLED_TAGS
    | FILLED_TAGS_WITH_ID
)
OPENED_TAGS = _COLLECTED_TAGS | BLOCK_TAGS | HIDDEN_TAGS | MARKS.keys() | {"br", "svg"}


class _Walker:
    """The state of a walk."""

    def __init__(self, hidden: Collection[int], ignored: Collection[int], watched: Collection[int] | None) -> None:
        self.scan = PageScan()
        self._hidden, self._watched = hidden, watched or ()
        self._ignored, self._has_watched = ignored, watched is not None
        self.hidden_tags = HIDDEN_TAGS
        self._outermost = _OpenElement(is_watched=watched is None)
        self._add_box("", "", "", 0, 0)
        # The line that is being collected:
        self._box = -1  # no box: nothing is collected
        self._texts: list[str] = []
        self._marked: list[str] = []
        self._space = False  # whether a space comes before the next word
        self._chars = self._link_chars = 0
        self._line_pointers = 0  # how many pointers there are in lines before this one
        self._open_marks: list[tuple[str, str]] = []
        self._pending = 0  # how many of the open marks, at the end, start with the next word
        # Of the page:
        self._all_chars = 0  # in all texts, hidden or not
        self._data_chars_left = MAX_DATA_CHARS
        self._message = ""  # the text of the noscript element that the walk is in
        self._titles = 0  # 1: only of drawings
        self._is_in_body = False

    def walk(self, root: LexborNode) -> None:
        self.scan.language = root.attributes.get("lang") or root.attributes.get("xml:lang") or ""
        numbers, elements = [0], [self._outermost]
        for node in root.traverse(include_text=True):
            tag_id = node.tag_id
            if tag_id == _COMMENT_ID:
                continue
            parent = node.parent
            parent_number = parent.mem_id if parent is not None else 0
            while numbers[-1] != parent_number and len(numbers) > 1:
                numbers.pop()
                element = elements.pop()
                if element is not elements[-1]:
                    self._close(element)
            outer = elements[-1]
            if tag_id == TEXT_ID:
                self._add_text(get_text(node), outer)
                continue
            number = node.mem_id
            numbers.append(number)
            tag = node.tag or ""
            is_plain = tag not in OPENED_TAGS and number not in self._hidden and number not in self._watched
            elements.append(outer if is_plain else self._open(node, tag, number, outer))
        for element, outer in zip(reversed(elements), reversed(elements[:-1]), strict=False):
            if element is not outer:
                self._close(element)
        self._flush()
        self.scan.box_ends[0] = len(self.scan.box_tags)

    def _open(self, node: LexborNode, tag: str, number: int, outer: _OpenElement) -> _OpenElement:
        attributes = node.attributes
        element = _OpenElement(
            outer.box,
            outer.is_hidden or tag in self.hidden_tags or number in self._hidden,
            outer.is_in_link,
            outer.is_watched or number in self._watched,
            outer.is_in_noscript or tag == "noscript",
            outer.is_in_svg or tag == "svg",
            outer.is_in_script,
        )
        if tag == "br":
            self._flush()
        if not element.is_hidden:
            if tag in BLOCK_TAGS:
                self._open_box(tag, attributes, element)
            elif element.is_watched != outer.is_watched:
                self._open_box("", {}, element)
            if element.is_watched:
                self._open_inline(node, tag, attributes, element)
        if element.is_in_noscript and not outer.is_in_noscript:
            self._message = ""
        if tag in BLOCK_TAGS and attributes.get("id") in ROOT_IDS and tag != "body":
            element.root_start = (self._all_chars, len(self.scan.anchors))
        if tag in _COLLECTED_TAGS:
            self._collect(node, tag, attributes, element)
        element.is_in_script |= tag == "script"
        return element

    def _close(self, element: _OpenElement) -> None:
        if element.own_box >= 0:
            self.scan.box_ends[element.own_box] = len(self.scan.box_tags)
        if element.has_mark:
            end = self._open_marks.pop()[1]
            if self._pending:
                self._pending -= 1
            else:
                self._marked.append(end)
        if element.root_start is not None:
            chars, anchors = element.root_start
            if self._all_chars - chars <= MAX_ROOT_CHARS and len(self.scan.anchors) == anchors:
                self.scan.signs |= EMPTY_ROOT
        if element.is_in_noscript and self._is_in_body and len(self._message.split()) >= MIN_MESSAGE_WORDS:
            self.scan.signs |= NOSCRIPT_MESSAGE

    def _add_text(self, text: str, element: _OpenElement) -> None:
        is_current = element.box == self._box and not element.is_hidden and element.is_watched
        is_preformatted = bool(self.scan.box_flags[element.box] & PREFORMATTED)
        if text.isspace():  # whitespace between two words, or at the end of a line, whichever box it is in
            self._texts.append(" ")
            if is_current and is_preformatted:
                self._marked.append(text)
            else:
                self._space = True
            return
        self._all_chars += len(text.strip())
        if element.is_in_noscript:
            self._message = f"{self._message}{text}"[:MAX_MESSAGE_CHARS]
        if element.is_hidden or not element.is_watched:
            return
        if not is_current:
            self._flush()
            self._box = element.box
        self._texts.append(text)
        chars = sum(map(len, text.split()))
        self._chars += chars
        self._link_chars += chars if element.is_in_link else 0
        text = CONTROLS.sub("", text)
        if is_preformatted:
            self._marked.append(text)
        elif text:
            self._add_words(text)

    def _add_words(self, text: str) -> None:
        """Add text to the marked line, with whitespace collapsed: before the marks that start, after those that end."""
        words = text.split()
        if (self._space or text[0].isspace()) and self._marked:
            self._marked.append(" ")
        self._space = text[-1].isspace()
        if words:
            self._marked += [start for start, _ in self._open_marks[len(self._open_marks) - self._pending :]]
            self._pending = 0
            self._marked.append(" ".join(words))

    def _flush(self) -> None:
        """End the line that is being collected. Marks that are open go on in the next line."""
        scan, text = self.scan, collapse_spaces("".join(self._texts).replace("\0", ""))
        if text or len(scan.pointers) > self._line_pointers:
            emitted = self._open_marks[: len(self._open_marks) - self._pending]
            self._marked += [end for _, end in reversed(emitted)]
            scan.line_boxes.append(max(self._box, 0))
            scan.texts.append(text)
            scan.marked.append("".join(self._marked))
            scan.line_chars.append(self._chars)
            scan.line_link_chars.append(self._link_chars)
        self._texts.clear()
        self._marked.clear()
        self._space = False
        self._chars = self._link_chars = 0
        self._pending, self._line_pointers = len(self._open_marks), len(scan.pointers)

    def _open_box(self, tag: str, attributes: _Attributes, element: _OpenElement) -> None:
        flags = self.scan.box_flags[element.box]
        if tag in CONTENT_TAGS:
            flags |= CONTENT
        is_header = tag == "header" and not flags & CONTENT
        if tag in BOILERPLATE_TAGS or is_header or (attributes.get("role") or "").lower() in BOILERPLATE_ROLES:
            flags |= BOILERPLATE
        if tag in PREFORMATTED_TAGS:
            flags |= PREFORMATTED
        hints = " ".join(filter(None, (attributes.get(name) for name in HINT_ATTRIBUTES)))
        element.box = element.own_box = self._add_box(tag, attributes.get("class") or "", hints, element.box, flags)

    def _add_box(self, tag: str, classes: str, hints: str, parent: int, flags: int) -> int:
        scan = self.scan
        scan.box_tags.append(tag)
        scan.box_parents.append(parent)
        scan.box_ends.append(0)
        scan.box_flags.append(flags)
        scan.box_classes.append(classes)
        scan.box_hints.append(hints)
        return len(scan.box_tags) - 1

    def _open_inline(self, node: LexborNode, tag: str, attributes: _Attributes, element: _OpenElement) -> None:
        """Start the mark of an element whose text is collected, and note where a link or an image stands."""
        marks = MARKS.get(tag)
        if tag == "a" and "href" in attributes:
            element.is_in_link = True
            number = len(self.scan.anchors)  # `_collect` adds it
            marks = (f"{LINK_MARKS[0]}{number}{LINK_MARKS[1]}", LINK_MARKS[2])
            if not _is_empty_link(node, attributes):
                is_alternate = "alternate" in (attributes.get("rel") or "").lower().split()
                is_translation = is_alternate and bool(attributes.get("hreflang"))  # HTML standard, 4.6.7.1
                self._add_pointer(element.box, PointerKind.TRANSLATION if is_translation else PointerKind.LINK, number)
        elif tag == "img":
            self._add_pointer(element.box, PointerKind.IMAGE, len(self.scan.records))  # `_collect` adds it
        if self.scan.box_flags[element.box] & PREFORMATTED:
            is_last = element.box == len(self.scan.box_tags) - 1
            hints = self.scan.box_hints[-1]
            has_room = is_last and len(hints) < MAX_HINT_CHARS
            if tag == "code" and has_room and (classes := attributes.get("class")):  # names the language of the code
                self.scan.box_hints[-1] = f"{hints} {classes}".strip()
        elif marks is not None:
            element.has_mark = True
            self._open_marks.append(marks)
            self._pending += 1

    def _add_pointer(self, box: int, kind: PointerKind, target: int) -> None:
        self.scan.pointers.append(Pointer(len(self.scan.line_boxes), box, kind, target))

    def _collect(self, node: LexborNode, tag: str, attributes: _Attributes, element: _OpenElement) -> None:
        """Collect what an element says besides its text, whether it is hidden or not."""
        match tag:
            case "a" | "area" if "href" in attributes:
                self._add_anchor(attributes["href"], is_followed="nofollow" not in _get_tokens(attributes, "rel"))
            case "iframe" | "frame" if "src" in attributes:
                self._add_anchor(attributes.get("href") or attributes["src"])
            case "img":
                self._add_record(RecordKind.IMAGE, attributes, "src", "alt", "content")
            case "link" | "meta" | "base" | "title" if self._is_compared(node):
                self._collect_head(node, tag, attributes, element)
            case "script" if not element.is_in_script and "src" not in attributes and self._data_chars_left > 0:
                text = node.text()[: self._data_chars_left]
                self._data_chars_left -= len(text)
                self._add_record(RecordKind.SCRIPT, attributes, "type", more=text)
            case "input" if (attributes.get("type") or "").lower() == "password":
                self.scan.signs |= PASSWORD_FIELD
            case "body":
                self._is_in_body = True
            case _ if (tag in FILLED_TAGS or (tag in FILLED_TAGS_WITH_ID and "id" in attributes)) and _is_blank(node):
                self._add_record(RecordKind.BLANK, attributes, "id")

    def _is_compared(self, node: LexborNode) -> bool:
        number = node.mem_id
        return number not in self._ignored and (not self._has_watched or number in self._watched)

    def _collect_head(self, node: LexborNode, tag: str, attributes: _Attributes, element: _OpenElement) -> None:
        """Collect an element of those that are usually in the head."""
        match tag:
            case "link" if "href" in attributes:
                self._add_record(RecordKind.LINK, attributes, "href", "rel", "type")
                # The other pages of a paginated list. Not rel=alternate: that is the same page in another form.
                if not _get_tokens(attributes, "rel").isdisjoint(("next", "prev")):
                    self._add_anchor(attributes["href"])
            case "meta" if "content" in attributes:
                more = "noscript" if element.is_in_noscript else ""
                self._add_record(RecordKind.META, attributes, "content", "name", "http-equiv", "property", more=more)
            case "base" if self.scan.base is None and "href" in attributes:
                self.scan.base = attributes["href"] or ""
            case "title" if self._titles == 0 or (self._titles == 1 and not element.is_in_svg):
                self._titles = 1 if element.is_in_svg else 2
                more = "svg" if element.is_in_svg else ""
                text = collapse_spaces(node.text().replace("\0", ""))
                self.scan.records.append(Record(RecordKind.TITLE, (text, more)))

    def _add_anchor(self, target: str | None, *, is_followed: bool = True) -> None:
        self.scan.anchors.append(target or "")
        self.scan.followed.append(int(is_followed))

    def _add_record(self, kind: RecordKind, attributes: _Attributes, *names: str, more: str | None = None) -> None:
        values = tuple([attributes.get(name) or "" for name in names])
        self.scan.records.append(Record(kind, values if more is None else (*values, more)))


def get_text(node: LexborNode) -> str:
    """Return the text of a text node. Raise MemoryError if the parser had no memory for it."""
    text = node.text_content
    if text is None:
        raise MemoryError
    return text


def find_hidden(tree: LexborHTMLParser) -> Iterator[int]:
    """Yield the mem_ids of elements that their own attributes hide."""
    for node in tree.css(_MAY_BE_HIDDEN):
        attributes = node.attributes
        is_hidden = "hidden" in attributes or _DISPLAY_NONE.search(attributes.get("style") or "")
        if is_hidden and not _is_shown_later(attributes):
            yield node.mem_id


def _is_shown_later(attributes: _Attributes) -> bool:
    """Return whether a hidden element holds text for readers: scripts, readers or searches will show it."""
    names = " ".join([attributes.get(name) or "" for name in ("class", "id", "role")]).lower()
    return (
        any(part in names for part in OPENED_PARTS)
        or (attributes.get("id") or "").startswith(STREAMED_ID)
        or (attributes.get("hidden") or "").lower() == "until-found"
    )


def _get_tokens(attributes: _Attributes, name: str) -> frozenset[str]:
    return frozenset((attributes.get(name) or "").lower().split())


def _is_empty_link(node: LexborNode, attributes: _Attributes) -> bool:
    """Return whether a link has no text, elements or label, so that no user can perceive it."""
    child = node.child
    while child is not None and child.tag_id == TEXT_ID and not get_text(child).strip():
        child = child.next
    return child is None and not (attributes.get("aria-label") or attributes.get("title"))


def _is_blank(node: LexborNode) -> bool:
    """Return whether an element has neither elements nor text. Other whitespace than HTML's counts as text."""
    child = node.child
    while child is not None:
        if child.tag_id != _COMMENT_ID and (child.tag_id != TEXT_ID or get_text(child).strip(HTML_SPACES)):
            return False
        child = child.next
    return True
