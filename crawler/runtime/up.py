"""Starting the stack, what is missing of it, part by part; and stopping exactly what was started."""

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import psutil

from crawler.errors import StackFailed
from crawler.runtime import children
from crawler.runtime.children import Child, Report
from crawler.runtime.environment import Api, client_environment
from crawler.runtime.machine import OURS, Process, held, private_folder
from crawler.runtime.pages import ensure_pages
from crawler.runtime.postgres.cluster import keep_postgres, release_postgres, running_postgres
from crawler.runtime.prefect.processes import clear_runs, ensure_server, find_worker, start_worker, wait_for_server
from crawler.runtime.stack import CRAWL_DATABASE, Stack, answers, api_of_worker, external_api, is_own_api, own_api
from crawler.settings import Settings
from crawler.store.database import open_database, prepare
from crawler.store.domains import expire_leases

PREFECT_DATABASE = "prefect"
DEPLOYMENTS = Path(__file__).parents[2] / "deployments" / "prefect.yaml"
ASK_AGAIN_SECONDS = 10
CANCEL_SECONDS = 120  # what a run gets to record what is in flight; by default no request takes longer than 20


def up(settings: Settings, *, report: Report, deployments: Path = DEPLOYMENTS) -> Stack:
    """Start what is missing of the stack; it stays until `down`. Two at once do not fight: the second finds it running.

    deployments: a prefect.yaml in a folder beside `flows`.
    Raises StackFailed or another CrawlerError, with what to do about it.
    """
    home = settings.home.resolve()
    for name in OURS:
        private_folder(home, name)
    with held(home / "run" / "lock", waiting=lambda: report("Another command starts or stops the stack: waiting")):
        was_down = not children.tagged(children.tag_of(home)) and running_postgres(home) is None
        try:
            return _build(home, settings, deployments=deployments, report=report)
        except BaseException:  # an interrupt too: half a stack is of no use to anybody
            if was_down:
                _take_down(home, settings, report=report)
            raise


def down(settings: Settings, *, report: Report) -> bool:
    """Stop what `up` started, runs and what they started included; whether there was anything to stop."""
    home = settings.home.resolve()
    lock = private_folder(home, "run") / "lock"
    with held(lock, waiting=lambda: report("Another command starts or stops the stack: waiting")):
        return _take_down(home, settings, report=report)


def _build(home: Path, settings: Settings, *, deployments: Path, report: Report) -> Stack:
    external = external_api(settings, children.noted(home, children.SERVER))
    if external is not None and not answers(None, external):
        raise StackFailed(f"no Prefect server answers at {external.url} (PREFECT_API_URL): start it, or unset that")
    named = settings.database_url
    if named is not None:
        prepare(named.get_secret_value(), may_upgrade=False)  # before anything is started in vain
    database_url = named.get_secret_value() if named else _embedded_database(home, CRAWL_DATABASE, report=report)

    def start_server() -> Child:
        url = _embedded_database(home, PREFECT_DATABASE, report=report)
        return ensure_server(home, settings, database_url=url, report=report)

    server = start_server() if external is None else None
    # While the server starts; this and importing prefect take about as long as it does.
    if named is None:
        prepare(database_url, may_upgrade=True)
    os.environ.update(client_environment(home, _api_to_use(home, server, external)))
    import crawler.runtime.prefect.api  # noqa: F401

    if server is not None:
        server = wait_for_server(home, server, start_again=start_server, report=report)
    api = _api_to_use(home, server, external)
    os.environ["PREFECT_API_URL"] = api.url
    worker = _staff(home, server, api=api, database_url=database_url, deployments=deployments, report=report)
    ensure_pages(home, database_url=database_url, report=report)
    report(f"The stack is up: {api.ui_url}")
    return Stack(home, database_url, api, server.process if server else None, worker.process)


def _api_to_use(home: Path, server: Child | None, external: Api | None) -> Api:
    if server is not None:
        return own_api(home, server)
    assert external is not None  # a server is started where none is named
    return external


def _embedded_database(home: Path, name: str, *, report: Report) -> str:
    """The URL of a database in the embedded Postgres, both made where they are not there."""
    if running_postgres(home) is None:
        report("Postgres: starting")
    cluster = keep_postgres(home)
    cluster.create_database(name)
    return cluster.url(name)


async def register(api: Api, deployments: Path, *, database_url: str, is_ours: bool) -> int:
    """Register the deployments, their forms with the domains that there are; gives how many were new or different.

    is_ours: the server is this home's own.
    """
    from crawler.runtime.prefect.api import client_of, ensure_deployments, offer_domains

    registered = await ensure_deployments(api, deployments, is_ours=is_ours)
    async with open_database(database_url, connections=1) as db, client_of(api) as client:
        await offer_domains(client, db)
    return registered


def _staff(
    home: Path, server: Child | None, *, api: Api, database_url: str, deployments: Path, report: Report
) -> Child:
    """The deployments, and a worker for them; before a new worker starts, what a dead one left is cleared away."""
    worker = find_worker(home, api=api, database_url=database_url)
    if worker is None:
        own, tag = children.noted(home, children.SERVER), children.tag_of(home)
        clear_away(tag, without=own.process if own else None, database_url=database_url, report=report)
        if server is not None:  # a pool that others share is not ours to clear
            clear_runs(api, report=report)
    registered = asyncio.run(register(api, deployments, database_url=database_url, is_ours=server is not None))
    if registered:
        report(f"Deployments: {registered} registered")
    report("Worker: starting" if worker is None else "Worker: running")
    return worker or start_worker(home, api=api, database_url=database_url, report=report)


def clear_away(tag: str, *, without: Process | None = None, database_url: str, report: Report) -> None:
    """End what a dead worker, or one for another server, left behind, and free the domains that its runs held."""
    children.end([each for each in children.tagged(tag) if each != without])

    async def free_leases() -> int:
        async with open_database(database_url, connections=1) as db:
            return await expire_leases(db, holder_prefix=f"{tag}/")

    freed = asyncio.run(free_leases())
    if freed:
        report(f"Leases: {freed} freed that a dead worker held")


def _take_down(home: Path, settings: Settings, *, report: Report) -> bool:
    """Stop the stack; whether there was anything to stop. The lock is held."""
    tag, cluster = children.tag_of(home), running_postgres(home)
    processes = children.tagged(tag)
    if not processes and cluster is None:
        return False
    server, worker = children.noted(home, children.SERVER), children.noted(home, children.WORKER)
    api = api_of_worker(home, settings)
    runs: Sequence[UUID] = ()
    if api is not None:
        os.environ.update(client_environment(home, api))
        runs = _cancel_runs(api, None if is_own_api(server, api.url) else runs_of(processes), report=report)
    if worker is not None:
        report("Worker: stopping")
        children.end([worker.process])
    # The runs, too, that have not ended by themselves, and orphans.
    children.end([each for each in children.tagged(tag) if server is None or each != server.process])
    if api is not None and runs and answers(server, api):
        from crawler.runtime.prefect.api import declare_cancelled

        asyncio.run(declare_cancelled(api, runs))
    if server is not None:
        report("Prefect server: stopping")
        children.end([server.process])
    children.end(children.tagged(tag))
    for name in (children.SERVER, children.WORKER, children.PAGES):
        children.forget(home, name)
    if cluster is not None:
        report("Postgres: stopping")
        if not release_postgres(home):
            report("Postgres stays until another command that uses it is done")
    return True


def _cancel_runs(api: Api, only: set[UUID] | None, *, report: Report) -> Sequence[UUID]:
    """Let runs end by themselves, so that they release what they hold; gives those that were asked. None: all."""
    from crawler.runtime.prefect.api import cancel_runs, still_living

    asked = living = asyncio.run(cancel_runs(api, only=only))
    if asked:
        report(f"Runs: cancelling {len(asked)}")
    began = asked_at = time.monotonic()
    while living and time.monotonic() - began < CANCEL_SECONDS:
        if time.monotonic() - asked_at > ASK_AGAIN_SECONDS:
            asyncio.run(cancel_runs(api, only=living))
            asked_at = time.monotonic()
        time.sleep(children.POLL_SECONDS)
        living = asyncio.run(still_living(api, living))
    return asked


def runs_of(processes: Sequence[Process]) -> set[UUID]:
    """The Prefect runs that these processes are."""
    runs = set()
    for each in processes:
        try:
            run = psutil.Process(each.pid).environ().get("PREFECT__FLOW_RUN_ID")
        except psutil.Error:
            continue
        if run is not None:
            runs.add(UUID(run))
    return runs
