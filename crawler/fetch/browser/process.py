"""The browser's processes as the system sees them: who they are, what they take, and their bound."""

import contextlib
import os
import resource
import signal
from collections.abc import Collection
from pathlib import Path

PROC = Path("/proc")


def tree_of(pid: int) -> list[int]:
    """A process and all that came of it; empty where it is gone, or the system does not tell."""
    found, left = [], [pid]
    while left:
        pid = left.pop()
        try:
            children = (PROC / str(pid) / "task" / str(pid) / "children").read_text(encoding="ascii")
        except OSError:
            continue
        found.append(pid)
        left += map(int, children.split())
    return found


def child_above(pid: int) -> int | None:
    """The child of ours from which this process came; None where it did not, or the system does not tell."""
    try:
        while (parent := int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])) != os.getpid():
            if parent <= 1:
                return None
            pid = parent
    except OSError:
        return None
    return pid


def memory_of(pid: int) -> tuple[int, int]:
    """Return the memory of a process: bytes of its own, and of files that it shares. Both are 0 where it is gone.

    What it shares without a file (shared buffers, pages of a parent before they are written to) counts as its own.
    """
    found = {"RssAnon": 0, "RssShmem": 0, "RssFile": 0}
    with contextlib.suppress(OSError):
        for line in (PROC / str(pid) / "status").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name in found:
                found[name] = int(value.split()[0]) << 10
    return found["RssAnon"] + found["RssShmem"], found["RssFile"]


def tree_memory(pids: Collection[int]) -> int:
    """Return the memory of a browser's processes in bytes; files, nearly all of them its program, count once."""
    memory = [memory_of(pid) for pid in pids]
    return sum(own for own, _ in memory) + max((shared for _, shared in memory), default=0)


def is_renderer(pid: int) -> bool:
    """Whether a process of the browser's runs the scripts of pages."""
    try:
        return b"--type=renderer" in (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False


def bind_memory(pids: list[int], most_bytes: int) -> None:
    """Bound the private memory of these processes and of all that they will start."""
    if not hasattr(resource, "prlimit"):
        return
    for pid in pids:
        with contextlib.suppress(OSError):  # it is gone
            resource.prlimit(pid, resource.RLIMIT_DATA, (most_bytes, most_bytes))


def kill_tree(pid: int) -> None:
    """End a browser at once, with all its processes."""
    for each in tree_of(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
