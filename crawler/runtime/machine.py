"""What the local stack asks of the machine: locks between processes, free ports, and who a process id really is."""

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

PORTS = range(20_000, 32_000)  # below what systems hand out to clients, so no outgoing connection ever sits on one


@dataclass(frozen=True, slots=True)
class Process:
    """A process of this machine. birth tells it from a later process with the same id."""

    pid: int
    birth: str

    def is_running(self) -> bool:
        """Whether it is still there; a zombie is not."""
        return birth(self.pid) == self.birth


def process(pid: int) -> Process | None:
    """The process that has this id now."""
    born = birth(pid)
    return Process(pid, born) if born is not None else None


def birth(pid: int) -> str | None:
    """When a process began, as a text that no other process with this id ever has; None where there is none."""
    try:
        found = psutil.Process(pid)
        if found.status() == psutil.STATUS_ZOMBIE:
            return None
        if not psutil.LINUX:
            return str(found.create_time())
        # In ticks since this boot: as an instant it would move whenever the clock is set. The name before may hold ")".
        ticks = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
        return None
    return f"{boot_id()}/{ticks}"


@cache
def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


@contextlib.contextmanager
def held(lock: Path, *, shared: bool = False, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold a file as a lock between processes; the system frees it when the holder ends, however it ends.

    shared: any number may hold it so, but nobody the other way.  waiting: called once if it has to be waited for.
    """
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    with open_lock(lock) as file:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is not None:
                waiting()
            fcntl.flock(file, how)
        yield


@contextlib.contextmanager
def held_if_free(lock: Path) -> Iterator[bool]:
    """Hold a lock if nobody else does; whether it is held."""
    with open_lock(lock) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextlib.contextmanager
def open_lock(lock: Path) -> Iterator[int]:
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StackFailed(
            f"{lock.parent} cannot be used ({error.strerror}): set RECRAWL_HOME to a folder of yours"
        ) from error
    try:
        yield file
    finally:
        os.close(file)


def free_port(key: str, *, taken: tuple[int, ...] = ()) -> int:
    """A loopback port that nobody listens on, for one key the same one as long as it stays free."""
    first = zlib.crc32(key.encode())
    for step in range(len(PORTS)):
        port = PORTS[(first + step) % len(PORTS)]
        if port not in taken and port_is_free(port):
            return port
    raise StackFailed(f"no port of 127.0.0.1 from {PORTS.start} to {PORTS.stop} is free: stop what uses them")


def port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do it, else a port whose connections have just ended counts as taken for a minute.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
