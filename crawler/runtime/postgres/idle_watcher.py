"""Stop the embedded Postgres when no command has used it for a while. This is a process of its own.

    python -m crawler.runtime.postgres.idle_watcher HOME/postgres    `cluster.borrow_postgres` starts it

It waits without polling: for the users' lock while commands run, then for the idle time or the end of the server. The
modification time of the lock file says until when the server stays: every user sets it at its start and its end. So
the server also stops if users were killed, and the watcher ends if it has nothing left to stop.
"""

import fcntl
import os
import signal
import sys
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import psutil

from crawler.runtime.machine import hold_lock, try_hold_lock
from crawler.runtime.postgres.server import RunningServer, find_data_major, find_server

LOCK, USERS, KEEP, WATCHER = "lock", "users", "keep", "watcher"  # files of HOME/postgres
LAUNCH_SECONDS = 1  # until a server that is being started has its file with its process id
SHUTDOWN_SECONDS = 300  # for the checkpoint; as long as `server.shut_down` waits


def extend_stay(users: Path, idle_time: timedelta) -> None:
    """Let the server stay for `idle_time` from now on. users: the lock file, which the caller holds."""
    now = time.time()
    # In one call, so that the watcher of a killed user never reads half of it.
    os.utime(users, (now, now + idle_time.total_seconds()))


def watch(folder: Path) -> None:
    """Stop the server of HOME/postgres when it is idle, unless it is kept. Return when it has ended or is kept."""
    while folder.exists():
        with try_hold_lock(folder / WATCHER) as is_only_watcher:
            if not is_only_watcher or not _wait_until_kept(folder):
                return
        # Checked after the release of the lock: whoever lets the server go from now on finds no watcher and starts one.
        if (folder / KEEP).exists():
            return


def _wait_until_kept(folder: Path) -> bool:
    """Return true as soon as the server is kept, and false when it has ended or was stopped."""
    server: RunningServer | None = None
    seen = 0.0
    # Opened once: after the folder was removed or moved, a new one with this path has another watcher.
    users = os.open(folder / USERS, os.O_RDWR | os.O_CLOEXEC)
    try:
        turn = 0
        while True:
            fcntl.flock(users, fcntl.LOCK_EX)  # waits for the users; the last one may have restarted the server
            stay = os.fstat(users)
            if not _is_same_file(users, folder / USERS):
                _stop(server)
                return False
            server = _find_server(folder)
            if server is None and turn > 0:
                return False
            if server is not None and (folder / KEEP).exists():
                return True
            if server is not None and stay.st_mtime == seen:
                with hold_lock(folder / LOCK):
                    _stop(server)
                return False
            fcntl.flock(users, fcntl.LOCK_UN)
            turn += 1
            if server is None:  # a user may have been killed while it started the server
                time.sleep(LAUNCH_SECONDS)
                continue
            seen = stay.st_mtime
            # At most the idle time, also if the clock was set back.
            seconds = min(seen - time.time(), seen - stay.st_atime)
            _wait_for_end(server, seconds=max(seconds, 0))
    finally:
        os.close(users)


def _is_same_file(handle: int, path: Path) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.fstat(handle), path.stat())
    return False


def _find_server(folder: Path) -> RunningServer | None:
    major = find_data_major(folder.parent)
    return find_server(folder / str(major) / "data") if major is not None else None


def _wait_for_end(server: RunningServer, *, seconds: float) -> bool:
    """Wait for the end of the server, and return whether it came in time."""
    with suppress(psutil.NoSuchProcess):
        try:
            psutil.Process(server.pid).wait(seconds)
        except psutil.TimeoutExpired:
            return False
    return True


def _stop(server: RunningServer | None) -> None:
    """Stop the server by signals, which also works after its folder was removed."""
    for number in (signal.SIGINT, signal.SIGQUIT):  # Postgres's fast and immediate shutdown
        if server is None:
            return
        with suppress(ProcessLookupError):
            os.kill(server.pid, number)
        if _wait_for_end(server, seconds=SHUTDOWN_SECONDS):
            return


if __name__ == "__main__":
    watch(Path(sys.argv[1]))
