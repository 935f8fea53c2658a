"""A service's database and Prefect server, which are somebody else's, waited for; and whether it lives and can work."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crawler.errors import CrawlerError, StackFailed, StoreUnavailable
from crawler.runtime.children import SERVICE_WORKER, Report, find_child, get_note_file
from crawler.runtime.environment import PrefectApi
from crawler.runtime.keys.home_keys import ensure_key, is_own_server
from crawler.runtime.stack import build_named_api, is_responding
from crawler.runtime.web_ui import find_web_ui
from crawler.settings import Settings
from crawler.store.database import NEWER_MESSAGE, SchemaState, read_schema_state

RETRY_SECONDS = 2.0
HEARTBEAT_SECONDS = 5.0
MAX_SILENCE_SECONDS = 60.0  # twelve beats: a busy machine may miss some
# What Prefect tells, and what our runs tell through it, as one JSON document a line.
JSON_LINES = {
    "PREFECT_LOGGING_HANDLERS_CONSOLE_FORMATTER": "json",
    "PREFECT_LOGGING_FORMATTERS_JSON_CLASS": "crawler.json_lines.JsonLineFormatter",
}
Wait = Callable[[float], bool]  # waits so many seconds; whether the service was told to end meanwhile


def build_log_environment(settings: Settings) -> dict[str, str]:
    """Variables by which Prefect tells what happens in the form that the settings want."""
    return JSON_LINES if settings.log_format == "json" else {}


def get_database_url(settings: Settings) -> str:
    """The URL of the crawl's database. StackFailed where none is named: a service has no Postgres of its own."""
    if settings.database_url is None:
        raise StackFailed("RECRAWL_DATABASE_URL is not set: a service uses a Postgres that others run too")
    return settings.database_url.get_secret_value()


def get_api(settings: Settings) -> PrefectApi:
    """The Prefect server. StackFailed where none is named."""
    if settings.prefect_api_url is None:
        raise StackFailed("PREFECT_API_URL is not set: a service works for a Prefect server that is there")
    return build_named_api(settings, settings.prefect_api_url)


def find_schema_problem(url: str) -> str:
    """Why the crawl's database is not to be used yet; empty where it is. Raises where waiting does not help."""
    try:
        match read_schema_state(url):
            case SchemaState.CURRENT:
                return ""
            case SchemaState.NEWER:
                raise CrawlerError(NEWER_MESSAGE)
            case SchemaState.EMPTY | SchemaState.OLDER | SchemaState.FOREIGN:
                return "the database has not the newest schema: recrawl deploy --upgrade"
    except StoreUnavailable as error:
        return str(error)


def find_server_problem(api: PrefectApi) -> str:
    """Why the Prefect server is not to be used yet; empty where it is."""
    return "" if is_responding(None, api) else f"no Prefect server answers at {api.url}"


def wait_until_usable(find_problem: Callable[[], str], *, wait: Wait, report: Report) -> bool:
    """Wait until there is no problem, telling of each new one; whether that came before the service was to end."""
    reported = ""
    while problem := find_problem():
        if problem != reported:
            report(f"Waiting: {problem}")
            reported = problem
        if wait(RETRY_SECONDS):
            return False
    return True


def beat_file(home: Path) -> Path:
    """Touched every HEARTBEAT_SECONDS while the worker does its work."""
    return home / "run" / "service-beat"


def has_heartbeat(home: Path) -> bool:
    """Whether the worker has said of late that it does its work."""
    try:
        return abs(time.time() - beat_file(home).stat().st_mtime) < MAX_SILENCE_SECONDS
    except FileNotFoundError:
        return False


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One finding. problem: empty where all is well."""

    part: str
    problem: str

    @property
    def is_healthy(self) -> bool:
        """Whether there is no problem."""
        return not self.problem


def check_health(settings: Settings, *, alive_only: bool) -> list[HealthCheck]:
    """What is found of the services of RECRAWL_HOME.

    alive_only: whether they live, whatever becomes of database and Prefect server. One that is ended because others are
    away would lose what it still does.
    """
    home = settings.home.resolve()
    checks = []
    if get_note_file(home, SERVICE_WORKER).exists():
        is_gone = find_child(home, SERVICE_WORKER) is None
        problem = "" if has_heartbeat(home) else "it has gone silent"
        checks.append(HealthCheck("Worker", "its process is gone" if is_gone else problem))
    web_ui = find_web_ui(home)
    if web_ui is not None:
        problem = "" if is_own_server(web_ui.port, ensure_key(home)) else f"they do not answer on port {web_ui.port}"
        checks.append(HealthCheck("Pages", problem))
    if not checks:
        checks.append(HealthCheck("Service", f"nothing runs in {home}"))
    if not alive_only:
        checks.append(HealthCheck("Database", _find_database_problem(settings)))
    if not alive_only and settings.prefect_api_url is not None:
        checks.append(HealthCheck("Prefect server", find_server_problem(get_api(settings))))
    return checks


def _find_database_problem(settings: Settings) -> str:
    try:
        return find_schema_problem(get_database_url(settings))
    except CrawlerError as error:
        return str(error)
