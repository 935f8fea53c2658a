"""The living site on a loopback port, with a journal, a virtual instant, and faults on demand."""

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import count
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

from labs.demo.server.connection import Server
from labs.demo.server.faults import Faults, Outage
from labs.demo.server.journal import Journal
from labs.demo.site import Ask, Reply, Site, http_date, reply


class LivingServer:
    """A server of a site, which runs until it is closed; a context manager.

    The virtual instant only changes when it is set. Closing also ends kept-alive connections.
    """

    def __init__(self, site: Site, port: int = 0, *, at: datetime | None = None, host: str = "127.0.0.1") -> None:
        self.site = site
        self.journal = Journal()
        self.faults = Faults()
        self._at = at or site.start
        self._request_numbers = count(1)  # next() is atomic
        self._closing = Event()
        self._server = Server((host, port), self)
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), name="living-site", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Return scheme, address and port, without a trailing slash."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def at(self) -> datetime:
        """Return the virtual instant."""
        return self._at

    def set_instant(self, at: datetime) -> None:
        """Set the site's instant. Raise ValueError if it has no time zone."""
        if at.tzinfo is None:
            raise ValueError(f"the instant {at} has no time zone")
        self._at = at.astimezone(UTC)

    def outage(self, since: datetime, until: datetime, *, status: int = 503) -> None:
        """Schedule an outage between two virtual instants; status 0 closes the connection without a response."""
        self.faults.outages = (*self.faults.outages, Outage(since, until, status))

    def throttle(self, requests: int, *, retry_after: str) -> None:
        """Respond to the next requests with 429 and this Retry-After."""
        self.faults.retry_after = retry_after
        self.faults.throttled = requests

    def slow(self, latency_s: float) -> None:
        """Delay every response by this time."""
        self.faults.latency_s = latency_s

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.end_connections()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def answer(self, ask: Ask) -> Reply:
        """Return the site's current response, or that of a scheduled fault."""
        number = next(self._request_numbers)
        if self.faults.latency_s:
            self._closing.wait(self.faults.latency_s)
        at = self._at
        answer = self.faults.strike(at) or reply(self.site, ask, at, number)
        return replace(answer, headers=(("Date", http_date(at)), *answer.headers))

    def control(self, method: str, path: str, body: bytes) -> Reply:
        """Handle a control call of another process; Remote is its client."""
        try:
            return as_json(200, self.steer(method, path, json.loads(body or b"null")))
        except (ValueError, KeyError, TypeError) as error:
            return as_json(400, {"error": f"{type(error).__name__}: {error}"})

    def steer(self, method: str, path: str, given: Any) -> object:
        """Execute a control call. Raise ValueError, KeyError or TypeError if it is invalid."""
        match method, path:
            case "POST", "/-/clock":
                self.set_instant(datetime.fromisoformat(given["at"]))
            case "POST", "/-/outage":
                span = (datetime.fromisoformat(given[name]) for name in ("since", "until"))
                self.outage(*span, status=int(given["status"]))
            case "POST", "/-/throttle":
                self.throttle(int(given["requests"]), retry_after=str(given["retry_after"]))
            case "POST", "/-/slow":
                self.slow(float(given["latency_s"]))
            case "POST", "/-/clear":
                self.journal.clear()
            case "GET", "/-/counts":
                return asdict(self.journal.counts)
            case "GET", "/-/entries":
                return [asdict(entry) for entry in self.journal.entries]
            case "GET", "/-/clock":
                pass
            case _:
                raise KeyError(path)
        return {"at": self._at.isoformat()}


def as_json(status: int, given: object) -> Reply:
    return Reply(status, json.dumps(given).encode(), (("Content-Type", "application/json"),))
