"""Features of the lines of a page, from which the main content is chosen.

Each feature is a small integer, the index of a weight in a table. All steps are linear in boxes and lines.
"""

from dataclasses import dataclass
from itertools import accumulate

from crawler.core.page.main_content_hints import (
    COLON,
    FLAG_BITS,
    FURNITURE_BITS,
    HEADING_KINDS,
    KIND_COUNT,
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

SIZES = 10  # classes of the length of a line: the number of bits of its count of characters
LINK_SHARES = 6  # 0: no links; 5: all characters are in links
TAGS = ("", "p", "li", "h1", "h2", "h3", "h4", "h5", "h6", "td", "th", "dt", "dd", "pre", "div", "blockquote")
TAGS += ("section", "article", "figcaption", "option", "label", "summary", "header", "footer", "body", "span")
_TAG_CODES = {tag: code for code, tag in enumerate(TAGS)}
OTHER_TAG = len(TAGS)
_ENDS = ".!?…。！？"
COUNTS = 8  # classes of counts
PLACES = 5  # no h1; before the first h1; the h1 itself; after it; the same text as the title
POSITIONS = 12
GROUP_LINKS = 4
FLAG_CODES = [sum(bit for flag, bit in FLAG_BITS.items() if flags & flag) for flags in range(8)]
_FLAGS = BOILERPLATE | CONTENT | PREFORMATTED
_SIZE_CODES = [min(chars.bit_length(), SIZES - 1) for chars in range(1024)]  # by chars
_COARSE = (0, 0, 0, 0, 0, 1, 1, 2, 2, 2)  # by size: less than 16, 64 characters, more

ITEM_COUNTS = 6  # classes of the number of equal siblings; 0: less than three

# The sizes of the tables of weights, in the order of the features of a line.
TABLES = {
    "size and links": SIZES * LINK_SHARES,
    "tag and size": (len(TAGS) + 1) * 3,
    "end and commas": 6,
    "kind": KIND_COUNT * 2,
    "repeats": 3 * 3,
    "position": POSITIONS,
    "place": PLACES,
    "neighbors": 36,
    "box": COUNTS * GROUP_LINKS,
    "outer box": COUNTS * GROUP_LINKS,
    "siblings": COUNTS * 3,
    "second outer box": COUNTS * GROUP_LINKS,
    "section": HEADING_KINDS * 2 * 3,
    "item": ITEM_COUNTS * 3 * 3,
}


@dataclass(slots=True)
class LineFeatures:
    """The features of all lines of a page.

    codes: by table, the index for each line.  masks: the parts of the page that the line is in, see `PART_BITS`.
    starts, counts: by box, the number of its first line, and of lines in it and in the boxes within it.
    """

    codes: list[list[int]]
    masks: list[int]
    starts: list[int]
    counts: list[int]
    chars_before: list[int]


def measure_boxes(scan: PageScan) -> tuple[list[int], list[int]]:
    """Return the number of the first line of each box, and how many lines are in it and in the boxes within it."""
    parents, ends = scan.box_parents, scan.box_ends
    box_count = len(parents)
    counts = [0] * box_count
    starts: list[int] = [0]
    add = starts.append
    opened = 1
    for line, box in enumerate(scan.line_boxes):
        counts[box] += 1
        while opened <= box:
            add(line)
            opened += 1
    starts += [len(scan.line_boxes)] * (box_count - opened)
    for box in range(box_count - 1, 0, -1):
        if counts[box]:
            counts[parents[box]] += counts[box]
    return starts, counts


def compute_features(scan: PageScan, title: str) -> LineFeatures:
    """Compute the features of all lines."""
    starts, counts = measure_boxes(scan)
    chars, links = scan.line_chars, scan.line_link_chars
    before = [0, *accumulate(chars)]
    links_before = [0, *accumulate(links)]
    masks = _compute_masks(scan, starts, counts, before)
    line_boxes = scan.line_boxes
    sizes = [_SIZE_CODES[count] if count < 1024 else SIZES - 1 for count in chars]
    shares = [
        0 if not link else 5 if link >= count else 1 + 4 * link // count
        for count, link in zip(chars, links, strict=True)
    ]
    coarse = [_COARSE[size] for size in sizes]
    box_codes = _compute_box_codes(scan, starts, counts, before, links_before)
    sibling_codes = _count_siblings(scan)
    item_codes = _compute_items(scan, starts, counts, before, links_before)
    parents = scan.box_parents
    outer = [parents[box] for box in line_boxes]
    tags = [_TAG_CODES.get(tag, OTHER_TAG) for tag in scan.box_tags]
    codes = [
        [size * LINK_SHARES + share for size, share in zip(sizes, shares, strict=True)],
        [tags[box] * 3 + size for box, size in zip(line_boxes, coarse, strict=True)],
        _compute_ends(scan.texts),
        _compute_kinds(scan.texts, links),
        _count_repeats(scan.texts, coarse),
        _compute_positions(before, len(chars)),
        _compute_places(scan, title),
        _compute_neighbors(coarse, shares),
        [box_codes[box] for box in line_boxes],
        [box_codes[box] for box in outer],
        [sibling_codes[box] * 3 + size for box, size in zip(line_boxes, coarse, strict=True)],
        [box_codes[parents[box]] for box in outer],
        _compute_sections(scan, coarse),
        [item_codes[box] * 3 + size for box, size in zip(line_boxes, coarse, strict=True)],
    ]
    return LineFeatures(codes, [masks[box] for box in line_boxes], starts, counts, before)


def _compute_masks(scan: PageScan, starts: list[int], counts: list[int], before: list[int]) -> list[int]:
    limit = before[-1] * 0.6
    masks: list[int] = []
    add = masks.append
    boxes = zip(
        scan.box_tags, scan.box_classes, scan.box_hints, scan.box_flags, scan.box_parents, starts, counts, strict=True
    )
    for tag, classes, hints, flags, parent, start, count in boxes:
        if not count:
            add(0)
            continue
        bits = find_parts(tag, classes, hints)
        if bits & FURNITURE_BITS and before[start + count] - before[start] > limit:
            bits &= ~FURNITURE_BITS
        add(bits | FLAG_CODES[flags & _FLAGS] | (masks[parent] if masks else 0))
    return masks


def _compute_ends(texts: list[str]) -> list[int]:
    return [
        0
        if not text
        else (3 if text[-1] in _ENDS or text[-2:-1] in _ENDS else 0) + (2 if ". " in text else 1 if ", " in text else 0)
        for text in texts
    ]


def _compute_kinds(texts: list[str], links: list[int]) -> list[int]:
    return [
        (
            classify_line(text)
            if len(text) <= MAX_SHORT_CHARS
            else NOTICE
            if len(text) <= MAX_NOTICE_CHARS and is_notice(text)
            else SENTENCE
            if text[-1] in _ENDS
            else PLAIN
        )
        * 2
        + (link > 0)
        for text, link in zip(texts, links, strict=True)
    ]


def _count_repeats(texts: list[str], coarse: list[int]) -> list[int]:
    counts: dict[str, int] = {}
    for text in texts:
        counts[text] = counts.get(text, 0) + 1
    if len(counts) == len(texts):
        return coarse
    return [min(counts[text] - 1, 2) * 3 + size for text, size in zip(texts, coarse, strict=True)]


def _compute_positions(before: list[int], count: int) -> list[int]:
    scale = (POSITIONS - 0.001) / max(before[-1], 1)
    return [int(chars * scale) for chars in before[:count]]


def _compute_places(scan: PageScan, title: str) -> list[int]:
    tags = scan.box_tags
    places = [1] * len(scan.texts)
    first = next(
        (line for line, box in enumerate(scan.line_boxes) if tags[box] == "h1" and scan.line_chars[line]), None
    )
    if first is None:
        places = [0] * len(places)
    else:
        places[first] = 2
        places[first + 1 :] = [3] * (len(places) - first - 1)
    for line, text in enumerate(scan.texts):
        if len(text) > 8 and text in title:
            places[line] = 4
    return places


def _compute_neighbors(coarse: list[int], shares: list[int]) -> list[int]:
    kinds = [size * 2 + (share > 2) for size, share in zip(coarse, shares, strict=True)]
    return [before * 6 + after for before, after, _ in zip([1, *kinds], [*kinds[1:], 1], kinds, strict=False)]


def _compute_box_codes(
    scan: PageScan, starts: list[int], counts: list[int], before: list[int], links_before: list[int]
) -> list[int]:
    codes = []
    add = codes.append
    for start, count in zip(starts, counts, strict=True):
        if not count:
            add(0)
            continue
        chars = before[start + count] - before[start]
        links = links_before[start + count] - links_before[start]
        share = 0 if links * 10 < chars else 1 if links * 3 < chars else 2 if links * 3 < chars * 2 else 3
        add((count.bit_length() if count < 64 else 7) * GROUP_LINKS + share)
    return codes


def _count_siblings(scan: PageScan) -> list[int]:
    """Return the class of the number of boxes that have the same tag and classes as each box."""
    names = list(zip(scan.box_tags, scan.box_classes, strict=True))
    counts: dict[tuple[str, str], int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    codes = {name: min(count.bit_length(), COUNTS - 1) for name, count in counts.items()}
    return [codes[name] for name in names]


def _compute_sections(scan: PageScan, coarse: list[int]) -> list[int]:
    """Return the kind of the last heading before each line, and whether the line is that heading."""
    tags = [_HEADING_LEVELS.get(tag, 0) for tag in scan.box_tags]
    sections = []
    add = sections.append
    kind, level = NO_HEADING, 9
    for text, box, size in zip(scan.texts, scan.line_boxes, coarse, strict=True):
        own = tags[box]
        if own and text and len(text) <= MAX_SHORT_CHARS:
            new = classify_heading(text)
            if new > 1 or kind <= 1 or own <= level:
                kind, level = new, own
            add((new * 2 + 1) * 3 + size)
        else:
            add(kind * 6 + size)
    return sections


_HEADING_LEVELS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}


def _compute_items(
    scan: PageScan, starts: list[int], counts: list[int], before: list[int], links_before: list[int]
) -> list[int]:
    """Return for each box how often the innermost repeated box around it occurs, and how many links are in it.

    A box is repeated if it has at least two lines and two siblings with the same tag and classes.
    """
    parents, tags, classes = scan.box_parents, scan.box_tags, scan.box_classes
    numbers: dict[tuple[int, str, str], int] = {}
    keys: list[tuple[int, str, str] | None] = []
    for box, count in enumerate(counts):
        if count < 2:
            keys.append(None)
            continue
        key = (parents[box], tags[box], classes[box])
        keys.append(key)
        numbers[key] = numbers.get(key, 0) + 1
    codes = [0] * len(parents)
    for box, (parent, found) in enumerate(zip(parents, keys, strict=True)):
        number = numbers[found] if found is not None else 0
        if number < 3:
            codes[box] = codes[parent]
            continue
        start, end = starts[box], starts[box] + counts[box]
        chars, links = before[end] - before[start], links_before[end] - links_before[start]
        share = 0 if not links else 1 if links * 2 < chars else 2
        codes[box] = min(number.bit_length() - 1, ITEM_COUNTS - 1) * 3 + share
    return codes
