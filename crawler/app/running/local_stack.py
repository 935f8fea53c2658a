"""The local stack and the services of containers: start, stop and tell what runs on this machine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.app.database import run_with_database
from crawler.app.status import format_waits
from crawler.plugins import load_plugins
from crawler.runtime.lifecycle import start_stack, stop_stack
from crawler.runtime.service import prefect as service_prefect
from crawler.runtime.service import worker
from crawler.runtime.service.health import check_health
from crawler.runtime.service.prefect import serve_prefect
from crawler.runtime.stack import Stack, StackPart, find_database_url, read_status
from crawler.runtime.stack import find_server as find_prefect_server
from crawler.runtime.web_ui import create_login_link, find_web_ui_origin
from crawler.settings import Settings

OnMessage = Callable[[str], None]  # is told what is going on, for people who wait


@dataclass(frozen=True, slots=True)
class StackStatus:
    """What runs, part by part, and a sentence for each domain in which something waits."""

    parts: Sequence[StackPart]
    waiting: Sequence[str]

    @property
    def is_running(self) -> bool:
        """Whether all parts run."""
        return all(part.is_running for part in self.parts)


def start_local_stack(settings: Settings, *, report: OnMessage) -> tuple[Stack, str | None]:
    """Start what is missing of the stack; return it, and a link to the web UI that opens once."""
    load_plugins(settings.plugins)  # every run would fail where one cannot be used
    return start_stack(settings, report=report), make_web_ui_link(settings)


def make_web_ui_link(settings: Settings) -> str | None:
    """Return a link to the web UI that opens once; None where nothing serves it."""
    return create_login_link(settings.home.resolve())


def get_web_ui_origin(settings: Settings) -> str | None:
    """Return the origin of the web UI, for links to its pages; None where nothing serves it."""
    return find_web_ui_origin(settings.home.resolve())


def read_stack_status(settings: Settings) -> StackStatus:
    """Return what runs. Domains are asked only where the database runs; it is not started for that."""
    parts, waiting = read_status(settings), []
    if find_database_url(settings) is not None:
        now = datetime.now(UTC)
        waiting = run_with_database(lambda db: format_waits(db, at=now), settings, connections=2)
    return StackStatus(parts, waiting)


def deploy(settings: Settings, *, may_upgrade: bool, patience: timedelta, report: OnMessage) -> int:
    """Prepare database and Prefect server for workers; return how many deployments were new or different.

    may_upgrade: migrate the database first, whatever it holds.  patience: how long both are waited for.
    Raises StackFailed where one of them stays silent.
    """
    seconds = patience.total_seconds()
    return service_prefect.deploy(settings, may_upgrade=may_upgrade, timeout_seconds=seconds, report=report)


def run_worker(settings: Settings, *, max_runs: int | None, patience: timedelta, report: OnMessage) -> None:
    """Crawl what the Prefect server schedules, until this process is told to end.

    max_runs: at a time; None for no limit.  patience: what runs get to end by themselves.
    Raises PluginBroken, and StackFailed where another worker has this home.
    """
    load_plugins(settings.plugins)  # every run would fail where one cannot be used
    worker.run_worker(settings, runs_at_once=max_runs, timeout=patience, report=report)
