"""Connections to the pages: how many there are, and how long they may take to say what they want.

A connection costs a stranger nothing, and this process a file descriptor, of which many systems give it 1,024. So the
number of connections is bounded, and those that wait for a request are closed for new ones, the oldest first.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

MAX_CONNECTIONS = 256  # a browser opens six
BACKLOG = 128  # connections that are accepted at once, before any of them can be closed
HEAD_SECONDS = 15  # from the connection, or the response before, until the head of a request is complete


class BoundedConnection(H11Protocol):
    """A connection that is closed where its next request's head is not complete in time, or others need its place."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_timer: asyncio.TimerHandle | None = None  # set while it waits for a request

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
        """When it is closed unless the head of a request is complete; None while a request is answered."""
        return self._head_timer.when() if self._head_timer is not None else None

    def _start_head_timer(self) -> None:
        self._stop_head_timer()
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _close_longest_idle(self) -> None:
        """Close the connection that waits for a request the longest; where all are being answered, this one."""
        waiting = [(each.idle_deadline, each) for each in self.connections if isinstance(each, BoundedConnection)]
        idle = [(until, each) for until, each in waiting if until is not None]
        _, longest = min(idle, key=lambda entry: entry[0], default=(0, self))
        self.connections.discard(longest)  # at once: its end is told in a later turn of the loop
        longest.transport.abort()
