"""Measure the CPU time to read a page, by stage, and compare it with the floor: parsing by lexbor and an empty walk.

Pages of about 14 kB and 100 kB come from Debian's documentation packages; --pages adds a folder of other pages. Each
reader that is available is measured: the compiled one and the one in Python.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from statistics import mean

from selectolax.lexbor import LexborHTMLParser

from benchmarks.harness.machine import described
from benchmarks.harness.table import table
from benchmarks.pages.documents import documents
from crawler.core.http.urls import Url
from crawler.core.page.compiled_scan import (
    cut_to_affordable,
    describe_reader,
    forget_library,
    scan_compiled,
    scan_tree,
)
from crawler.core.page.content import join_lines_of_page, read_html
from crawler.core.page.fingerprint import compute_digest
from crawler.core.page.html import parse_html
from crawler.core.page.main_content.choice import read_main_content
from crawler.core.page.reader_choice import PYTHON, choose_reader
from crawler.core.page.sample import digest_words
from crawler.core.page.shared_lines import NO_SHARED_LINES
from crawler.core.page.snapshot import Parsed, parse_body
from tests.engine.corpus import CorpusError

PACKAGES: Mapping[str, str] = {"14 kB": "postgresql-doc-15", "100 kB": "python3.11-doc"}
CONTENT_TYPE = "text/html"
PAGE_URL = Url("http://corpus.test/page.html")
FLOOR = "floor: parse and walk"


@dataclass(frozen=True, slots=True)
class Page:
    """A page with the results of the stages before those that are measured."""

    body: bytes = field(repr=False)

    def parse(self, *, with_blocks: bool) -> Parsed:
        return parse_body(self.body, url=PAGE_URL, content_type=CONTENT_TYPE, with_blocks=with_blocks)


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    try:
        groups = dict(read_groups(given.count, given.pages))
    except CorpusError as reason:
        print(f"The pages are not available: {reason}", file=sys.stderr)
        return 1
    rows = [row for name, found in groups.items() for row in measure_group(name, found, times=given.times)]
    print(described("selectolax"), "CPU milliseconds a page, the best of the repeats, mean over the pages:", sep="\n\n")
    print(table(("pages", "stage", "compiled", "Python", "compiled / floor", "Python / floor"), rows))
    return 0


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks pages", description=__doc__)
    parser.add_argument("--pages", type=Path, metavar="FOLDER", help="also read the HTML files in this folder")
    parser.add_argument("--count", type=int, default=40, help="number of pages of each group")
    parser.add_argument("--times", type=int, default=3, help="repeats for each page, of which the best counts")
    return parser


def read_groups(count: int, folder: Path | None) -> Iterator[tuple[str, Sequence[Page]]]:
    """Yield the names of the groups of pages, with their sizes, and the pages."""
    for name, package in PACKAGES.items():
        yield name, [Page(file.read_bytes()) for file in islice(documents(package), count)]
    if folder is not None:
        files = sorted(folder.rglob("*.html"))
        yield "folder", [Page(file.read_bytes()) for file in Random(1).sample(files, min(count, len(files)))]


def measure_group(name: str, pages: Sequence[Page], *, times: int) -> Iterator[tuple[object, ...]]:
    """Yield the rows of the table for some pages."""
    kilobytes = mean(len(page.body) for page in pages) / 1000
    by_reader = {}
    for reader in ("compiled", PYTHON):
        with chosen_reader(reader) as is_available:
            if is_available:
                by_reader[reader] = measure_stages(pages, times=times)
    for number, stage in enumerate(by_reader[PYTHON]):
        found = [by_reader[reader][stage] if reader in by_reader else None for reader in ("compiled", PYTHON)]
        floors = [by_reader[reader][FLOOR] if reader in by_reader else None for reader in ("compiled", PYTHON)]
        ratios = ["" if a is None or b is None else a / b for a, b in zip(found, floors, strict=True)]
        label = f"{name} ({kilobytes:.0f})" if not number else ""
        yield (label, stage, *("" if each is None else each for each in found), *ratios)


@contextmanager
def chosen_reader(reader: str) -> Iterator[bool]:
    """Read pages with one of the readers until the block ends. Yield whether it is available."""
    choose_reader(reader)
    forget_library()
    try:
        yield reader == PYTHON or describe_reader() == "compiled"
    finally:
        choose_reader("")
        forget_library()


def measure_stages(pages: Sequence[Page], *, times: int) -> Mapping[str, float]:
    """Return the mean CPU milliseconds of each stage."""
    columns: dict[str, list[float]] = {}
    for page in pages:
        for stage, call in build_stages(page):
            columns.setdefault(stage, []).append(best_ms(call, times))
    return {stage: mean(column) for stage, column in columns.items()}


def build_stages(page: Page) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the stages with their calls; what a stage needs from those before is prepared."""
    markup = parse_html(page.body, CONTENT_TYPE)
    source, tree = markup.source, markup.tree
    title, lines = read_html(page.body, markup, url=PAGE_URL)[0].title, join_lines_of_page(markup)
    yield "decode", lambda: parse_html(page.body, CONTENT_TYPE)
    yield "affordability", lambda: cut_to_affordable(source, markup.data)
    yield FLOOR, lambda: walk(LexborHTMLParser(source))
    yield "parse", lambda: LexborHTMLParser(markup.data)
    yield "scan", lambda: scan_compiled(tree) or scan_tree(tree)
    yield "join the texts", lambda: join_lines_of_page(markup)
    yield "choose the content", lambda: read_main_content(markup, title=title, shared=NO_SHARED_LINES)
    yield "fingerprint and sample", lambda: digest_words(lines, page.body, url=PAGE_URL)
    yield "digests", lambda: (compute_digest(page.body), compute_digest(lines.whole), compute_digest(lines.main))
    yield "title, links, metadata, texts", lambda: read_html(page.body, markup, url=PAGE_URL)
    yield "all, without blocks", lambda: page.parse(with_blocks=False)
    yield "all, with blocks", lambda: page.parse(with_blocks=True)


def walk(tree: LexborHTMLParser) -> None:
    if tree.root is not None:
        for _ in tree.root.traverse(include_text=True):
            pass


def best_ms(call: Callable[[], object], times: int) -> float:
    best = float("inf")
    for _ in range(times):
        began = time.thread_time()
        call()
        best = min(best, time.thread_time() - began)
    return 1000 * best
