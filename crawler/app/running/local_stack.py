"""The local stack and the services for containers: start, stop and inspect what runs on this machine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.app.database import run_with_database
from crawler.app.page_reader import describe_page_reader
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

OnMessage = Callable[[str], None]  # called with progress messages for the user


@dataclass(frozen=True, slots=True)
class StackStatus:
    """The state of the parts of the local stack, a sentence for each domain that waits, and which page reader runs."""

    parts: Sequence[StackPart]
    waiting: Sequence[str]
    reader: str

    @property
    def is_running(self) -> bool:
        """Return whether all parts are running."""
        return all(part.is_running for part in self.parts)


def start_local_stack(settings: Settings, *, report: OnMessage) -> tuple[Stack, str | None]:
    """Start the missing parts of the local stack; return it with the result of `make_web_ui_link`."""
    load_plugins(settings.plugins)  # fail now if a plugin is broken, since every run would
    return start_stack(settings, report=report), make_web_ui_link(settings)


def make_web_ui_link(settings: Settings) -> str | None:
    """Return a one-time login link to the web UI; None if it is not running."""
    return create_login_link(settings.home.resolve())


def get_web_ui_origin(settings: Settings) -> str | None:
    """Return the origin of the web UI, for links to its pages; None if it is not running."""
    return find_web_ui_origin(settings.home.resolve())


def read_stack_status(settings: Settings) -> StackStatus:
    """Return the state of the local stack. The database is not started to find domains that wait."""
    parts, waiting = read_status(settings), []
    if find_database_url(settings) is not None:
        now = datetime.now(UTC)
        waiting = run_with_database(lambda db: format_waits(db, at=now), settings, connections=2)
    return StackStatus(parts, waiting, describe_page_reader())


def deploy(settings: Settings, *, may_upgrade: bool, patience: timedelta, report: OnMessage) -> int:
    """Prepare the database and the Prefect server for workers; return how many deployments were added or updated.

    may_upgrade: whether to upgrade the schema of a database that has data; an empty one is always upgraded.
    patience: how long to wait for both services.
    Raises StackFailed, for example if one of them does not respond.
    """
    seconds = patience.total_seconds()
    return service_prefect.deploy(settings, may_upgrade=may_upgrade, timeout_seconds=seconds, report=report)


def run_worker(settings: Settings, *, max_runs: int | None, patience: timedelta, report: OnMessage) -> None:
    """Run the scheduled flow runs of the Prefect server until this process receives SIGTERM or SIGINT.

    max_runs: the number of concurrent runs; None for no limit.  patience: how long runs may take to finish after that.
    Raises PluginBroken, and StackFailed if another worker uses this home or Prefect's worker keeps ending.
    """
    load_plugins(settings.plugins)  # fail now if a plugin is broken, since every run would
    worker.run_worker(settings, runs_at_once=max_runs, timeout=patience, report=report)
