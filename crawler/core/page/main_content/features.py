"""Features of the lines of a page, from which the main content is chosen.

Each feature is a small integer, the number of a row in a table of weights. All steps are linear in boxes and lines.
"""

from collections import Counter
from typing import TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from crawler.core.page.main_content.hints import (
    CONTENT_HEADING,
    FLAG_BITS,
    FURNITURE_BITS,
    HEADING_KINDS,
    KIND_COUNT,
    MAX_NAME_CHARS,
    MAX_NOTICE_CHARS,
    MAX_SHORT_CHARS,
    NO_HEADING,
    NOTICE,
    PLAIN,
    SENTENCE,
    classify_heading,
    classify_line,
    find_parts,
    is_notice,
)
from crawler.core.page.scan import BOILERPLATE, CONTENT, PREFORMATTED, PageScan

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_Number = TypeVar("_Number", np.int64, np.float64)

SIZES = 10  # classes of the length of a line: the number of bits of its count of characters
LINK_SHARES = 6  # 0: no links; 5: all characters are in links
COARSE_SIZES = 3  # less than 16 characters, less than 64, more
TAGS: tuple[str, ...] = (
    "",
    "p",
    "li",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "td",
    "th",
    "dt",
    "dd",
    "pre",
    "div",
    "blockquote",
)
TAGS += ("section", "article", "figcaption", "option", "label", "summary", "header", "footer", "body", "span")
TAG_CODES = {tag: code for code, tag in enumerate(TAGS)}
HEADING_LEVELS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
COUNTS = 8  # classes of counts: the number of bits
GROUP_LINKS = 4  # classes of the share of links in a box
PLACES = 5  # no h1; before the first h1; that h1; after it; a part of the title
POSITIONS = 12
ITEM_COUNTS = 6  # classes of the number of equal siblings; 0: less than three
LARGE_SHARE = 0.6  # a box with more of the page's text is not furniture, however it is named
MIN_TITLE_CHARS, MAX_TITLE_CHARS = 9, 500
SENTENCE_ENDS = ".!?…。！？"  # noqa: RUF001
FLAGS = BOILERPLATE | CONTENT | PREFORMATTED
FLAG_MASKS = [sum(bit for flag, bit in FLAG_BITS.items() if flags & flag) for flags in range(FLAGS + 1)]
_SIZE_LIMITS = np.array([1 << bits for bits in range(SIZES - 1)])
_COARSE = np.array([0, 0, 0, 0, 0, 1, 1, 2, 2, 2])
_COUNT_LIMITS = np.array([1 << bits for bits in range(COUNTS - 1)])

# The sizes of the tables of weights, in the order of the features of a line.
TABLES = {
    "size and links": SIZES * LINK_SHARES,
    "tag and size": (len(TAGS) + 1) * COARSE_SIZES,
    "end and commas": 6,
    "kind": KIND_COUNT * 2,
    "repeats": 3 * COARSE_SIZES,
    "position": POSITIONS,
    "place": PLACES,
    "neighbors": 4 * COARSE_SIZES * COARSE_SIZES,
    "box": COUNTS * GROUP_LINKS,
    "outer box": COUNTS * GROUP_LINKS,
    "siblings": COUNTS * COARSE_SIZES,
    "second outer box": COUNTS * GROUP_LINKS,
    "section": HEADING_KINDS * 2 * COARSE_SIZES,
    "item": ITEM_COUNTS * 3 * COARSE_SIZES,
}


class LineFeatures(Struct, frozen=True):
    """The features of all lines of a page, with what later steps need.

    codes: one row per table, one column per line.  masks: the parts that each line is in, see `PART_BITS`.
    boxes: the box of each line, and the three boxes around it.  parents, parent_list: of all boxes.
    starts, ends: for each box, the number of its first line, and of the first line after it.
    filled: the numbers of the boxes with lines.  names: a number for the tag and classes of each filled box, else 0.
    sizes, places: the classes of the length of a line, and of its place relative to the first h1 and the title.
    item_kinds: 0 for lines in no repeated item, 2 for those in items with a linked headline, else 1.
    """

    codes: Ints
    masks: list[int]
    boxes: tuple[Ints, Ints, Ints, Ints]
    parents: Ints
    parent_list: list[int]
    starts: Ints
    ends: Ints
    filled: list[int]
    names: Ints
    chars: Ints
    sizes: Ints
    places: Ints
    item_kinds: Ints


def compute_features(scan: PageScan, title: str) -> LineFeatures:
    """Compute the features of all lines of a page with at least one line."""
    parents = np.array(scan.box_parents)
    box = np.array(scan.line_boxes)
    outer = parents[box]
    second = parents[outer]
    starts, ends = measure_boxes(box, np.array(scan.box_ends))
    filled = np.flatnonzero(ends > starts).tolist()
    chars, links = np.array(scan.line_chars), np.array(scan.line_link_chars)
    before, links_before = accumulate(chars), accumulate(links)
    box_chars = before[ends] - before[starts]
    box_links = links_before[ends] - links_before[starts]
    sizes = np.searchsorted(_SIZE_LIMITS, chars, "right")
    coarse = _COARSE[sizes]
    shares = np.where(links == 0, 0, np.where(links >= chars, 5, 1 + 4 * links // np.maximum(chars, 1)))
    limits = [box_links * 10 >= box_chars, box_links * 3 >= box_chars, box_links * 3 >= box_chars * 2]
    shares_of_boxes = np.sum(limits, axis=0)
    box_codes = np.searchsorted(_COUNT_LIMITS, ends - starts, "right") * GROUP_LINKS + shares_of_boxes
    masks = _compute_masks(scan, filled, box_chars.tolist())
    names, sibling_codes = _name_boxes(scan, filled)
    items = _compute_items(scan, filled, names.tolist(), (ends - starts).tolist())
    line_items = np.array(items[0])[box]
    has_headline = np.bincount(line_items[(shares == LINK_SHARES - 1) & (coarse > 0)], minlength=len(parents)) > 0
    item_kinds = np.where(line_items == 0, 0, np.where(has_headline[line_items], 2, 1))
    item_codes = np.array(items[1])[box] * 3 + item_kinds
    places = _compute_places(scan, title)
    kinds = coarse * 2 + (shares > 2)
    padded = np.concatenate(([1], kinds, [1]))
    codes = np.array(
        [
            sizes * LINK_SHARES + shares,
            np.array([TAG_CODES.get(scan.box_tags[each], len(TAGS)) for each in scan.line_boxes]) * COARSE_SIZES
            + coarse,
            _compute_ends(scan.texts),
            np.array(_compute_kinds(scan.texts)) * 2 + (links > 0),
            _count_repeats(scan.texts, coarse),
            (before[:-1] * ((POSITIONS - 0.001) / max(before[-1], 1))).astype(int),
            places,
            padded[:-2] * (2 * COARSE_SIZES) + padded[2:],
            box_codes[box],
            box_codes[outer],
            sibling_codes[box] * COARSE_SIZES + coarse,
            box_codes[second],
            _compute_sections(scan) * COARSE_SIZES + coarse,
            item_codes * COARSE_SIZES + coarse,
        ]
    )
    line_masks = [masks[each] for each in scan.line_boxes]
    return LineFeatures(
        codes,
        line_masks,
        (box, outer, second, parents[second]),
        parents,
        scan.box_parents,
        starts,
        ends,
        filled,
        names,
        chars,
        sizes,
        places,
        item_kinds,
    )


def accumulate(values: NDArray[_Number]) -> NDArray[_Number]:
    """Return the sums of the first values: of none, of one, and so on."""
    sums = np.zeros(len(values) + 1, dtype=values.dtype)
    np.cumsum(values, out=sums[1:])
    return sums


def measure_boxes(line_boxes: Ints, box_ends: Ints) -> tuple[Ints, Ints]:
    """Return the numbers of the first line of each box, and of the first line after it. The lines of a box adjoin."""
    count = len(box_ends)
    starts = np.searchsorted(np.maximum.accumulate(line_boxes), np.arange(count), "left")
    lines_before = accumulate(np.bincount(line_boxes, minlength=count))
    return starts, starts + lines_before[box_ends] - lines_before[:-1]


def _compute_masks(scan: PageScan, filled: list[int], box_chars: list[int]) -> list[int]:
    tags, classes, hints = scan.box_tags, scan.box_classes, scan.box_hints
    flags, parents = scan.box_flags, scan.box_parents
    limit = box_chars[0] * LARGE_SHARE
    masks = [0] * len(parents)
    for box in filled:
        bits = find_parts(tags[box], classes[box][:MAX_NAME_CHARS], hints[box][:MAX_NAME_CHARS])
        if bits & FURNITURE_BITS and box_chars[box] > limit:
            bits &= ~FURNITURE_BITS
        masks[box] = bits | FLAG_MASKS[flags[box] & FLAGS] | masks[parents[box]]
    return masks


def _name_boxes(scan: PageScan, filled: list[int]) -> tuple[Ints, Ints]:
    """Return a number for the tag and classes of each box, and the class of how many boxes have the same."""
    tags, classes = scan.box_tags, scan.box_classes
    numbers: dict[tuple[str, str], int] = {}
    filled_names = [numbers.setdefault((tags[box], classes[box]), len(numbers)) for box in filled]
    counts = np.searchsorted(_COUNT_LIMITS, np.bincount(filled_names), "right")
    names, codes = np.zeros(len(tags), dtype=int), np.zeros(len(tags), dtype=int)
    names[filled] = filled_names
    codes[filled] = counts[filled_names]
    return names, codes


def _compute_items(
    scan: PageScan, filled: list[int], names: list[int], counts: list[int]
) -> tuple[list[int], list[int]]:
    """Return for each box the innermost item around it, and the class of the number of such items; 0 for none.

    An item has at least two lines and at least two siblings with the same tag and classes.
    """
    parents = scan.box_parents
    large = [box for box in filled if counts[box] > 1]
    numbers = Counter([(parents[box], names[box]) for box in large])
    own = {box: number for box in large if (number := numbers[parents[box], names[box]]) > 2}
    items, codes = [0] * len(parents), [0] * len(parents)
    for box in filled:
        if box in own:
            items[box], codes[box] = box, min(own[box].bit_length() - 1, ITEM_COUNTS - 1)
        else:
            parent = parents[box]
            items[box], codes[box] = items[parent], codes[parent]
    return items, codes


def _compute_ends(texts: list[str]) -> list[int]:
    return [
        (3 if text[-1] in SENTENCE_ENDS or text[-2:][0] in SENTENCE_ENDS else 0)
        + (2 if ". " in text else 1 if ", " in text else 0)
        if text
        else 0
        for text in texts
    ]


def _compute_kinds(texts: list[str]) -> list[int]:
    return list(map(classify_text, texts))


def classify_text(text: str) -> int:
    """Return the kind of a line of any length."""
    return classify_line(text) if len(text) <= MAX_SHORT_CHARS else _classify_long_line(text)


def _classify_long_line(text: str) -> int:
    if len(text) <= MAX_NOTICE_CHARS and is_notice(text):
        return NOTICE
    return SENTENCE if text[-1] in SENTENCE_ENDS else PLAIN


def _count_repeats(texts: list[str], coarse: Ints) -> Ints:
    counts = Counter(texts)
    if len(counts) == len(texts):
        return coarse
    return np.array([min(counts[text] - 1, 2) for text in texts]) * COARSE_SIZES + coarse


def _compute_places(scan: PageScan, title: str) -> Ints:
    tags = scan.box_tags
    places = np.zeros(len(scan.texts), dtype=int)
    for line, box in enumerate(scan.line_boxes):
        if tags[box] == "h1" and scan.texts[line]:
            places[:line] = 1
            places[line] = 2
            places[line + 1 :] = 3
            break
    if title := title[:MAX_TITLE_CHARS]:
        length = len(title)
        lines = [
            line for line, text in enumerate(scan.texts) if MIN_TITLE_CHARS <= len(text) <= length and text in title
        ]
        places[lines] = 4
    return places


def _compute_sections(scan: PageScan) -> Ints:
    """Return the kind of the last heading before each line, and whether the line is that heading."""
    tags, texts = scan.box_tags, scan.texts
    kind, level = NO_HEADING, 9
    starts, kinds, headings, own_kinds = [0], [kind], [], []
    for line, box in enumerate(scan.line_boxes):
        own = HEADING_LEVELS.get(tags[box])
        if own is not None and 0 < len(texts[line]) <= MAX_SHORT_CHARS:
            new = classify_heading(texts[line])
            headings.append(line)
            own_kinds.append(new * 2 + 1)
            if new > CONTENT_HEADING or kind <= CONTENT_HEADING or own <= level:
                kind, level = new, own
                starts.append(line)
                kinds.append(kind * 2)
    sections = np.repeat(kinds, np.diff([*starts, len(texts)]))
    sections[headings] = own_kinds
    return sections
