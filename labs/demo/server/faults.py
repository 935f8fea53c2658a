"""Faults of the server on demand, in addition to those of the site's pages."""

from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock

from labs.demo.site import Reply

NOTHING = 0  # status for closing the connection without a response


@dataclass(frozen=True, slots=True)
class Outage:
    """An outage between two virtual instants: every page responds with the status, or not at all."""

    since: datetime
    until: datetime
    status: int = 503


@dataclass(slots=True)
class Faults:
    """The current faults.

    latency_s: real seconds that every response is delayed.  throttled: how many of the next requests get status 429.
    retry_after: the Retry-After header of status 429: seconds or an HTTP date.
    """

    latency_s: float = 0.0
    outages: tuple[Outage, ...] = ()
    throttled: int = 0
    retry_after: str = "1"
    _lock: Lock = field(default_factory=Lock, repr=False)

    def strike(self, at: datetime) -> Reply | None:
        """Return the response that replaces the site's, if any."""
        for outage in self.outages:
            if outage.since <= at < outage.until:
                return Reply(outage.status, b"Service unavailable.\n", (("Content-Type", "text/plain"),))
        with self._lock:
            if self.throttled <= 0:
                return None
            self.throttled -= 1
        return Reply(429, b"Too many requests.\n", (("Content-Type", "text/plain"), ("Retry-After", self.retry_after)))
