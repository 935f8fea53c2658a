"""Rendering of scanned pages as Markdown: CommonMark with the tables of GitHub Flavored Markdown.

Characters are escaped only where they would change the meaning, so that the text is also good input for embeddings.
A definition list becomes a list whose items are the terms, each with its definitions below.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from unicodedata import category

from msgspec import Struct

from crawler.core.http.urls import MAX_LINK_CHARS, LinkResolver, Url
from crawler.core.page.scan import ALL_MARKS, CONTROLS, PREFORMATTED, PREFORMATTED_TAGS, PageScan, PointerKind

MAX_DEPTH = 16  # of items and quotes in each other that are indented; without a limit, a page could become huge
MAX_PADDED_CHARS = 40  # cells are padded to the width of their column, but not to more than this
MAX_LANGUAGE_BOXES = 3  # around a preformatted box whose classes may name its language
MAX_CLASS_CHARS = 1000  # of a box that are searched for it
HARD_BREAK = "  \n"

_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_LISTS = frozenset({"ul", "ol", "menu", "dir", "dl"})
_ITEMS = frozenset({"li", "dt", "dd"})
_LEAVES = _HEADINGS | PREFORMATTED_TAGS | {"table"}  # become one block, whatever is within
_STRUCTURE = _LEAVES | _LISTS | _ITEMS | {"blockquote"}
# A table without header cells, but with one of these, only arranges parts of a page.
_LAYOUT_TAGS = _HEADINGS | _LISTS | {"article", "blockquote", "form", "nav", "section"}

# Code, and characters that may be Markdown within a line: "*" not between spaces, "_" not after a letter or before a
# space. The lines of a page are searched together. Alternatives begin with a literal character, which makes that fast.
_TOKEN = re.compile(
    "\7[^\10]*\10|!(?=\1)|<(?=\1)|\\](?=[(\1\x10])"
    r"|\\(?=[!-/:-@\[-`{-~\0-\x10]|\Z)|`|\*(?!\s)|\*(?<!\s\*)|_(?<!\w_)_*(?!\s)"
    r"|<(?=[A-Za-z/!?]|[^\s<>@]+@)|&(?=#?\w+;)"
)
# What would be Markdown at the beginning of a line. After a number, the next character is escaped.
_ESCAPED_START = re.compile(
    r"([0-9]{1,9})(?=[.)](?:\s|\Z))|[-+*](?=\s|\Z)|#{1,6}(?=\s|\Z)|>|~~~|[-=:|_\s]+\Z|\[(?:[^\]\\]|\\.)*\]:"
)
_ESCAPED_END = re.compile(r"(?<!\S)(?=#+\Z)")  # of a heading
_START_CHARS = frozenset("-+*#>~=:|_[0123456789")

_LINK_MARK = re.compile("(\1[0-9]+\2|\x10)")
_LINK = re.compile("\1([0-9]+)\2([^\1\x10]*+)\x10")
_BRACKET = re.compile(r"\x07[^\x08]*\x08|\\.|\[|\]")  # or what may contain literal ones
_SPLIT_CODE = re.compile("`(?<!``)\10\7`(?!`)")  # between two parts of code
_PERMALINK_TEXT = re.compile(r"[^\w\s\0-\x10]{1,2}")
_CODE_MARK = re.compile("([\7\10])")
_NESTED_CODE = re.compile("\7[^\7\10]*\7")
_NEEDLESS = re.compile("\3\4|\5\6|\4\3|\6\5")
_EMPHASIS = re.compile("([\3-\6][\3-\6]*)")
# Emphasis between spaces or ASCII punctuation, with no other next to or within it.
_NO_BOUNDARY = r"[^\s!-/:-@\[-`{-~]"
_PLAIN_STRONG, _PLAIN_EMPHASIS = [
    re.compile(f"{start}(?<!{_NO_BOUNDARY}{start})(?!\\s)([^\3-\6]*+){end}(?<!\\s{end})(?!{_NO_BOUNDARY})")
    for start, end in ("\3\4", "\5\6")
]
_ALTERNATIVE_ESCAPES = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<&"})
_DELIMITERS = {"\3": "**", "\4": "**", "\5": "*", "\6": "*"}

_BACKTICKS = re.compile("`+")
_PLAIN_TARGET = re.compile(r"(?:[^()\\&]|&(?!#?\w+;)|\([^()\\&]*\))*")
_LANGUAGE = re.compile(r"(?:^|\s)(?:lang(?:uage)?-|highlight-(?:source-|text-)?|brush:\s*|sourceCode\s+)([\w+#.-]+)")
_NO_LANGUAGE = frozenset({"default", "none"})


def render_markdown(
    scan: PageScan,
    lines: Sequence[int],
    *,
    base: Url,
    with_links: bool = True,
    with_images: bool = False,
    pads_tables: bool = False,
) -> str:
    """Return lines of a page as Markdown, or an empty string if they have no text.

    lines: their numbers, in ascending order.  base: of relative links.  with_links: whether links keep their targets.
    with_images: whether images are shown, each after its line.  pads_tables: whether the cells of a column are padded
    to equal width.
    """
    texts = _LineRenderer(scan, base, with_links=with_links).render(lines, with_images=with_images)
    return _BlockRenderer(scan, lines, texts, pads_tables=pads_tables).render()


class _LineRenderer:
    """Renders the text of lines: links, emphasis and code."""

    def __init__(self, scan: PageScan, base: Url, *, with_links: bool) -> None:
        self._scan, self._resolver, self._with_links = scan, LinkResolver(base), with_links
        self._targets: dict[str, str] = {}
        self._target_chars = 0

    def render(self, lines: Sequence[int], *, with_images: bool) -> list[str]:
        """Return each line as Markdown that is valid anywhere but at the beginning of a block."""
        scan, marked, flags, boxes = self._scan, self._scan.marked, self._scan.box_flags, self._scan.line_boxes
        preformatted = {at for at, line in enumerate(lines) if flags[boxes[line]] & PREFORMATTED}
        text = "\n".join(["" if at in preformatted else marked[line] for at, line in enumerate(lines)])
        if _NESTED_CODE.search(text):
            text = _flatten_code(text)
        text = _TOKEN.sub(_render_token, text.replace("\10\7", ""))
        text = _LINK.sub(self._render_link, text)
        if "\x10" in text:  # of links around other links
            text = _LINK_MARK.sub("", text)
        if "\10\7" in text:  # where a link ended or began that is now only text
            text = _SPLIT_CODE.sub("", text).replace("\10\7", " ")
        text = text.replace("\7", "").replace("\10", "")
        text = _render_emphasis(text)
        texts = [*map(str.strip, text.split("\n"))]
        for at in preformatted:
            texts[at] = _render_code(" ".join(ALL_MARKS.sub("", marked[lines[at]]).split()))
        if with_images:
            places = {line: at for at, line in enumerate(lines)}
            for line, _, kind, target in scan.pointers:
                if kind == PointerKind.IMAGE and line in places:
                    image = self._render_image(*scan.records[target].values[:2])
                    texts[places[line]] = f"{texts[places[line]]} {image}".strip()
        return texts

    def _render_link(self, match: re.Match[str]) -> str:
        """Return a link, only its text without a valid target, or nothing if it is a permalink."""
        href, text = self._scan.anchors[int(match[1])], match[2]
        target = self._find_target(href) if self._with_links else ""
        self._target_chars += len(target)
        if target and self._target_chars <= MAX_LINK_CHARS:
            if "[" in text or "]" in text:
                text = _BRACKET.sub(_escape_bracket, text)
            return f"[{text}]({target})"
        return "" if href.startswith("#") and _PERMALINK_TEXT.fullmatch(text) else text

    def _find_target(self, href: str) -> str:
        """Return the target of a link as Markdown, or an empty string if it is invalid or within the page."""
        href = href.partition("#")[0]
        target = self._targets.get(href)
        if target is None:
            url = self._resolver.resolve(href) if href else None
            target = self._targets[href] = _render_target(url) if url is not None else ""
        return target

    def _render_image(self, source: str, alternative: str) -> str:
        target = self._find_target(source.strip())
        text = CONTROLS.sub("", " ".join(alternative.split())).translate(_ALTERNATIVE_ESCAPES)
        return f"![{text}]({target})" if target else ""


class _Frame(Struct):
    """A list, item or quote that the current line is in.

    first, prefix: what comes before the first line in it, and before the others; equal after the first line.
    depth: the number of items and quotes around it.  number: of its last item.  next_box: the box after that item.
    """

    box: int
    end: int
    tag: str
    first: str
    prefix: str
    depth: int
    number: int
    next_box: int


class _BlockRenderer:
    """Renders lines as blocks: paragraphs, headings, lists, quotes, tables and code."""

    def __init__(self, scan: PageScan, lines: Sequence[int], texts: Sequence[str], *, pads_tables: bool) -> None:
        self._scan, self._lines, self._texts, self._pads_tables = scan, lines, texts, pads_tables
        self._structure = _find_structure(scan, lines)
        self._frames = [_Frame(0, len(scan.box_tags), "", "", "", 0, 0, 1)]
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
                self._add(self._render_leaf(leaf, start, end))
            else:
                while end < count and boxes[lines[end]] == box and lines[end] == lines[end - 1] + 1:
                    end += 1
                texts = [self._escape_start(at) for at in range(start, end)]
                self._add(HARD_BREAK.join(filter(None, texts)) if texts[1:] else texts[0])
            start = end
        return f"{''.join(self._out)}\n" if self._out else ""

    def _enter(self, box: int) -> int:
        """Close and open frames for a line in a structural box. Return the number of the leaf that it is in, or 0."""
        frames = self._frames
        innermost = frames[-1].box
        if box == innermost:
            return 0
        while not innermost <= box < frames[-1].end:
            frames.pop()
            innermost = frames[-1].box
        self._lowest = min(self._lowest, len(frames))
        path = []
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
        first, prefix, depth = outer.first, outer.prefix, outer.depth
        if tag not in _LISTS and depth < MAX_DEPTH:
            marker, indentation = ("> ", "> ") if tag == "blockquote" else self._mark_item(box, tag, outer)
            first, prefix, depth = f"{first}{marker}", f"{prefix}{indentation}", depth + 1
        return _Frame(box, self._scan.box_ends[box], tag, first, prefix, depth, 0, box + 1)

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

    def _escape_start(self, at: int) -> str:
        """Return the text of a line as Markdown that is valid at the beginning of a block."""
        text = self._texts[at]
        if text and text[0] in _START_CHARS:
            match = _ESCAPED_START.match(text)
            if match is not None:
                place = max(0, match.end(1))
                return f"{text[:place]}\\{text[place:]}"
        return text

    def _render_leaf(self, box: int, start: int, end: int) -> str:
        tag = self._scan.box_tags[box]
        if tag == "table":
            return self._render_table(box, start, end)
        if tag in PREFORMATTED_TAGS:
            return self._render_code_block(box, self._lines[start:end])
        text = " ".join(filter(None, self._texts[start:end]))
        text = _ESCAPED_END.sub(r"\\", text)
        return f"{'#' * int(tag[1])} {text}" if text else ""

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
            match = _LANGUAGE.search(f"{scan.box_classes[box]} {names}"[:MAX_CLASS_CHARS])
            if match is not None and match[1] not in _NO_LANGUAGE:
                return match[1].lower()
            box, names = scan.box_parents[box], ""
        return ""

    def _render_table(self, table: int, start: int, end: int) -> str:
        """Return a table, with lines outside of its cells above it."""
        scan = self._scan
        boxes = [scan.line_boxes[line] for line in self._lines[start:end]]
        rows: list[list[str]] = []
        headers: list[bool] = []  # whether each row has only header cells
        captions: list[int] = []
        head_end = at = 0
        for box in range(table + 1, scan.box_ends[table]):
            tag = scan.box_tags[box]
            if tag == "thead":
                head_end = scan.box_ends[box]
            elif tag == "tr":
                rows.append([])
                headers.append(True)
            elif tag in ("td", "th"):
                first = bisect_left(boxes, box, at)
                captions += range(at, first)
                at = bisect_left(boxes, scan.box_ends[box], first)
                rows[-1].append("<br>".join(filter(None, self._texts[start + first : start + at])).replace("|", "\\|"))
                headers[-1] &= tag == "th" or box < head_end
        captions += range(at, len(boxes))
        parts = [*filter(None, [self._escape_start(start + caption) for caption in captions])]
        filled = [number for number, row in enumerate(rows) if any(row)]
        if filled:
            header = rows[filled.pop(0)] if headers[filled[0]] else []
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


def _render_token(match: re.Match[str]) -> str:
    token = match[0]
    if token[0] == "\7":
        parts = _LINK_MARK.split(token[1:-1])
        parts[::2] = [f"\7{_render_code(_EMPHASIS.sub('', part))}\10" if part else "" for part in parts[::2]]
        return "".join(parts)
    return f"\\{token}" if len(token) == 1 else "".join([f"\\{char}" for char in token])


def _escape_bracket(match: re.Match[str]) -> str:
    return f"\\{match[0]}" if match[0] in "[]" else match[0]


def _flatten_code(text: str) -> str:
    """Remove the marks of code within code."""
    parts = _CODE_MARK.split(text)
    depth = 0
    for index in range(1, len(parts), 2):
        depth += 1 if parts[index] == "\7" else -1
        if depth > (parts[index] == "\7"):
            parts[index] = ""
    return "".join(parts)


def _render_emphasis(text: str) -> str:
    """Replace the marks of emphasis by asterisks, or by nothing where those would not work.

    CommonMark ignores emphasis that starts between a letter and punctuation, or ends between punctuation and a letter.
    """
    text = _PLAIN_EMPHASIS.sub(r"*\1*", _PLAIN_STRONG.sub(r"**\1**", text))
    parts = _EMPHASIS.split(text)
    runs: list[list[str]] = []
    opened: list[tuple[str, int, int, bool]] = []  # each mark with its place, and whether emphasis can start there
    for index in range(1, len(parts), 2):
        before, after = parts[index - 1][-1:], parts[index + 1][:1]
        can_start = not after.isspace() and (_is_boundary(before) or _is_letter(after))
        can_end = not before.isspace() and (_is_boundary(after) or _is_letter(before))
        marks = _drop_needless(parts[index])
        symbols = [_DELIMITERS[mark] for mark in marks]
        runs.append(symbols)
        for at, mark in enumerate(marks):
            if mark in "\3\5":
                is_nested = any(mark == other for other, *_ in opened)
                opened.append((mark, len(runs) - 1, at, can_start and not is_nested))
                continue
            _, run, start, is_good = opened.pop()
            if not (is_good and can_end):
                runs[run][start] = symbols[at] = ""
    parts[1::2] = map("".join, runs)
    return "".join(parts)


def _is_letter(char: str) -> bool:
    return bool(char) and category(char)[0] in "LMN"


def _is_boundary(char: str) -> bool:
    """Return whether a character is a space or punctuation, or the end of the text. Parsers differ for symbols."""
    return not char or char.isspace() or category(char)[0] == "P" or (char.isascii() and not char.isalnum())


def _drop_needless(marks: str) -> str:
    """Remove marks with nothing between them, or between parts with the same mark."""
    while len(marks) > 1 and (found := _NEEDLESS.sub("", marks)) != marks:
        marks = found
    return marks
