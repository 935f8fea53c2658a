"""SQL for people: where the database is, psql, one statement, and roles that may only read."""

from urllib.parse import quote, urlsplit, urlunsplit

from crawler.export import shown_value
from crawler.runtime.postgres.client import run_psql
from crawler.runtime.stack import crawl_database, known_database
from crawler.settings import Settings
from crawler.store import report
from crawler.store.database import Database
from crawler.store.report import Answered, ReaderRole, revoke_reading
from crawler.store.report import answer_to as run_statement


def find_database_url(settings: Settings) -> str | None:
    """Return where the database is, with its password; None while the embedded Postgres is not running."""
    return known_database(settings)


def open_shell(settings: Settings, *, may_write: bool) -> int:
    """Run psql on the database until its user leaves it; return its exit code."""
    with crawl_database(settings) as url:
        return run_psql(url, may_write=may_write)


async def grant_reading(db: Database, name: str) -> tuple[ReaderRole, str | None]:
    """Let a role read the views and nothing else; return it, and where it connects to if it was made now."""
    role = await report.grant_reading(db, name)
    if role.password is None:
        return role, None
    parts = urlsplit(db.url)
    host = parts.netloc.rpartition("@")[2]
    return role, urlunsplit(parts._replace(netloc=f"{role.name}:{quote(role.password, safe='')}@{host}"))
