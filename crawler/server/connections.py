"""Limits on the connections to the web UI: their number, and the time until the headers of a request are complete.

Every connection takes a file descriptor, of which many systems allow a process 1,024. So the number of connections is
bounded: above the limit, a new connection closes the one that has waited longest for a request, or itself.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

MAX_CONNECTIONS = 256  # a browser opens six
BACKLOG = 128  # asyncio accepts up to this many at once, before any of them can be closed
HEAD_SECONDS = 15  # from the connection or the last response until all headers of a request have arrived


class BoundedConnection(H11Protocol):
    """A connection that is closed when the headers of its next request are late, or when there are too many."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_timer: asyncio.TimerHandle | None = None  # set while waiting for a request

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_head_timer()
        if len(self.connections) > MAX_CONNECTIONS:
            self._close_longest_idle()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        if cycle is not None and not cycle.response_complete:
            self._stop_head_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            self._start_head_timer()

    @property
    def idle_deadline(self) -> float | None:
        """The loop time at which the idle connection is closed; None while a request is handled."""
        return self._head_timer.when() if self._head_timer is not None else None

    def _start_head_timer(self) -> None:
        self._stop_head_timer()
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _close_longest_idle(self) -> None:
        """Close the connection that has waited longest for a request, or this one if no connection waits."""
        waiting = [(each.idle_deadline, each) for each in self.connections if isinstance(each, BoundedConnection)]
        idle = [(until, each) for until, each in waiting if until is not None]
        _, longest = min(idle, key=lambda entry: entry[0], default=(0, self))
        self.connections.discard(longest)  # now, because connection_lost runs later
        longest.transport.abort()
