"""Features of the lines of a page that depend on how likely the lines around them are content."""

from itertools import accumulate

from crawler.core.page.main_content_features import LINK_SHARES, PLACES, SIZES, LineFeatures
from crawler.core.page.scan import PageScan

LEVELS = 12  # classes of a probability
_COARSE_LEVELS = 6
NEAR_LINES, WIDE_LINES = 2, 8
MIN_REGION_LINES = 8
MIN_PART_SHARE = 0.15  # of the characters of the page
MIN_CORE_SHARE = 0.75  # of the content of the page
MAX_WEIGHT_CHARS = 300  # a longer line counts as much as one of this length
_SIZE_LINKS = SIZES * LINK_SHARES

# The sizes of the tables of weights, in the order of the features of a line.
CONTEXT_TABLES = {
    "own": LEVELS,
    "near": LEVELS,
    "wide": LEVELS,
    "box": LEVELS,
    "outer box": LEVELS,
    "region": LEVELS,
    "part": LEVELS,
    "second outer box": LEVELS,
    "group": LEVELS,
    "core": 3 * 4,
    "neighbors": _COARSE_LEVELS * _COARSE_LEVELS,
    "page": 4 * 8,
    "place": PLACES * 3,
    "size": SIZES * 4,
    "before": 4 * 4,
    "region and own": 8 * 8,
    "group and part": 8 * 8,
}


def compute_context(scan: PageScan, features: LineFeatures, likely: list[float]) -> list[list[int]]:
    """Return the context features of all lines by table. likely: the probability of each line that it is content."""
    count = len(likely)
    weights = [(chars if chars < MAX_WEIGHT_CHARS else MAX_WEIGHT_CHARS) + 2 for chars in scan.line_chars]
    masses = [each * weight for each, weight in zip(likely, weights, strict=True)]
    mass_before, weight_before = [0.0, *accumulate(masses)], [0, *accumulate(weights)]
    box_levels, box_masses, box_weights = _compute_boxes(features, mass_before, weight_before)
    parents, line_boxes = scan.box_parents, scan.line_boxes
    outer = [parents[box] for box in line_boxes]
    regions, parts = _find_regions(scan, features.counts, box_weights, MIN_PART_SHARE * weight_before[-1])
    scaled = [int(each * 23.999) for each in likely]
    coarse = [each >> 2 for each in scaled]
    own8 = [each // 3 for each in scaled]
    own4 = [each // 6 for each in scaled]
    group_levels = _compute_groups(scan, masses, weights)
    region_levels = [box_levels[regions[box]] for box in line_boxes]
    part_levels = [box_levels[parts[box]] for box in line_boxes]
    page_level = int(mass_before[-1] / max(weight_before[-1], 1) * 3.999) * 8
    mass_scale = 3.999 / max(mass_before[-1], 1e-9)
    return [
        [each >> 1 for each in scaled],
        _compute_window(mass_before, weight_before, masses, weights, NEAR_LINES),
        _compute_window(mass_before, weight_before, masses, weights, WIDE_LINES),
        [box_levels[box] >> 1 for box in line_boxes],
        [box_levels[box] >> 1 for box in outer],
        [level >> 1 for level in region_levels],
        [level >> 1 for level in part_levels],
        [box_levels[parents[box]] >> 1 for box in outer],
        [level >> 1 for level in group_levels],
        _compute_core(features, box_masses, mass_before[-1], own4),
        [
            before * _COARSE_LEVELS + after
            for before, after, _ in zip([0, *coarse], [*coarse[1:], 0], coarse, strict=False)
        ],
        [page_level + own for own in own8],
        [place * 3 + (each >> 3) for place, each in zip(features.codes[6], scaled, strict=True)],
        [code // LINK_SHARES * 4 + own for code, own in zip(features.codes[0], own4, strict=True)],
        [int(mass * mass_scale) * 4 + own for mass, own in zip(mass_before, own4[:count], strict=False)],
        [own * 8 + level // 3 for own, level in zip(own8, region_levels, strict=True)],
        [level // 3 * 8 + part // 3 for level, part in zip(group_levels, part_levels, strict=True)],
    ]


def _compute_boxes(
    features: LineFeatures, mass_before: list[float], weight_before: list[int]
) -> tuple[list[int], list[float], list[int]]:
    levels, masses, weights = [], [], []
    for start, count in zip(features.starts, features.counts, strict=True):
        if count:
            mass = mass_before[start + count] - mass_before[start]
            weight = weight_before[start + count] - weight_before[start]
            levels.append(int(mass / weight * 23.999))
            masses.append(mass)
            weights.append(weight)
        else:
            levels.append(0)
            masses.append(0.0)
            weights.append(0)
    return levels, masses, weights


def _find_regions(
    scan: PageScan, counts: list[int], box_weights: list[int], min_weight: float
) -> tuple[list[int], list[int]]:
    """Return, for each box, the innermost box around it with enough lines, and the innermost with enough text."""
    regions, parts = [], []
    for box, (parent, count, weight) in enumerate(zip(scan.box_parents, counts, box_weights, strict=True)):
        if count >= MIN_REGION_LINES or not box:
            regions.append(box)
        else:
            regions.append(regions[parent])
        parts.append(box if weight >= min_weight or not box else parts[parent])
    return regions, parts


def _compute_window(
    mass_before: list[float], weight_before: list[int], masses: list[float], weights: list[int], radius: int
) -> list[int]:
    """Return the class of the mean probability of the lines around each line, without the line itself."""
    count = len(masses)
    padding = min(radius, count)
    lows = [0] * padding + list(range(count - padding))
    highs = [*range(radius + 1, count + 1), *([count] * min(radius, count))][:count]
    return [
        int(
            (mass_before[high] - mass_before[low] - mass)
            / ((weight_before[high] - weight_before[low] - weight) or 1)
            * 11.999
        )
        for low, high, mass, weight in zip(lows, highs, masses, weights, strict=True)
    ]


def _compute_groups(scan: PageScan, masses: list[float], weights: list[int]) -> list[int]:
    """Return the class of the mean probability of the lines in boxes of the same tags and classes."""
    tags, classes, parents = scan.box_tags, scan.box_classes, scan.box_parents
    keys = [(tags[box], classes[box], tags[parents[box]], classes[parents[box]]) for box in scan.line_boxes]
    sums: dict[tuple[str, str, str, str], list[float]] = {}
    for key, mass, weight in zip(keys, masses, weights, strict=True):
        found = sums.get(key)
        if found is None:
            sums[key] = [mass, weight]
        else:
            found[0] += mass
            found[1] += weight
    levels = {key: int(mass / weight * 23.999) for key, (mass, weight) in sums.items()}
    return [levels[key] for key in keys]


def _compute_core(features: LineFeatures, box_masses: list[float], total: float, own4: list[int]) -> list[int]:
    """Return whether each line is before, in or after the last box that has most of the content."""
    limit = MIN_CORE_SHARE * total
    core = max((box for box, mass in enumerate(box_masses) if mass >= limit), default=0)
    start, count = features.starts[core], features.counts[core]
    places = [0] * start + [4] * count + [8] * (len(own4) - start - count)
    return [place + own for place, own in zip(places, own4, strict=True)]
