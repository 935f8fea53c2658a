"""What the server was asked and what it answered, so that a test can prove what a crawler really did."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

REMEMBERED = 100_000  # entries; older ones fall off, counts do not


@dataclass(frozen=True, slots=True)
class Entry:
    """One request and its answer.

    path: as sent, with its query.  status: 0 where the connection was closed without an answer.  sent_bytes: with
    headers.  began, ended: seconds of the machine's monotonic clock, which all its processes share: the request was
    read, the answer was handed to the kernel.
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
    """Sums since the start or the last clearing. most_in_flight: requests being answered at one instant, at most."""

    requests: int
    conditional: int
    sent_bytes: int
    body_bytes: int
    most_in_flight: int
    by_status: Mapping[int, int]


class Journal:
    """Written by every connection's thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._in_flight = 0
        self.clear()

    def clear(self) -> None:
        """Forget all entries and sums; requests that are being answered stay in flight."""
        with self._lock:
            self._entries: deque[Entry] = deque(maxlen=REMEMBERED)
            self._conditional = self._sent_bytes = self._body_bytes = 0
            self._by_status = Counter[int]()
            self._most_in_flight = self._in_flight

    def begin(self) -> int:
        """A request was read; its number among those in flight."""
        with self._lock:
            self._in_flight += 1
            self._most_in_flight = max(self._most_in_flight, self._in_flight)
            return self._in_flight

    def end(self, entry: Entry) -> None:
        """The request of a `begin` is over."""
        with self._lock:
            self._in_flight -= 1
            self._entries.append(entry)
            self._by_status[entry.status] += 1
            self._conditional += entry.is_conditional
            self._sent_bytes += entry.sent_bytes
            self._body_bytes += entry.body_bytes

    @property
    def entries(self) -> tuple[Entry, ...]:
        """In the order in which they ended."""
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
