"""Compare the content text of pages with their true content, on sets of real pages from Debian packages.

Each set is one domain: what recrawl knows about its boilerplate is learned from the other half of the pages. Words are
compared as multisets, regardless of case. Precision, recall and F1 are means over the pages of a set.
"""

import argparse
import json
import logging
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.util import find_spec

from benchmarks.content.extractors import EXTRACTORS
from benchmarks.content.sets import CONTENT_TYPE, SETS, Page, PageSet, pages
from benchmarks.harness.machine import described
from benchmarks.harness.table import table
from crawler.core.change.mask import NO_MASK
from crawler.core.change.mask_learning import Observation, update_mask
from crawler.core.http.urls import compute_page_key
from crawler.core.page.outline import extract_blocks
from crawler.core.page.shared_lines import SharedLines

START = datetime(2026, 1, 1, tzinfo=UTC)
PACKAGES = {"trafilatura": "trafilatura", "readability": "readability-lxml", "resiliparse": "resiliparse"}


@dataclass(frozen=True, slots=True)
class Score:
    """Means over pages, from 0 to 1, and the CPU time in milliseconds a page, from bytes to text."""

    precision: float
    recall: float
    f1: float
    ms: float


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    names = [name for name in given.extractors if is_installed(name)]
    for name in set(given.extractors) - set(names):
        print(f"{name} is left out: it is not installed. Run `make setup-bench`.", file=sys.stderr)
    logging.disable(logging.CRITICAL)  # other packages log each page that they cannot read
    chosen = [each for each in SETS if not given.sets or each.package in given.sets]
    scores = {each: measure(each, names, most=given.pages, learned=given.learn) for each in chosen}
    if given.json:
        rows = {each.package: {name: asdict(score) for name, score in found.items()} for each, found in scores.items()}
        print(json.dumps(rows))
    else:
        print(report(scores, names))
    return 0


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks content", description=__doc__)
    parser.add_argument("--pages", type=int, default=100, help="maximum number of pages of each set")
    parser.add_argument("--learn", type=int, default=50, metavar="N", help="maximum number of pages to learn from")
    parser.add_argument("--sets", nargs="+", metavar="PACKAGE", choices=[each.package for each in SETS])
    parser.add_argument("--extractors", nargs="+", choices=list(EXTRACTORS), default=list(EXTRACTORS))
    parser.add_argument("--json", action="store_true")
    return parser


def is_installed(name: str) -> bool:
    return name not in PACKAGES or find_spec(name) is not None


def measure(each: PageSet, names: Sequence[str], *, most: int, learned: int) -> Mapping[str, Score]:
    """Measure all extractors on a set. Raise CorpusError if it is not available."""
    known = list(with_knowledge(pages(each, most=most), learned))
    return {name: measure_one(name, known) for name in names}


def with_knowledge(found: Sequence[Page], learned: int) -> Iterator[tuple[Page, SharedLines]]:
    """Yield the pages, each with what the other half of them shows about the domain."""
    halves = found[: len(found) // 2], found[len(found) // 2 :]
    for half, other in (halves, reversed(halves)):
        known = learn(list(other[:learned]))
        yield from ((page, known) for page in half)


def learn(known: Sequence[Page]) -> SharedLines:
    """Return the lines that pages share, as a crawl learns them from first visits."""
    mask = NO_MASK
    for page in known:
        blocks = extract_blocks(page.body, url=page.url, content_type=CONTENT_TYPE)
        mask = update_mask(mask, Observation(compute_page_key(page.url), blocks, START, url=page.url))
    return mask.boilerplate.list_shared_lines()


def measure_one(name: str, known: Sequence[tuple[Page, SharedLines]]) -> Score:
    extract, scores, seconds = EXTRACTORS[name], [], 0.0
    for page, learned in known:
        began = time.process_time()
        text = extract(page, learned)
        seconds += time.process_time() - began
        scores.append(compare(text, page.content))
    count = len(known)
    precision, recall, f1 = (sum(column) / count for column in zip(*scores, strict=True))
    return Score(precision, recall, f1, 1000 * seconds / count)


def compare(text: str, true_text: str) -> tuple[float, float, float]:
    """Return precision, recall and F1 of the words of a text."""
    found, true = count_words(text), count_words(true_text)
    common = (found & true).total()
    if not common:
        return 0.0, 0.0, 0.0
    precision, recall = common / found.total(), common / true.total()
    return precision, recall, 2 * precision * recall / (precision + recall)


def count_words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


def report(scores: Mapping[PageSet, Mapping[str, Score]], names: Sequence[str]) -> str:
    rows = [(each.package, *(f"{found[name].f1:.3f}" for name in names)) for each, found in scores.items()]
    means = []
    for name in names:
        columns = zip(*(tuple(asdict(found[name]).values()) for found in scores.values()), strict=True)
        precision, recall, f1, ms = (sum(column) / len(scores) for column in columns)
        means.append((name, f"{precision:.3f}", f"{recall:.3f}", f"{f1:.3f}", ms))
    return "\n\n".join(
        [
            described("selectolax", *PACKAGES.values()),
            "Word F1:",
            table(("set", *names), rows),
            "Means over the sets:",
            table(("extractor", "precision", "recall", "F1", "CPU ms a page"), means),
        ]
    )
