"""A worker in the foreground: Prefect's own, begun when what it needs is there, and ended in good order.

Prefect's worker leaves its runs alone when it is told to end, and whoever told it kills them a little later. Here they
are asked to end first: each records what is under way, gives its domains back, and is called cancelled.
"""

import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from crawler.errors import CrawlerError, StackFailed
from crawler.runtime import children
from crawler.runtime.children import Child, Report
from crawler.runtime.environment import PrefectApi, build_worker_command, build_worker_environment
from crawler.runtime.lifecycle import clean_up, find_run_ids
from crawler.runtime.machine import Process, ensure_private_folder, find_process, try_hold_lock
from crawler.runtime.service import health, runs
from crawler.settings import Settings

RETRY_SECONDS = 10.0
SHORT_LIFE_SECONDS = 30.0
MAX_SHORT_LIVES = 5


def run_worker(settings: Settings, *, runs_at_once: int | None, timeout: timedelta, report: Report) -> None:
    """Crawl what the Prefect server schedules, until this process is told to end by SIGTERM or SIGINT.

    runs_at_once: None for no limit of this worker's own.  timeout: what runs get to end by themselves.
    Raises StackFailed where another worker has this home, and where Prefect's worker does not stay; runs are ended in
    good order then, too.
    """
    database_url, api = health.get_database_url(settings), health.get_api(settings)
    home = settings.home.resolve()
    for name in ("run", "prefect", "tmp"):
        ensure_private_folder(home, name)
    with try_hold_lock(home / "run" / "service-worker.lock") as is_alone, _stop_on_signal() as stop:
        if not is_alone:
            raise StackFailed(f"another worker has {home}: give this one a RECRAWL_HOME of its own")
        tag = children.ensure_tag(home, children.SERVICE_TAG)
        worker_variables = build_worker_environment(
            home, api, tag=tag, database_url=database_url
        ) | health.build_log_environment(settings)
        own_process = find_process(os.getpid())
        assert own_process is not None
        children.write_note(home, children.SERVICE_WORKER, Child(own_process, {}))
        health.beat_file(home).touch()
        shows_output = settings.log_format == "text"
        environment = dict(os.environ) | worker_variables
        supervisor = _WorkerSupervisor(
            home=home, api=api, environment=environment, stop=stop, report=report, shows_output=shows_output
        )
        problems = (
            lambda: health.find_schema_problem(database_url),
            supervisor.find_server_problem,
            supervisor.find_pool_problem,
        )
        with _serve_metrics(settings, home):
            if all(health.wait_until_usable(problem, wait=supervisor.wait, report=report) for problem in problems):
                clean_up(tag, database_url=database_url, report=report)
                supervisor.run(runs_at_once=runs_at_once, timeout=timeout)


def _serve_metrics(settings: Settings, home: Path) -> AbstractContextManager[None]:
    """What serves the metrics of the runs, where the settings name a port."""
    if settings.metrics_port is None:
        return nullcontext()
    from crawler.runtime.metrics.endpoint import serve_worker_metrics  # noqa: PLC0415  3 MB, which few ask for

    host, port = settings.metrics_host, settings.metrics_port
    return serve_worker_metrics(
        host,
        port,
        home,
        tag=children.ensure_tag(home, children.SERVICE_TAG),
        is_alive=lambda: health.has_heartbeat(home),
    )


@contextmanager
def _stop_on_signal() -> Iterator[threading.Event]:
    """An event that the first SIGTERM or SIGINT sets; a second one ends nothing sooner, `patience` does."""
    stop = threading.Event()
    old_handlers = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)


@dataclass(slots=True, kw_only=True)
class _WorkerSupervisor:
    """Watches over Prefect's worker and its runs.

    environment: of both.  stop: to end.  shows_output: whether what Prefect's command says to people may be heard
    beside what is told.
    """

    home: Path
    api: PrefectApi
    environment: dict[str, str]
    stop: threading.Event
    report: Report
    shows_output: bool
    worker: subprocess.Popen[bytes] | None = None

    def wait(self, seconds: float) -> bool:
        """Wait so long, alive; whether it was told to end meanwhile."""
        health.beat_file(self.home).touch()
        return self.stop.wait(seconds)

    def find_server_problem(self) -> str:
        return health.find_server_problem(self.api)

    def find_pool_problem(self) -> str:
        is_ready = runs.run_program(runs.POOL, environment=self.environment)
        return "" if is_ready else "the Prefect server does not say that it has our work pool"

    def run(self, *, runs_at_once: int | None, timeout: timedelta) -> None:
        """Have runs made until told to end, then end them.

        Prefect's worker ends by itself when its server has been silent for some minutes. Its runs go on, and another
        worker begins when the server is back. Raises StackFailed where one after the other ends at once.
        """
        short_lives = 0
        try:
            while not self.stop.is_set():
                began = time.monotonic()
                self._run_until_ended(runs_at_once)
                short_lives = short_lives + 1 if time.monotonic() - began < SHORT_LIFE_SECONDS else 0
                if short_lives >= MAX_SHORT_LIVES and not self.stop.is_set():
                    raise StackFailed("Prefect's worker ends as often as it is started: see what it has said")
                health.wait_until_usable(self.find_server_problem, wait=self.wait, report=self.report)
        finally:
            self._end_runs(timeout)
            self._end_worker()
            self._clean_up()
            children.remove_note(self.home, children.SERVICE_WORKER)

    def _clean_up(self) -> None:
        """Free what runs held that had to be killed: Prefect's worker kills one half a minute after it was asked."""
        try:
            url = self.environment["RECRAWL_DATABASE_URL"]
            clean_up(self.environment[children.TAG], database_url=url, report=self.report)
        except CrawlerError as error:  # their leases run out by themselves
            self.report(f"Leases: not freed: {error}")

    def _run_until_ended(self, runs_at_once: int | None) -> None:
        """Have Prefect's worker work until it ends, or this is told to."""
        self.worker = self._start_worker(runs_at_once)
        while self.worker.poll() is None and not self.wait(health.HEARTBEAT_SECONDS):
            pass
        if self.worker.poll() is not None:
            self.report(f"Worker: Prefect's has ended by itself, exit code {self.worker.poll()}; its runs go on")

    def _end_worker(self) -> None:
        if self.worker is None:
            return
        self.worker.terminate()
        try:
            self.worker.wait(children.END_SECONDS)
        except subprocess.TimeoutExpired:
            self.worker.kill()
            self.worker.wait()

    def _start_worker(self, runs_at_once: int | None) -> subprocess.Popen[bytes]:
        name = f"recrawl-{self.environment[children.TAG]}-{secrets.token_hex(2)}"
        limit = ["--limit", str(runs_at_once)] if runs_at_once is not None else []
        self.report(f"Worker: {name}")
        return subprocess.Popen(
            [*build_worker_command(name), *limit],
            env=self.environment,
            cwd=self.home,  # not the user's: prefect would read settings from files that lie there
            stdin=subprocess.DEVNULL,
            stdout=None if self.shows_output else subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us, and we ask the runs first
        )

    def _end_runs(self, timeout: timedelta) -> None:
        """Ask the runs of this worker to end, those too that begin meanwhile, and end what has not done so in time."""
        deadline, cancelled_at = time.monotonic() + timeout.total_seconds(), 0.0
        cancelled: set[UUID] = set()
        while live_runs := find_run_ids(processes := self._list_run_processes()):
            now = time.monotonic()
            if now > deadline:
                self.report(f"Runs: {len(live_runs)} have not ended in time")
                children.end_processes(processes)
                break
            if live_runs - cancelled or now - cancelled_at > RETRY_SECONDS:
                self.report(f"Runs: cancelling {len(live_runs)}")
                was_sent = runs.run_program(runs.CANCEL, live_runs, environment=self.environment)
                if not was_sent or cancelled & live_runs:
                    # Prefect's worker knows nothing of what one before it has begun
                    children.send_signal(processes, signal.SIGTERM)
                cancelled, cancelled_at = cancelled | live_runs, time.monotonic()
            health.beat_file(self.home).touch()
            time.sleep(children.POLL_SECONDS)
        if cancelled:
            runs.run_program(runs.CANCELLED, cancelled, environment=self.environment)

    def _list_run_processes(self) -> list[Process]:
        return [each for each in children.list_tagged(self.environment[children.TAG]) if find_run_ids([each])]
