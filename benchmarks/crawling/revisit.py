"""Compare recrawls in full with Scrapy and its cache, after none, one and ten percent of the pages have changed.

Both crawlers have crawled the site before and request every page again. nginx sends ETag and Last-Modified. recrawl
revisits all pages because a refresh makes them due (recrawl refresh); Scrapy follows RFC 2616 and sends max-age=0.
Scrapy stores only bodies, in files. The columns are those of the benchmark `crawl`; CPU time excludes start-up.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from benchmarks.crawling.crawlers import RECRAWL, RECRAWLER, SCRAPY_CACHE, Crawler, Place, name_of, recrawl_again
from benchmarks.crawling.crawls import Corpus, Run, corpus_in, crawled, crawled_afresh
from benchmarks.crawling.first import single_page
from benchmarks.harness.command import succeeded
from benchmarks.harness.database import HOME
from benchmarks.harness.machine import described
from benchmarks.harness.nginx import Nginx, folder_site, serving
from benchmarks.harness.repeats import alternating, middle
from benchmarks.harness.table import table
from crawler.cli.plot import Chart, Series
from crawler.runtime.postgres.cluster import Cluster, borrow_postgres
from labs.charts import write_figures
from tests.engine.corpus import copied, fetch, file_of

CRAWLERS = (RECRAWLER, SCRAPY_CACHE)
SHARES = (0.0, 0.01, 0.1)  # share of pages that change before the second, third and fourth crawl
HEAD = ("crawler", "crawl", "304s", "pages/s", "CPU ms/page", "Postgres CPU ms/page", "kB/page", "times first crawl")
VERSUS = ("recrawl against scrapy-cache", "times the pages/s", "times the CPU/page", "times the bytes")
NEWS = ("amber", "basalt", "copper", "dolomite", "emerald", "feldspar", "garnet", "hematite")
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Crawl:
    """One crawl of a series. no: 0 for the first crawl; crawl n + 1 follows the change of SHARES[n]."""

    no: int
    run: Run
    idle: Run  # the same crawler on a site of a single page

    @property
    def name(self) -> str:
        return "first" if self.no == 0 else f"{SHARES[self.no - 1]:.0%} changed"

    @property
    def numbers(self) -> tuple[float, ...]:
        per_page = 1 / max(1, self.run.pages - self.idle.pages)
        return (
            self.run.unchanged,
            self.run.pages / self.run.seconds,
            1000 * (self.run.cpu_s - self.idle.cpu_s) * per_page,
            1000 * (self.run.postgres_cpu_s - self.idle.postgres_cpu_s) * per_page,
            self.run.sent_bytes / 1000 / self.run.pages,
        )


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    corpus = corpus_in(given.site or fetch(given.corpus))
    expected = len(corpus.linked)
    with borrow_postgres(given.home) as cluster, single_page() as small:
        idle = {each.name: crawled_afresh(each, small, cluster, parallelism=given.parallelism) for each in CRAWLERS}
        crawls = [
            Crawl(no, run, idle[run.crawler])
            for crawler in alternating(CRAWLERS, given.repeats)
            for no, run in enumerate(series(crawler, corpus, cluster, parallelism=given.parallelism))
        ]
    if given.json:
        print(json.dumps({"expected": expected, "crawls": [{"no": each.no} | asdict(each.run) for each in crawls]}))
    else:
        print(f"{given.site or given.corpus}: {expected} linked pages, {given.repeats} repeats of each series\n")
        print(report(crawls))
        write_figures([("benchmark-revisit", figure(crawls))], given.plot)
        print(f"\n{described('nginx', 'scrapy', 'psycopg')}")
    return 0 if all(each.run.pages == expected for each in crawls) else 1


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks revisit", description=__doc__)
    parser.add_argument("--corpus", default="postgresql-doc-15", help="a Debian documentation package")
    parser.add_argument("--site", type=Path, metavar="FOLDER", help="crawl this folder of HTML instead")
    parser.add_argument("--repeats", type=int, default=5, help="number of series of four crawls by each crawler")
    parser.add_argument("--parallelism", type=int, default=16)
    parser.add_argument("--home", type=Path, default=HOME, help="folder of the Postgres server")
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="write the figure to this folder as SVG")
    parser.add_argument("--json", action="store_true")
    return parser


def series(crawler: Crawler, corpus: Corpus, cluster: Cluster, *, parallelism: int) -> Iterator[Run]:
    """Crawl a copy of the site, then crawl it again after each share of pages has changed."""
    with tempfile.TemporaryDirectory(prefix="site-") as folder:
        copy = Corpus(copied(corpus.root, Path(folder, "site")), corpus.linked)
        with serving(folder_site(copy.root)) as server, crawler.place(cluster) as place:
            yield crawled(crawler.name, crawler.command(server.url, parallelism), copy, server, place)
            for no, share in enumerate(SHARES, 1):
                change(copy, share, Random(no))
                command = prepared(crawler, server, place, parallelism=parallelism, at=datetime.now(UTC) + no * DAY)
                yield crawled(crawler.name, command, copy, server, place)


def prepared(crawler: Crawler, server: Nginx, place: Place, *, parallelism: int, at: datetime) -> Sequence[str]:
    """Return the command that recrawls all pages. For recrawl, make all pages due first."""
    if crawler is not RECRAWLER:
        return crawler.command(server.url, parallelism)
    due = [RECRAWL, "refresh", name_of(server.url), "--at", at.isoformat()]
    succeeded(due, place.environment, folder=place.folder)
    return recrawl_again(server.url, at)


def change(site: Corpus, share: float, chance: Random) -> None:
    """Edit a share of the pages: append a sentence and set the modification time to now."""
    pages = sorted({file_of(site.root, path).resolve() for path in site.linked})
    for file in chance.sample(pages, round(share * len(pages))):
        text = file.read_bytes()
        sentence = f"<p>In the meantime {' and '.join(chance.sample(NEWS, 4))} were found here.</p>".encode()
        before, end, after = text.rpartition(b"</body>")
        file.unlink()  # the copy may be a hard link or read-only
        file.write_bytes(before + sentence + end + after if end else text + sentence)


def middles_of(crawls: Sequence[Crawl]) -> Mapping[tuple[str, str], list[float]]:
    """Return the medians by crawler and crawl."""
    return {
        (crawl.run.crawler, crawl.name): middle(
            [other.numbers for other in crawls if (other.no, other.run.crawler) == (crawl.no, crawl.run.crawler)]
        )
        for crawl in crawls
    }


def figure(crawls: Sequence[Crawl]) -> Chart:
    """Plot pages per second by the share of changed pages; in a first crawl all pages count as changed."""
    shares = {crawl.name: 100.0 * (SHARES[crawl.no - 1] if crawl.no else 1.0) for crawl in crawls}
    found = middles_of(crawls)
    lines = (
        Series(name, tuple(sorted((shares[crawl], row[1]) for (who, crawl), row in found.items() if who == name)))
        for name in dict.fromkeys(who for who, _ in found)
    )
    return Chart("A second crawl", "pages that have changed, %", "pages per second", tuple(lines), is_log_y=True)


def report(crawls: Sequence[Crawl]) -> str:
    middles = middles_of(crawls)
    rows = [
        (crawler, name, int(found[0]), *found[1:], found[1] / middles[crawler, "first"][1])
        for (crawler, name), found in middles.items()
    ]
    versus = [
        (name, ours[1] / rival[1], (ours[2] + ours[3]) / (rival[2] + rival[3]), ours[4] / rival[4])
        for (crawler, name), ours in middles.items()
        if crawler == RECRAWLER.name and (rival := middles.get((SCRAPY_CACHE.name, name)))
    ]
    return "\n".join((table(HEAD, rows), "", table(VERSUS, versus)))
