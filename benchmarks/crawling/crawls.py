"""One crawl of a folder that nginx serves, and what it cost."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.crawling.crawlers import Crawler, Place
from benchmarks.harness.command import cpu_of_tree, succeeded
from benchmarks.harness.nginx import Nginx, folder_site, serving
from crawler.runtime.postgres.cluster import Cluster
from tests.engine.corpus import linked_pages

ANSWERED = {200, 304}


@dataclass(frozen=True, slots=True)
class Run:
    """One crawl. pages: that were answered, 304 included, by the server's log.

    unchanged: of them, 304s.  sent_bytes: by the server, for anything.  seconds: from the first request to the end of
    the command.  command_s: the whole command.  peak_bytes: resident, of all the command's processes together.
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
    """A folder with a site. linked: the paths of its pages, all that links lead to from the root."""

    root: Path
    linked: frozenset[str]


def corpus_in(root: Path) -> Corpus:
    return Corpus(root, frozenset(linked_pages(root)))


def crawled_afresh(crawler: Crawler, corpus: Corpus, cluster: Cluster, *, parallelism: int) -> Run:
    """A first crawl. Raises CommandFailed, NginxError."""
    with serving(folder_site(corpus.root)) as server, crawler.place(cluster) as place:
        return crawled(crawler.name, crawler.command(server.url, parallelism), corpus, server, place)


def crawled(name: str, command: Sequence[str], corpus: Corpus, server: Nginx, place: Place) -> Run:
    """A crawl of the folder that the server serves; one line on stderr tells of it. Raises CommandFailed."""
    server.clear()
    before = cpu_of_tree(place.postgres)
    done = succeeded(command, place.environment, folder=place.folder)
    postgres_cpu_s = cpu_of_tree(place.postgres) - before
    requests = list(server.requests())
    # Whatever else is linked, a picture or a source, is no page.
    answered = [each for each in requests if each.status in ANSWERED and each.path in corpus.linked]
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
