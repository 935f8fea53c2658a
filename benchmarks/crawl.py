"""Pages per second and processor time per page of a first crawl, everything stored, beside Scrapy that stores nothing.

Both walk the same real documentation on the same server process, in turn, several times, at equal parallelism. Pages
are counted by the server. Time runs from a crawler's first request to its end, so that neither pays for its imports;
processor time is all of it, less what a site of a single page costs.
"""

import argparse
import json
import os
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from benchmarks.measure import cpu_of_tree, measured
from benchmarks.table import table
from crawler.local.postgres import Cluster, borrowed_postgres
from crawler.store.database import upgrade
from tests.crawl.corpus import CorpusError, fetch, linked_pages
from tests.crawl.static import StaticServer

HERE = Path(__file__).parent
HEAD = ("crawler", "pages", "seconds", "pages/s", "CPU ms/page", "Postgres CPU ms/page", "command s")

Row = tuple[str, int, float, float, float, float, float]


@dataclass(frozen=True, slots=True)
class Run:
    """One crawl. seconds: from its first request to its end.  command_s: the whole command."""

    crawler: str
    pages: int
    seconds: float
    command_s: float
    cpu_s: float
    postgres_cpu_s: float

    def row(self, idle: "Run") -> Row:
        """What the table shows; idle: the same crawler on a single page."""
        per_page = 1000 / max(1, self.pages - idle.pages)
        return (
            self.crawler,
            self.pages,
            self.seconds,
            self.pages / self.seconds,
            (self.cpu_s - idle.cpu_s) * per_page,
            (self.postgres_cpu_s - idle.postgres_cpu_s) * per_page,
            self.command_s,
        )


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    try:
        root = fetch(given.corpus)
    except CorpusError as reason:
        print(f"{given.corpus}: {reason}", file=sys.stderr)
        return 1
    expected = len(linked_pages(root))
    with borrowed_postgres(given.home) as cluster, single_page() as small:
        crawlers: dict[str, Callable[[Path], Run]] = {
            "recrawl": lambda folder: recrawl(folder, cluster, given.parallelism),
            "scrapy": lambda folder: scrapy(folder, given.scrapy, given.parallelism),
        }
        chosen = [name for name in crawlers if given.only in {None, name}]
        idle = {name: crawlers[name](small) for name in chosen}
        # Turn about, so that whatever drifts on the machine hits both alike.
        turns = [name for pair in range(given.pairs) for name in (chosen if pair % 2 == 0 else reversed(chosen))]
        runs = [crawlers[name](root) for name in turns]
    if given.json:
        print(json.dumps({"expected": expected, "runs": [asdict(run) for run in (*idle.values(), *runs)]}))
    else:
        print(report(given.corpus, expected, idle, runs))
    return 0 if all(run.pages == expected for run in runs) else 1


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks crawl", description=__doc__)
    parser.add_argument("--corpus", default="postgresql-doc-15", help="a Debian documentation package")
    parser.add_argument("--pairs", type=int, default=3, help="how often each crawls it")
    parser.add_argument("--parallelism", type=int, default=16)
    parser.add_argument("--only", choices=("recrawl", "scrapy"))
    parser.add_argument("--scrapy", default=sys.executable, metavar="PYTHON", help="an interpreter that has Scrapy")
    parser.add_argument("--home", type=Path, default=HERE.parent / ".cache" / "bench", help="where Postgres lives")
    parser.add_argument("--json", action="store_true")
    return parser


@contextmanager
def single_page() -> Iterator[Path]:
    """A folder with one page without links: what a crawler costs before it crawls."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "index.html").write_text("<!DOCTYPE html><title>One</title><p>One page.</p>", encoding="utf-8")
        yield Path(folder)


def recrawl(root: Path, cluster: Cluster, parallelism: int) -> Run:
    """A crawl into an empty database."""
    name = f"bench_{uuid.uuid4().hex}"
    cluster.create_database(name)
    try:
        upgrade(cluster.url(name))
        with tempfile.TemporaryDirectory() as home:
            environment = os.environ | {"RECRAWL_DATABASE_URL": cluster.url(name), "RECRAWL_HOME": home}
            command = [
                str(Path(sys.executable).with_name("recrawl")),
                "crawl",
                "URL",
                "--allow-private",
                "--delay",
                "0",
            ]
            command += ["--parallelism", str(parallelism), "--json"]
            return crawled("recrawl", root, command, environment, postgres=cluster.pid)
    finally:
        cluster.drop_database(name)


def scrapy(root: Path, python: str, parallelism: int) -> Run:
    command = [python, str(HERE / "scrapy_spider.py"), "URL", "--parallelism", str(parallelism)]
    return crawled("scrapy", root, command, os.environ)


def crawled(
    name: str, root: Path, command: Sequence[str], environment: Mapping[str, str], *, postgres: int | None = None
) -> Run:
    """Serve a folder to a command, which finds the server's address in the place of "URL"."""
    with StaticServer(root) as server:
        before = cpu_of_tree(postgres) if postgres else 0.0
        done = measured([f"{server.url}/" if word == "URL" else word for word in command], environment)
        after = cpu_of_tree(postgres) if postgres else 0.0
        entries = server.entries
    # As the server saw it; whatever else is linked, a picture or a source, is no page.
    pages = linked_pages(root) & {entry.path for entry in entries if entry.status == 200}
    if done.code != 0 or not pages:
        raise SystemExit(f"{' '.join(command)} ended with {done.code} after {len(pages)} pages:\n{done.errors[-2000:]}")
    seconds = done.ended - min(entry.began for entry in entries)
    return Run(name, len(pages), seconds, done.ended - done.began, done.cpu_s, after - before)


def report(corpus: str, expected: int, idle: Mapping[str, Run], runs: Sequence[Run]) -> str:
    rows = [run.row(idle[run.crawler]) for run in runs]
    middles = {name: middle(name, [row for row in rows if row[0] == name]) for name in idle}
    lines = [f"{corpus}: {expected} linked pages", "", table(HEAD, [*rows, *middles.values()])]
    if len(middles) == 2:
        ours, rival = middles["recrawl"], middles["scrapy"]
        lines += ["", f"recrawl against scrapy: {ours[3] / rival[3]:.2f} times the pages per second, "]
        lines[-1] += f"{ours[4] / rival[4]:.2f} times the processor time per page"
        lines[-1] += f" ({(ours[4] + ours[5]) / rival[4]:.2f} with that of Postgres)"
    return "\n".join(lines)


def middle(name: str, rows: Sequence[Row]) -> Row:
    """The medians of a crawler's runs."""
    pages, seconds, speed, cpu, postgres, command = (median(column) for column in list(zip(*rows, strict=True))[1:])
    return (f"{name}, median", int(pages), seconds, speed, cpu, postgres, command)
