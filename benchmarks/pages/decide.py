"""Measure the CPU time to parse a page and to decide what a visit found, by the size of the page.

Pages come from Debian's documentation packages, with a price and a clock added. A visit is timed as in a crawl: the
body is parsed and split into blocks, compared with the last snapshot, whose body is parsed again, and used to update
the domain's noise mask, which has learned from other pages. Plain parsing of the same page by selectolax is measured
too.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace
from selectolax.lexbor import LexborHTMLParser

from benchmarks.change.ours import initial_knowledge, new_target
from benchmarks.harness.table import table
from benchmarks.harness.timings import percentile_ms
from benchmarks.pages.documents import PACKAGES, Document, build_response, document, documents, of_size
from crawler.core.change.change import Change
from crawler.core.change.mask_learning import Observation, update_mask
from crawler.core.http.urls import compute_page_key
from crawler.core.noise.words import mask_numbers, split_words
from crawler.core.page.outline import extract_blocks
from crawler.core.page.snapshot import Parsed, parse_body
from crawler.core.visit.decide import decide_visit, needs_baseline, needs_parsing
from crawler.core.visit.state import State
from crawler.core.visit.visit import Baseline, DomainKnowledge, Target, Visit
from tests.engine.corpus import CorpusError

HEAD = ("kB", "visit", "pages", "p50 ms", "p99 ms", "max ms", "parse p50 ms", "times the parse")
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
PAIRS = 3  # second fetches, which show that the clock is noise and the price stable


class Variant(NamedTuple):
    """The parts that differ between two visits."""

    price: str
    clock: str


FIRST = Variant("19.99", "10:15:00")
VISITS: Mapping[str, tuple[Variant, Change]] = {
    "first visit": (FIRST, Change.ADDED),
    "unchanged bytes": (FIRST, Change.UNCHANGED),
    "a clock": (Variant("19.99", "11:42:37"), Change.COSMETIC),
    "a price": (Variant("18.99", "11:42:37"), Change.CHANGED),
}


@dataclass(frozen=True, slots=True)
class Timed:
    """CPU seconds of the visits of one kind to pages of one size, and of plain parsing."""

    kilobytes: int
    decide: str
    seconds: Sequence[float]
    parse_s: Sequence[float]

    @property
    def row(self) -> tuple[object, ...]:
        times = (percentile_ms(self.seconds, percent) for percent in (50, 99, 100))
        parse = percentile_ms(self.parse_s, 50)
        return (self.kilobytes, self.decide, len(self.seconds), *times, parse, percentile_ms(self.seconds, 50) / parse)


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    try:
        known = {package: learned_knowledge(package, pages=given.learn) for package in PACKAGES}
        rows = [each.row for size in given.sizes for each in timed(size, known, most=given.pages)]
    except CorpusError as reason:
        print(f"The pages are not available: {reason}", file=sys.stderr)
        return 1
    print(table(HEAD, rows))
    return 0


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks decide", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5, 20, 50, 200, 500], metavar="KB")
    parser.add_argument("--pages", type=int, default=40, help="maximum number of pages of each size")
    parser.add_argument("--learn", type=int, default=120, help="number of pages that the mask of each site learns from")
    return parser


def learned_knowledge(package: str, *, pages: int) -> DomainKnowledge:
    """Return the knowledge of a site after first visits to some of its pages."""
    found = [document(package, file) for file in islice(documents(package), pages)]
    known = initial_knowledge(found[0].url)
    mask = known.mask
    for page in found:
        mask = update_mask(mask, Observation(compute_page_key(page.url), read(page, FIRST).blocks, START))
    return replace(known, mask=mask)


def paired(known: DomainKnowledge, page: Document) -> DomainKnowledge:
    """Add a few second fetches of a page, which may have a different template, to the mask."""
    mask = known.mask
    for n in range(PAIRS):
        again = read(page, Variant(FIRST.price, f"10:15:0{n + 1}")).blocks
        mask = update_mask(
            mask, Observation(compute_page_key(page.url), read(page, FIRST).blocks, START, second_fetches=(again,))
        )
    return replace(known, mask=mask)


def timed(kilobytes: int, known: Mapping[str, DomainKnowledge], *, most: int) -> Iterator[Timed]:
    pages = [(page, paired(known[page.package], page)) for page in of_size(1000 * kilobytes, most=most)]
    parse_s = [timed_parse(page) for page, _ in pages]
    for decide, (variant, change) in VISITS.items():
        seconds = []
        for page, site in pages:
            before = new_target(page.url) if change is Change.ADDED else target_of(page, site)
            spent, visit = timed_visit(page, before, variant, site)
            assert visit.change is change, f"{page.url} with {decide}: {visit.change}"
            seconds.append(spent)
        yield Timed(kilobytes, decide, seconds, parse_s)


def timed_parse(page: Document) -> float:
    source = render(page, FIRST).decode("utf-8", "replace")
    began = time.thread_time()
    LexborHTMLParser(source)
    return time.thread_time() - began


def timed_visit(page: Document, before: Target, variant: Variant, known: DomainKnowledge) -> tuple[float, Visit]:
    split_words.cache_clear()  # a crawl has not cached anything of a page since its last visit
    mask_numbers.cache_clear()
    body, kept = render(page, variant), render(page, FIRST)
    began = time.thread_time()
    visit = decide(page, before, body, kept, known)
    return time.thread_time() - began, visit


def decide(page: Document, target: Target, body: bytes, kept: bytes, known: DomainKnowledge) -> Visit:
    """Decide a visit as a crawl does. kept: the body of the last snapshot."""
    response, now = build_response(body), START + DAY
    parsed = baseline = None
    if needs_parsing(target, response):
        parsed = parse(page, body)
        if needs_baseline(target, parsed):
            baseline = Baseline(extract_blocks(kept, url=page.url, content_type="text/html"), START)
    return decide_visit(target, response, now=now, knowledge=known, parsed=parsed, baseline=baseline)


def target_of(page: Document, known: DomainKnowledge) -> Target:
    """Return the page after its first visit."""
    visit = decide(page, new_target(page.url), render(page, FIRST), b"", known)
    assert visit.snapshot is not None
    return replace(visit.target, state=State.FETCHED, version=visit.snapshot.version, status=200, last_good_at=START)


def read(page: Document, variant: Variant) -> Parsed:
    return parse(page, render(page, variant))


def parse(page: Document, body: bytes) -> Parsed:
    return parse_body(body, url=page.url, content_type="text/html")


def render(page: Document, variant: Variant) -> bytes:
    """Return the page with a price and a clock at the end of its text."""
    price, clock = variant
    added = f"<p class=price>{page.url} costs {price} euros</p><p class=clock>It is {clock} now</p>".encode()
    start, end, rest = page.body.rpartition(b"</body>")
    return b"".join((start, added, end, rest)) if end else page.body + added
