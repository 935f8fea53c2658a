"""The living site in a separate process, and its control from here."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from labs.demo.server.journal import Counts, Entry

PATIENCE_S = 300.0  # for the other process to start or to end, which takes less than a second


@dataclass(frozen=True, slots=True)
class Remote:
    """A living server in another process; for its methods see LivingServer and Journal."""

    url: str

    @property
    def at(self) -> datetime:
        return datetime.fromisoformat(self._call("GET", "/-/clock")["at"])

    def set_instant(self, at: datetime) -> None:
        self._call("POST", "/-/clock", {"at": at.isoformat()})

    def outage(self, since: datetime, until: datetime, *, status: int = 503) -> None:
        self._call("POST", "/-/outage", {"since": since.isoformat(), "until": until.isoformat(), "status": status})

    def throttle(self, requests: int, *, retry_after: str) -> None:
        self._call("POST", "/-/throttle", {"requests": requests, "retry_after": retry_after})

    def slow(self, latency_s: float) -> None:
        self._call("POST", "/-/slow", {"latency_s": latency_s})

    def clear(self) -> None:
        self._call("POST", "/-/clear")

    @property
    def counts(self) -> Counts:
        given = self._call("GET", "/-/counts")
        by_status = {int(status): number for status, number in given.pop("by_status").items()}
        return Counts(**given, by_status=by_status)

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(Entry(**given) for given in self._call("GET", "/-/entries"))

    def _call(self, method: str, path: str, given: object = None) -> Any:
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=PATIENCE_S)
        try:
            connection.request(method, path, json.dumps(given))
            answer = connection.getresponse()
            response_json = json.loads(answer.read())
        finally:
            connection.close()
        if answer.status != 200:
            raise ValueError(response_json["error"])
        return response_json


@contextmanager
def living_process(
    seed: int, *, pages: int = 250, start: datetime, days: float = 45, port: int = 0
) -> Iterator[Remote]:
    """Run a living server in a separate process, which ends with the block or with this process.

    Its truth is known here, too: make_site with the same arguments returns the same site.
    """
    command = [sys.executable, "-m", "labs.demo.server", "--seed", str(seed), "--pages", str(pages)]
    command += ["--start", start.isoformat(), "--days", str(days), "--port", str(port), "--leash"]
    # In a separate process group, so that signals to the crawler's group do not reach the site.
    process = subprocess.Popen(  # noqa: S603 - our own arguments
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise OSError(f"the living site did not start: {process.wait(PATIENCE_S)}")
            yield Remote(json.loads(line)["url"])
        finally:
            process.terminate()
            process.wait(PATIENCE_S)
