"""The server process of the web UI and the HTTP API."""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import uvicorn

from crawler.app.database import AppDatabase
from crawler.app.running import serving
from crawler.app.running.serving import DEFAULT_PORT, LOOPBACK_NAMES, DomainCounter, IndexSyncer
from crawler.errors import StackFailed
from crawler.server.access import Authenticator
from crawler.server.app import build_application
from crawler.server.connections import BACKLOG, BoundedConnection
from crawler.server.ui.web import PageServer

Report = Callable[[str], None]

CONNECTIONS = 4  # database connections of `serve`
ALL_INTERFACES = ("0.0.0.0", "::")  # noqa: S104  addresses to listen on; a URL cannot have them as its host


async def serve(db: AppDatabase, *, host: str, port: int | None, report: Report, stop: asyncio.Event) -> None:
    """Serve the web UI and the HTTP API until `stop` is set. Raises StackFailed if it cannot listen.

    report: is called with the login link.  port: None for the default port, or any free one if the default is in use.
    """
    home = db.settings.home.resolve()
    key = serving.ensure_key(home)
    with open_listener(host, port) as listener:
        bound_port = listener.getsockname()[1]
        addresses, started_at = (*db.settings.web_origins, *list_addresses(host, bound_port)), datetime.now(UTC)
        authenticator = Authenticator(key, addresses=addresses, started_at=started_at, port=bound_port)
        async with serving.open_parsers(db.settings) as parsers:
            now = partial(datetime.now, UTC)
            counter, index = DomainCounter(db, now=now), IndexSyncer(home)
            pages = PageServer(db, parsers, authenticator, now, counter, index, home)
            config = uvicorn.Config(
                build_application(pages),
                http=BoundedConnection,
                backlog=BACKLOG,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=5,  # seconds for requests in progress when the server stops
            )
            server = Uvicorn(config)
            serving.release_memory()
            report(serving.login_link(addresses[0], key, at=started_at))
            is_local = host in (*LOOPBACK_NAMES, *ALL_INTERFACES)
            announcement = serving.announce_server(db.settings, port=bound_port) if is_local else nullcontext()
            with announcement, serving.serve_metrics(db):
                await run_until_stopped(server, listener, stop, (counter.run(), index.run()))


class Uvicorn(uvicorn.Server):
    """Uvicorn without signal handlers, because the command has its own."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def run_until_stopped(
    server: Uvicorn, listener: socket.socket, stop: asyncio.Event, background: Iterable[Coroutine[Any, Any, None]]
) -> None:
    """Run the server and the background tasks until `stop` is set or the server ends."""
    async with asyncio.TaskGroup() as tasks:
        background_tasks = [tasks.create_task(each) for each in background]
        serve_task = tasks.create_task(server.serve(sockets=[listener]), name="serve-pages")
        stop_task = tasks.create_task(stop.wait(), name="stop-pages")
        await asyncio.wait((serve_task, stop_task), return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        stop_task.cancel()
        for each in background_tasks:
            each.cancel()


@contextmanager
def open_listener(host: str, port: int | None) -> Iterator[socket.socket]:
    """Open a listening socket. Raises StackFailed if the address or port is not available."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        requested_port = DEFAULT_PORT if port is None else port
        try:
            with suppress(OSError) if port is None else nullcontext():
                listener.bind((host, requested_port))
            if not listener.getsockname()[1]:  # the default port is in use
                listener.bind((host, 0))
            listener.listen()
        except OSError as error:
            message = f"cannot listen on {host} port {requested_port}: {error.strerror or error}"
            raise StackFailed(message) from error
        yield listener


def list_addresses(host: str, port: int) -> tuple[str, ...]:
    """Return the origins of the server: of the host that it listens on, and of the loopback names if they reach it."""
    names = [] if host in ALL_INTERFACES else [f"[{host}]" if ":" in host else host]
    names += [name for name in LOOPBACK_NAMES if host in (*LOOPBACK_NAMES, *ALL_INTERFACES) and name != host]
    return tuple(f"http://{name}:{port}" for name in names)
