"""Taking the stack down: exactly what `up` started, and all that this started in turn."""

import asyncio
import os
import time
from pathlib import Path
from uuid import UUID

import psutil

from crawler.local.children import end, noted, tagged
from crawler.local.environment import client_environment
from crawler.local.machine import Process, held
from crawler.local.parts import (
    POLL_SECONDS,
    SERVER_END_SECONDS,
    WORKER_END_SECONDS,
    Report,
    answers,
    is_own_api,
    server_note,
    stack_tag,
    worker_note,
)
from crawler.local.postgres import release_postgres, running_postgres
from crawler.settings import Settings

ASK_AGAIN_SECONDS = 10
CANCEL_SECONDS = 120  # what a run gets to record what is in flight; by default no request takes longer than 20


def down(settings: Settings, *, report: Report) -> bool:
    """Stop what `up` started, runs and what they started included; whether there was anything to stop."""
    home = settings.home.resolve()
    with held(home / "run" / "lock", waiting=lambda: report("Another command starts or stops the stack: waiting")):
        return Wrecker(home, report).wreck()


class Wrecker:
    """Takes the stack of one home down. The lock is held."""

    def __init__(self, home: Path, report: Report) -> None:
        self.home, self.report = home, report
        self.tag = stack_tag(home)
        self.server = noted(server_note(home))
        self.worker = noted(worker_note(home))

    def wreck(self) -> bool:
        processes = tagged(self.tag)
        cluster = running_postgres(self.home)
        if not processes and cluster is None:
            return False
        api_url = self.worker.facts["api_url"] if self.worker is not None else None
        runs = self.cancel_runs(api_url, processes) if api_url is not None else []
        self.end_processes()
        if api_url is not None and runs and answers(api_url):
            from crawler.local.prefect import declare_cancelled

            asyncio.run(declare_cancelled(api_url, runs))
        if self.server is not None:
            self.report("Prefect server: stopping")
            end([self.server.process], patience_seconds=SERVER_END_SECONDS)
        end(tagged(self.tag), patience_seconds=WORKER_END_SECONDS)
        for note in (server_note(self.home), worker_note(self.home)):
            note.unlink(missing_ok=True)
        if cluster is not None:
            self.report("Postgres: stopping")
            if not release_postgres(self.home):
                self.report("Postgres stays until another command that uses it is done")
        return True

    def cancel_runs(self, api_url: str, processes: list[Process]) -> list[UUID]:
        """Let the runs end by themselves, so that they release what they hold; gives those that were asked."""
        if not answers(api_url):
            return []
        os.environ.update(client_environment(self.home, api_url=api_url))
        from crawler.local.prefect import cancel_runs, still_living

        only = None if is_own_api(self.server, api_url) else runs_of(processes)
        asked = living = asyncio.run(cancel_runs(api_url, only=only))
        if asked:
            self.report(f"Runs: cancelling {len(asked)}")
        began = asked_at = time.monotonic()
        while living and time.monotonic() - began < CANCEL_SECONDS:
            if time.monotonic() - asked_at > ASK_AGAIN_SECONDS:
                asyncio.run(cancel_runs(api_url, only=living))
                asked_at = time.monotonic()
            time.sleep(POLL_SECONDS)
            living = asyncio.run(still_living(api_url, living))
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
