"""Learn the weights that choose the main content of a page: `python -m labs.content.training FOLDER`.

The folder holds reviewed pages: ID.html, and ID.json with `main_content` (the text a reviewer kept) and `type`.
"""

import json
import re
import sys
import textwrap
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crawler.core.page.html import parse_html
from crawler.core.page.main_content import choice, weights
from crawler.core.page.main_content.context import CONTEXT_TABLES, compute_context
from crawler.core.page.main_content.features import TABLES, Floats, Ints, LineFeatures, compute_features
from crawler.core.page.main_content.hints import BIT_COUNT
from crawler.core.page.main_content.page_type import MEASURE_COUNT, PageType, measure_page
from crawler.core.page.scan import PageScan, RecordKind

FOLDS = 5
STEPS = 120  # of the optimizer; with more, no figure changes by .002
RATE = 0.15
PENALTY, CONTEXT_PENALTY, TYPE_PENALTY = 100.0, 200.0, 0.33  # on the sum of squared weights, halved
SHORT_LINE_WORDS = 8  # a shorter line counts as kept only where the order of the lines allows it
SHINGLE_WORDS = 4
MIN_KEPT_SHARE = 0.5  # of the words of a line
MAX_LINE_WORDS = 60  # a longer line counts as much as one of this length
LINE_EXPONENT = 0.7  # how the count of words of a line makes it count
PAGE_WEIGHTS = {PageType.ARTICLE: 3.0, PageType.DOCUMENTATION: 1.5}  # most pages of the web are of these types
MIN_LINES = 5  # of a page to learn from
_WORD = re.compile(r"\w+")
_TARGET = Path(weights.__file__)


@dataclass(frozen=True, slots=True)
class Page:
    """A reviewed page. is_kept: for each line, whether a reviewer kept it.  weights: how much each line counts."""

    scan: PageScan
    features: LineFeatures
    measures: Floats
    page_type: PageType
    truth: str
    is_kept: Floats
    weights: Floats


def load_pages(folder: Path) -> list[Page]:
    """Load the pages that have lines, in the order of their names."""
    pages = []
    for path in sorted(folder.glob("*.html")):
        scan = parse_html(path.read_bytes(), "text/html").content_scan
        if not scan.texts:
            continue
        review = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        title = next((record.values[0] for record in scan.records if record.kind == RecordKind.TITLE), "")
        features = compute_features(scan, title)
        words = [_split(text) for text in scan.texts]
        is_kept = np.array(find_kept_lines(words, _split(review["main_content"])), dtype=float)
        weights = np.minimum([len(line) for line in words], MAX_LINE_WORDS) ** LINE_EXPONENT
        page_type = PageType(review["type"])
        is_usable = len(words) >= MIN_LINES and is_kept.any()
        weights *= PAGE_WEIGHTS.get(page_type, 1.0) / max(weights.sum(), 1.0) if is_usable else 0.0
        measures = measure_page(scan, features)
        pages.append(Page(scan, features, measures, page_type, review["main_content"], is_kept, weights))
    return pages


def find_kept_lines(lines: Sequence[list[str]], truth: list[str]) -> list[bool]:
    """Return which lines are in the text that a reviewer kept: a long one by its shingles, a short one by its order."""
    shingles = {tuple(truth[at : at + SHINGLE_WORDS]): at for at in reversed(range(len(truth)))}
    places: dict[str, list[int]] = {}
    for at, word in enumerate(truth):
        places.setdefault(word, []).append(at)
    kept = []
    candidates = []  # pairs of a place in the truth and a line
    for number, line in enumerate(lines):
        found: list[int] = []
        if len(line) >= SHORT_LINE_WORDS:
            found = [
                shingles[key]
                for at in range(len(line) - SHINGLE_WORDS + 1)
                if (key := tuple(line[at : at + SHINGLE_WORDS])) in shingles
            ]
            kept.append(len(found) >= MIN_KEPT_SHARE * (len(line) - SHINGLE_WORDS + 1))
            found = found[:1] if kept[-1] else []
        else:
            kept.append(False)
            if line:
                found = [at for at in places.get(line[0], ()) if truth[at : at + len(line)] == line]
        candidates += [(at, number) for at in reversed(found)]
    for number in _find_increasing(candidates):
        kept[number] = True
    return kept


def _find_increasing(candidates: list[tuple[int, int]]) -> Iterable[int]:
    """Return the lines of the longest sequence of candidates whose places increase."""
    ends: list[int] = []
    tails: list[int] = []
    previous = [-1] * len(candidates)
    for number, (at, _) in enumerate(candidates):
        length = bisect_left(ends, at)
        previous[number] = tails[length - 1] if length else -1
        ends[length : length + 1] = [at]
        tails[length : length + 1] = [number]
    number = tails[-1] if tails else -1
    while number >= 0:
        yield candidates[number][1]
        number = previous[number]


def _split(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def fit(rows: Ints, masks: Ints, labels: tuple[Floats, Floats], *, size: int, penalty: float) -> Floats:
    """Return the weights of a logistic regression: of `size` table rows, of bits of masks, and the intercept.

    rows: for each table (first axis) and line, the number of the row that counts.  masks: for each line.
    labels: whether each line is kept, and how much it counts.
    Adam with a falling rate; Kingma, Ba, ICLR 2015.
    """
    is_kept, weights = labels
    weights = weights * (len(weights) / weights.sum())
    distinct, numbers = np.unique(masks, return_inverse=True)
    bits = ((distinct[:, None] >> np.arange(BIT_COUNT)) & 1).astype(float)
    model = np.zeros(size + BIT_COUNT + 1)
    mean, square = np.zeros_like(model), np.zeros_like(model)
    for step in range(1, STEPS + 1):
        scores = model[rows].sum(axis=0) + (bits @ model[size:-1])[numbers] + model[-1]
        errors = (1 / (1 + np.exp(-scores)) - is_kept) * weights
        gradient = np.zeros_like(model)
        for row in rows:
            gradient[:size] += np.bincount(row, errors, minlength=size)
        gradient[size:-1] = np.bincount(numbers, errors) @ bits
        gradient[-1] = errors.sum()
        gradient[:-1] += penalty * model[:-1]
        gradient /= len(weights)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        rate = RATE * (1 - step / (STEPS + 1))
        model -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return model


def _stack(pages: Sequence[Page], codes: Sequence[Ints], tables: dict[str, int]) -> Ints:
    offsets = np.cumsum([0, *tables.values()])[:-1, None]
    return np.concatenate([each + offsets for each in codes], axis=1) if pages else np.zeros((len(tables), 0), int)


def _stack_masks(pages: Sequence[Page]) -> Ints:
    return np.concatenate([np.array(page.features.masks) for page in pages])


def learn(pages: Sequence[Page]) -> tuple[Floats, Floats]:
    """Learn the weights of lines and, from predictions for pages not learned from, those of their context."""
    codes: list[Ints] = [np.zeros((0, 0), int)] * len(pages)
    masks = [np.zeros(len(page.features.masks), int) for page in pages]
    for fold in range(FOLDS):
        others = [page for number, page in enumerate(pages) if number % FOLDS != fold]
        model, types = _learn_lines(others), learn_types(others)
        for number in range(fold, len(pages), FOLDS):
            page = pages[number]
            is_product = predict_type(types, page) is PageType.PRODUCT
            codes[number] = compute_context(page.features, _predict_lines(model, page), is_product=is_product)
            masks[number] = _stack_masks([page]) * is_product
    rows = _stack(pages, codes, CONTEXT_TABLES)
    size = sum(CONTEXT_TABLES.values())
    context = fit(rows, np.concatenate(masks), _get_labels(pages), size=size, penalty=CONTEXT_PENALTY)
    return _learn_lines(pages), context


def predict_type(types: Floats, page: Page) -> PageType:
    """Return the most likely type of a page."""
    return list(PageType)[int(np.argmax(types @ [*page.measures, 1.0]))]


def _learn_lines(pages: Sequence[Page]) -> Floats:
    rows = _stack(pages, [page.features.codes for page in pages], TABLES)
    return fit(rows, _stack_masks(pages), _get_labels(pages), size=sum(TABLES.values()), penalty=PENALTY)


def _get_labels(pages: Sequence[Page]) -> tuple[Floats, Floats]:
    return np.concatenate([page.is_kept for page in pages]), np.concatenate([page.weights for page in pages])


def _predict_lines(model: Floats, page: Page) -> Floats:
    size = sum(TABLES.values())
    rows = _stack([page], [page.features.codes], TABLES)
    bits = (_stack_masks([page])[:, None] >> np.arange(BIT_COUNT)) & 1
    scores = model[rows].sum(axis=0) + bits @ model[size:-1] + model[-1]
    return np.asarray(1 / (1 + np.exp(-scores)))


def _predict_context(model: Floats, page: Page, likely: Floats, *, is_product: bool) -> Floats:
    size = sum(CONTEXT_TABLES.values())
    rows = _stack([page], [compute_context(page.features, likely, is_product=is_product)], CONTEXT_TABLES)
    bits = (_stack_masks([page])[:, None] >> np.arange(BIT_COUNT)) & 1
    scores = model[rows].sum(axis=0) + (bits @ model[size:-1]) * is_product + model[-1]
    return np.asarray(1 / (1 + np.exp(-scores)))


def learn_types(pages: Sequence[Page]) -> Floats:
    """Learn the weights of the measures of a page for each type: one row per type, the last column the intercept."""
    pages = [page for page in pages if page.weights.any()]
    counts = np.array([[PAGE_WEIGHTS.get(page.page_type, 1.0)] for page in pages])
    measures = np.array([[*page.measures, 1.0] for page in pages])
    types = list(PageType)
    wanted = np.array([[page.page_type == each for each in types] for page in pages], dtype=float)
    model = np.zeros((len(types), MEASURE_COUNT + 1))
    rate = 0.5
    for _ in range(2000):
        scores = np.exp(measures @ model.T)
        gradient = ((scores / scores.sum(axis=1, keepdims=True) - wanted) * counts).T @ measures
        gradient += TYPE_PENALTY * model
        model -= rate * gradient / len(pages)
    return model


def compute_f1(text: str, truth: str) -> float:
    """Return the F1 measure of the words of a text, as multisets."""
    found, wanted = Counter(_split(text)), Counter(_split(truth))
    both = (found & wanted).total()
    return 2 * both / max(found.total() + wanted.total(), 1)


def validate(pages: Sequence[Page]) -> None:
    """Print the F1 measure by page type, and the share of right types, of pages that were not learned from."""
    figures: dict[str, list[float]] = {}
    right = 0
    for fold in range(FOLDS):
        train = [page for number, page in enumerate(pages) if number % FOLDS != fold]
        lines, context = learn(train)
        types = learn_types(train)
        for page in pages[fold::FOLDS]:
            found = predict_type(types, page)
            is_product = found is PageType.PRODUCT
            likely = _predict_context(context, page, _predict_lines(lines, page), is_product=is_product)
            threshold, _ = choice.find_threshold(likely, page.features.chars)
            text = " ".join([text for text, each in zip(page.scan.texts, likely, strict=True) if each >= threshold])
            figures.setdefault(page.page_type, []).append(compute_f1(text, page.truth))
            right += found == page.page_type
    for name, each in sorted(figures.items()):
        print(f"{name:14} {len(each):4}  F1 {np.mean(each):.3f}")
    print(f"all pages      {len(pages):4}  F1 {np.mean(np.concatenate([*figures.values()])):.3f}  right types {right}")


def write_weights(pages: Sequence[Page], target: Path) -> None:
    """Learn from all pages and write the weights as a module."""
    lines, context = learn(pages)
    size = sum(TABLES.values())
    types = learn_types(pages)
    text = [
        '"""The weights that choose the main content of a page, by table. Written by labs/content/training.py."""\n',
        "# fmt: off\n",
        f"INTERCEPT = {lines[-1]:.2f}",
        f"CONTEXT_INTERCEPT = {context[-1]:.2f}",
        f"BIT_WEIGHTS: tuple[float, ...] = {_format(lines[size:-1])}",
        f"PRODUCT_BIT_WEIGHTS: tuple[float, ...] = {_format(context[sum(CONTEXT_TABLES.values()) : -1])}",
        f"WEIGHTS: tuple[tuple[float, ...], ...] = ({_format_tables(lines, TABLES)})",
        f"CONTEXT_WEIGHTS: tuple[tuple[float, ...], ...] = ({_format_tables(context, CONTEXT_TABLES)})",
        "# One row per page type; the last weight is the intercept.",
        f"TYPE_WEIGHTS: tuple[tuple[float, ...], ...] = ({''.join(f'{_format(row)},' for row in types)})",
    ]
    target.write_text("\n".join(text) + "\n", encoding="utf-8")


def _format_tables(model: Floats, tables: dict[str, int]) -> str:
    ends = np.cumsum([*tables.values()])
    rows = [
        f"{_format(model[end - size : end])},  # {name}\n"
        for (name, size), end in zip(tables.items(), ends, strict=True)
    ]
    return "\n" + "".join(rows)


def _format(values: Floats) -> str:
    numbers = ", ".join(f"{value:.2f}" for value in np.round(values, 2) + 0.0)
    return f"(\n{textwrap.fill(numbers, 112, initial_indent=' ' * 4, subsequent_indent=' ' * 4)},\n)"


def main(arguments: Sequence[str]) -> int:
    """Write the weights learned from the pages of a folder, then print how well such weights do on other pages."""
    pages = load_pages(Path(arguments[0])) if len(arguments) == 1 else []
    if len(pages) < FOLDS:
        print(f"{__doc__}\nAt least {FOLDS} pages are needed.", file=sys.stderr)
        return 2
    write_weights(pages, _TARGET)
    validate(pages)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
