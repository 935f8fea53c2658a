"""Starting the stack: what is missing of it, part by part."""

import asyncio
import os
from functools import partial
from pathlib import Path

from crawler.errors import StackFailed
from crawler.runtime.children import Child, noted, tagged
from crawler.runtime.down import Wrecker
from crawler.runtime.environment import Api, client_environment
from crawler.runtime.leftovers import clear_away
from crawler.runtime.machine import held
from crawler.runtime.pages import ensure_pages
from crawler.runtime.parts import (
    CRAWL_DATABASE,
    PREFECT_DATABASE,
    Report,
    Stack,
    answers,
    external_api,
    own_api,
    server_note,
    stack_tag,
)
from crawler.runtime.postgres.cluster import keep_postgres, running_postgres
from crawler.runtime.prefect.server import ensure_server, wait_for_server
from crawler.runtime.private import OURS, private_folder
from crawler.settings import Settings
from crawler.store.database import open_database, prepare

DEPLOYMENTS = Path(__file__).parents[2] / "deployments" / "prefect.yaml"


def up(settings: Settings, *, report: Report, deployments: Path = DEPLOYMENTS) -> Stack:
    """Start what is missing of the stack; it stays until `down`. Two at once do not fight: the second finds it running.

    deployments: a prefect.yaml in a folder beside `flows`.
    Raises StackFailed or another CrawlerError, with what to do about it.
    """
    home = settings.home.resolve()
    for name in OURS:
        private_folder(home, name)
    with held(home / "run" / "lock", waiting=lambda: report("Another command starts or stops the stack: waiting")):
        was_down = not tagged(stack_tag(home)) and running_postgres(home) is None
        try:
            return build(home, settings, deployments=deployments, report=report)
        except BaseException:  # an interrupt too: half a stack is of no use to anybody
            if was_down:
                Wrecker(settings, report).wreck()
            raise


def build(home: Path, settings: Settings, *, deployments: Path, report: Report) -> Stack:
    external = external_api(settings, noted(server_note(home)))
    if external is not None and not answers(None, external):
        raise StackFailed(f"no Prefect server answers at {external.url} (PREFECT_API_URL): start it, or unset that")
    named = settings.database_url
    if named is not None:
        prepare(named.get_secret_value(), may_upgrade=False)  # before anything is started in vain
    database_url = named.get_secret_value() if named else embedded_database(home, CRAWL_DATABASE, report=report)
    server = start_server(home, settings, report=report) if external is None else None
    # While the server starts; this and importing prefect take about as long as it does.
    if named is None:
        prepare(database_url, may_upgrade=True)
    os.environ.update(client_environment(home, api_to_use(home, server, external)))
    import crawler.runtime.prefect.api  # noqa: F401

    if server is not None:
        again = partial(start_server, home, settings, report=report)
        server = wait_for_server(home, server, start_again=again, report=report)
    api = api_to_use(home, server, external)
    os.environ["PREFECT_API_URL"] = api.url
    worker = staff(home, server, api=api, database_url=database_url, deployments=deployments, report=report)
    ensure_pages(home, database_url=database_url, tag=stack_tag(home), report=report)
    stack = Stack(home, database_url, api, server.process if server else None, worker.process)
    report(f"The stack is up: {stack.ui_url}")
    return stack


def api_to_use(home: Path, server: Child | None, external: Api | None) -> Api:
    if server is not None:
        return own_api(home, server)
    assert external is not None  # a server is started where none is named
    return external


def embedded_database(home: Path, name: str, *, report: Report) -> str:
    """The URL of a database in the embedded Postgres, both made where they are not there."""
    if running_postgres(home) is None:
        report("Postgres: starting")
    cluster = keep_postgres(home)
    cluster.create_database(name)
    return cluster.url(name)


def start_server(home: Path, settings: Settings, *, report: Report) -> Child:
    return ensure_server(
        home,
        database_url=embedded_database(home, PREFECT_DATABASE, report=report),
        tag=stack_tag(home),
        named_port=settings.prefect_port,
        keep_runs=settings.keep_runs,
        report=report,
    )


async def offer(api: Api, database_url: str) -> None:
    """Let the forms of the deployments offer the domains that are registered."""
    from crawler.runtime.prefect.api import client_of, offer_domains

    async with open_database(database_url, connections=1) as db, client_of(api) as client:
        await offer_domains(client, db)


def staff(home: Path, server: Child | None, *, api: Api, database_url: str, deployments: Path, report: Report) -> Child:
    """The deployments, and a worker for them; before a new worker starts, what a dead one left is cleared away."""
    from crawler.runtime.prefect.api import ensure_deployments
    from crawler.runtime.prefect.worker import clear_runs, find_worker, start_worker

    worker = find_worker(home, api=api, database_url=database_url)
    if worker is None:
        own = noted(server_note(home))
        clear_away(stack_tag(home), without=own.process if own else None, database_url=database_url, report=report)
        if server is not None:  # a pool that others share is not ours to clear
            clear_runs(api, report=report)
    registered = asyncio.run(ensure_deployments(api, deployments, is_ours=server is not None))
    if registered:
        report(f"Deployments: {registered} registered")
    asyncio.run(offer(api, database_url))
    report("Worker: starting" if worker is None else "Worker: running")
    return worker or start_worker(home, tag=stack_tag(home), api=api, database_url=database_url, report=report)
