"""Responses of the HTTP API that are kept for requests with the same idempotency key, in a private SQLite file.

The file survives a restart of the server, which is when clients most often repeat a request.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from datetime import datetime, timedelta
from pathlib import Path

from crawler.runtime.machine import ensure_private_folder

LIFETIME = timedelta(hours=24)
MAX_TOTAL_BYTES = 4 << 20  # of the responses to one token; the oldest are deleted first
ROW_BYTES = 1000  # counted for each response in addition to its body
WAIT_SECONDS = 10.0  # for another process that writes

CREATE = """
    CREATE TABLE IF NOT EXISTS response (
        token TEXT, key TEXT, request TEXT, status INTEGER, location TEXT, body BLOB, at REAL, PRIMARY KEY (token, key))
"""
FIND = "SELECT request, status, location, body FROM response WHERE token = ? AND key = ? AND at > ?"
INSERT = (
    "INSERT OR REPLACE INTO response (token, key, request, status, location, body, at) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
DELETE_OLD = """
    DELETE FROM response WHERE at <= ? OR rowid IN (
        SELECT rowid FROM (
            SELECT rowid, sum(length(body) + ?) OVER (PARTITION BY token ORDER BY at DESC, rowid DESC) AS total
              FROM response) WHERE total > ?)
"""


@dataclass(frozen=True, slots=True)
class KeptResponse:
    """A response. request: a hash of its request.  location: the Location header, or empty."""

    request: str
    status: int
    location: str
    body: bytes


@dataclass(frozen=True, slots=True)
class KeptResponses:
    """The kept responses of a RECRAWL_HOME, by token and idempotency key."""

    home: Path

    def find(self, token: str, key: str, *, at: datetime) -> KeptResponse | None:
        """Return the response to the first request with a key in the last 24 hours, or None."""
        with self._open() as connection:
            row = connection.execute(FIND, (token, key, (at - LIFETIME).timestamp())).fetchone()
        return KeptResponse(*row) if row is not None else None

    def keep(self, token: str, key: str, response: KeptResponse, *, at: datetime) -> None:
        """Keep a response, and delete those that are too old or too many."""
        with self._open() as connection:
            connection.execute(INSERT, (token, key, *astuple(response), at.timestamp()))
            connection.execute(DELETE_OLD, ((at - LIFETIME).timestamp(), ROW_BYTES, MAX_TOTAL_BYTES))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the file in a transaction, which ends with the block."""
        file = ensure_private_folder(self.home, "run") / "kept-responses.sqlite"
        file.touch(mode=0o600)
        with closing(sqlite3.connect(file, timeout=WAIT_SECONDS)) as connection, connection:
            connection.execute(CREATE)
            yield connection
