"""What a service stands on, a database and a Prefect server of somebody else's, waited for; and that it lives."""

import time
from collections.abc import Callable
from pathlib import Path

from crawler.errors import CrawlerError, StackFailed, StoreUnavailable
from crawler.runtime.children import Report
from crawler.runtime.environment import Api
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
