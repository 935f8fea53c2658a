"""The main content of a web page: the lines that a reader would call the page, without navigation and other furniture.

A first score of each line depends on its own features; from these, a second one depends also on the lines and boxes
around it. Both are sums of weights, which labs/content learned from reviewed pages. The chosen lines are those that
maximize the expected F1 measure; that of the choice is its confidence. Source of this rule: Lewis, "Evaluating and
optimizing autonomous text classification systems", SIGIR 1995.
"""

import re
from collections.abc import Container
from dataclasses import dataclass

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
    PRODUCT_BIT_WEIGHTS,
    TYPE_WEIGHTS,
    WEIGHTS,
)
from crawler.core.page.page_type import PageType, measure_page
from crawler.core.page.scan import ALL_MARKS, PREFORMATTED, PageScan, PointerKind

MIN_CONFIDENCE = 0.5  # below it, more text is chosen
FALLBACK_SHARE = 0.5  # of the threshold for the probability of a line
SHARED_ODDS = 0.05  # how much the odds of a line fall if other pages of the domain have it too
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


def choose_content(scan: PageScan, *, title: str, shared: Container[int] | None = None) -> MainContent:
    """Choose the lines of a page that are its main content.

    title: of the page, as its head says.  shared: hashes (`hash_text`) of lines that other pages of the domain have.
    """
    if not scan.texts:
        return MainContent((), PageType.ARTICLE, 0.0)
    features = compute_features(scan, title)
    is_shared = _find_shared(scan, shared)
    likely = _lower_shared(score_lines(features), is_shared)
    page_type = find_page_type(scan, features)
    likely = _lower_shared(score_context(features, likely, is_product=page_type is PageType.PRODUCT), is_shared)
    threshold, confidence = find_threshold(likely, features.chars)
    if confidence < MIN_CONFIDENCE:
        threshold *= FALLBACK_SHARE
    chosen = (likely >= threshold).tolist()
    if is_shared is not None:
        _fill_gaps(chosen, is_shared)
    lines = tuple([line for line, is_chosen in enumerate(chosen) if is_chosen and scan.texts[line]])
    return MainContent(lines, page_type, confidence)


def score_lines(features: LineFeatures) -> Floats:
    """Return the probability that each line is content, from its own features."""
    masks = INTERCEPT + _score_masks(features.masks, BIT_WEIGHTS)
    return _compute_probabilities(masks + _WEIGHTS[features.codes + _OFFSETS].sum(axis=0))


def score_context(features: LineFeatures, likely: Floats, *, is_product: bool) -> Floats:
    """Return the probability that each line is content, from those of the lines and boxes around it."""
    codes = compute_context(features, likely, is_product=is_product)
    scores = _CONTEXT_WEIGHTS[codes + _CONTEXT_OFFSETS].sum(axis=0)
    if is_product:
        scores += _score_masks(features.masks, PRODUCT_BIT_WEIGHTS)
    return _compute_probabilities(scores)


def find_page_type(scan: PageScan, features: LineFeatures) -> PageType:
    """Return the most likely type of a page."""
    scores = _TYPE_WEIGHTS[:, :-1] @ measure_page(scan, features) + _TYPE_WEIGHTS[:, -1]
    return _PAGE_TYPES[int(np.argmax(scores))]


def _score_masks(masks: list[int], weights: tuple[float, ...]) -> Floats:
    """Return the sum of the weights of the parts in each mask; few masks are distinct."""
    sums = {mask: _sum_bits(mask, weights) for mask in set(masks)}
    return np.array(list(map(sums.__getitem__, masks)))


def _sum_bits(mask: int, weights: tuple[float, ...]) -> float:
    """Return the sum of the weights of the parts in a mask."""
    return sum([weights[bit] for bit in range(mask.bit_length()) if mask >> bit & 1])


def _compute_probabilities(scores: Floats) -> Floats:
    return 1 / (1 + np.exp(-scores))  # sums of weights are too small to overflow


def find_threshold(likely: Floats, chars: Ints) -> tuple[float, float]:
    """Return the threshold for the probability of lines that maximizes the expected F1 measure, and that measure."""
    order = np.argsort(-likely, kind="stable")
    found = np.cumsum((likely * chars)[order])
    measures = 2 * found / (np.cumsum(chars[order]) + max(found[-1], 1e-9))
    best = int(np.argmax(measures))
    return float(likely[order[best]]), min(float(measures[best]), 1.0)


def _find_shared(scan: PageScan, shared: Container[int] | None) -> list[bool] | None:
    return None if shared is None else [hash_text(text) in shared for text in scan.texts]


def _lower_shared(likely: Floats, is_shared: list[bool] | None) -> Floats:
    if is_shared is None:
        return likely
    return np.where(is_shared, likely * SHARED_ODDS / (1 - likely + likely * SHARED_ODDS), likely)


def _fill_gaps(chosen: list[bool], is_shared: list[bool]) -> None:
    """Choose short runs of shared lines between chosen ones."""
    run = MAX_SHARED_GAP + 1  # lines since the last chosen one
    for line, is_chosen in enumerate(chosen):
        if is_chosen:
            if 0 < run <= MAX_SHARED_GAP:
                chosen[line - run : line] = [True] * run
            run = 0
        else:
            run = run + 1 if is_shared[line] else MAX_SHARED_GAP + 1


def build_content_text(scan: PageScan, content: MainContent) -> str:
    """Return the text of the main content, one line per text, without the permalinks of headings.

    Preformatted text keeps its line breaks and indentation.
    """
    permalinks = _find_permalinks(scan)
    parts: list[str] = []
    code: list[str] = []  # the lines of the preformatted box that is being joined
    code_box = -1
    for line in content.lines:
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
