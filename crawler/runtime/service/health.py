"""Whether a service lives, and whether it can work: the two questions that an engine of containers asks."""

from dataclasses import dataclass

from crawler.errors import CrawlerError
from crawler.runtime.children import SERVICE_WORKER, note_of, noted
from crawler.runtime.keys.auth import proves_itself
from crawler.runtime.keys.entrance import ensure_key
from crawler.runtime.pages import serving_pages
from crawler.runtime.service.needs import api_of, database_of, is_beating, schema_problem, server_problem
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
