"""The web UI and the HTTP API on a port of this machine, until told to end."""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from typing import Any

import uvicorn

from crawler.app.database import Database
from crawler.app.running import serving
from crawler.app.running.serving import NAMES, USUAL_PORT, DomainCounter, IndexKeeper
from crawler.errors import StackFailed
from crawler.server.access import Doorkeeper
from crawler.server.app import PageServer, application
from crawler.server.connections import BACKLOG, BoundedConnection

CONNECTIONS = 4  # of the database that `serve` is given
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104  nobody asks by these names
DRAIN_SECONDS = 5  # that a request under way gets when the server ends


async def serve(
    db: Database, *, host: str, port: int | None, report: Callable[[str], None], stop: asyncio.Event
) -> None:
    """Serve the web UI and the HTTP API until `stop` is set. report: is told the link that logs the user in.

    port: None for the usual one, or any that is free where that is taken.  Raises StackFailed where it cannot listen.
    """
    home = db.settings.home.resolve()
    key = serving.ensure_key(home)
    with listening(host, port) as listener:
        port_taken = listener.getsockname()[1]
        addresses = (*db.settings.pages_addresses, *addresses_of(host, port_taken))
        opened_at = datetime.now(UTC)
        doorkeeper = Doorkeeper(key, addresses=addresses, opened_at=opened_at, port=port_taken)
        async with serving.open_parsers(db.settings) as readers:
            counter, index = DomainCounter(db, now=lambda: datetime.now(UTC)), IndexKeeper(home)
            pages = PageServer(
                db=db,
                readers=readers,
                doorkeeper=doorkeeper,
                now=lambda: datetime.now(UTC),
                counter=counter,
                index=index,
                home_folder=home,
            )
            server = Uvicorn(
                uvicorn.Config(
                    application(pages),
                    http=BoundedConnection,
                    backlog=BACKLOG,
                    log_level="warning",
                    access_log=False,
                    server_header=False,
                    proxy_headers=False,
                    timeout_graceful_shutdown=DRAIN_SECONDS,
                )
            )
            serving.release_memory()
            report(serving.login_link(addresses[0], key, at=opened_at))
            is_asked_here = host in (*NAMES, *EVERYWHERE)
            noted = serving.announce_server(db.settings, port=port_taken) if is_asked_here else nullcontext()
            with noted, serving.serve_metrics(db):
                await until_told(server, listener, stop, (counter.run(), index.run()))


class Uvicorn(uvicorn.Server):
    """The server without handlers of signals: those of the command end it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def until_told(
    server: Uvicorn, listener: socket.socket, stop: asyncio.Event, beside: Iterable[Coroutine[Any, Any, None]]
) -> None:
    """Serve, and do what has no end beside it, until `stop` is set."""
    async with asyncio.TaskGroup() as tasks:
        endless = [tasks.create_task(each) for each in beside]
        serving = tasks.create_task(server.serve(sockets=[listener]), name="serve-pages")
        asked = tasks.create_task(stop.wait(), name="stop-pages")
        await asyncio.wait((serving, asked), return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        asked.cancel()
        for each in endless:
            each.cancel()


@contextmanager
def listening(host: str, port: int | None) -> Iterator[socket.socket]:
    """A socket that listens. Raises StackFailed where the address or the port is not to be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        wanted = USUAL_PORT if port is None else port
        try:
            with suppress(OSError) if port is None else nullcontext():
                listener.bind((host, wanted))
            if not listener.getsockname()[1]:  # the usual one is taken
                listener.bind((host, 0))
            listener.listen()
        except OSError as error:
            raise StackFailed(f"{host} port {wanted} is not to be had: {error.strerror or error}") from error
        yield listener


def addresses_of(host: str, port: int) -> tuple[str, ...]:
    """The addresses at which the server is asked: by the one it listens on, and on this machine by its usual names."""
    names = [] if host in EVERYWHERE else [f"[{host}]" if ":" in host else host]
    names += [name for name in NAMES if host in (*NAMES, *EVERYWHERE) and name != host]
    return tuple(f"http://{name}:{port}" for name in names)
