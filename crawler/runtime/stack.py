"""The local stack: up starts what is missing of it, down stops exactly what up started, status shows it.

HOME/run holds who was started, HOME/logs what they said. All that descends from the stack carries its tag in the
environment, so that nothing is forgotten, whoever was killed in between.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from crawler.errors import BadInput, StackFailed
from crawler.runtime.children import noted
from crawler.runtime.down import down
from crawler.runtime.environment import Api
from crawler.runtime.own_address import own_origins
from crawler.runtime.pages import pages_entrance, serving_pages
from crawler.runtime.parts import (
    CRAWL_DATABASE,
    Stack,
    answers,
    api_of_worker,
    external_api,
    is_own_api,
    own_api,
    port_of,
    server_note,
    was_set_up,
    worker_note,
)
from crawler.runtime.postgres.cluster import borrowed_postgres, kept_major, running_postgres
from crawler.runtime.up import up
from crawler.settings import Settings
from crawler.store.database import Schema, prepare, schema_of

__all__ = [
    "Stack",
    "StackPart",
    "crawl_database",
    "down",
    "known_database",
    "pages_in_use",
    "require_database",
    "running_stack",
    "server_in_use",
    "status",
    "up",
]


@dataclass(frozen=True, slots=True)
class StackPart:
    """One line of the status."""

    name: str
    is_running: bool
    detail: str


@contextmanager
def crawl_database(settings: Settings) -> Iterator[str]:
    """The URL of the crawl's database, newest schema, for as long as the block runs.

    The embedded Postgres is started for it, brought up to date, and stopped afterwards if nobody else needs it. A
    server of the user's own is migrated without asking only while it is empty; else CrawlerError says what to do.
    """
    if settings.database_url is not None:
        url = settings.database_url.get_secret_value()
        prepare(url, may_upgrade=False)
        yield url
        return
    with borrowed_postgres(settings.home) as cluster:
        cluster.create_database(CRAWL_DATABASE)
        prepare(cluster.url(CRAWL_DATABASE), may_upgrade=True)
        yield cluster.url(CRAWL_DATABASE)


def require_database(settings: Settings) -> None:
    """Raise BadInput where `crawl_database` would make a new database: for commands that are of no use to an empty one.

    A dump of another database than the one that was meant would look like a backup.
    """
    if settings.database_url is not None:
        if schema_of(settings.database_url.get_secret_value()) is Schema.EMPTY:
            raise BadInput("the database of RECRAWL_DATABASE_URL holds nothing: is that the right one?")
    elif kept_major(settings.home.resolve()) is None:
        raise BadInput(
            f"there is no database in {settings.home}: say where it is, by RECRAWL_DATABASE_URL or RECRAWL_HOME"
        )


def running_stack(settings: Settings) -> Stack | None:
    """The stack of these settings, if all its parts are running."""
    home = settings.home.resolve()
    worker = noted(worker_note(home))
    server = noted(server_note(home))
    url = known_database(settings, home)
    if worker is None or url is None:
        return None
    api = api_of_worker(home, settings)
    if api is None:
        return None
    own = server.process if server is not None and is_own_api(server, api.url) else None
    return Stack(home, url, api, own, worker.process)


def server_in_use(settings: Settings) -> Api:
    """The Prefect server of these settings, and how to get in. StackFailed where none answers."""
    server = noted(server_note(settings.home.resolve()))
    api = external_api(settings, server)
    if api is None and server is not None:
        api = own_api(settings.home.resolve(), server)
    if api is None:
        raise StackFailed("no Prefect server is running: recrawl up")
    if not answers(server, api):
        raise StackFailed(f"no Prefect server answers at {api.url}: recrawl up")
    return api


def status(settings: Settings) -> list[StackPart]:
    """What runs, part by part."""
    home = settings.home.resolve()
    server, worker, cluster = noted(server_note(home)), noted(worker_note(home)), running_postgres(home)
    parts = []
    if settings.database_url is None or cluster is not None:
        where = (
            f"127.0.0.1:{cluster.port}, process {cluster.pid}, Postgres {cluster.binaries.version}" if cluster else ""
        )
        parts.append(StackPart("Postgres", cluster is not None, where))
    if settings.database_url is not None:
        parts.append(StackPart("Database", is_running=True, detail="RECRAWL_DATABASE_URL"))
    external = external_api(settings, server)
    if external is not None:
        parts.append(StackPart("Prefect server", answers(None, external), f"{external.url} (PREFECT_API_URL)"))
    elif server is not None:
        api = own_api(home, server)
        parts.append(StackPart("Prefect server", answers(server, api), f"{api.ui_url}, process {server.process.pid}"))
    else:
        parts.append(StackPart("Prefect server", is_running=False, detail=""))
    parts.append(StackPart("Worker", worker is not None, f"process {worker.process.pid}" if worker else ""))
    pages = serving_pages(home)
    where = f"{own_origins(port_of(pages))[0]}, process {pages.process.pid}" if pages else ""
    parts.append(StackPart("Pages", pages is not None, where))
    return parts


def is_without_worker(settings: Settings) -> bool:
    """Whether nobody crawls by himself now: what is due waits for somebody to begin.

    Of a database of one's own nothing is known but what a stack here does: elsewhere others may crawl into it.
    """
    home = settings.home.resolve()
    return (settings.database_url is None or was_set_up(home)) and noted(worker_note(home)) is None


def pages_in_use(settings: Settings) -> str | None:
    """An address that lets into the pages beside the stack once; None where nothing serves them."""
    return pages_entrance(settings.home.resolve())


def known_database(settings: Settings, home: Path) -> str | None:
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    cluster = running_postgres(home)
    return cluster.url(CRAWL_DATABASE) if cluster is not None else None
