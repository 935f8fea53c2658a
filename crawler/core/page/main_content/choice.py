"""The main content of a web page: the lines that a reader would call the page, without navigation and other furniture.

A first score of each line depends on its own features; from these, a second one depends also on the lines and boxes
around it. Both are sums of weights, which labs/content learned from reviewed pages. The chosen lines are those that
maximize the expected F1 measure; that of the choice is its confidence. Source of this rule: Lewis, "Evaluating and
optimizing autonomous text classification systems", SIGIR 1995.
"""

import ctypes
import re
from collections.abc import Sequence
from itertools import compress

import numpy as np
from msgspec import Struct

from crawler.core.page.document import collapse_spaces
from crawler.core.page.fingerprint import hash_text
from crawler.core.page.html import Markup
from crawler.core.page.main_content.compiled_scores import choose_compiled, score_page
from crawler.core.page.main_content.features import HEADING_LEVELS, Floats, Ints
from crawler.core.page.main_content.page_type import PageType
from crawler.core.page.scan import ALL_MARKS, BOILERPLATE, PREFORMATTED, PageScan, PointerKind
from crawler.core.page.shared_lines import NO_SHARED_LINES, SharedLines

MIN_CONFIDENCE = 0.5  # below it, more text is chosen
FALLBACK_SHARE = 0.5  # of the threshold for the probability of a line
HEADING_SHARE = 0.5  # likewise, for a heading right above a chosen line
# What the odds of a line are multiplied with if the domain's pages share it, and if not, outside of elements that mark
# boilerplate, once MIN_KNOWN_PAGES pages are known. Found by `python -m benchmarks content`.
SHARED_ODDS = 0.05
OWN_ODDS = 5.0
MIN_KNOWN_PAGES = 10
MENU_ODDS = 0.05  # of lines with mostly links in elements that mark boilerplate
MIN_GROUP_LINES = 3
MAX_SHARED_SHARE = 0.55  # of the lines in a group; with more, its other lines are doubtful
MAX_LINK_SHARE = 0.8  # of the characters in a group; likewise
_SHORT_LINK = re.compile(r"\x01([0-9]+)\x02\s*([^\w\s\x00-\x1f]{1,2})\s*\x10")
MAX_SHARED_GAP = 2  # so many shared lines between chosen ones belong to them

# In the order of `Odds` in compiled_scores.c.
_ODDS = (ctypes.c_double * 10)(
    *(MIN_CONFIDENCE, FALLBACK_SHARE, HEADING_SHARE, SHARED_ODDS, OWN_ODDS, MENU_ODDS),
    *(MAX_SHARED_SHARE, MAX_LINK_SHARE, MIN_GROUP_LINES, MAX_SHARED_GAP),
)


class MainContent(Struct, frozen=True):
    """The choice of the lines that are the main content.

    lines: their numbers, in order.
    confidence: the expected F1 measure, from 0 to 1; below MIN_CONFIDENCE, the choice fell back to more text.
    """

    lines: tuple[int, ...]
    page_type: PageType
    confidence: float


def choose_content(scan: PageScan, *, title: str, shared: SharedLines = NO_SHARED_LINES) -> MainContent:
    """Choose the lines of a page that are its main content.

    title: of the page, as its head says.  shared: the lines that the domain's pages share.
    """
    if not scan.texts:
        return MainContent((), PageType.ARTICLE, 0.0)
    scores = score_page(scan, title)
    hashes = shared.hashes
    is_shared = [hash_text(text) in hashes for text in scan.texts] if hashes else []
    is_doubtful = _find_doubtful_lines(scan, is_shared)
    odds = np.where(_find_menu_lines(scan), MENU_ODDS, 1.0)
    if is_shared:
        own_odds = OWN_ODDS if shared.pages >= MIN_KNOWN_PAGES else 1.0
        odds *= np.where(is_shared, SHARED_ODDS, np.where(is_doubtful, 1.0, own_odds))
    likely = _multiply_odds(scores.likely, odds)
    likely = _multiply_odds(scores.score_context(likely), odds)
    threshold, confidence = find_threshold(likely, scores.chars)
    if confidence < MIN_CONFIDENCE:
        threshold *= FALLBACK_SHARE
    chosen = (likely >= threshold).tolist()
    _fill_gaps(chosen, is_shared, is_doubtful)
    _choose_headings(scan, chosen, (likely >= threshold * HEADING_SHARE).tolist())
    lines = tuple([line for line in compress(range(len(chosen)), chosen) if scan.texts[line]])
    return MainContent(lines, scores.page_type, confidence)


def read_main_content(markup: Markup, *, title: str, shared: SharedLines) -> tuple[MainContent, str]:
    """Return the choice of the lines of a page and the content text, which `build_content_text` describes."""
    compiled = markup.compiled_content
    found = (
        None
        if compiled is None
        else choose_compiled(compiled, title, shared.packed, _ODDS, is_known=shared.pages >= MIN_KNOWN_PAGES)
    )
    if compiled is None or found is None:
        scan = markup.content_scan
        chosen = choose_content(scan, title=title, shared=shared)
        return chosen, build_content_text(scan, chosen.lines)
    lines, page_type, confidence = found
    text = compiled.join_content(lines)
    return MainContent(tuple(lines), page_type, confidence), (
        build_content_text(markup.content_scan, lines) if text is None else text
    )


def find_threshold(likely: Floats, chars: Ints) -> tuple[float, float]:
    """Return the threshold for the probability of lines that maximizes the expected F1 measure, and that measure."""
    order = np.argsort(-likely, kind="stable")
    found = np.cumsum((likely * chars)[order])
    measures = 2 * found / (np.cumsum(chars[order]) + max(found[-1], 1e-9))
    best = int(np.argmax(measures))
    return float(likely[order[best]]), min(float(measures[best]), 1.0)


def _find_menu_lines(scan: PageScan) -> list[bool]:
    """Return for each line whether it has mostly links and is in an element that marks boilerplate."""
    is_boilerplate = [bool(flags & BOILERPLATE) for flags in scan.box_flags]
    lines = zip(scan.line_boxes, scan.line_chars, scan.line_link_chars, strict=True)
    return [is_boilerplate[box] and 2 * links > chars for box, chars, links in lines]


def _find_doubtful_lines(scan: PageScan, is_shared: list[bool]) -> list[bool]:
    """Return for each line whether it may be boilerplate although no other page has it; [] if nothing is known.

    It is in an element that marks boilerplate, or the smallest box around it with MIN_GROUP_LINES lines has mostly
    links or shared lines, such as a bar with the titles of the previous and the next page.
    """
    if not is_shared:
        return []
    count = len(scan.box_tags)
    lines, shared, chars, links = [0] * count, [0] * count, [0] * count, [0] * count
    for line, box in enumerate(scan.line_boxes):
        lines[box] += 1
        shared[box] += is_shared[line]
        chars[box] += scan.line_chars[line]
        links[box] += scan.line_link_chars[line]
    for box in range(count - 1, 0, -1):
        for sums in (lines, shared, chars, links):
            sums[scan.box_parents[box]] += sums[box]
    doubtful = [False] * count
    for box, (parent, flags) in enumerate(zip(scan.box_parents, scan.box_flags, strict=True)):
        if flags & BOILERPLATE:
            doubtful[box] = True
        elif lines[box] < MIN_GROUP_LINES:
            doubtful[box] = doubtful[parent]
        else:
            has_shared = shared[box] > MAX_SHARED_SHARE * lines[box]
            doubtful[box] = has_shared or links[box] > MAX_LINK_SHARE * chars[box]
    return list(map(doubtful.__getitem__, scan.line_boxes))


def _multiply_odds(likely: Floats, odds: Floats) -> Floats:
    return np.asarray(likely * odds / (1 - likely + likely * odds))


def _fill_gaps(chosen: list[bool], is_shared: list[bool], is_doubtful: list[bool]) -> None:
    """Choose short runs of shared lines between chosen ones, such as headings that most pages have."""
    run = MAX_SHARED_GAP + 1  # lines since the last chosen one
    for line in range(len(is_shared)):
        if chosen[line]:
            if 0 < run <= MAX_SHARED_GAP:
                chosen[line - run : line] = [True] * run
            run = 0
        else:
            run = run + 1 if is_shared[line] and not is_doubtful[line] else MAX_SHARED_GAP + 1


def _choose_headings(scan: PageScan, chosen: list[bool], is_likely: list[bool]) -> None:
    """Choose likely headings right above chosen lines."""
    for line in range(len(chosen) - 2, -1, -1):
        if is_likely[line] and not chosen[line] and chosen[line + 1]:
            chosen[line] = scan.box_tags[scan.line_boxes[line]] in HEADING_LEVELS


def add_headings(scan: PageScan, lines: Sequence[int]) -> list[int]:
    """Return lines with their headings: the last h1 before them, and headings right above one of them.

    The content text has no title of the page, which is stored apart; Markdown and chunks need the structure.
    """
    if not lines:
        return []
    found, is_followed, has_h1 = [*lines], False, False
    chosen = set(lines)
    for line in range(lines[-1], -1, -1):
        box = scan.line_boxes[line]
        tag = scan.box_tags[box]
        if line in chosen:
            is_followed = True
            has_h1 |= tag == "h1"
        elif scan.texts[line]:
            is_title = tag == "h1" and line < lines[0] and not has_h1
            if tag in HEADING_LEVELS and (is_followed or is_title) and not scan.box_flags[box] & BOILERPLATE:
                found.append(line)
                has_h1 |= tag == "h1"
            else:
                is_followed = False
    return sorted(found)


def build_content_text(scan: PageScan, lines: Sequence[int]) -> str:
    """Return the text of chosen lines, one line per text, without the permalinks of headings.

    Preformatted text keeps its line breaks and indentation.
    """
    permalinks = _find_permalinks(scan)
    parts: list[str] = []
    code: list[str] = []  # the lines of the preformatted box that is being joined
    code_box = -1
    for line in lines:
        box = scan.line_boxes[line]
        if box != code_box and code:
            parts.append(_join_code(code))
            code = []
        if scan.box_flags[box] & PREFORMATTED:
            code_box = box
            code.append(ALL_MARKS.sub("", scan.marked[line]))
            continue
        text = scan.texts[line]
        if line in permalinks:
            text = collapse_spaces(text.replace(permalinks[line], " ") if text != permalinks[line] else "")
        if text:
            parts.append(text)
    if code:
        parts.append(_join_code(code))
    return "\n".join(parts)


def _join_code(lines: list[str]) -> str:
    rows = "\n".join(lines).split("\n")
    return "\n".join([row.rstrip() for row in rows]).strip("\n")


def _find_permalinks(scan: PageScan) -> dict[int, str]:
    """Return the texts of permalinks by line: links of at most two symbols to a part of the page."""
    lines = {
        pointer.line
        for pointer in scan.pointers
        if pointer.kind == PointerKind.LINK and scan.anchors[pointer.target].startswith("#")
    }
    permalinks = {}
    for line in lines:
        if line < len(scan.marked):
            for number, text in _SHORT_LINK.findall(scan.marked[line]):
                if scan.anchors[int(number)].startswith("#"):
                    permalinks[line] = text
    return permalinks
