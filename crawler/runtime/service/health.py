"""Check the health of services, and wait for their external database and Prefect server."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crawler.errors import CrawlerError, StackFailed, StoreUnavailable
from crawler.runtime.background_processes import SERVICE_WORKER, Report, find_child, get_note_file
from crawler.runtime.environment import PrefectApi
from crawler.runtime.keys.home_keys import ensure_key, is_own_server
from crawler.runtime.stack import build_named_api, is_responding
from crawler.runtime.web_ui import find_web_ui
from crawler.settings import Settings
from crawler.store.database import NEWER_MESSAGE, SchemaState, read_schema_state

RETRY_SECONDS = 2.0
HEARTBEAT_SECONDS = 5.0  # between two heartbeats of a worker
# The variables by which Prefect and the runs log in JSON, one document per line.
JSON_LINES = {
    "PREFECT_LOGGING_HANDLERS_CONSOLE_FORMATTER": "json",
    "PREFECT_LOGGING_FORMATTERS_JSON_CLASS": "crawler.json_lines.JsonLineFormatter",
}
Wait = Callable[[float], bool]  # waits for some seconds; returns whether the service was asked to stop meanwhile


def build_log_environment(settings: Settings) -> dict[str, str]:
    """Return the variables that set the log format of Prefect."""
    return JSON_LINES if settings.log_format == "json" else {}


def get_database_url(settings: Settings) -> str:
    """Return the database URL of the settings. Raises StackFailed without one, since services embed no Postgres."""
    if settings.database_url is None:
        raise StackFailed("RECRAWL_DATABASE_URL is not set: services need an external Postgres")
    return settings.database_url.get_secret_value()


def get_api(settings: Settings) -> PrefectApi:
    """Return the Prefect server of the settings. Raises StackFailed without one."""
    if settings.prefect_api_url is None:
        raise StackFailed("PREFECT_API_URL is not set: services need a running Prefect server")
    return build_named_api(settings, settings.prefect_api_url)


def find_schema_problem(url: str) -> str:
    """Return why the database cannot be used yet; empty if it can. Raises CrawlerError if waiting does not help."""
    try:
        match read_schema_state(url):
            case SchemaState.CURRENT:
                return ""
            case SchemaState.NEWER:
                raise CrawlerError(NEWER_MESSAGE)
            case SchemaState.EMPTY | SchemaState.OLDER | SchemaState.FOREIGN:
                return "the database does not have the newest schema: run recrawl deploy --upgrade"
    except StoreUnavailable as error:
        return str(error)


def find_server_problem(api: PrefectApi) -> str:
    """Return why the Prefect server cannot be used yet; empty if it can."""
    return "" if is_responding(None, api) else f"no Prefect server responds at {api.url}"


def wait_until_usable(find_problem: Callable[[], str], *, wait: Wait, report: Report) -> bool:
    """Wait until there is no problem, and report each new problem. Return false if `wait` returned true before."""
    reported = ""
    while problem := find_problem():
        if problem != reported:
            report(f"Waiting: {problem}")
            reported = problem
        if wait(RETRY_SECONDS):
            return False
    return True


def get_heartbeat_file(home: Path) -> Path:
    """Return the file that a running worker touches every HEARTBEAT_SECONDS."""
    return home / "run" / "service-beat"


def has_heartbeat(home: Path) -> bool:
    """Return whether the worker has a recent heartbeat."""
    file = get_heartbeat_file(home)
    # At most a minute old: twelve heartbeats, because a busy machine may miss some.
    return file.exists() and abs(time.time() - file.stat().st_mtime) < 60


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """The result of one check. problem: empty if healthy."""

    part: str
    problem: str

    @property
    def is_healthy(self) -> bool:
        """Whether the part has no problem."""
        return not self.problem


def check_health(settings: Settings, *, alive_only: bool) -> list[HealthCheck]:
    """Check the services of RECRAWL_HOME.

    alive_only: whether to skip the database and the Prefect server. An outage of these must not restart a service,
    because it would lose its work in progress.
    """
    home = settings.home.resolve()
    checks = []
    if get_note_file(home, SERVICE_WORKER).exists():
        is_gone = find_child(home, SERVICE_WORKER) is None
        problem = "" if has_heartbeat(home) else "it sends no heartbeat"
        checks.append(HealthCheck("Worker", "its process is gone" if is_gone else problem))
    if (web_ui := find_web_ui(home)) is not None:
        problem = "" if is_own_server(web_ui.port, ensure_key(home)) else f"it does not respond on port {web_ui.port}"
        checks.append(HealthCheck("Web UI", problem))
    if not checks:
        checks.append(HealthCheck("Service", f"no service runs in {home}"))
    if not alive_only:
        try:
            problem = find_schema_problem(get_database_url(settings))
        except CrawlerError as error:
            problem = str(error)
        checks.append(HealthCheck("Database", problem))
    if not alive_only and settings.prefect_api_url is not None:
        checks.append(HealthCheck("Prefect server", find_server_problem(get_api(settings))))
    return checks
