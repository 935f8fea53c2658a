"""Rendering of scanned pages as Markdown: CommonMark with the tables of GitHub Flavored Markdown.

Characters are escaped only where they would change the meaning, so that the text is also good input for embeddings.
A definition list becomes a list whose items are the terms, each with its definitions below.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from crawler.core.http.urls import Url, normalize_url
from crawler.core.page.scan import ALL_MARKS, PREFORMATTED, PREFORMATTED_TAGS, PageScan, PointerKind

MAX_DEPTH = 16  # of items and quotes in each other that are indented; without a limit, a page could become huge
MAX_PADDED_CHARS = 40  # cells are padded to the width of their column, but not to more than this
MAX_LANGUAGE_BOXES = 3  # around a preformatted box whose classes may name its language
HARD_BREAK = "  \n"

_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_LISTS = frozenset({"ul", "ol", "menu", "dir", "dl"})
_ITEMS = frozenset({"li", "dt", "dd"})
_LEAVES = _HEADINGS | PREFORMATTED_TAGS | {"table"}  # become one block, whatever is within
_STRUCTURE = _LEAVES | _LISTS | _ITEMS | {"blockquote"}
# A table without header cells, but with one of these, only arranges parts of a page.
_LAYOUT_TAGS = _HEADINGS | _LISTS | {"article", "blockquote", "form", "nav", "section"}

# What would be Markdown within a line. "*" is literal between spaces; "_" is so between spaces or letters.
_ESCAPED_PATTERN = (
    r"\\(?=[!-/:-@\[-`{-~]|\Z)|`|\*(?!\s)|(?<!\s)\*|(?<!\w)_+(?!\s)|(?<![\s_])_++(?![^\W_])"
    r"|\](?=\()|<(?=[A-Za-z/!?])|&(?=#?\w+;)"
)
_ESCAPED = re.compile(_ESCAPED_PATTERN)
_ESCAPED_IN_LINK = re.compile(rf"{_ESCAPED_PATTERN}|[\[\]]")
_MAYBE_SPECIAL = re.compile(r"[\\`*_\]<&\1-\10\x10]")  # a line without these is rendered as it is
# What would be Markdown at the beginning of a line. After a number, the next character is escaped.
_ESCAPED_START = re.compile(
    r"([0-9]{1,9})(?=[.)](?:\s|\Z))|[-+](?=\s|\Z)|#{1,6}(?=\s|\Z)|>|~~~|[-=:|_*\s]+\Z|\[[^\]]*\]:"
)
_ESCAPED_END = re.compile(r"(?<!\S)(?=#+\Z)")  # of a heading
_START_CHARS = frozenset("-+#>~=:|_*[0123456789")

_MARK = re.compile("(\1[0-9]+\2|[\3-\10\x10])")
_PERMALINK = re.compile("[ ]?\1([0-9]+)\2[^\\w\\s\1-\10\x10]{1,2}\x10")
# Marks within marks of the same kind, or in code.
_NESTED = re.compile("\7[^\3-\10]*[\3-\7]|\3[^\3\4]*\3|\5[^\5\6]*\5|\1[^\1\x10]*\1")
_NEEDLESS = re.compile("\3\4|\5\6|\7\10|\4\3|\6\5|\10\7")  # nothing between, or between parts with the same mark
_EMPHASIS = re.compile("([\3-\6]+)")
_DELIMITERS = {"\3": "**", "\4": "**", "\5": "*", "\6": "*"}

_BACKTICKS = re.compile("`+")
_PLAIN_TARGET = re.compile(r"(?:[^()\\&]|&(?!#?\w+;)|\([^()\\&]*\))*")
_LANGUAGE = re.compile(r"(?:^|\s)(?:lang(?:uage)?-|highlight-(?:source-|text-)?|brush:\s*|sourceCode\s+)([\w+#.-]+)")
_NO_LANGUAGE = frozenset({"default", "none"})


def render_markdown(
    scan: PageScan, lines: Sequence[int], *, base: Url, with_images: bool = False, pads_tables: bool = False
) -> str:
    """Return lines of a page as Markdown, or an empty string if they have no text.

    lines: their numbers, in ascending order.  base: of relative links.  with_images: whether images are shown, each
    after its line.  pads_tables: whether the cells of a column are padded to equal width.
    """
    line_renderer = _LineRenderer(scan, base, with_images=with_images)
    return _BlockRenderer(scan, lines, line_renderer, pads_tables=pads_tables).render()


class _LineRenderer:
    """Renders the text of single lines: links, emphasis and code."""

    def __init__(self, scan: PageScan, base: Url, *, with_images: bool) -> None:
        self._scan, self._base = scan, base
        self._targets: dict[str, str] = {}
        self._images: dict[int, list[str]] = {}
        for line, _, kind, target in scan.pointers if with_images else ():
            if kind == PointerKind.IMAGE and (image := self._render_image(*scan.records[target].values[:2])):
                self._images.setdefault(line, []).append(image)

    def render(self, line: int) -> str:
        """Return a line as Markdown that is valid anywhere but at the beginning of a block."""
        text = self._scan.marked[line]
        if self._scan.box_flags[self._scan.line_boxes[line]] & PREFORMATTED:
            text = _render_code(" ".join(ALL_MARKS.sub("", text).split()))
        elif _MAYBE_SPECIAL.search(text):
            text = self._render_marks(text)
        return " ".join(filter(None, [text, *self._images[line]])) if line in self._images else text

    def render_start(self, line: int) -> str:
        """Return a line as Markdown that is valid at the beginning of a block."""
        text = self.render(line)
        if text and text[0] in _START_CHARS and text[0] == self._scan.marked[line][0]:
            match = _ESCAPED_START.match(text)
            if match is not None:
                at = max(0, match.end(1))
                return f"{text[:at]}\\{text[at:]}"
        return text

    def _render_marks(self, text: str) -> str:
        if "\x10" in text:
            text = _PERMALINK.sub(self._drop_permalink, text).strip()
        if _NESTED.search(text):
            text = _flatten_marks(text)
        text = _NEEDLESS.sub("", _NEEDLESS.sub("", text))  # twice, because they may contain each other
        parts = _MARK.split(text)
        if len(parts) == 1:
            return _ESCAPED.sub(_escape, text)
        is_code, target, has_emphasis = False, "", False
        for index, part in enumerate(parts):
            if not index % 2:
                if part:
                    parts[index] = (
                        _render_code(part) if is_code else _escape_part(part, parts, index, is_in_link=bool(target))
                    )
            elif part in _DELIMITERS:
                has_emphasis = True
            elif part[0] == "\1":
                target = self._find_target(self._scan.anchors[int(part[1:-1])])
                parts[index] = "[" if target else ""
            elif part == "\x10":
                parts[index] = f"]({target})" if target else ""
                target = ""
            else:
                is_code, parts[index] = part == "\7", ""
        text = "".join(parts)
        return _render_emphasis(text) if has_emphasis else text

    def _drop_permalink(self, match: re.Match[str]) -> str:
        return "" if self._scan.anchors[int(match[1])].startswith("#") else match[0]

    def _find_target(self, href: str) -> str:
        """Return the target of a link as Markdown, or an empty string if it is invalid or within the page."""
        target = self._targets.get(href)
        if target is None:
            url = None if not href or href[0] == "#" else normalize_url(href, base=self._base)
            target = self._targets[href] = "" if url is None else _render_target(url)
        return target

    def _render_image(self, source: str, alternative: str) -> str:
        target = self._find_target(source.strip())
        text = ALL_MARKS.sub("", " ".join(alternative.replace("\0", "").split()))
        return f"![{_ESCAPED_IN_LINK.sub(_escape, text)}]({target})" if target else ""


@dataclass(slots=True)
class _Frame:
    """A list, item or quote that the current line is in.

    first, prefix: what comes before the first line in it, and before the others; equal after the first line.
    depth: the number of items and quotes around it.  number: of its last item.  next_box: the box after that item.
    """

    box: int
    end: int
    tag: str
    first: str = ""
    prefix: str = ""
    depth: int = 0
    number: int = 0
    next_box: int = 0


class _BlockRenderer:
    """Renders lines as blocks: paragraphs, headings, lists, quotes, tables and code."""

    def __init__(self, scan: PageScan, lines: Sequence[int], renderer: _LineRenderer, *, pads_tables: bool) -> None:
        self._scan, self._lines, self._renderer, self._pads_tables = scan, lines, renderer, pads_tables
        self._structure = _find_structure(scan, lines)
        self._frames = [_Frame(0, len(scan.box_tags), "")]
        self._lowest = 1  # the smallest number of frames since the last block
        self._out: list[str] = []
        self._is_after_item_start = False

    def render(self) -> str:
        boxes, lines, count = self._scan.line_boxes, self._lines, len(self._lines)
        start = 0
        while start < count:
            box, end = boxes[lines[start]], start + 1
            leaf = self._enter(self._structure[box])
            if leaf:
                leaf_end = self._scan.box_ends[leaf]
                while end < count and leaf <= boxes[lines[end]] < leaf_end:
                    end += 1
                self._add(self._render_leaf(leaf, lines[start:end]))
            else:
                while end < count and boxes[lines[end]] == box and lines[end] == lines[end - 1] + 1:
                    end += 1
                self._add(HARD_BREAK.join(filter(None, map(self._renderer.render_start, lines[start:end]))))
            start = end
        return f"{''.join(self._out)}\n" if self._out else ""

    def _enter(self, box: int) -> int:
        """Close and open frames for a line in a structural box. Return the number of the leaf that it is in, or 0."""
        frames = self._frames
        while not frames[-1].box <= box < frames[-1].end:
            frames.pop()
        self._lowest = min(self._lowest, len(frames))
        innermost, path = frames[-1].box, []
        while box > innermost:
            path.append(box)
            box = self._structure[self._scan.box_parents[box]]
        for each in reversed(path):
            tag = self._scan.box_tags[each]
            if tag in _LEAVES:
                return each
            frames.append(self._open(each, tag, frames[-1]))
        return 0

    def _open(self, box: int, tag: str, outer: _Frame) -> _Frame:
        frame = _Frame(box, self._scan.box_ends[box], tag, outer.first, outer.prefix, outer.depth, next_box=box + 1)
        if tag not in _LISTS and outer.depth < MAX_DEPTH:
            marker, indentation = ("> ", "> ") if tag == "blockquote" else self._mark_item(box, tag, outer)
            frame.first += marker
            frame.prefix += indentation
            frame.depth += 1
        return frame

    def _mark_item(self, box: int, tag: str, outer: _Frame) -> tuple[str, str]:
        """Return the marker of a list item, and the indentation of what follows."""
        marker = "- "
        if outer.tag == "ol":
            tags, ends = self._scan.box_tags, self._scan.box_ends
            while outer.next_box < box:  # items without text are numbered too
                outer.number += tags[outer.next_box] == "li"
                outer.next_box = ends[outer.next_box]
            outer.next_box = ends[box]
            outer.number += 1
            marker = f"{outer.number}. "
        elif tag == "dt":
            outer.number += 1
        elif tag == "dd" and outer.number:  # a definition of the term above
            return "  ", "  "
        return marker, " " * len(marker)

    def _add(self, block: str) -> None:
        """Add a block to the text, indented as in the current frame."""
        if not block:
            return
        frames = self._frames
        first, prefix = frames[-1].first, frames[-1].prefix
        is_item_start = first != prefix
        if self._out:
            common = frames[self._lowest - 1]  # both the last block and this one are in it
            is_tight = is_item_start and self._is_after_item_start and _can_follow_directly(first, common)
            self._out.append("\n" if is_tight else f"\n{common.prefix.rstrip()}\n")
        if prefix and "\n" in block:
            head, *others = block.split("\n")
            bare = prefix.rstrip()
            block = "\n".join([head, *[f"{prefix}{line}" if line else bare for line in others]])
        self._out.append(f"{first}{block}")
        self._is_after_item_start, self._lowest = is_item_start, len(frames)
        for frame in reversed(frames):
            if frame.first == frame.prefix:
                break
            frame.first = frame.prefix

    def _render_leaf(self, box: int, lines: Sequence[int]) -> str:
        tag = self._scan.box_tags[box]
        if tag == "table":
            return self._render_table(box, lines)
        if tag in PREFORMATTED_TAGS:
            return self._render_code_block(box, lines)
        text = " ".join(filter(None, map(self._renderer.render, lines)))
        return f"{'#' * int(tag[1])} {_ESCAPED_END.sub(r'\\', text)}" if text else ""

    def _render_code_block(self, box: int, lines: Sequence[int]) -> str:
        text = "\n".join([ALL_MARKS.sub("", self._scan.marked[line]) for line in lines])
        text = "\n".join(text.splitlines()).lstrip("\n").rstrip()  # with one kind of line break
        if not text:
            return ""
        fence = "`" * max(3, _count_backticks(text) + 1)
        return f"{fence}{self._find_language(box)}\n{text}\n{fence}"

    def _find_language(self, box: int) -> str:
        scan, names = self._scan, self._scan.box_hints[box]
        for _ in range(MAX_LANGUAGE_BOXES + 1):
            match = _LANGUAGE.search(f"{scan.box_classes[box]} {names}")
            if match is not None and match[1] not in _NO_LANGUAGE:
                return match[1].lower()
            box, names = scan.box_parents[box], ""
        return ""

    def _render_table(self, table: int, lines: Sequence[int]) -> str:
        scan, render = self._scan, self._renderer.render
        rows: list[list[str]] = []
        headers: list[bool] = []  # whether each row is one
        captions: list[int] = []
        head_end = at = 0
        for box in range(table + 1, scan.box_ends[table]):
            tag, end = scan.box_tags[box], scan.box_ends[box]
            if tag == "thead":
                head_end = end
            elif tag == "tr" or (tag in ("td", "th") and not rows):
                rows.append([])
                headers.append(True)
            if tag not in ("td", "th"):
                continue
            before = at
            while at < len(lines) and scan.line_boxes[lines[at]] < box:
                at += 1
            captions += lines[before:at]
            before = at
            while at < len(lines) and scan.line_boxes[lines[at]] < end:
                at += 1
            rows[-1].append("<br>".join(filter(None, map(render, lines[before:at]))).replace("|", "\\|"))
            headers[-1] &= tag == "th" or box < head_end
        parts = [*filter(None, map(self._renderer.render_start, [*captions, *lines[at:]]))]
        filled = [number for number, row in enumerate(rows) if any(row)]
        if filled:
            header = [] if not headers[filled[0]] else rows[filled.pop(0)]
            parts.append(_format_table([header, *[rows[number] for number in filled]], is_padded=self._pads_tables))
        return "\n\n".join(parts)


def _find_structure(scan: PageScan, lines: Sequence[int]) -> list[int]:
    """Return for each box the innermost box around it, or itself, that Markdown shows; 0 for none."""
    tables = _find_data_tables(scan, lines) if "table" in scan.box_tags else frozenset()
    structure = [0]
    for box, (tag, parent) in enumerate(zip(scan.box_tags, scan.box_parents, strict=True)):
        if box:
            is_shown = tag in _STRUCTURE and (tag != "table" or box in tables)
            structure.append(box if is_shown else structure[parent])
    return structure


def _find_data_tables(scan: PageScan, lines: Sequence[int]) -> frozenset[int]:
    """Return the tables that have data in rows and columns, and do not arrange parts of the page.

    Those contain no other table and no code with several lines.
    """
    tags = scan.box_tags
    code = [line for line in lines if "\n" in scan.marked[line]]
    barriers = [box for box, tag in enumerate(tags) if tag == "table"] + [scan.line_boxes[line] for line in code]
    barriers = [*sorted(barriers), len(tags)]
    return frozenset(
        box for box, barrier in pairwise(barriers) if tags[box] == "table" and _has_data(scan, box, barrier)
    )


def _has_data(scan: PageScan, table: int, barrier: int) -> bool:
    end = scan.box_ends[table]
    if barrier < end or not {"presentation", "none"}.isdisjoint(scan.box_hints[table].lower().split()):
        return False
    tags = scan.box_tags[table + 1 : end]
    if "th" in tags:
        return True
    cells = [tag for tag in tags if tag in ("tr", "td")]
    return any(one == two == "td" for one, two in pairwise(cells)) and _LAYOUT_TAGS.isdisjoint(tags)


def _can_follow_directly(first: str, common: _Frame) -> bool:
    """Return whether a list item needs no blank line above it. A list in an item must start with 1 for that."""
    if common.tag in _LISTS:
        return True
    marker = first[len(common.prefix) :]
    return common.tag in _ITEMS and (not marker[0].isdigit() or marker.startswith("1. "))


def _format_table(rows: Sequence[Sequence[str]], *, is_padded: bool) -> str:
    """Return a table whose first row is the header; other rows may have fewer cells than the longest one."""
    widths = [3] * max(map(len, rows))
    for row in rows if is_padded else ():
        widths = [*map(max, widths, [min(len(cell), MAX_PADDED_CHARS) for cell in row]), *widths[len(row) :]]
    header = [*rows[0], *[""] * (len(widths) - len(rows[0]))]
    lines = [header, ["-" * width for width in widths], *rows[1:]]
    if is_padded:
        lines = [[cell.ljust(width) for cell, width in zip(line, widths, strict=False)] for line in lines]
    return "\n".join([f"| {' | '.join(line)} |" for line in lines])


def _render_target(url: str) -> str:
    if _PLAIN_TARGET.fullmatch(url):
        return url
    url = re.sub(r"\\|&(?=#?\w+;)", lambda match: "%5C" if match[0] == "\\" else "\\&", url)
    return url if _PLAIN_TARGET.fullmatch(url) else f"<{url}>"


def _count_backticks(text: str) -> int:
    """Return the length of the longest run of backticks."""
    return max(map(len, _BACKTICKS.findall(text)), default=0) if "`" in text else 0


def _render_code(text: str) -> str:
    """Return text as inline code, with spaces at its ends outside."""
    code = text.strip()
    if not code:
        return text
    fence = "`" * (_count_backticks(code) + 1)
    padding = " " if "`" in (code[0], code[-1]) else ""
    start, end = " " * (text[0] == " "), " " * (text[-1] == " ")
    return f"{start}{fence}{padding}{code}{padding}{fence}{end}"


def _escape_part(part: str, parts: Sequence[str], index: int, *, is_in_link: bool) -> str:
    """Return the text between two marks with what would be Markdown escaped."""
    text = (_ESCAPED_IN_LINK if is_in_link else _ESCAPED).sub(_escape, part)
    # With an exclamation mark, a link would be an image.
    return f"{text[:-1]}\\!" if text[-1] == "!" and parts[index + 1 :] and parts[index + 1][0] == "\1" else text


def _escape(match: re.Match[str]) -> str:
    text = match[0]
    return f"\\{text}" if len(text) == 1 else "".join([f"\\{char}" for char in text])


def _flatten_marks(text: str) -> str:
    """Remove marks within marks of the same kind, and marks in code except those of links."""
    parts = _MARK.split(text)
    depths = {"\1": 0, "\3": 0, "\5": 0, "\7": 0}
    for index in range(1, len(parts), 2):
        mark = parts[index][0]
        is_start = mark in depths
        kind = mark if is_start else {"\4": "\3", "\6": "\5", "\10": "\7", "\x10": "\1"}[mark]
        depths[kind] += 1 if is_start else -1
        if depths[kind] > is_start or (depths["\7"] and kind in "\3\5"):
            parts[index] = ""
    return "".join(parts)


def _render_emphasis(text: str) -> str:
    """Replace the marks of emphasis by asterisks, or by nothing where those would not work.

    CommonMark ignores emphasis that starts between a letter and punctuation, or ends between punctuation and a letter.
    """
    parts = _EMPHASIS.split(text)
    rendered: list[list[str]] = []
    opened: list[tuple[int, int, bool]] = []  # the place of each mark, and whether emphasis can start there
    for index in range(1, len(parts), 2):
        before, after = parts[index - 1][-1:], parts[index + 1][:1]
        can_start = bool(after) and not after.isspace() and (after.isalnum() or not before.isalnum())
        can_end = bool(before) and not before.isspace() and (before.isalnum() or not after.isalnum())
        symbols = [_DELIMITERS[mark] for mark in parts[index]]
        rendered.append(symbols)
        for at, mark in enumerate(parts[index]):
            if mark in "\3\5":
                opened.append((len(rendered) - 1, at, can_start))
                continue
            run, start, is_good = opened.pop()
            if not (is_good and can_end):
                rendered[run][start] = symbols[at] = ""
    parts[1::2] = map("".join, rendered)
    return "".join(parts)
