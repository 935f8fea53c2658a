"""What a user gets with default options: first crawls of sites of several kinds and sizes, beside other crawlers.

Kinds: pages of 14 kB without scripts (postgresql-doc-15), pages of 100 kB with scripts (python3.11-doc), and with
`--real FOLDER` the HTML files of a folder, which may come from many hosts. Measured as in `crawl`.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.crawling.crawlers import RECRAWLER, SCRAPY
from benchmarks.crawling.crawls import Corpus, corpus_in, crawled_afresh
from benchmarks.crawling.first import CRAWLERS, Costs, costs, single_page
from benchmarks.crawling.sites import list_pages, resize_site
from benchmarks.harness.database import HOME
from benchmarks.harness.machine import described, share_cores
from benchmarks.harness.repeats import alternating, middle
from benchmarks.harness.table import table
from crawler.runtime.postgres.cluster import borrow_postgres
from tests.engine.corpus import fetch

HEAD = ("site", "crawler", "pages", "pages/s", "times Scrapy", "CPU ms/page", "with Postgres", "peak MB")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks kinds", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[60, 1000, 20000], help="pages of the 14 kB sites")
    parser.add_argument("--real", type=Path, metavar="FOLDER", help="a folder of real pages")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--parallelism", type=int, default=16)
    parser.add_argument("--only", nargs="+", choices=tuple(CRAWLERS))
    parser.add_argument("--home", type=Path, default=HOME, help="folder of the Postgres server")
    given = parser.parse_args(arguments)
    chosen = [CRAWLERS[name] for name in given.only or CRAWLERS]
    rows: list[tuple[object, ...]] = []
    is_complete = True
    with borrow_postgres(given.home) as cluster, single_page() as small:
        share_cores(cluster)
        idle = {each.name: crawled_afresh(each, small, cluster, parallelism=given.parallelism) for each in chosen}
        for name, corpus in build_sites(given.sizes, given.real):
            runs = [
                crawled_afresh(each, corpus, cluster, parallelism=given.parallelism)
                for each in alternating(chosen, given.repeats)
            ]
            is_complete &= all(run.pages == len(corpus.linked) for run in runs)
            each_cost = {
                crawler.name: Costs(
                    *middle([costs(run, idle[run.crawler]).numbers for run in runs if run.crawler == crawler.name])
                )
                for crawler in chosen
            }
            rows += build_rows(name, each_cost)
    print(table(HEAD, rows))
    print(f"\n{described('nginx', 'scrapy', 'crawlee', 'psycopg')}")
    return 0 if is_complete else 1


def build_sites(sizes: Sequence[int], real: Path | None) -> Iterator[tuple[str, Corpus]]:
    """Yield the name and the corpus of each site, one at a time: some take hundreds of megabytes."""
    for size in sizes:
        with _folder() as folder:
            yield f"14 kB, {size:,}", resize_site(fetch("postgresql-doc-15"), size, folder)
    yield "100 kB, scripts", corpus_in(fetch("python3.11-doc"))
    if real is not None:
        with _folder() as folder:
            yield "real pages", list_pages(sorted(real.glob("*.html")), folder)


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bench-site-") as folder:
        yield Path(folder, "site")


def build_rows(site: str, each_cost: dict[str, Costs]) -> list[tuple[object, ...]]:
    scrapy = each_cost.get(SCRAPY.name)
    rows: list[tuple[object, ...]] = []
    for name, cost in each_cost.items():
        times = cost.per_second / scrapy.per_second if scrapy is not None else ""
        label = f"{name}, everything stored" if name == RECRAWLER.name else name
        rows.append((site, label, int(cost.pages), cost.per_second, times, cost.cpu_ms, cost.all_cpu_ms, cost.peak_mb))
    return rows
