"""Measure how fast the planner learns from visits and evaluates pages, and solves for the shadow price of 10^7 pages.

As in a plan, the shadow price comes from a sample; drawing it is included.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from benchmarks.harness.table import table
from crawler.core.budget.page_arrays import SAMPLE_SIZE, PageArrays, build_page_arrays, compute_gaps, select_subset
from crawler.core.budget.shadow_price import Budget, Workload, solve_shadow_price
from crawler.core.freshness.estimates import PRIOR, fade_evidence, learn_changed, learn_unchanged
from crawler.core.freshness.gamma import Floats, Numbers

HEAD = ("what", "pages", "seconds", "limit, seconds")
LEARN_BAR = 0.5
PRICE_BAR = 10.0
USUAL_PRICE = 0.25


@dataclass(frozen=True, slots=True)
class Timed:
    """The best of some runs, which excludes other load of the machine."""

    what: str
    pages: int
    seconds: float
    bar: float

    @property
    def row(self) -> tuple[object, ...]:
        return (self.what, self.pages, self.seconds, self.bar)


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    timed = [learning(given.learn, times=given.times), pricing(given.price)]
    print(table(HEAD, [each.row for each in timed]))
    held = all(each.seconds < each.bar for each in timed)
    print(f"\nAll within their limits: {'yes' if held else 'no'}, on this machine")
    return 0


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks schedule", description=__doc__)
    parser.add_argument("--learn", type=int, default=10**5, metavar="PAGES", help="number of visited pages")
    parser.add_argument("--price", type=int, default=10**7, metavar="PAGES", help="number of pages that share a budget")
    parser.add_argument("--times", type=int, default=5, help="number of runs, of which the best counts")
    return parser


def learning(count: int, *, times: int) -> Timed:
    pages, rng = population(count), np.random.default_rng(2)
    gap, found = 10 ** rng.uniform(-1, 2, count), rng.random(count) < 0.3
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        learn_and_appraise(pages, gap, found)
        seconds.append(time.perf_counter() - began)
    return Timed("learn and evaluate", count, min(seconds), LEARN_BAR)


def learn_and_appraise(pages: PageArrays, gap: Floats, found: np.typing.NDArray[np.bool_]) -> Floats:
    """Update the rate estimates after a visit to each page and return the days until the next visits."""
    a, b = fade_evidence(pages.a, pages.b, PRIOR.a, PRIOR.b, gap)
    a, b = _learn(a, b, gap, found)
    return compute_gaps(replace(pages, a=a, b=b), USUAL_PRICE)


def _learn(a: Numbers, b: Numbers, gap: Floats, found: np.typing.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    changed, same = learn_changed(a, b, gap), learn_unchanged(a, b, gap)
    return np.where(found, changed[0], same[0]), np.where(found, changed[1], same[1])


def pricing(count: int) -> Timed:
    pages = population(count)
    began = time.perf_counter()
    drawn = np.random.default_rng(0).choice(count, min(SAMPLE_SIZE, count), replace=False)
    sample = replace(select_subset(pages, drawn), stands_for=np.full(len(drawn), count / len(drawn)))
    solve_shadow_price(Workload(sample), Budget(0.03 * count))
    return Timed("price", count, time.perf_counter() - began, PRICE_BAR)


def population(count: int) -> PageArrays:
    """Draw pages: rates over three decades, power-law importance, one request each, gaps of ten minutes to 180 days."""
    rng = np.random.default_rng(1)
    weight = np.clip(0.1 * (rng.pareto(1.1, count) + 1), 0.05, 1000)
    return build_page_arrays(
        a=rng.uniform(0.3, 8, count),
        b=10 ** rng.uniform(0, 2.5, count),
        weight=weight,
        importance=weight,
        requests=1.0,
        received_bytes=0.0,
        least=1 / 144,
        most=180.0,
        domain=0,
        stands_for=1.0,
        is_ruled=False,
        recall=0.0,
        ratio=0.0,
        signals_per_day=0.0,
    )
