"""The local stack as it is found: its database, its Prefect server, and what of it runs.

`up` starts what is missing of it, `down` stops exactly what `up` started (lifecycle.py). All that descends from the
stack carries its tag in the environment, so that nothing is forgotten, whoever was killed in between.
"""

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from crawler.errors import BadInput, StackFailed
from crawler.runtime.children import SERVER, STACK_TAG, WORKER, Child, find_child, hash_secret
from crawler.runtime.environment import PrefectApi, build_api_url
from crawler.runtime.keys.home_keys import RESPONSE_SECONDS, is_own_server, list_own_origins, read_auth
from crawler.runtime.machine import Process
from crawler.runtime.postgres.cluster import borrow_postgres, find_data_major, find_running_postgres
from crawler.runtime.web_ui import find_web_ui
from crawler.settings import Settings
from crawler.store.database import SchemaState, prepare_schema, read_schema_state

CRAWL_DATABASE = "crawl"


@dataclass(frozen=True, slots=True)
class Stack:
    """A running stack. server: None where the Prefect server is somebody else's."""

    home: Path
    database_url: str = field(repr=False)
    api: PrefectApi
    server: Process | None
    worker: Process


@dataclass(frozen=True, slots=True)
class StackPart:
    """One line of the status."""

    name: str
    is_running: bool
    detail: str


@contextmanager
def open_crawl_database(settings: Settings) -> Iterator[str]:
    """The URL of the crawl's database, newest schema, for as long as the block runs.

    The embedded Postgres is started for it, brought up to date, and stopped afterwards if nobody else needs it. A
    server of the user's own is migrated without asking only while it is empty; else CrawlerError says what to do.
    """
    if settings.database_url is not None:
        url = settings.database_url.get_secret_value()
        prepare_schema(url, may_upgrade=False)
        yield url
        return
    with borrow_postgres(settings.home) as cluster:
        cluster.create_database(CRAWL_DATABASE)
        prepare_schema(cluster.build_url(CRAWL_DATABASE), may_upgrade=True)
        yield cluster.build_url(CRAWL_DATABASE)


def require_database(settings: Settings) -> None:
    """Raise BadInput where `crawl_database` would make a new database: for commands that are of no use to an empty one.

    A dump of another database than the one that was meant would look like a backup.
    """
    if settings.database_url is not None:
        if read_schema_state(settings.database_url.get_secret_value()) is SchemaState.EMPTY:
            raise BadInput("the database of RECRAWL_DATABASE_URL holds nothing: is that the right one?")
    elif find_data_major(settings.home.resolve()) is None:
        raise BadInput(
            f"there is no database in {settings.home}: say where it is, by RECRAWL_DATABASE_URL or RECRAWL_HOME"
        )


def find_database_url(settings: Settings) -> str | None:
    """Return where the crawl's database is; None while the embedded Postgres is not running."""
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    cluster = find_running_postgres(settings.home)
    return cluster.build_url(CRAWL_DATABASE) if cluster is not None else None


def find_running_stack(settings: Settings) -> Stack | None:
    """The stack of these settings, if all its parts are running."""
    home = settings.home.resolve()
    worker, server, url = find_child(home, WORKER), find_child(home, SERVER), find_database_url(settings)
    api = find_worker_api(home, settings) if url is not None else None
    if worker is None or url is None or api is None:
        return None
    own_server = server.process if server is not None and is_own_api(server, api.url) else None
    return Stack(home, url, api, own_server, worker.process)


def find_server(settings: Settings) -> PrefectApi:
    """The Prefect server of these settings, and how to get in. StackFailed where none answers."""
    home = settings.home.resolve()
    server = find_child(home, SERVER)
    api = find_external_api(settings, server) or (build_own_api(home, server) if server is not None else None)
    if api is None:
        raise StackFailed("no Prefect server is running: recrawl up")
    if not is_responding(server, api):
        raise StackFailed(f"no Prefect server answers at {api.url}: recrawl up")
    return api


def read_status(settings: Settings) -> list[StackPart]:
    """What runs, part by part."""
    home = settings.home.resolve()
    server, worker, cluster = find_child(home, SERVER), find_child(home, WORKER), find_running_postgres(home)
    parts = []
    if settings.database_url is None or cluster is not None:
        detail = (
            f"127.0.0.1:{cluster.port}, process {cluster.pid}, Postgres {cluster.binaries.version}" if cluster else ""
        )
        parts.append(StackPart("Postgres", cluster is not None, detail))
    if settings.database_url is not None:
        parts.append(StackPart("Database", is_running=True, detail="RECRAWL_DATABASE_URL"))
    external = find_external_api(settings, server)
    if external is not None:
        parts.append(StackPart("Prefect server", is_responding(None, external), f"{external.url} (PREFECT_API_URL)"))
    elif server is not None:
        api = build_own_api(home, server)
        parts.append(
            StackPart("Prefect server", is_responding(server, api), f"{api.ui_url}, process {server.process.pid}")
        )
    else:
        parts.append(StackPart("Prefect server", is_running=False, detail=""))
    parts.append(StackPart("Worker", worker is not None, f"process {worker.process.pid}" if worker else ""))
    web_ui = find_web_ui(home)
    detail = f"{list_own_origins(web_ui.port)[0]}, process {web_ui.process.pid}" if web_ui else ""
    parts.append(StackPart("Pages", web_ui is not None, detail))
    return parts


def is_without_worker(settings: Settings) -> bool:
    """Whether nobody crawls by himself now: what is due waits for somebody to begin.

    Of a database of one's own nothing is known but what a stack here does: elsewhere others may crawl into it.
    """
    home = settings.home.resolve()
    was_set_up = (home / "run" / STACK_TAG).exists()
    return (settings.database_url is None or was_set_up) and find_child(home, WORKER) is None


def is_own_api(server: Child | None, api_url: str) -> bool:
    """Whether that is the server which this stack has started."""
    return server is not None and api_url == build_api_url(server.port)


def build_own_api(home: Path, server: Child) -> PrefectApi:
    """Return the server that this stack has started, and how to get in."""
    return PrefectApi(build_api_url(server.port), read_auth(home))


def find_worker_api(home: Path, settings: Settings) -> PrefectApi | None:
    """The server that the worker of `home` works for; None where there is no worker, or the server does not answer."""
    worker, server = find_child(home, WORKER), find_child(home, SERVER)
    if worker is None:
        return None
    url, own_auth = worker.facts["api_url"], read_auth(home)
    if server is not None and is_own_api(server, url):
        api = build_own_api(home, server)
    elif own_auth is not None and worker.facts.get("auth") == hash_secret(own_auth):
        return None  # our own is dead, and whoever answers at its address is somebody else
    else:
        api = build_named_api(settings, url)
    return api if is_responding(server, api) else None


def find_external_api(settings: Settings, server: Child | None) -> PrefectApi | None:
    """The server that PREFECT_API_URL names, unless that is our own: people set it to use Prefect's own command."""
    url = settings.prefect_api_url
    if url is None or is_own_api(server, url.rstrip("/")):
        return None
    return build_named_api(settings, url)


def build_named_api(settings: Settings, url: str) -> PrefectApi:
    """Return a server that the user has named, with what it asks for."""
    auth = settings.prefect_api_auth_string
    return PrefectApi(url.rstrip("/"), auth.get_secret_value() if auth is not None else None)


def is_responding(server: Child | None, api: PrefectApi) -> bool:
    """Whether a Prefect server answers there; where it has to be our own, whether that does, and not another."""
    if server is not None and is_own_api(server, api.url) and api.auth is not None:
        return is_own_server(server.port, api.auth)
    try:
        with urllib.request.urlopen(f"{api.url}/health", timeout=RESPONSE_SECONDS) as response:  # noqa: S310  http, by our own setting
            return bool(response.status == 200)
    except (OSError, ValueError):
        return False
