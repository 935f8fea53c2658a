"""The state of the local stack: its database, its Prefect server and its running parts.

`lifecycle` starts and stops the stack. All its processes have its tag in their environment, so they can always be
found, even if a command was killed.
"""

import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from crawler.errors import BadInput, StackFailed
from crawler.runtime.background_processes import SERVER, STACK_TAG, WORKER, Child, find_child, hash_secret
from crawler.runtime.environment import PrefectApi, build_api_url
from crawler.runtime.keys.home_keys import RESPONSE_SECONDS, is_own_server, list_own_origins, read_auth
from crawler.runtime.machine import Process
from crawler.runtime.postgres.cluster import borrow_postgres, find_idle_end, find_running_postgres
from crawler.runtime.postgres.server import find_data_major
from crawler.runtime.web_ui import find_web_ui
from crawler.settings import Settings
from crawler.store.database import SchemaState, prepare_schema, read_schema_state

CRAWL_DATABASE = "crawl"


@dataclass(frozen=True, slots=True)
class Stack:
    """A running stack. server: None if it uses an external Prefect server."""

    home: Path
    database_url: str = field(repr=False)
    api: PrefectApi
    server: Process | None
    worker: Process


@dataclass(frozen=True, slots=True)
class StackPart:
    """The status of one part of the stack. is_running: true for an external database, which is not checked.

    is_hanging: it did not respond in time, instead of refusing the connection.
    """

    name: str
    is_running: bool
    detail: str = ""
    is_hanging: bool = False


@contextmanager
def open_crawl_database(settings: Settings) -> Iterator[str]:
    """Yield the URL of the database with the newest schema.

    The embedded Postgres is started and migrated, and stops when nothing has used it for `postgres_idle_time`. An
    external database is migrated if it is empty; if its schema is older, CrawlerError says what to do.
    """
    if settings.database_url is not None:
        url = settings.database_url.get_secret_value()
        prepare_schema(url, may_upgrade=False)
        yield url
        return
    with borrow_postgres(settings.home, idle_time=settings.postgres_idle_time) as cluster:
        cluster.create_database(CRAWL_DATABASE)
        prepare_schema(cluster.build_url(CRAWL_DATABASE), may_upgrade=True)
        yield cluster.build_url(CRAWL_DATABASE)


def require_database(settings: Settings) -> None:
    """Raise BadInput if there is no database, or an external one is empty, for commands that make no sense then.

    For example, a dump of the wrong, empty database would look like a backup.
    """
    if settings.database_url is not None:
        if read_schema_state(settings.database_url.get_secret_value()) is SchemaState.EMPTY:
            raise BadInput("the database of RECRAWL_DATABASE_URL is empty: check whether it is the right one")
    elif find_data_major(settings.home.resolve()) is None:
        remedy = "set RECRAWL_HOME or RECRAWL_DATABASE_URL to where it is"
        raise BadInput(f"there is no database in {settings.home}: {remedy}")


def find_database_url(settings: Settings) -> str | None:
    """Return the URL of the database; None while the embedded Postgres is not running."""
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    cluster = find_running_postgres(settings.home)
    return cluster.build_url(CRAWL_DATABASE) if cluster is not None else None


def find_running_stack(settings: Settings) -> Stack | None:
    """Return the stack if its database, Prefect server and worker are running."""
    home = settings.home.resolve()
    worker, server, url = find_child(home, WORKER), find_child(home, SERVER), find_database_url(settings)
    api = find_worker_api(home, settings) if url is not None else None
    if worker is None or url is None or api is None:
        return None
    own_server = server.process if server is not None and is_own_api(server, api.url) else None
    return Stack(home, url, api, own_server, worker.process)


def find_server(settings: Settings) -> PrefectApi:
    """Return the Prefect server with its auth string. Raises StackFailed if none responds."""
    home = settings.home.resolve()
    server = find_child(home, SERVER)
    api = find_external_api(settings, server) or (build_own_api(home, server) if server is not None else None)
    if api is None:
        raise StackFailed("no Prefect server is running: run recrawl up")
    if not is_responding(server, api):
        raise StackFailed(f"no Prefect server responds at {api.url}: run recrawl up")
    return api


def read_status(settings: Settings, *, patience_s: float = RESPONSE_SECONDS) -> list[StackPart]:
    """Return the status of all parts of the stack. patience_s: how long to wait for the Prefect server."""
    home = settings.home.resolve()
    server, worker, cluster = find_child(home, SERVER), find_child(home, WORKER), find_running_postgres(home)
    parts = []
    if cluster is not None:
        detail = f"127.0.0.1:{cluster.port}, process {cluster.pid}, Postgres {cluster.binaries.version}"
        if (stays_until := find_idle_end(home)) is not None:
            detail += f", stops at {stays_until:%H:%M}Z unless it is used"
        parts.append(StackPart("Postgres", is_running=True, detail=detail))
    elif settings.database_url is None:
        parts.append(StackPart("Postgres", is_running=False))
    if settings.database_url is not None:
        parts.append(StackPart("Database", is_running=True, detail="RECRAWL_DATABASE_URL (not checked)"))
    external = find_external_api(settings, server)
    if external is not None:
        parts.append(_check_server(None, external, f"{external.url} (PREFECT_API_URL)", patience_s))
    elif server is not None:
        api = build_own_api(home, server)
        parts.append(_check_server(server, api, f"{api.ui_url}, process {server.process.pid}", patience_s))
    else:
        parts.append(StackPart("Prefect server", is_running=False))
    parts.append(StackPart("Worker", worker is not None, f"process {worker.process.pid}" if worker else ""))
    web_ui = find_web_ui(home)
    detail = f"{list_own_origins(web_ui.port)[0]}, process {web_ui.process.pid}" if web_ui else ""
    parts.append(StackPart("Web UI", web_ui is not None, detail))
    return parts


def _check_server(server: Child | None, api: PrefectApi, detail: str, patience_s: float) -> StackPart:
    started = time.monotonic()
    is_running = is_responding(server, api, patience_s=patience_s)
    is_hanging = not is_running and time.monotonic() - started >= patience_s
    if is_hanging:
        detail += f", no response within {patience_s:g} s"
    return StackPart("Prefect server", is_running, detail, is_hanging)


def is_without_worker(settings: Settings) -> bool:
    """Return whether due pages wait because no worker process runs.

    False for an external database without a local stack, because workers on other machines may use it.
    """
    home = settings.home.resolve()
    was_set_up = (home / "run" / STACK_TAG).exists()
    return (settings.database_url is None or was_set_up) and find_child(home, WORKER) is None


def is_own_api(server: Child | None, api_url: str) -> bool:
    """Return whether this is the API of the server that this stack has started."""
    return server is not None and api_url == build_api_url(server.port)


def build_own_api(home: Path, server: Child) -> PrefectApi:
    """Return the API of the server that this stack has started, with the auth string of `home`."""
    return PrefectApi(build_api_url(server.port), read_auth(home))


def find_worker_api(home: Path, settings: Settings) -> PrefectApi | None:
    """Return the API that the worker of `home` uses; None if no worker runs or the server does not respond."""
    worker, server = find_child(home, WORKER), find_child(home, SERVER)
    if worker is None:
        return None
    url, own_auth = worker.facts["api_url"], read_auth(home)
    if server is not None and is_own_api(server, url):
        api = build_own_api(home, server)
    elif own_auth is not None and worker.facts.get("auth") == hash_secret(own_auth):
        return None  # the worker used the local server, which is gone
    else:
        api = build_named_api(settings, url)
    return api if is_responding(server, api) else None


def find_external_api(settings: Settings, server: Child | None) -> PrefectApi | None:
    """Return the server of PREFECT_API_URL; None if the variable is not set.

    Also None if the variable names the local server, as users set it for the command `prefect`.
    """
    url = settings.prefect_api_url
    if url is None or is_own_api(server, url.rstrip("/")):
        return None
    return build_named_api(settings, url)


def build_named_api(settings: Settings, url: str) -> PrefectApi:
    """Return an external server with the auth string of the settings."""
    auth = settings.prefect_api_auth_string
    return PrefectApi(url.rstrip("/"), auth.get_secret_value() if auth is not None else None)


def is_responding(server: Child | None, api: PrefectApi, *, patience_s: float = RESPONSE_SECONDS) -> bool:
    """Return whether a Prefect server responds, and if it should be the local server, whether it is."""
    if server is not None and is_own_api(server, api.url) and api.auth is not None:
        return is_own_server(server.port, api.auth, patience_s=patience_s)
    try:
        with urllib.request.urlopen(f"{api.url}/health", timeout=patience_s) as response:  # noqa: S310  http, from the settings
            return bool(response.status == 200)
    except (OSError, ValueError):
        return False
