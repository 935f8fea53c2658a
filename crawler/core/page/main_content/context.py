"""Features of the lines of a page that depend on how likely the lines around them are content."""

import numpy as np

from crawler.core.page.main_content.features import (
    LINK_SHARES,
    PLACES,
    POSITIONS,
    SIZES,
    Bools,
    Floats,
    Ints,
    LineFeatures,
    accumulate,
)
from crawler.core.page.main_content.hints import KIND_COUNT

LEVELS = 24  # classes of a probability; the tables join them in twos, threes, fours, sixes or eights
NEAR_LINES, WIDE_LINES = 2, 8
MIN_REGION_LINES = 8
MIN_PART_SHARE = 0.15  # of the text of the page
MIN_CORE_SHARE = 0.75  # of the content of the page
MIN_PARAGRAPH_SIZE = 7  # of 64 characters or more
MIN_WIDER = 1.3  # the paragraphs of the box around must have so many times the content
MAX_WEIGHT_CHARS = 300  # a longer line counts as much as one of this length

# The sizes of the tables of weights, in the order of the features of a line.
CONTEXT_TABLES = {
    "own": 12,
    "near": 12,
    "wide": 12,
    "outer box": 12,
    "group": 12,
    "core": 3 * 4,
    "neighbors": 6 * 6,
    "page": 4 * 8,
    "place": PLACES * 3,
    "size": SIZES * 4,
    "before": 4 * 4,
    "region and own": 8 * 8,
    "group and part": 8 * 8,
    "body": 4 * 4 * 8,
    "body and item": 4 * 4 * 3 * 3,
    # Only for pages of products; row 0 for all other pages.
    "product: size and links": SIZES * LINK_SHARES + 1,
    "product: kind": KIND_COUNT * 2 + 1,
    "product: position": POSITIONS + 1,
    "product: own": 12 + 1,
}


def compute_context(features: LineFeatures, likely: Floats, *, is_product: bool) -> Ints:
    """Return the features of all lines, one row per table.

    likely: the probability of each line that it is content.  is_product: whether the page is about a product.
    """
    box, outer = features.boxes[:2]
    starts, ends = features.starts, features.ends
    weights = np.minimum(features.chars, MAX_WEIGHT_CHARS) + 2.0
    masses = likely * weights
    before, weight_before = accumulate(masses), accumulate(weights)
    box_masses, box_weights = before[ends] - before[starts], weight_before[ends] - weight_before[starts]
    box_levels = _classify(box_masses / np.maximum(box_weights, 1))
    regions = _find_outer(features, ends - starts >= MIN_REGION_LINES)
    parts = _find_outer(features, box_weights >= MIN_PART_SHARE * weight_before[-1])
    own = _classify(likely)
    group = _compute_groups(features, masses, weights)
    own4, own8 = own // 6, own // 3
    padded = np.concatenate(([0], own // 4, [0]))
    body = _find_body(features, masses)
    total = max(before[-1], 1e-9)
    return np.array(
        [
            own // 2,
            _compute_window(before, weight_before, masses, weights, NEAR_LINES) // 2,
            _compute_window(before, weight_before, masses, weights, WIDE_LINES) // 2,
            box_levels[outer] // 2,
            group // 2,
            _find_core(features, box_masses, MIN_CORE_SHARE * before[-1]) * 4 + own4,
            padded[:-2] * 6 + padded[2:],
            int(before[-1] / weight_before[-1] * 3.999) * 8 + own8,
            features.places * 3 + own // 8,
            features.sizes * 4 + own4,
            (before[:-1] * (3.999 / total)).astype(int) * 4 + own4,
            own8 * 8 + box_levels[regions[box]] // 3,
            group // 3 * 8 + box_levels[parts[box]] // 3,
            body * 8 + own8,
            (body * 3 + features.item_kinds) * 3 + np.minimum(features.sizes // 3, 2),
            *_select_for_products(features, own, is_product=is_product),
        ]
    )


def _select_for_products(features: LineFeatures, own: Ints, *, is_product: bool) -> list[Ints]:
    if not is_product:
        return [np.zeros_like(own)] * 4
    return [features.codes[0] + 1, features.codes[3] + 1, features.codes[5] + 1, own // 2 + 1]


def _classify(likely: Floats) -> Ints:
    return (likely * (LEVELS - 0.001)).astype(int)


def _find_outer(features: LineFeatures, is_wanted: Bools) -> Ints:
    """Return, for each box with lines, the innermost wanted box around it, or box 0."""
    wanted, parents = is_wanted.tolist(), features.parent_list
    found = [0] * len(parents)
    for box in features.filled[1:]:
        found[box] = box if wanted[box] else found[parents[box]]
    return np.array(found)


def _compute_window(before: Floats, weight_before: Floats, masses: Floats, weights: Floats, radius: int) -> Ints:
    """Return the class of the mean probability of the lines around each line, without the line itself."""
    lines = np.arange(len(masses))
    low, high = np.maximum(lines - radius, 0), np.minimum(lines + radius + 1, len(masses))
    mass = before[high] - before[low] - masses
    return _classify(np.clip(mass / np.maximum(weight_before[high] - weight_before[low] - weights, 1), 0, 1))


def _compute_groups(features: LineFeatures, masses: Floats, weights: Floats) -> Ints:
    """Return the class of the mean probability of the lines whose boxes, and those around, have the same names."""
    names = features.names[features.boxes[0]] * len(features.names) + features.names[features.boxes[1]]
    _, groups = np.unique(names, return_inverse=True)
    return _classify(np.bincount(groups, masses) / np.bincount(groups, weights))[groups]


def _find_body(features: LineFeatures, masses: Floats) -> Ints:
    """Return for each line whether it is in the body of running text, and how much of the content that body is.

    The body is the box whose paragraphs have most of the content; they are its children, or the children of these.
    """
    outer, second = features.boxes[1:3]
    paragraphs = np.where(features.sizes >= MIN_PARAGRAPH_SIZE, masses, 0)
    inner, wide = np.bincount(outer, paragraphs), np.bincount(second, paragraphs)
    body, wide_body = int(np.argmax(inner)), int(np.argmax(wide))
    mass = inner[body]
    if wide[wide_body] > mass * MIN_WIDER:
        body, mass = wide_body, wide[wide_body]
    share = int(mass / max(masses.sum(), 1e-9) * 3.999)
    around = features.parents[body]
    lines = np.arange(len(masses))
    starts, ends = features.starts, features.ends
    relations = np.where(
        (lines >= starts[body]) & (lines < ends[body]),
        0,
        np.where((lines >= starts[around]) & (lines < ends[around]), 1, np.where(lines < starts[body], 2, 3)),
    )
    return np.asarray(relations + share * 4)


def _find_core(features: LineFeatures, box_masses: Floats, min_mass: float) -> Ints:
    """Return for each line whether it is before (0), in (1) or after (2) the last box with most of the content."""
    core = np.flatnonzero(box_masses >= min_mass)[-1]
    lines = np.arange(len(features.chars))
    return np.asarray((lines >= features.starts[core]).astype(int) + (lines >= features.ends[core]))
