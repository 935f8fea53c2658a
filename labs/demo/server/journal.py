"""The server's requests and responses, so that a test can check what a crawler really did."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

MAX_ENTRIES = 100_000  # entries; older ones are dropped, but still counted


@dataclass(frozen=True, slots=True)
class Entry:
    """A request and its response.

    path: as sent, with its query.  status: 0 if the connection was closed without a response.
    sent_bytes: with headers.  began, ended: when the request was read and when the response was handed to the
    kernel, in seconds of the machine's monotonic clock, which all processes share.
    """

    method: str
    path: str
    status: int
    sent_bytes: int
    body_bytes: int
    began: float
    ended: float
    if_none_match: str | None = None
    if_modified_since: str | None = None
    agent: str | None = None

    @property
    def is_conditional(self) -> bool:
        return self.if_none_match is not None or self.if_modified_since is not None


@dataclass(frozen=True, slots=True)
class Counts:
    """Sums since the start or the last clearing. most_in_flight: the maximum number of simultaneous requests."""

    requests: int
    conditional: int
    sent_bytes: int
    body_bytes: int
    most_in_flight: int
    by_status: Mapping[int, int]


class Journal:
    """The journal, written by the threads of all connections."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._in_flight = 0
        self.clear()

    def clear(self) -> None:
        """Delete all entries and sums; requests in flight stay in flight."""
        with self._lock:
            self._entries: deque[Entry] = deque(maxlen=MAX_ENTRIES)
            self._conditional = self._sent_bytes = self._body_bytes = 0
            self._by_status = Counter[int]()
            self._most_in_flight = self._in_flight

    def begin(self) -> int:
        """Note that a request was read; return its number among those in flight."""
        with self._lock:
            self._in_flight += 1
            self._most_in_flight = max(self._most_in_flight, self._in_flight)
            return self._in_flight

    def end(self, entry: Entry) -> None:
        """Note the end of a request that was begun."""
        with self._lock:
            self._in_flight -= 1
            self._entries.append(entry)
            self._by_status[entry.status] += 1
            self._conditional += entry.is_conditional
            self._sent_bytes += entry.sent_bytes
            self._body_bytes += entry.body_bytes

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return the entries in the order in which they ended."""
        with self._lock:
            return tuple(self._entries)

    @property
    def counts(self) -> Counts:
        with self._lock:
            return Counts(
                requests=self._by_status.total(),
                conditional=self._conditional,
                sent_bytes=self._sent_bytes,
                body_bytes=self._body_bytes,
                most_in_flight=self._most_in_flight,
                by_status=dict(self._by_status),
            )
