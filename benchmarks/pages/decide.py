"""How long it takes to understand a page and to decide what a look at it means, by the size of the page.

Pages of Debian's documentation packages, each with a price and a clock. A look is timed as a crawl makes it: the body
is read, outlined, compared with the last Snapshot, whose body is read again, and teaches the domain's mask, which has
learnt from other pages before. Beside it: the bare parse of the same page by selectolax. Counted is processor time.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser

from benchmarks.change.ours import initial_knowledge, new_target
from benchmarks.harness.table import table
from benchmarks.harness.timings import percentile_ms
from benchmarks.pages.documents import PACKAGES, Document, answered, document, documents, of_size
from crawler.core.change.change import Change
from crawler.core.change.observation import Observation, update_mask
from crawler.core.http.urls import compute_page_key
from crawler.core.noise.words import mask_numbers, split_words
from crawler.core.page.outline import extract_blocks
from crawler.core.page.snapshot import Parsed, parse_body
from crawler.core.visit.decide import decide_visit, needs_baseline, needs_parsing
from crawler.core.visit.visit import Baseline, DomainKnowledge, State, Target, Visit
from tests.engine.corpus import CorpusError

HEAD = ("kB", "look", "pages", "p50 ms", "p99 ms", "most ms", "parse p50 ms", "times the parse")
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
PAIRS = 3  # looks seconds apart, which tell that the clock is no news and the price stands still


class Said(NamedTuple):
    """What differs between two looks at a page."""

    price: str
    clock: str


FIRST = Said("19.99", "10:15:00")
LOOKS: Mapping[str, tuple[Said, Change]] = {
    "the first": (FIRST, Change.ADDED),
    "same bytes": (FIRST, Change.UNCHANGED),
    "a clock": (Said("19.99", "11:42:37"), Change.COSMETIC),
    "a price": (Said("18.99", "11:42:37"), Change.CHANGED),
}


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds of each look of one kind at pages of one size, and of their bare parse."""

    kilobytes: int
    look: str
    seconds: Sequence[float]
    parse_s: Sequence[float]

    @property
    def row(self) -> tuple[object, ...]:
        times = (percentile_ms(self.seconds, percent) for percent in (50, 99, 100))
        parse = percentile_ms(self.parse_s, 50)
        return (self.kilobytes, self.look, len(self.seconds), *times, parse, percentile_ms(self.seconds, 50) / parse)


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    try:
        known = {package: taught(package, pages=given.learn) for package in PACKAGES}
        rows = [each.row for size in given.sizes for each in timed(size, known, most=given.pages)]
    except CorpusError as reason:
        print(f"The pages cannot be had: {reason}", file=sys.stderr)
        return 1
    print(table(HEAD, rows))
    return 0


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks decide", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5, 20, 50, 200, 500], metavar="KB")
    parser.add_argument("--pages", type=int, default=40, help="of each size, at most")
    parser.add_argument("--learn", type=int, default=120, help="pages that each site's mask has learnt from")
    return parser


def taught(package: str, *, pages: int) -> DomainKnowledge:
    """What is known of a site after a first look at some of its pages."""
    found = [document(package, file) for file in islice(documents(package), pages)]
    known = initial_knowledge(found[0].url)
    mask = known.mask
    for page in found:
        mask = update_mask(mask, Observation(compute_page_key(page.url), read(page, FIRST).blocks, START))
    return replace(known, mask=mask)


def paired(known: DomainKnowledge, page: Document) -> DomainKnowledge:
    """The case after a few repeat fetches of a page, which may have a template of its own."""
    mask = known.mask
    for n in range(PAIRS):
        again = read(page, Said(FIRST.price, f"10:15:0{n + 1}")).blocks
        mask = update_mask(
            mask, Observation(compute_page_key(page.url), read(page, FIRST).blocks, START, second_fetches=(again,))
        )
    return replace(known, mask=mask)


def timed(kilobytes: int, known: Mapping[str, DomainKnowledge], *, most: int) -> Iterator[Timed]:
    pages = [(page, paired(known[page.package], page)) for page in of_size(1000 * kilobytes, most=most)]
    parse_s = [timed_parse(page) for page, _ in pages]
    for look, (said, change) in LOOKS.items():
        seconds = []
        for page, site in pages:
            before = new_target(page.url) if change is Change.ADDED else target_of(page, site)
            spent, visit = timed_look(page, before, said, site)
            assert visit.change is change, f"{page.url} with {look}: {visit.change}"
            seconds.append(spent)
        yield Timed(kilobytes, look, seconds, parse_s)


def timed_parse(page: Document) -> float:
    source = written(page, FIRST).decode("utf-8", "replace")
    began = time.thread_time()
    LexborHTMLParser(source)
    return time.thread_time() - began


def timed_look(page: Document, before: Target, said: Said, known: DomainKnowledge) -> tuple[float, Visit]:
    split_words.cache_clear()  # nothing is remembered of a page that was looked at days ago
    mask_numbers.cache_clear()
    body, kept = written(page, said), written(page, FIRST)
    began = time.thread_time()
    visit = look(page, before, body, kept, known)
    return time.thread_time() - began, visit


def look(page: Document, target: Target, body: bytes, kept: bytes, known: DomainKnowledge) -> Visit:
    """As a crawl does it. kept: the body of the last Snapshot."""
    answer, now = answered(body), START + DAY
    parsed = baseline = None
    if needs_parsing(target, answer):
        parsed = understood_of(page, body)
        if needs_baseline(target, parsed):
            baseline = Baseline(extract_blocks(kept, url=page.url, content_type="text/html"), START)
    return decide_visit(target, answer, now=now, knowledge=known, parsed=parsed, baseline=baseline)


def target_of(page: Document, known: DomainKnowledge) -> Target:
    """The page after its first look."""
    visit = look(page, new_target(page.url), written(page, FIRST), b"", known)
    assert visit.snapshot is not None
    return replace(visit.target, state=State.FETCHED, version=visit.snapshot.version, status=200, last_good_at=START)


def read(page: Document, said: Said) -> Parsed:
    return understood_of(page, written(page, said))


def understood_of(page: Document, body: bytes) -> Parsed:
    return parse_body(body, url=page.url, content_type="text/html", robots_tag=None)


def written(page: Document, said: Said) -> bytes:
    """The page with a price and a clock at the end of its text."""
    lines = f"<p class=price>{page.url} costs {said.price} euros</p><p class=clock>It is {said.clock} now</p>".encode()
    start, end, rest = page.body.rpartition(b"</body>")
    return b"".join((start, lines, end, rest)) if end else page.body + lines
