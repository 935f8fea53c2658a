"""Run one crawl of a folder that nginx serves and measure its cost."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.crawling.crawlers import Crawler, Place
from benchmarks.harness.command import cpu_of_tree, succeeded
from benchmarks.harness.nginx import Nginx, folder_site, serving
from crawler.runtime.postgres.cluster import Cluster
from tests.engine.corpus import linked_pages

PAGE_STATUSES = {200, 304}


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one crawl.

    pages: pages that the server sent or confirmed with a 304, by its log.
    unchanged: the 304s among them.
    sent_bytes: all bytes that the server sent.
    seconds: from the first request to the end of the command.
    command_s: the time of the whole command.
    peak_bytes: peak resident memory of all processes of the command together.
    """

    crawler: str
    pages: int
    unchanged: int
    sent_bytes: int
    seconds: float
    command_s: float
    cpu_s: float
    postgres_cpu_s: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Corpus:
    """A folder with a site. linked: the paths of all pages that can be reached from the root."""

    root: Path
    linked: frozenset[str]


def corpus_in(root: Path) -> Corpus:
    return Corpus(root, frozenset(linked_pages(root)))


def crawled_afresh(crawler: Crawler, corpus: Corpus, cluster: Cluster, *, parallelism: int) -> Run:
    """Run a first crawl. Raise CommandFailed or NginxError on errors."""
    with serving(folder_site(corpus.root)) as server, crawler.place(cluster) as place:
        return crawled(crawler.name, crawler.command(server.url, parallelism), corpus, server, place)


def crawled(name: str, command: Sequence[str], corpus: Corpus, server: Nginx, place: Place) -> Run:
    """Crawl the served folder and print a line to stderr. Raise CommandFailed on errors."""
    server.clear()
    before = cpu_of_tree(place.postgres)
    done = succeeded(command, place.environment, folder=place.folder)
    postgres_cpu_s = cpu_of_tree(place.postgres) - before
    requests = list(server.requests())
    # Other links, such as images and sources, are not pages.
    answered = [each for each in requests if each.status in PAGE_STATUSES and each.path in corpus.linked]
    statuses = {each.path: each.status for each in answered}
    run = Run(
        crawler=name,
        pages=len(statuses),
        unchanged=sum(status == 304 for status in statuses.values()),
        sent_bytes=sum(each.sent_bytes for each in requests),
        seconds=done.ended - min((each.began for each in requests), default=done.began),
        command_s=done.seconds,
        cpu_s=done.cpu_s,
        postgres_cpu_s=postgres_cpu_s,
        peak_bytes=done.peak_bytes,
    )
    print(f"{name}: {run.pages:,} pages in {run.seconds:.1f} s", file=sys.stderr)
    return run
