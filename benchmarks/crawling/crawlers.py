"""The commands of recrawl and of the crawlers it is compared with. Each runs in its own folder with its own
database.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.harness.command import succeeded
from benchmarks.harness.database import empty, migrated
from crawler.runtime.postgres.cluster import Cluster

RECRAWL = str(Path(sys.executable).with_name("recrawl"))
RIVALS = "benchmarks.crawling.rivals"


@dataclass(frozen=True, slots=True)
class Place:
    """The folder and database that one crawler keeps between crawls."""

    folder: Path
    database_url: str
    postgres: int  # process ID of the server of the database

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {
            "DATABASE_URL": self.database_url,
            "RECRAWL_DATABASE_URL": self.database_url,
            "RECRAWL_HOME": str(self.folder),
            "CRAWLEE_STORAGE_DIR": str(self.folder),
        }


@dataclass(frozen=True, slots=True)
class Crawler:
    """A crawler to compare.

    command: builds the command from a URL and the number of concurrent requests.
    database: provides a database, with recrawl's tables or empty.
    """

    name: str
    command: Callable[[str, int], Sequence[str]]
    database: Callable[[Cluster], AbstractContextManager[str]] = empty

    @contextmanager
    def place(self, cluster: Cluster) -> Iterator[Place]:
        """Provide an empty place until the block ends."""
        with self.database(cluster) as url, tempfile.TemporaryDirectory(prefix="bench-") as folder:
            yield Place(Path(folder), url, cluster.pid)


def recrawl(url: str, parallelism: int) -> Sequence[str]:
    return [RECRAWL, "crawl", url, "--allow-private", "--delay", "0", "--parallelism", str(parallelism), "--json"]


def recrawl_again(url: str, at: datetime) -> Sequence[str]:
    """Return the command that crawls a registered domain at the given time."""
    return [RECRAWL, "crawl", name_of(url), "--at", at.isoformat(), "--json"]


def register(urls: Iterable[str], place: Place, *settings: str) -> None:
    """Register sites as domains, with options of `recrawl domains add`. Raise CommandFailed on errors."""
    listed = place.folder / "sites.txt"
    listed.write_text("\n".join(urls), encoding="utf-8")
    command = [RECRAWL, "domains", "add", "--from", str(listed), "--offline", "--allow-private", "--delay", "0"]
    succeeded([*command, *settings], place.environment, folder=place.folder)


def name_of(url: str) -> str:
    """Return the name of a site's domain as commands expect it."""
    return urlsplit(url).netloc


def rival(module: str, *more: str) -> Callable[[str, int], Sequence[str]]:
    return lambda url, parallelism: [
        sys.executable, "-m", f"{RIVALS}.{module}", url, "--parallelism", str(parallelism), *more
    ]  # fmt: skip


RECRAWLER = Crawler("recrawl", recrawl, migrated)
SCRAPY = Crawler("scrapy", rival("scrapy_walk"))
SCRAPY_POSTGRES = Crawler("scrapy-postgres", rival("scrapy_postgres"))
SCRAPY_CACHE = Crawler("scrapy-cache", rival("scrapy_walk", "--cache"))
CRAWLEE = Crawler("crawlee", rival("crawlee_walk"))
