"""A service's database and Prefect server, which are somebody else's, waited for; and whether it lives and can work."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crawler.errors import CrawlerError, StackFailed, StoreUnavailable
from crawler.runtime.children import SERVICE_WORKER, Report, note_of, noted
from crawler.runtime.environment import Api
from crawler.runtime.keys.own_keys import ensure_key, proves_itself
from crawler.runtime.pages import serving_pages
from crawler.runtime.stack import answers, named_api
from crawler.settings import Settings
from crawler.store.database import NEWER_MESSAGE, Schema, schema_of

ASK_SECONDS = 2.0
BEAT_SECONDS = 5.0
SILENT_SECONDS = 60.0  # twelve beats: a busy machine may miss some
# What Prefect tells, and what our runs tell through it, as one JSON document a line.
JSON_LINES = {
    "PREFECT_LOGGING_HANDLERS_CONSOLE_FORMATTER": "json",
    "PREFECT_LOGGING_FORMATTERS_JSON_CLASS": "crawler.json_lines.JsonLineFormatter",
}
Wait = Callable[[float], bool]  # waits so many seconds; whether the service was told to end meanwhile


def told_as(settings: Settings) -> dict[str, str]:
    """Variables by which Prefect tells what happens in the form that the settings want."""
    return JSON_LINES if settings.log_format == "json" else {}


def database_of(settings: Settings) -> str:
    """The URL of the crawl's database. StackFailed where none is named: a service has no Postgres of its own."""
    if settings.database_url is None:
        raise StackFailed("RECRAWL_DATABASE_URL is not set: a service uses a Postgres that others run too")
    return settings.database_url.get_secret_value()


def api_of(settings: Settings) -> Api:
    """The Prefect server. StackFailed where none is named."""
    if settings.prefect_api_url is None:
        raise StackFailed("PREFECT_API_URL is not set: a service works for a Prefect server that is there")
    return named_api(settings, settings.prefect_api_url)


def schema_problem(url: str) -> str:
    """Why the crawl's database is not to be used yet; empty where it is. Raises where waiting does not help."""
    try:
        match schema_of(url):
            case Schema.CURRENT:
                return ""
            case Schema.NEWER:
                raise CrawlerError(NEWER_MESSAGE)
            case Schema.EMPTY | Schema.OLDER | Schema.FOREIGN:
                return "the database has not the newest schema: recrawl deploy --upgrade"
    except StoreUnavailable as error:
        return str(error)


def server_problem(api: Api) -> str:
    """Why the Prefect server is not to be used yet; empty where it is."""
    return "" if answers(None, api) else f"no Prefect server answers at {api.url}"


def wait_until_usable(problem: Callable[[], str], *, wait: Wait, report: Report) -> bool:
    """Wait until there is no problem, telling of each new one; whether that came before the service was to end."""
    told = ""
    while found := problem():
        if found != told:
            report(f"Waiting: {found}")
            told = found
        if wait(ASK_SECONDS):
            return False
    return True


def beat_file(home: Path) -> Path:
    """Touched every BEAT_SECONDS while the worker does its work."""
    return home / "run" / "service-beat"


def is_beating(home: Path) -> bool:
    """Whether the worker has said of late that it does its work."""
    try:
        return abs(time.time() - beat_file(home).stat().st_mtime) < SILENT_SECONDS
    except FileNotFoundError:
        return False


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One finding. problem: empty where all is well."""

    part: str
    problem: str

    @property
    def is_well(self) -> bool:
        """Whether there is no problem."""
        return not self.problem


def health(settings: Settings, *, alive_only: bool) -> list[HealthCheck]:
    """What is found of the services of RECRAWL_HOME.

    alive_only: whether they live, whatever becomes of database and Prefect server. One that is ended because others are
    away would lose what it still does.
    """
    home = settings.home.resolve()
    found = []
    if note_of(home, SERVICE_WORKER).exists():
        is_gone = noted(home, SERVICE_WORKER) is None
        silence = "" if is_beating(home) else "it has gone silent"
        found.append(HealthCheck("Worker", "its process is gone" if is_gone else silence))
    pages = serving_pages(home)
    if pages is not None:
        silence = "" if proves_itself(pages.port, ensure_key(home)) else f"they do not answer on port {pages.port}"
        found.append(HealthCheck("Pages", silence))
    if not found:
        found.append(HealthCheck("Service", f"nothing runs in {home}"))
    if not alive_only:
        found.append(HealthCheck("Database", _database_problem(settings)))
    if not alive_only and settings.prefect_api_url is not None:
        found.append(HealthCheck("Prefect server", server_problem(api_of(settings))))
    return found


def _database_problem(settings: Settings) -> str:
    try:
        return schema_problem(database_of(settings))
    except CrawlerError as error:
        return str(error)
