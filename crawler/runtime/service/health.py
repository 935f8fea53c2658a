"""Whether a service lives, and whether it can work: the two questions that an engine of containers asks."""

from dataclasses import dataclass

from crawler.errors import CrawlerError
from crawler.runtime.children import noted
from crawler.runtime.keys.auth import proves_itself
from crawler.runtime.keys.entrance import ensure_key
from crawler.runtime.pages import serving_pages
from crawler.runtime.parts import port_of
from crawler.runtime.service.needs import api_of, database_of, schema_problem, server_problem
from crawler.runtime.service.notes import is_beating, worker_note
from crawler.settings import Settings


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
    found = [*_worker(settings), *_pages(settings)]
    if not found:
        found = [HealthCheck("Service", f"nothing runs in {settings.home.resolve()}")]
    if not alive_only:
        found += [HealthCheck("Database", _database(settings)), *_server(settings)]
    return found


def _worker(settings: Settings) -> list[HealthCheck]:
    home = settings.home.resolve()
    if not worker_note(home).exists():
        return []
    if noted(worker_note(home)) is None:
        return [HealthCheck("Worker", "its process is gone")]
    return [HealthCheck("Worker", "" if is_beating(home) else "it has gone silent")]


def _pages(settings: Settings) -> list[HealthCheck]:
    home = settings.home.resolve()
    pages = serving_pages(home)
    if pages is None:
        return []
    answers = proves_itself(port_of(pages), ensure_key(home))
    return [HealthCheck("Pages", "" if answers else f"they do not answer on port {port_of(pages)}")]


def _database(settings: Settings) -> str:
    try:
        return schema_problem(database_of(settings))
    except CrawlerError as error:
        return str(error)


def _server(settings: Settings) -> list[HealthCheck]:
    if settings.prefect_api_url is None:
        return []
    return [HealthCheck("Prefect server", server_problem(api_of(settings)))]
