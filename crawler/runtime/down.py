"""Taking the stack down: exactly what `up` started, and all that this started in turn."""

import asyncio
import os
import time
from uuid import UUID

import psutil

from crawler.runtime.children import end, noted, tagged
from crawler.runtime.environment import Api, client_environment
from crawler.runtime.machine import Process, held
from crawler.runtime.parts import (
    POLL_SECONDS,
    SERVER_END_SECONDS,
    WORKER_END_SECONDS,
    Report,
    answers,
    api_of_worker,
    is_own_api,
    pages_note,
    server_note,
    stack_tag,
    worker_note,
)
from crawler.runtime.postgres.cluster import release_postgres, running_postgres
from crawler.runtime.private import private_folder
from crawler.settings import Settings

ASK_AGAIN_SECONDS = 10
CANCEL_SECONDS = 120  # what a run gets to record what is in flight; by default no request takes longer than 20


def down(settings: Settings, *, report: Report) -> bool:
    """Stop what `up` started, runs and what they started included; whether there was anything to stop."""
    home = settings.home.resolve()
    lock = private_folder(home, "run") / "lock"
    with held(lock, waiting=lambda: report("Another command starts or stops the stack: waiting")):
        return Wrecker(settings, report).wreck()


class Wrecker:
    """Takes the stack of one home down. The lock is held."""

    def __init__(self, settings: Settings, report: Report) -> None:
        self.home, self.report = settings.home.resolve(), report
        self.tag = stack_tag(self.home)
        self.server = noted(server_note(self.home))
        self.worker = noted(worker_note(self.home))
        self.api = api_of_worker(self.home, settings)

    def wreck(self) -> bool:
        processes = tagged(self.tag)
        cluster = running_postgres(self.home)
        if not processes and cluster is None:
            return False
        runs = self.cancel_runs(self.api, processes) if self.api is not None else []
        self.end_processes()
        if self.api is not None and runs and answers(self.server, self.api):
            from crawler.runtime.prefect.api import declare_cancelled

            asyncio.run(declare_cancelled(self.api, runs))
        if self.server is not None:
            self.report("Prefect server: stopping")
            end([self.server.process], patience_seconds=SERVER_END_SECONDS)
        end(tagged(self.tag), patience_seconds=WORKER_END_SECONDS)
        for note in (server_note(self.home), worker_note(self.home), pages_note(self.home)):
            note.unlink(missing_ok=True)
        if cluster is not None:
            self.report("Postgres: stopping")
            if not release_postgres(self.home):
                self.report("Postgres stays until another command that uses it is done")
        return True

    def cancel_runs(self, api: Api, processes: list[Process]) -> list[UUID]:
        """Let the runs end by themselves, so that they release what they hold; gives those that were asked."""
        os.environ.update(client_environment(self.home, api))
        from crawler.runtime.prefect.api import cancel_runs, still_living

        only = None if is_own_api(self.server, api.url) else runs_of(processes)
        asked = living = asyncio.run(cancel_runs(api, only=only))
        if asked:
            self.report(f"Runs: cancelling {len(asked)}")
        began = asked_at = time.monotonic()
        while living and time.monotonic() - began < CANCEL_SECONDS:
            if time.monotonic() - asked_at > ASK_AGAIN_SECONDS:
                asyncio.run(cancel_runs(api, only=living))
                asked_at = time.monotonic()
            time.sleep(POLL_SECONDS)
            living = asyncio.run(still_living(api, living))
        return asked

    def end_processes(self) -> None:
        """End the worker and all runs that have not ended by themselves, orphans too; the server stays."""
        if self.worker is not None:
            self.report("Worker: stopping")
            end([self.worker.process], patience_seconds=WORKER_END_SECONDS)
        server = [self.server.process] if self.server is not None else []
        end([each for each in tagged(self.tag) if each not in server], patience_seconds=WORKER_END_SECONDS)


def runs_of(processes: list[Process]) -> set[UUID]:
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
