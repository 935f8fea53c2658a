"""One crawl of a folder that nginx serves, and what it cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.crawling.crawlers import Crawler, Place
from benchmarks.harness.command import cpu_of_tree, succeeded
from benchmarks.harness.nginx import Nginx, folder_site, serving
from crawler.local.postgres import Cluster
from tests.crawl.corpus import linked_pages

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


def crawled_afresh(crawler: Crawler, root: Path, cluster: Cluster, *, parallelism: int) -> Run:
    """A first crawl. Raises CommandFailed, NginxError."""
    with serving(folder_site(root)) as server, crawler.place(cluster) as place:
        return crawled(crawler.name, crawler.command(server.url, parallelism), root, server, place)


def crawled(name: str, command: Sequence[str], root: Path, server: Nginx, place: Place) -> Run:
    """A crawl of the folder that the server serves. Raises CommandFailed."""
    server.clear()
    before = cpu_of_tree(place.postgres)
    done = succeeded(command, place.environment, folder=place.folder)
    postgres_cpu_s = cpu_of_tree(place.postgres) - before
    requests = list(server.requests())
    # Whatever else is linked, a picture or a source, is no page.
    linked = linked_pages(root)
    statuses = {each.path: each.status for each in requests if each.status in ANSWERED and each.path in linked}
    return Run(
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
