"""A Prefect worker in the foreground, which starts when its dependencies are ready and shuts down cleanly.

On SIGTERM, Prefect's worker does not end its runs, and its supervisor (such as systemd) kills them soon after. Here the
runs are canceled first: each records its visits in progress, releases its domains, and is marked as canceled.
"""

import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from uuid import UUID

from crawler.errors import CrawlerError, StackFailed
from crawler.runtime import background_processes
from crawler.runtime.background_processes import Child, Report
from crawler.runtime.environment import PrefectApi, build_worker_command, build_worker_environment
from crawler.runtime.lifecycle import clean_up, find_run_ids
from crawler.runtime.machine import Process, ensure_private_folder, find_process, try_hold_lock
from crawler.runtime.service import health, runs
from crawler.settings import Settings

RETRY_SECONDS = 10.0
SHORT_LIFE_SECONDS = 30.0


def run_worker(settings: Settings, *, runs_at_once: int | None, timeout: timedelta, report: Report) -> None:
    """Run the crawls that the Prefect server schedules, until SIGTERM or SIGINT.

    runs_at_once: the maximum number of concurrent runs, or None.  timeout: the time for runs to end after a signal.
    Raises StackFailed if another worker uses this home, and, after ending the runs, if Prefect's worker keeps ending.
    """
    database_url, api = health.get_database_url(settings), health.get_api(settings)
    home = settings.home.resolve()
    for name in ("run", "prefect", "tmp"):
        ensure_private_folder(home, name)
    with try_hold_lock(home / "run" / "service-worker.lock") as is_alone, _stop_on_signal() as stop:
        if not is_alone:
            raise StackFailed(f"another worker uses {home}: set RECRAWL_HOME to another folder for this one")
        tag = background_processes.ensure_tag(home, background_processes.SERVICE_TAG)
        variables = build_worker_environment(home, api, tag=tag, database_url=database_url)
        own_process = find_process(os.getpid())
        assert own_process is not None
        background_processes.write_note(home, background_processes.SERVICE_WORKER, Child(own_process, {}))
        health.get_heartbeat_file(home).touch()
        environment, shows_output = dict(os.environ) | variables, settings.log_format == "text"
        environment |= health.build_log_environment(settings)
        supervisor = _WorkerSupervisor(home, api, environment, stop, report, shows_output=shows_output)
        find_schema_problem = partial(health.find_schema_problem, database_url)
        problems = (find_schema_problem, supervisor.find_server_problem, supervisor.find_pool_problem)
        with _serve_metrics(settings, home, tag):
            if all(health.wait_until_usable(problem, wait=supervisor.wait, report=report) for problem in problems):
                clean_up(tag, database_url=database_url, report=report)
                supervisor.run(runs_at_once=runs_at_once, timeout=timeout)


def _serve_metrics(settings: Settings, home: Path, tag: str) -> AbstractContextManager[None]:
    """Serve the metrics of the runs if the settings have a port."""
    if settings.metrics_port is None:
        return nullcontext()
    from crawler.runtime.metrics.endpoint import serve_worker_metrics  # noqa: PLC0415  takes 3 MB and is rarely used

    is_alive = partial(health.has_heartbeat, home)
    return serve_worker_metrics(settings.metrics_host, settings.metrics_port, home, tag=tag, is_alive=is_alive)


@contextmanager
def _stop_on_signal() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM or SIGINT sets. A second signal has no effect."""
    stop = threading.Event()
    old_handlers = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)


@dataclass(slots=True)
class _WorkerSupervisor:
    """A supervisor of Prefect's worker and its runs.

    environment: the variables of both.  stop: set to end both.  shows_output: whether to show the output of Prefect's
    worker, which is not in JSON.
    """

    home: Path
    api: PrefectApi
    environment: dict[str, str]
    stop: threading.Event
    report: Report
    shows_output: bool = field(kw_only=True)
    worker: subprocess.Popen[bytes] | None = None

    def wait(self, seconds: float) -> bool:
        """Send a heartbeat and wait. Return whether the service was asked to stop meanwhile."""
        health.get_heartbeat_file(self.home).touch()
        return self.stop.wait(seconds)

    def find_server_problem(self) -> str:
        return health.find_server_problem(self.api)

    def find_pool_problem(self) -> str:
        is_ready = runs.run_program(runs.POOL, environment=self.environment)
        return "" if is_ready else "the Prefect server has not confirmed the work pool"

    def run(self, *, runs_at_once: int | None, timeout: timedelta) -> None:
        """Run Prefect's worker until `stop` is set, then end its runs.

        Prefect's worker ends when its server does not respond for some minutes. Its runs continue, and a new worker
        starts when the server is back. Raises StackFailed if several workers in a row end soon after their start.
        """
        short_lives = 0
        try:
            while not self.stop.is_set():
                began = time.monotonic()
                self._run_until_ended(runs_at_once)
                short_lives = short_lives + 1 if time.monotonic() - began < SHORT_LIFE_SECONDS else 0
                if short_lives >= 5 and not self.stop.is_set():
                    raise StackFailed("Prefect's worker ended soon after every start: see its output")
                health.wait_until_usable(self.find_server_problem, wait=self.wait, report=self.report)
        finally:
            self._end_runs(timeout)
            self._end_worker()
            # Release the leases of killed runs: Prefect's worker kills runs half a minute after their cancellation.
            try:
                url = self.environment["RECRAWL_DATABASE_URL"]
                clean_up(self.environment[background_processes.TAG], database_url=url, report=self.report)
            except CrawlerError as error:  # the leases expire anyway
                self.report(f"Leases: not released: {error}")
            background_processes.remove_note(self.home, background_processes.SERVICE_WORKER)

    def _run_until_ended(self, runs_at_once: int | None) -> None:
        """Run Prefect's worker until it ends or the stop event is set."""
        self.worker = self._start_worker(runs_at_once)
        while self.worker.poll() is None and not self.wait(health.HEARTBEAT_SECONDS):
            pass
        if self.worker.poll() is not None:
            self.report(f"Worker: ended unexpectedly with exit code {self.worker.poll()}; its runs continue")

    def _end_worker(self) -> None:
        if self.worker is None:
            return
        self.worker.terminate()
        try:
            self.worker.wait(background_processes.END_SECONDS)
        except subprocess.TimeoutExpired:
            self.worker.kill()
            self.worker.wait()

    def _start_worker(self, runs_at_once: int | None) -> subprocess.Popen[bytes]:
        name = f"recrawl-{self.environment[background_processes.TAG]}-{secrets.token_hex(2)}"
        limit = ["--limit", str(runs_at_once)] if runs_at_once is not None else []
        self.report(f"Worker: {name}")
        return subprocess.Popen(
            [*build_worker_command(name), *limit],
            env=self.environment,
            cwd=self.home,  # prefect would read settings from files in the user's folder
            stdin=subprocess.DEVNULL,
            stdout=None if self.shows_output else subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C must not reach the worker, because the runs are canceled first
        )

    def _end_runs(self, timeout: timedelta) -> None:
        """Cancel the runs of this worker, including those that start meanwhile, and kill them at the deadline."""
        deadline, cancelled_at = time.monotonic() + timeout.total_seconds(), 0.0
        cancelled: set[UUID] = set()
        while live_runs := find_run_ids(processes := self._list_run_processes()):
            now = time.monotonic()
            if now > deadline:
                self.report(f"Runs: {len(live_runs)} killed, because they did not end in time")
                background_processes.end_processes(processes)
                break
            if live_runs - cancelled or now - cancelled_at > RETRY_SECONDS:
                self.report(f"Runs: canceling {len(live_runs)}")
                was_sent = runs.run_program(runs.CANCEL, live_runs, environment=self.environment)
                if not was_sent or cancelled & live_runs:
                    # Prefect's worker does not know the runs of earlier workers.
                    background_processes.send_signal(processes, signal.SIGTERM)
                cancelled, cancelled_at = cancelled | live_runs, time.monotonic()
            health.get_heartbeat_file(self.home).touch()
            time.sleep(background_processes.POLL_SECONDS)
        if cancelled:
            runs.run_program(runs.CANCELLED, cancelled, environment=self.environment)

    def _list_run_processes(self) -> list[Process]:
        return [
            each
            for each in background_processes.list_tagged(self.environment[background_processes.TAG])
            if find_run_ids([each])
        ]
