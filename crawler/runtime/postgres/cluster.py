"""The embedded Postgres: one cluster in HOME/postgres/MAJOR, which is started when needed and shared by all commands.

After a kill -9 it recovers at the next start.
"""

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql
from psycopg.pq import PGconn, Ping

from crawler.errors import StackFailed
from crawler.runtime.machine import ensure_private_folder, hold_lock, try_hold_lock
from crawler.runtime.postgres import idle_watcher, server
from crawler.runtime.postgres.account import choose_server_account, find_owner_account
from crawler.runtime.postgres.binaries import Binaries, choose_installation
from crawler.runtime.postgres.idle_watcher import extend_stay
from crawler.runtime.postgres.server import find_data_major

RESPONSE_SECONDS = 60  # a server that is not running refuses connections at once
EXISTS = (psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation)
log = logging.getLogger("recrawl.postgres")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running Postgres cluster with its connection data."""

    home: Path
    binaries: Binaries
    port: int
    pid: int
    password: str = field(repr=False)

    def build_url(self, database: str) -> str:
        """Return the URL of a database."""
        return f"postgresql://{server.USER}:{quote(self.password)}@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str, *, template: str = "template0") -> None:
        """Create a database from a template, unless it exists."""
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
        # If two commands create it at once, the second may get a unique violation instead of a duplicate error.
        with suppress(*EXISTS):
            self._execute(statement)

    def drop_database(self, name: str) -> None:
        """Drop a database if it exists, even with open connections."""
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def is_responding(self) -> bool:
        """Return whether the server accepts connections; one that was just killed may look alive, but accepts none."""
        return PGconn.ping(f"{self.build_url('postgres')}?connect_timeout={RESPONSE_SECONDS}".encode()) == Ping.OK

    def stop(self) -> None:
        """Stop the server if it runs, even with open connections. Committed data is kept."""
        with hold_lock(_get_lock_file(self.home)):
            if find_running_postgres(self.home) is None:
                return
            with server.open_programs(self.binaries, self.home, find_owner_account(self.data_folder)) as programs:
                server.shut_down(programs)

    @property
    def data_folder(self) -> Path:
        """The data folder."""
        return self.home / "postgres" / str(self.binaries.major) / "data"

    def _execute(self, statement: sql.Composed) -> None:
        url = self.build_url("postgres")
        try:
            with psycopg.connect(url, autocommit=True, connect_timeout=RESPONSE_SECONDS) as connection:
                connection.execute(statement)
        except psycopg.Error as error:
            if isinstance(error, EXISTS):
                raise
            raise StackFailed(f"the embedded Postgres reported an error: {' '.join(str(error).split())}") from error


def ensure_postgres(home: Path, *, durable: bool = True) -> Cluster:
    """Return the Postgres of `home`; create and start it if needed. Concurrent calls of several processes are safe.

    durable: false for tests, where a crash of the machine may lose all data. Raises StackFailed if there is no program,
    disk space or port, if the data has another major version, or if it belongs to another user.
    """
    home = home.resolve()
    ensure_private_folder(home, "postgres")
    with hold_lock(_get_lock_file(home)):
        return find_running_postgres(home) or _start_cluster(home, durable=durable)


@contextmanager
def borrow_postgres(home: Path, *, idle_time: timedelta = timedelta(0)) -> Iterator[Cluster]:
    """Run the Postgres of `home` during the block; the last user stops it, unless `keep_postgres` was called.

    If the server is killed meanwhile, for example by the OOM killer, it is restarted, on the same port if that is free.
    idle_time: how long the server then waits for the next user before it stops; see `idle_watcher`.
    """
    users = _get_users_file(home)
    try:
        with hold_lock(users, shared=True):
            if idle_time:
                extend_stay(users, idle_time)
                _ensure_watcher(users.parent)  # first, so that a kill at any later time leaves it
            cluster = ensure_postgres(home)
            with _keep_running(cluster):
                try:
                    yield cluster
                finally:
                    extend_stay(users, idle_time)
    finally:
        _stop_if_unused(home, is_watched=bool(idle_time))


@contextmanager
def _keep_running(cluster: Cluster) -> Iterator[None]:
    """Restart the server if it ends during the block. A thread does this, because callers may block on the server."""
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(1):
            if server.find_server(cluster.data_folder) is not None:
                continue
            try:
                started = ensure_postgres(cluster.home)
            except StackFailed as error:  # a full disk, for example, may have space again later
                log.warning("postgres.down", extra={"error": str(error)})
            else:
                log.warning("postgres.restarted", extra={"port": started.port})

    watcher = threading.Thread(target=watch, name="postgres", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()


def keep_postgres(home: Path) -> Cluster:
    """Start the Postgres of `home`, and keep it running until `release_postgres`."""
    with hold_lock(_get_users_file(home), shared=True):
        cluster = ensure_postgres(home)
        _get_keep_file(home).touch(mode=0o600)
        return cluster


def release_postgres(home: Path) -> bool:
    """End `keep_postgres`. Return whether the server is stopped now; false if it has other users."""
    _get_keep_file(home).unlink(missing_ok=True)
    is_stopped = _stop_if_unused(home)
    if not is_stopped:  # the users found no need for a watcher while the server was kept, and may be killed
        _ensure_watcher(_get_users_file(home).parent)
    return is_stopped


def _stop_if_unused(home: Path, *, is_watched: bool = False) -> bool:
    """Stop the server unless it has users or `keep_postgres` was called. Return whether it is stopped.

    is_watched: leave the stop to the watcher, and start one if there is none, as after `release_postgres`.
    """
    with try_hold_lock(_get_users_file(home)) as is_alone:
        is_idle = is_alone and not _get_keep_file(home).exists()
        if is_watched:
            if is_idle:
                _ensure_watcher(_get_users_file(home).parent)
            return False
        cluster = find_running_postgres(home)
        if cluster is not None and is_idle:
            cluster.stop()
            return True
        return cluster is None


def _ensure_watcher(folder: Path) -> None:
    """Start the process that stops an idle server, unless it is running or the server is kept."""
    if (folder / idle_watcher.KEEP).exists():
        return
    with try_hold_lock(folder / idle_watcher.WATCHER) as is_missing:
        if not is_missing:
            return
    child = subprocess.Popen(
        [sys.executable, "-m", idle_watcher.__name__, str(folder)],
        cwd=Path(__file__).parents[3],  # finds the same code as this process, also in a checkout
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a terminal interrupts and closes the whole group
    )
    # If the watcher ends before this process, the thread reads its exit code; otherwise it would stay a zombie.
    threading.Thread(target=child.wait, daemon=True).start()


def find_idle_end(home: Path) -> datetime | None:
    """Return when the running server stops if nothing uses it; None if it is kept or the time has passed."""
    if _get_keep_file(home).exists():
        return None
    stays_until = datetime.fromtimestamp(_get_users_file(home).stat().st_mtime, UTC)
    return stays_until if stays_until > datetime.now(UTC) else None


def _get_users_file(home: Path) -> Path:
    return ensure_private_folder(home.resolve(), "postgres") / idle_watcher.USERS


def _get_keep_file(home: Path) -> Path:
    return home.resolve() / "postgres" / idle_watcher.KEEP


def _get_lock_file(home: Path) -> Path:
    return home / "postgres" / idle_watcher.LOCK


def find_running_postgres(home: Path) -> Cluster | None:
    """Return the Postgres of `home` if it is running and accepts connections, else None. Raises StackFailed."""
    home = home.resolve()
    major = find_data_major(home)
    if major is None:
        return None
    folder = home / "postgres" / str(major)
    try:
        running = server.find_server(folder / "data")
        if running is None or not running.is_ready:
            return None
        password = (folder / "password").read_text(encoding="utf-8")
    except PermissionError as error:
        raise StackFailed(f"{folder} belongs to another user: set RECRAWL_HOME to a folder that you own") from error
    cluster = Cluster(home, choose_installation(major, folder), running.port, running.pid, password)
    return cluster if cluster.is_responding() else None


def _start_cluster(home: Path, *, durable: bool) -> Cluster:
    """Start the cluster of `home`, and create it if needed. The caller holds the lock."""
    major = find_data_major(home)
    binaries = choose_installation(major, home / "postgres" / str(major))
    try:
        with server.open_programs(binaries, home, choose_server_account()) as programs:
            if major is None:
                server.make_cluster(programs)
            server.launch_server(programs, server.build_options(durable=durable))
    except OSError as error:
        raise StackFailed(f"the embedded Postgres of {home} cannot be started: {error.strerror or error}") from error
    started = find_running_postgres(home)
    if started is None:
        raise StackFailed(f"the embedded Postgres ended right after its start: see {programs.log}")
    return started
