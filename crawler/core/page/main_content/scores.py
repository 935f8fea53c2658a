"""The probability of each line of a page that it is main content, and the type of the page.

compiled_scores.c computes the same in a fraction of the time.
"""

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from crawler.core.page.main_content.context import CONTEXT_TABLES, compute_context
from crawler.core.page.main_content.features import TABLES, Floats, Ints, LineFeatures, compute_features
from crawler.core.page.main_content.page_type import PageType, measure_page
from crawler.core.page.main_content.weights import (
    BIT_WEIGHTS,
    CONTEXT_INTERCEPT,
    CONTEXT_WEIGHTS,
    INTERCEPT,
    PRODUCT_BIT_WEIGHTS,
    TYPE_WEIGHTS,
    WEIGHTS,
)
from crawler.core.page.scan import PageScan

TABLE_WEIGHTS, CONTEXT_TABLE_WEIGHTS = np.concatenate(WEIGHTS), np.concatenate(CONTEXT_WEIGHTS)
TYPE_TABLE, PAGE_TYPES = np.array(TYPE_WEIGHTS), tuple(PageType)
OFFSETS = np.cumsum([0, *TABLES.values()])[:-1, None]
CONTEXT_OFFSETS = np.cumsum([0, *CONTEXT_TABLES.values()])[:-1, None]
CONTEXT_TABLE_WEIGHTS[: len(CONTEXT_WEIGHTS[0])] += CONTEXT_INTERCEPT


class LineScores(Struct, frozen=True):
    """The scores of the lines of a page.

    likely: the probability of each line that it is content, from its own features.  chars: of each line.
    score_context: computes it from those of the lines and boxes around it. The argument is changed if more is known.
    """

    page_type: PageType
    likely: Floats
    chars: Ints
    score_context: Callable[[Floats], Floats]


def score_page(scan: PageScan, title: str) -> LineScores:
    """Score the lines of a page with at least one line."""
    features = compute_features(scan, title)
    page_type = find_page_type(scan, features)
    is_product = page_type is PageType.PRODUCT
    return LineScores(
        page_type,
        score_lines(features),
        features.chars,
        lambda likely: score_context(features, likely, is_product=is_product),
    )


def score_lines(features: LineFeatures) -> Floats:
    """Return the probability that each line is content, from its own features."""
    masks = INTERCEPT + _score_masks(features.masks, BIT_WEIGHTS)
    return _compute_probabilities(masks + TABLE_WEIGHTS[features.codes + OFFSETS].sum(axis=0))


def score_context(features: LineFeatures, likely: Floats, *, is_product: bool) -> Floats:
    """Return the probability that each line is content, from those of the lines and boxes around it."""
    codes = compute_context(features, likely, is_product=is_product)
    scores = CONTEXT_TABLE_WEIGHTS[codes + CONTEXT_OFFSETS].sum(axis=0)
    if is_product:
        scores += _score_masks(features.masks, PRODUCT_BIT_WEIGHTS)
    return _compute_probabilities(scores)


def find_page_type(scan: PageScan, features: LineFeatures) -> PageType:
    """Return the most likely type of a page."""
    scores = TYPE_TABLE[:, :-1] @ measure_page(scan, features) + TYPE_TABLE[:, -1]
    return PAGE_TYPES[int(np.argmax(scores))]


def _score_masks(masks: list[int], weights: tuple[float, ...]) -> Floats:
    """Return the sum of the weights of the parts in each mask; few masks are distinct."""
    sums = {mask: _sum_bits(mask, weights) for mask in set(masks)}
    return np.array(list(map(sums.__getitem__, masks)))


def _sum_bits(mask: int, weights: tuple[float, ...]) -> float:
    """Return the sum of the weights of the parts in a mask."""
    return sum([weights[bit] for bit in range(mask.bit_length()) if mask >> bit & 1])


def _compute_probabilities(scores: Floats) -> Floats:
    return 1 / (1 + np.exp(-scores))  # sums of weights are too small to overflow
