"""Measure the CPU time of fingerprints from main text: words, hashes and bits.

Pages have about 50 kB and at most 1,500 words, from Debian's documentation packages. The simhash package, used as in
its documentation, is measured too.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from simhash import Simhash

from benchmarks.harness.table import table
from benchmarks.harness.timings import percentile_ms
from benchmarks.pages.documents import of_size
from crawler.core.page.content import extract_content
from crawler.core.page.fingerprint import compute_fingerprint
from tests.engine.corpus import CorpusError

HEAD = ("", "pages", "words each", "failed", "p50 ms", "p99 ms", "max ms")
PAGE_BYTES = 50_000
MAX_WORDS = 1500
BAR_MS = 1.0  # limit at the 99th percentile


@dataclass(frozen=True, slots=True)
class Timed:
    """CPU seconds for each text. failed: the number of texts without a fingerprint."""

    name: str
    words: int
    seconds: Sequence[float]
    failed: int

    @property
    def row(self) -> tuple[object, ...]:
        pages = len(self.seconds) + self.failed
        return (self.name, pages, self.words // pages, self.failed, *(self.ms(percent) for percent in (50, 99, 100)))

    def ms(self, percent: float) -> float:
        return percentile_ms(self.seconds, percent)


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    try:
        texts = main_texts(given.pages)
    except CorpusError as reason:
        print(f"The pages are not available: {reason}", file=sys.stderr)
        return 1
    ours = timed("ours", compute_fingerprint, texts, times=given.times)
    theirs = timed("Simhash(text)", Simhash, texts, times=given.times)
    print(table(HEAD, [ours.row, theirs.row]))
    held = ours.ms(99) < BAR_MS
    print(
        f"\n{theirs.ms(50) / ours.ms(50):.0f} times as fast. "
        f"99 of 100 pages under {BAR_MS} ms: {'met' if held else 'missed'} on this machine"
    )
    return 0


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks fingerprint", description=__doc__)
    parser.add_argument("--pages", type=int, default=200, help="maximum number of pages")
    parser.add_argument("--times", type=int, default=5, help="repeats for each page, of which the best counts")
    return parser


def main_texts(most: int) -> Sequence[str]:
    pages = of_size(PAGE_BYTES, most=10 * most)
    texts = [extract_content(page.body, url=page.url, content_type="text/html").main for page in pages]
    return [text for text in texts if text and len(text.split()) <= MAX_WORDS][:most]


def timed(name: str, sign: Callable[[str], object], texts: Sequence[str], *, times: int) -> Timed:
    seconds = [found for text in texts if (found := best_of(sign, text, times)) is not None]
    return Timed(name, sum(len(text.split()) for text in texts), seconds, len(texts) - len(seconds))


def best_of(sign: Callable[[str], object], text: str, times: int) -> float | None:
    """Return the best CPU time in seconds, or None if the package fails, as it does when a feature occurs 256 times."""
    best = float("inf")
    for _ in range(times):
        began = time.thread_time()
        try:
            sign(text)
        except OverflowError:
            return None
        best = min(best, time.thread_time() - began)
    return best
