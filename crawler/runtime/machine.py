"""Processes, file locks, free ports and private files of the local machine."""

import contextlib
import fcntl
import os
import socket
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

from crawler.errors import StackFailed

# The folders of RECRAWL_HOME.
HOME_FOLDERS = frozenset({"logs", "postgres", "prefect", "report", "run", "search", "tmp"})
OTHERS_MODE = 0o077  # the permissions of group and others
PORTS = range(20_000, 32_000)  # below the ephemeral ports, so no outgoing connection uses one


@dataclass(frozen=True, slots=True)
class Process:
    """A process of this machine. start_id: distinguishes it from a later process with the same id."""

    pid: int
    start_id: str

    def is_running(self) -> bool:
        """Return whether the process still runs; a zombie does not."""
        return read_start_id(self.pid) == self.start_id


def find_process(pid: int) -> Process | None:
    """Return the process that has this id now; None if there is none."""
    found_start_id = read_start_id(pid)
    return Process(pid, found_start_id) if found_start_id is not None else None


def read_start_id(pid: int) -> str | None:
    """Return the start time of a process, a text that differs for each process with this id; None if none runs."""
    try:
        running = psutil.Process(pid)
        if running.status() == psutil.STATUS_ZOMBIE:
            return None
        if not psutil.LINUX:
            return str(running.create_time())
        # In ticks since the boot, because a time would change with the clock. An earlier field, the process name, may
        # contain ")".
        ticks = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
        return None
    return f"{_read_boot_id()}/{ticks}"


@cache
def _read_boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


@contextlib.contextmanager
def hold_lock(lock: Path, *, shared: bool = False, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold a lock file that other processes respect; the system releases it even if the holder is killed.

    shared: whether other shared holders are allowed.  on_wait: called once if the lock is not free.
    """
    mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    with _open_lock(lock) as file:
        if not _try_lock(file, mode):
            if on_wait is not None:
                on_wait()
            fcntl.flock(file, mode)
        yield


@contextlib.contextmanager
def try_hold_lock(lock: Path) -> Iterator[bool]:
    """Hold a lock if it is free, and yield whether it is held."""
    with _open_lock(lock) as file:
        yield _try_lock(file, fcntl.LOCK_EX)


@contextlib.contextmanager
def _open_lock(lock: Path) -> Iterator[int]:
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _build_unusable_error(lock.parent, error) from error
    try:
        yield file
    finally:
        os.close(file)


def _try_lock(file: int, mode: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(file, mode | fcntl.LOCK_NB)
        return True
    return False


def _build_unusable_error(folder: Path, error: OSError) -> StackFailed:
    return StackFailed(f"{folder} cannot be used ({error.strerror}): set RECRAWL_HOME to a folder that you own")


def find_free_port(key: str, *, excluded: tuple[int, ...] = ()) -> int:
    """Return a free loopback port; the same key gives the same port as long as that is free."""
    first = zlib.crc32(key.encode())
    for step in range(len(PORTS)):
        port = PORTS[(first + step) % len(PORTS)]
        if port not in excluded and is_port_free(port):
            return port
    raise StackFailed(f"no port of 127.0.0.1 from {PORTS[0]} to {PORTS[-1]} is free: stop programs that use them")


def is_port_free(port: int) -> bool:
    with socket.socket() as probe:
        # Like servers, because otherwise a port with recently closed connections counts as taken for a minute.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return True
    return False


def choose_port(file: Path, *, default: int, key: str) -> int:
    """Return the recorded port if it is free, otherwise a free one, and record it, so that bookmarks keep working."""
    last = read_recorded_port(file, default=default)
    port = last if is_port_free(last) else find_free_port(key)
    write_private(file, str(port))
    return port


def read_recorded_port(file: Path, *, default: int) -> int:
    """Return the recorded port, else the default."""
    return int(file.read_text(encoding="ascii")) if file.exists() else default


def ensure_private_folder(home: Path, name: str) -> Path:
    """Return HOME/NAME, create it if needed, and deny access to other users. name: one of HOME_FOLDERS.

    HOME also becomes private, unless it has other contents or another owner. Raises StackFailed if it cannot be used.
    """
    folder = home / name
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        home.mkdir(mode=0o700, exist_ok=True)
        if os.geteuid() == home.stat().st_uid and {each.name for each in home.iterdir()} <= HOME_FOLDERS:
            restrict_to_owner(home)
        folder.mkdir(mode=0o700, exist_ok=True)
        if os.geteuid() != folder.stat().st_uid:
            raise StackFailed(f"{folder} belongs to another user: set RECRAWL_HOME to a folder that you own")
        restrict_to_owner(folder)
    except OSError as error:
        raise _build_unusable_error(folder, error) from error
    return folder


def restrict_to_owner(path: Path) -> None:
    """Remove all permissions of group and others."""
    mode = path.stat().st_mode & 0o7777
    if mode & OTHERS_MODE:
        path.chmod(mode & ~OTHERS_MODE)


def write_private(path: Path, text: str) -> None:
    """Write a file atomically; only its owner can read it."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=0o600, exist_ok=False)
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def ensure_secret(file: Path, make: Callable[[], str]) -> str:
    """Return the text of a private file in HOME/run, and create it if needed. make: returns the text of a new file."""
    existing = read_secret(file)
    if existing:
        return existing
    ensure_private_folder(file.parents[1], "run")
    write_private(file, secret := make())
    return secret


def read_secret(file: Path) -> str:
    """Return the text of a file; empty if it is missing."""
    try:
        return file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""


def get_search_file(home: Path) -> Path:
    """Return the file of the full-text index, which may not exist yet, and create its private folder."""
    return ensure_private_folder(home, "search") / "pages.sqlite"
