"""Start the missing parts of the local stack, and stop everything that was started."""

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from uuid import UUID

import psutil

from crawler.errors import StackFailed
from crawler.runtime import background_processes, stack
from crawler.runtime.background_processes import Child, Report
from crawler.runtime.environment import PrefectApi, build_client_environment
from crawler.runtime.machine import HOME_FOLDERS, Process, ensure_private_folder, hold_lock
from crawler.runtime.postgres.cluster import find_idle_end, find_running_postgres, keep_postgres, release_postgres
from crawler.runtime.prefect.processes import clear_runs, ensure_server, find_worker, start_worker, wait_for_server
from crawler.runtime.stack import Stack
from crawler.runtime.web_ui import ensure_web_ui
from crawler.settings import Settings
from crawler.store.database import open_database, prepare_schema
from crawler.store.domains import expire_leases

DEPLOYMENTS = Path(__file__).parents[2] / "deployments" / "prefect.yaml"
RETRY_SECONDS = 10
CANCEL_SECONDS = 120  # for runs to record their visits in progress; by default, no request takes longer than 20 s


def start_stack(settings: Settings, *, report: Report, deployments: Path = DEPLOYMENTS) -> Stack:
    """Start the missing parts of the stack, which then run until `stop_stack`. A lock makes concurrent calls safe.

    deployments: a prefect.yaml in a folder next to `flows`. Raises StackFailed or another CrawlerError.
    """
    home = settings.home.resolve()
    for name in HOME_FOLDERS:
        ensure_private_folder(home, name)
    with _hold_stack_lock(home, report):
        was_down = not background_processes.list_tagged(background_processes.ensure_tag(home)) and (
            find_running_postgres(home) is None or find_idle_end(home) is not None
        )
        try:
            return _start_parts(home, settings, deployments=deployments, report=report)
        except BaseException:  # also after an interrupt: half a stack is useless
            if was_down:
                _stop_parts(home, settings, report=report)
            raise


def stop_stack(settings: Settings, *, report: Report) -> bool:
    """Stop what `start_stack` started, including runs and child processes. Return whether anything was running."""
    home = settings.home.resolve()
    with _hold_stack_lock(home, report):
        return _stop_parts(home, settings, report=report)


def _hold_stack_lock(home: Path, report: Report) -> AbstractContextManager[None]:
    lock = ensure_private_folder(home, "run") / "lock"
    return hold_lock(lock, on_wait=lambda: report("Waiting for another command that starts or stops the stack"))


def _start_parts(home: Path, settings: Settings, *, deployments: Path, report: Report) -> Stack:
    external = stack.find_external_api(settings, background_processes.find_child(home, background_processes.SERVER))
    if external is not None and not stack.is_responding(None, external):
        hint = "start it or unset PREFECT_API_URL"
        raise StackFailed(f"no Prefect server responds at {external.url} (PREFECT_API_URL): {hint}")
    if settings.database_url is not None:
        database_url = settings.database_url.get_secret_value()
        prepare_schema(database_url, may_upgrade=False)  # fails before anything is started
    else:
        database_url = _ensure_database(home, stack.CRAWL_DATABASE, report=report)

    def start_server() -> Child:
        url = _ensure_database(home, "prefect", report=report)
        return ensure_server(home, settings, database_url=url, report=report)

    server = start_server() if external is None else None
    # Migrate the database and import prefect while the server starts, which takes about as long.
    if settings.database_url is None:
        prepare_schema(database_url, may_upgrade=True)
    os.environ.update(build_client_environment(home, _choose_api(home, server, external)))
    import crawler.runtime.prefect.api  # noqa: F401

    if server is not None:
        server = wait_for_server(home, server, restart=start_server, report=report)
    api = _choose_api(home, server, external)
    os.environ["PREFECT_API_URL"] = api.url
    worker = _ensure_worker(home, server, api=api, url=database_url, deployments=deployments, report=report)
    ensure_web_ui(home, database_url=database_url, report=report)
    report(f"The stack is up: {api.ui_url}")
    return Stack(home, database_url, api, server.process if server else None, worker.process)


def _choose_api(home: Path, server: Child | None, external: PrefectApi | None) -> PrefectApi:
    api = external if server is None else stack.build_own_api(home, server)
    assert api is not None  # without an external server, one is started
    return api


def _ensure_database(home: Path, name: str, *, report: Report) -> str:
    """Return the URL of a database in the embedded Postgres, and create both if needed."""
    if find_running_postgres(home) is None:
        report("Postgres: starting")
    cluster = keep_postgres(home)
    cluster.create_database(name)
    return cluster.build_url(name)


async def register_deployments(api: PrefectApi, deployments: Path, *, database_url: str, is_ours: bool) -> int:
    """Register the deployments, with the domains in their forms. Return the number of new or changed deployments.

    deployments: the prefect.yaml.  is_ours: whether the server belongs to this home.
    """
    from crawler.runtime.prefect.api import ensure_deployments, offer_domains, open_client

    registered = await ensure_deployments(api, deployments, is_ours=is_ours)
    async with open_database(database_url, max_connections=1) as db, open_client(api) as client:
        await offer_domains(client, db)
    return registered


def _ensure_worker(
    home: Path, server: Child | None, *, api: PrefectApi, url: str, deployments: Path, report: Report
) -> Child:
    """Register the deployments and return the worker; clean up after a dead worker before starting a new one."""
    worker, is_ours = find_worker(home, api=api, database_url=url), server is not None
    if worker is None:
        own_server, tag = (
            background_processes.find_child(home, background_processes.SERVER),
            background_processes.ensure_tag(home),
        )
        clean_up(tag, excluding=own_server.process if own_server else None, database_url=url, report=report)
        if is_ours:  # the pool of an external server may have other users
            clear_runs(api, report=report)
    if registered := asyncio.run(register_deployments(api, deployments, database_url=url, is_ours=is_ours)):
        report(f"Deployments: {registered} registered")
    report("Worker: starting" if worker is None else "Worker: running")
    return worker or start_worker(home, api=api, database_url=url, report=report)


def clean_up(tag: str, *, excluding: Process | None = None, database_url: str, report: Report) -> None:
    """End all processes with a tag, except `excluding`, and release the leases of their runs."""
    background_processes.end_processes([each for each in background_processes.list_tagged(tag) if each != excluding])

    async def free_leases() -> int:
        async with open_database(database_url, max_connections=1) as db:
            return await expire_leases(db, holder_prefix=f"{tag}/")

    if freed := asyncio.run(free_leases()):
        report(f"Leases: {freed} of a dead worker released")


def _stop_parts(home: Path, settings: Settings, *, report: Report) -> bool:
    """Stop the stack. Return whether anything was running. The caller holds the lock."""
    tag, cluster = background_processes.ensure_tag(home), find_running_postgres(home)
    processes = background_processes.list_tagged(tag)
    if not processes and cluster is None:
        return False
    server, worker = (
        background_processes.find_child(home, background_processes.SERVER),
        background_processes.find_child(home, background_processes.WORKER),
    )
    api = stack.find_worker_api(home, settings)
    runs: Sequence[UUID] = ()
    if api is not None:
        os.environ.update(build_client_environment(home, api))
        runs = _cancel_runs(api, None if stack.is_own_api(server, api.url) else find_run_ids(processes), report=report)
    if worker is not None:
        report("Worker: stopping")
        background_processes.end_processes([worker.process])
    # This includes orphans and runs that have not ended in time.
    background_processes.end_processes(
        [each for each in background_processes.list_tagged(tag) if server is None or each != server.process]
    )
    if api is not None and runs and stack.is_responding(server, api):
        from crawler.runtime.prefect.api import mark_cancelled

        asyncio.run(mark_cancelled(api, runs))
    if server is not None:
        report("Prefect server: stopping")
        background_processes.end_processes([server.process])
    background_processes.end_processes(background_processes.list_tagged(tag))
    for name in (background_processes.SERVER, background_processes.WORKER, background_processes.WEB_UI):
        background_processes.remove_note(home, name)
    if cluster is not None:
        report("Postgres: stopping")
        if not release_postgres(home):
            report("Postgres: still used by another command, and stops after that")
    return True


def _cancel_runs(api: PrefectApi, only: set[UUID] | None, *, report: Report) -> Sequence[UUID]:
    """Cancel runs and wait a while until they have ended and released their leases. Return them. only: None for all."""
    from crawler.runtime.prefect.api import cancel_runs, list_still_live

    cancelled = live_runs = asyncio.run(cancel_runs(api, only=only))
    if cancelled:
        report(f"Runs: canceling {len(cancelled)}")
    began = cancelled_at = time.monotonic()
    while live_runs and time.monotonic() - began < CANCEL_SECONDS:
        if time.monotonic() - cancelled_at > RETRY_SECONDS:
            asyncio.run(cancel_runs(api, only=live_runs))
            cancelled_at = time.monotonic()
        time.sleep(background_processes.POLL_SECONDS)
        live_runs = asyncio.run(list_still_live(api, live_runs))
    return cancelled


def find_run_ids(processes: Sequence[Process]) -> set[UUID]:
    """Return the ids of the Prefect runs of these processes."""
    runs = set()
    for each in processes:
        with suppress(psutil.Error, KeyError):  # it has ended, or is no run
            runs.add(UUID(psutil.Process(each.pid).environ()["PREFECT__FLOW_RUN_ID"]))
    return runs
