"""What goes wrong with the server on demand, on top of what the site's own pages do."""

from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock

from labs.demo.site import Reply

NOTHING = 0  # for a status: the connection is closed without an answer


@dataclass(frozen=True, slots=True)
class Outage:
    """From and until virtual instants: every page answers with the status, or with nothing at all."""

    since: datetime
    until: datetime
    status: int = 503


@dataclass(slots=True)
class Faults:
    """What is arranged at the moment.

    latency_s: real seconds that every answer waits.  throttled: how many of the next requests are answered 429.
    retry_after: its header, verbatim: seconds or an HTTP date.
    """

    latency_s: float = 0.0
    outages: tuple[Outage, ...] = ()
    throttled: int = 0
    retry_after: str = "1"
    _lock: Lock = field(default_factory=Lock, repr=False)

    def strike(self, at: datetime) -> Reply | None:
        """The answer that takes the place of the site's, if any."""
        for outage in self.outages:
            if outage.since <= at < outage.until:
                return Reply(outage.status, b"Service unavailable.\n", (("Content-Type", "text/plain"),))
        with self._lock:
            if self.throttled <= 0:
                return None
            self.throttled -= 1
        return Reply(429, b"Too many requests.\n", (("Content-Type", "text/plain"), ("Retry-After", self.retry_after)))
