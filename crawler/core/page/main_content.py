"""The main content of a web page: the lines that a reader would call the page, without navigation and other furniture.

A first score of each line depends on its own features; from these, a second one depends also on the lines and boxes
around it. Both are sums of weights, which labs/content learned from reviewed pages. The chosen lines are those that
maximize the expected F1 measure; that of the choice is its confidence. Source of this rule: Lewis, "Evaluating and
optimizing autonomous text classification systems", SIGIR 1995.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from crawler.core.page.document import collapse_spaces
from crawler.core.page.fingerprint import hash_text
from crawler.core.page.main_content_context import CONTEXT_TABLES, compute_context
from crawler.core.page.main_content_features import TABLES, Floats, Ints, LineFeatures, compute_features
from crawler.core.page.main_content_weights import (
    BIT_WEIGHTS,
    CONTEXT_INTERCEPT,
    CONTEXT_WEIGHTS,
    INTERCEPT,
    TYPE_WEIGHTS,
    WEIGHTS,
)
from crawler.core.page.page_type import PageType, measure_page
from crawler.core.page.scan import ALL_MARKS, BOILERPLATE, PREFORMATTED, PageScan, PointerKind
from crawler.core.page.shared_lines import NO_SHARED_LINES, SharedLines

MIN_CONFIDENCE = 0.5  # below it, more text is chosen
FALLBACK_SHARE = 0.5  # of the threshold for the probability of a line
# What the odds of a line are multiplied with if the domain's pages share it, and if not, outside of elements that mark
# boilerplate, once MIN_KNOWN_PAGES pages are known. Found by `python -m benchmarks content`.
SHARED_ODDS = 0.05
OWN_ODDS = 5.0
MIN_KNOWN_PAGES = 10
_SHORT_LINK = re.compile(r"\x01([0-9]+)\x02\s*([^\w\s\x00-\x1f]{1,2})\s*\x10")
MAX_SHARED_GAP = 2  # so many shared lines between chosen ones belong to them
_WEIGHTS, _CONTEXT_WEIGHTS = np.concatenate(WEIGHTS), np.concatenate([*CONTEXT_WEIGHTS])
_TYPE_WEIGHTS, _PAGE_TYPES = np.array(TYPE_WEIGHTS), tuple(PageType)
_OFFSETS = np.cumsum([0, *TABLES.values()])[:-1, None]
_CONTEXT_OFFSETS = np.cumsum([0, *CONTEXT_TABLES.values()])[:-1, None]
_CONTEXT_WEIGHTS[: len(CONTEXT_WEIGHTS[0])] += CONTEXT_INTERCEPT


@dataclass(frozen=True, slots=True)
class MainContent:
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
    features = compute_features(scan, title)
    is_shared = [hash_text(text) in shared.hashes for text in scan.texts] if shared.hashes else []
    odds = _compute_odds(scan, is_shared, pages=shared.pages)
    likely = _multiply_odds(score_lines(features), odds)
    likely = _multiply_odds(score_context(features, likely), odds)
    threshold, confidence = find_threshold(likely, features.chars)
    if confidence < MIN_CONFIDENCE:
        threshold *= FALLBACK_SHARE
    chosen = (likely >= threshold).tolist()
    _fill_gaps(chosen, is_shared)
    lines = tuple([line for line, is_chosen in enumerate(chosen) if is_chosen and scan.texts[line]])
    return MainContent(lines, find_page_type(scan, features), confidence)


def score_lines(features: LineFeatures) -> Floats:
    """Return the probability that each line is content, from its own features."""
    masks = np.array([_sum_bits(mask) for mask in features.masks])
    return _compute_probabilities(masks + _WEIGHTS[features.codes + _OFFSETS].sum(axis=0))


def score_context(features: LineFeatures, likely: Floats) -> Floats:
    """Return the probability that each line is content, from those of the lines and boxes around it."""
    return _compute_probabilities(_CONTEXT_WEIGHTS[compute_context(features, likely) + _CONTEXT_OFFSETS].sum(axis=0))


def find_page_type(scan: PageScan, features: LineFeatures) -> PageType:
    """Return the most likely type of a page."""
    scores = _TYPE_WEIGHTS[:, :-1] @ measure_page(scan, features) + _TYPE_WEIGHTS[:, -1]
    return _PAGE_TYPES[int(np.argmax(scores))]


@lru_cache(maxsize=1 << 14)
def _sum_bits(mask: int) -> float:
    """Return the sum of the weights of the parts in a mask."""
    return INTERCEPT + sum([BIT_WEIGHTS[bit] for bit in range(mask.bit_length()) if mask >> bit & 1])


def _compute_probabilities(scores: Floats) -> Floats:
    return 1 / (1 + np.exp(-scores))  # sums of weights are too small to overflow


def find_threshold(likely: Floats, chars: Ints) -> tuple[float, float]:
    """Return the threshold for the probability of lines that maximizes the expected F1 measure, and that measure."""
    order = np.argsort(-likely, kind="stable")
    found = np.cumsum((likely * chars)[order])
    measures = 2 * found / (np.cumsum(chars[order]) + max(found[-1], 1e-9))
    best = int(np.argmax(measures))
    return float(likely[order[best]]), min(float(measures[best]), 1.0)


def _compute_odds(scan: PageScan, is_shared: list[bool], *, pages: int) -> Floats | None:
    """Return how much the odds of each line rise or fall by what is known of the domain; None if nothing is."""
    if not is_shared:
        return None
    own_odds = OWN_ODDS if pages >= MIN_KNOWN_PAGES else 1.0
    is_boilerplate = np.array([scan.box_flags[box] & BOILERPLATE for box in scan.line_boxes], dtype=bool)
    return np.where(is_shared, SHARED_ODDS, np.where(is_boilerplate, 1.0, own_odds))


def _multiply_odds(likely: Floats, odds: Floats | None) -> Floats:
    return likely if odds is None else likely * odds / (1 - likely + likely * odds)


def _fill_gaps(chosen: list[bool], is_shared: list[bool]) -> None:
    """Choose short runs of shared lines between chosen ones."""
    run = MAX_SHARED_GAP + 1  # lines since the last chosen one
    for line, is_chosen in enumerate(chosen):
        if is_chosen:
            if 0 < run <= MAX_SHARED_GAP:
                chosen[line - run : line] = [True] * run
            run = 0
        else:
            run = run + 1 if is_shared and is_shared[line] else MAX_SHARED_GAP + 1


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
