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
from crawler.runtime.environment import Api, worker_command, worker_environment
from crawler.runtime.machine import Process, held_if_free, private_folder, process
from crawler.runtime.service import health, runs
from crawler.runtime.up import clear_away, runs_of
from crawler.settings import Settings

ASK_AGAIN_SECONDS = 10.0
SHORT_LIFE_SECONDS = 30.0
MOST_SHORT_LIVES = 5


def work(settings: Settings, *, runs_at_once: int | None, patience: timedelta, report: Report) -> None:
    """Crawl what the Prefect server schedules, until this process is told to end by SIGTERM or SIGINT.

    runs_at_once: None for no limit of this worker's own.  patience: what runs get to end by themselves.
    Raises StackFailed where another worker has this home, and where Prefect's worker does not stay; runs are ended in
    good order then, too.
    """
    database_url, api = health.database_of(settings), health.api_of(settings)
    home = settings.home.resolve()
    for name in ("run", "prefect", "tmp"):
        private_folder(home, name)
    with held_if_free(home / "run" / "service-worker.lock") as is_alone, _told_to_end() as told:
        if not is_alone:
            raise StackFailed(f"another worker has {home}: give this one a RECRAWL_HOME of its own")
        tag = children.tag_of(home, children.SERVICE_TAG)
        own = worker_environment(home, api, tag=tag, database_url=database_url) | health.told_as(settings)
        me = process(os.getpid())
        assert me is not None
        children.write_note(home, children.SERVICE_WORKER, Child(me, {}))
        health.beat_file(home).touch()
        speaks = settings.log_format == "text"
        environment = dict(os.environ) | own
        foreman = _Foreman(home=home, api=api, environment=environment, told=told, report=report, speaks=speaks)
        problems = (lambda: health.schema_problem(database_url), foreman.server_problem, foreman.pool_problem)
        with _metrics(settings, home):
            if all(health.wait_until_usable(problem, wait=foreman.rests, report=report) for problem in problems):
                clear_away(tag, database_url=database_url, report=report)
                foreman.work(runs_at_once=runs_at_once, patience=patience)


def _metrics(settings: Settings, home: Path) -> AbstractContextManager[None]:
    """What serves the metrics of the runs, where the settings name a port."""
    if settings.metrics_port is None:
        return nullcontext()
    from crawler.runtime.metrics.served import worker_metrics  # noqa: PLC0415  3 MB, which few ask for

    host, port = settings.metrics_host, settings.metrics_port
    return worker_metrics(
        host, port, home, tag=children.tag_of(home, children.SERVICE_TAG), is_alive=lambda: health.is_beating(home)
    )


@contextmanager
def _told_to_end() -> Iterator[threading.Event]:
    """An event that the first SIGTERM or SIGINT sets; a second one ends nothing sooner, `patience` does."""
    told = threading.Event()
    before = {number: signal.signal(number, lambda *_: told.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(slots=True, kw_only=True)
class _Foreman:
    """Watches over Prefect's worker and its runs.

    environment: of both.  told: to end.  speaks: whether what Prefect's command says to people may be heard beside what
    is told.
    """

    home: Path
    api: Api
    environment: dict[str, str]
    told: threading.Event
    report: Report
    speaks: bool
    worker: subprocess.Popen[bytes] | None = None

    def rests(self, seconds: float) -> bool:
        """Wait so long, alive; whether it was told to end meanwhile."""
        health.beat_file(self.home).touch()
        return self.told.wait(seconds)

    def server_problem(self) -> str:
        return health.server_problem(self.api)

    def pool_problem(self) -> str:
        is_seen_to = runs.ask(runs.POOL, environment=self.environment)
        return "" if is_seen_to else "the Prefect server does not say that it has our work pool"

    def work(self, *, runs_at_once: int | None, patience: timedelta) -> None:
        """Have runs made until told to end, then end them.

        Prefect's worker ends by itself when its server has been silent for some minutes. Its runs go on, and another
        worker begins when the server is back. Raises StackFailed where one after the other ends at once.
        """
        short_lives = 0
        try:
            while not self.told.is_set():
                began = time.monotonic()
                self._watch(runs_at_once)
                short_lives = short_lives + 1 if time.monotonic() - began < SHORT_LIFE_SECONDS else 0
                if short_lives >= MOST_SHORT_LIVES and not self.told.is_set():
                    raise StackFailed("Prefect's worker ends as often as it is started: see what it has said")
                health.wait_until_usable(self.server_problem, wait=self.rests, report=self.report)
        finally:
            self._end_runs(patience)
            self._end_worker()
            self._clear_away()
            children.forget(self.home, children.SERVICE_WORKER)

    def _clear_away(self) -> None:
        """Free what runs held that had to be killed: Prefect's worker kills one half a minute after it was asked."""
        try:
            url = self.environment["RECRAWL_DATABASE_URL"]
            clear_away(self.environment[children.TAG], database_url=url, report=self.report)
        except CrawlerError as error:  # their leases run out by themselves
            self.report(f"Leases: not freed: {error}")

    def _watch(self, runs_at_once: int | None) -> None:
        """Have Prefect's worker work until it ends, or this is told to."""
        self.worker = self._started(runs_at_once)
        while self.worker.poll() is None and not self.rests(health.BEAT_SECONDS):
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

    def _started(self, runs_at_once: int | None) -> subprocess.Popen[bytes]:
        name = f"recrawl-{self.environment[children.TAG]}-{secrets.token_hex(2)}"
        limit = ["--limit", str(runs_at_once)] if runs_at_once is not None else []
        self.report(f"Worker: {name}")
        return subprocess.Popen(
            [*worker_command(name), *limit],
            env=self.environment,
            cwd=self.home,  # not the user's: prefect would read settings from files that lie there
            stdin=subprocess.DEVNULL,
            stdout=None if self.speaks else subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us, and we ask the runs first
        )

    def _end_runs(self, patience: timedelta) -> None:
        """Ask the runs of this worker to end, those too that begin meanwhile, and end what has not done so in time."""
        deadline, asked_at = time.monotonic() + patience.total_seconds(), 0.0
        asked: set[UUID] = set()
        while living := runs_of(processes := self._runs()):
            now = time.monotonic()
            if now > deadline:
                self.report(f"Runs: {len(living)} have not ended in time")
                children.end(processes)
                break
            if living - asked or now - asked_at > ASK_AGAIN_SECONDS:
                self.report(f"Runs: cancelling {len(living)}")
                is_heard = runs.ask(runs.CANCEL, living, environment=self.environment)
                if not is_heard or asked & living:
                    children.tell(
                        processes, signal.SIGTERM
                    )  # Prefect's worker knows nothing of what one before it has begun
                asked, asked_at = asked | living, time.monotonic()
            health.beat_file(self.home).touch()
            time.sleep(children.POLL_SECONDS)
        if asked:
            runs.ask(runs.CANCELLED, asked, environment=self.environment)

    def _runs(self) -> list[Process]:
        return [each for each in children.tagged(self.environment[children.TAG]) if runs_of([each])]
